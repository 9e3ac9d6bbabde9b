/* SPDX-License-Identifier: Apache-2.0 */
/* The line at the end of a session: how many commits the host repository does not have. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/sandbox.h"
#include "src/sbx/session/session.h"
#include "clone.h"
#include "git.h"
#include "refs.h"
#include "repo.h"

#define MAX_KNOWN 500 /* commits of the host that the sandbox is asked to leave out, newest first */
#define MAX_COUNT 1000000

/* Commits of the host; those that the sandbox does not have are ignored there. Returns the length
 * of argv. The caller frees *ret_list. */
static size_t add_known(
	const struct repo *repo, const char **argv, size_t n, size_t room, char **ret_list)
{
	static const char *const args[] = {
		"for-each-ref", "--format=%(objectname)", "--sort=-creatordate", NULL};
	char *save = NULL;

	*ret_list = git_line(NULL, repo->git_dir, args);
	for (char *s = *ret_list ? strtok_r(*ret_list, "\n", &save) : NULL; s && n < room;
		s = strtok_r(NULL, "\n", &save))
		if (refs_is_oid(slice_from_str(s), repo_hex(repo)))
			argv[n++] = s;
	return n;
}

/* The number that the sandbox reports: a guest's, so it is only shown. */
static int count_commits(const json_t *sandbox, struct problem *p)
{
	const json_t *clone = json_object_get(sandbox, "clone");
	const char *argv[MAX_KNOWN + 12] = {"git", "-C", api_str(clone, "guest"), "rev-list",
		"--count", "--ignore-missing", "--branches", "HEAD", "--not"};
	AUTO_REPO struct repo repo = {0};
	AUTO_FREE char *list = NULL;
	struct guest_run g = {
		.ref = api_str(sandbox, "name"), .argv = argv, .max_ms = CLONE_NOTE_MS};
	uint64_t n = 0;
	int r = repo_open(api_str(clone, "host"), NULL, &repo, p);

	if (r < 0)
		return r;
	(void)add_known(&repo, argv, 9, MAX_KNOWN + 9, &list);
	r = guest_run(&g, p);
	if (r == 0) {
		size_t len = strlen(g.out);

		if (len > 0 && g.out[len - 1] == '\n')
			g.out[len - 1] = '\0';
		r = str_to_u64(g.out, 0, MAX_COUNT, &n) < 0 ? -EBADMSG : (int)n;
	}
	free(g.out);
	return r;
}

void clone_note(const json_t *sandbox)
{
	const char *host = api_str(json_object_get(sandbox, "clone"), "host");
	const char *name = api_str(sandbox, "name");
	struct problem p = {0};
	/* not started for a number */
	int n = sandbox_is(sandbox, "running") ? count_commits(sandbox, &p) : -EAGAIN;

	if (n < 0)
		ui_note("Commits stay in the sandbox until they are fetched: "
			"git -C '%s' fetch sandbox-%s",
			host, name);
	else if (n > 0)
		ui_note("%d commit%s not fetched: git -C '%s' fetch sandbox-%s", n,
			n == 1 ? " was" : "s were", host, name);
	else if (ui_is_terminal())
		ui_note("All commits of the sandbox are in the repository");
}
