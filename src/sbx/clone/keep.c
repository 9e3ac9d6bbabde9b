/* SPDX-License-Identifier: Apache-2.0 */
/* sbx rm of a clone: fetches commits that the host does not have into refs/sbx/NAME. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/sandbox.h"
#include "clone.h"
#include "git.h"
#include "lost.h"
#include "remote_config.h"
#include "transfer.h"

static int keep_lost(const struct transfer *pl, const struct lost *l, struct problem *p)
{
	int r = lost_fetch(pl, l, p);

	if (r < 0)
		return r;
	ui_warning("sandbox '%s' has commits that were not fetched: kept in refs/sbx/%s", pl->ref,
		pl->ref);
	ui_hint("git -C '%s' log refs/sbx/%s/%s", pl->repo.git_dir, pl->ref, l->names[0]);
	return 0;
}

static int keep_all(const json_t *sandbox, struct problem *p)
{
	const char *host = api_str(json_object_get(sandbox, "clone"), "host");
	AUTO_TRANSFER struct transfer pl = {0};
	AUTO_REFS struct refs refs = {0};
	AUTO_LOST struct lost lost = {0};
	int r = transfer_of(sandbox, &pl, p);

	if (r == 0)
		r = repo_open(host, NULL, &pl.repo, p);
	if (r == 0)
		r = sandbox_start(pl.ref, NULL, NULL, p);
	if (r == 0)
		r = transfer_list(&pl, &refs, p);
	if (r < 0)
		return r;
	lost_find(&pl.repo, &refs, &lost);
	return lost.n > 0 ? keep_lost(&pl, &lost, p) : 0;
}

int clone_keep(const json_t *sandbox, struct problem *p)
{
	const char *name = api_str(sandbox, "name");
	int r = json_object_get(sandbox, "clone") ? keep_all(sandbox, p) : 0;

	if (r == 0)
		return 0;
	(void)err_wrap(&p->err, r, "cannot keep the commits of sandbox '%s'", name);
	return problem_hint(p, r, "sbx rm --discard %s", name);
}

/* ---- after the removal ---- */

/* "OID refs/remotes/sandbox-NAME/BRANCH": kept unless a branch or tag of the user has it. */
static int end_tracking(const struct repo *repo, const char *sandbox, char *line, struct problem *p)
{
	static const char *const where[] = {"refs/heads", "refs/tags", "refs/sbx", NULL};
	AUTO_FREE char *prefix = xasprintf("refs/remotes/sandbox-%s/", sandbox);
	char *ref = strchr(line, ' ');
	const char *args[] = {"update-ref", "--no-deref", "-d", NULL, NULL};
	struct git_run g = {.git_dir = repo->git_dir, .args = args};
	int r = 0;

	if (!ref || !str_starts(ref + 1, prefix))
		return 0;
	*ref++ = '\0';
	if (!lost_is_kept(repo, line, where))
		r = lost_keep_ref(repo, sandbox, ref + strlen(prefix), line, p);
	if (r < 0)
		return r;
	args[3] = ref;
	r = git_must(&g, "cannot remove a remote-tracking branch", &p->err);
	free(g.out);
	return r;
}

static int end_all_tracking(const struct repo *repo, const char *sandbox, struct problem *p)
{
	AUTO_FREE char *below = xasprintf("refs/remotes/sandbox-%s", sandbox);
	const char *args[] = {"for-each-ref", "--format=%(objectname) %(refname)", below, NULL};
	AUTO_FREE char *list = git_line(NULL, repo->git_dir, args);
	char *save = NULL;
	int r = 0;

	for (char *s = list ? strtok_r(list, "\n", &save) : NULL; r == 0 && s;
		s = strtok_r(NULL, "\n", &save))
		r = end_tracking(repo, sandbox, s, p);
	return r;
}

void clone_forget(const json_t *sandbox)
{
	const json_t *clone = json_object_get(sandbox, "clone");
	const char *name = api_str(sandbox, "name");
	AUTO_REPO struct repo repo = {0};
	struct problem p = {0};
	int r;

	if (!clone || repo_open(api_str(clone, "host"), NULL, &repo, &p) < 0)
		return; /* the repository was removed too */
	r = end_all_tracking(&repo, name, &p);
	if (r == 0)
		r = remote_remove(&repo, name, &p);
	if (r < 0)
		ui_warning("cannot remove the remote sandbox-%s: %s", name, p.err.text);
}

void clone_rename(const json_t *sandbox, const char *to)
{
	const json_t *clone = json_object_get(sandbox, "clone");
	AUTO_FREE char *from = xasprintf("sandbox-%s", api_str(sandbox, "name")),
		       *name = xasprintf("sandbox-%s", to);
	const char *args[] = {"remote", "rename", "--no-progress", from, name, NULL};
	AUTO_REPO struct repo repo = {0};
	struct problem p = {0};
	struct git_run g = {.args = args};
	int r = clone ? repo_open(api_str(clone, "host"), NULL, &repo, &p) : -ENOENT;

	if (r < 0)
		return;
	g.git_dir = repo.git_dir;
	r = git_must(&g, "git remote rename", &p.err);
	free(g.out);
	if (r == 0)
		r = remote_add(&repo, to, &p);
	if (r < 0)
		ui_warning("cannot rename the remote %s: %s", from, p.err.text);
}

void clone_fork(const json_t *sandbox, const char *name)
{
	const json_t *clone = json_object_get(sandbox, "clone");
	AUTO_REPO struct repo repo = {0};
	struct problem p = {0};
	int r;

	if (!clone)
		return;
	r = repo_open(api_str(clone, "host"), NULL, &repo, &p);
	if (r == 0)
		r = remote_add(&repo, name, &p);
	if (r < 0)
		ui_warning("cannot add the remote sandbox-%s: %s", name, err_text(&p.err, r));
}
