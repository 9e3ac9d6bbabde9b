/* SPDX-License-Identifier: Apache-2.0 */
/* sbx create --clone: copies the repository and the uncommitted files into the new sandbox. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/api.h"
#include "carry.h"
#include "clone.h"
#include "git.h"
#include "remote_config.h"
#include "transfer.h"

#define MAX_REMOTES 16
#define MAX_TRIES 16

/* The state of the host repository. */
struct state {
	char *branch; /* of HEAD; NULL: detached */
	char *head;   /* commit; NULL: none yet */
};

static void state_done(struct state *s)
{
	free(s->branch);
	free(s->head);
}

static void read_state(const struct repo *repo, struct state *s)
{
	static const char *const branch[] = {"symbolic-ref", "-q", "--short", "HEAD", NULL};
	static const char *const head[] = {"rev-parse", "--verify", "-q", "HEAD^{commit}", NULL};

	s->branch = git_line(repo->top, NULL, branch);
	s->head = git_line(repo->top, NULL, head);
}

static int check_branch(const struct repo *repo, const char *branch, struct problem *p)
{
	AUTO_FREE char *full = xasprintf("refs/heads/%s", branch);
	const char *args[] = {"rev-parse", "--verify", "-q", full, NULL};
	AUTO_FREE char *there = NULL;

	if (!refs_is_name(full)) {
		(void)err_set(&p->err, -EINVAL, "invalid --branch '%s'", branch);
		return problem_usage(p, -EINVAL, "create");
	}
	there = git_line(repo->top, NULL, args);
	if (!there)
		return 0;
	(void)err_set(&p->err, -EEXIST,
		"branch '%s' already exists in the repository: use another --branch", branch);
	return problem_hint(p, -EEXIST, "git -C '%.200s' branch", repo->top);
}

int clone_check(const struct clone_want *want, const char *sandbox, struct problem *p)
{
	AUTO_FREE char *remote = xasprintf("refs/heads/sandbox-%s", sandbox);
	AUTO_REPO struct repo repo = {0};
	int r = refs_is_name(remote) ? repo_open(want->host, NULL, &repo, p)
				     : err_set(&p->err, -EINVAL,
					       "'sandbox-%s' is not a name for a git remote: use "
					       "another --name",
					       sandbox);

	if (r < 0)
		return r;
	if (!repo.top)
		return err_set(
			&p->err, -EINVAL, "'%s' is a repository without a work tree", want->host);
	if (strcmp(repo.top, want->host) != 0) {
		(void)err_set(&p->err, -EINVAL,
			"'%s' is not the top directory of its repository, which is '%s'",
			want->host, repo.top);
		return problem_hint(p, -EINVAL, "cd '%.200s'", repo.top);
	}
	if (want->carry->n > CLONE_MAX_CARRY)
		return err_set(&p->err, -E2BIG, "more than %d --carry patterns", CLONE_MAX_CARRY);
	return want->branch ? check_branch(&repo, want->branch, p) : 0;
}

/* ---- the refs that the clone gets ---- */

static bool is_other_sandbox(const char *ref)
{
	return str_starts(ref, "refs/remotes/sandbox-") || str_ends(ref, "/HEAD");
}

/* Branches become remote-tracking branches of `host`; tags and those of remotes stay. */
static void put_ref(FILE *f, const char *oid, const char *ref)
{
	static const char heads[] = "refs/heads/", mine[] = "refs/remotes/host/";

	if (str_starts(ref, heads))
		fprintf(f, "%s %s%s\n", oid, mine, ref + strlen(heads));
	else if (!is_other_sandbox(ref) && !str_starts(ref, mine))
		fprintf(f, "%s %s\n", oid, ref);
}

static char *list_refs(
	const struct repo *repo, const struct state *s, const char *branch, const struct carry *c)
{
	static const char *const args[] = {"for-each-ref", "--format=%(objectname) %(refname)",
		"refs/heads", "refs/tags", "refs/remotes", NULL};
	AUTO_FREE char *list = git_line(repo->top, NULL, args);
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	for (char *s1 = list ? strtok(list, "\n") : NULL; f && s1; s1 = strtok(NULL, "\n")) {
		char *space = strchr(s1, ' ');

		if (!space)
			continue;
		*space = '\0';
		put_ref(f, s1, space + 1);
	}
	if (f && s->head && branch)
		fprintf(f, "%s refs/heads/%s\n", s->head, branch);
	else if (f && s->head)
		fprintf(f, "%s refs/sbx/carry/head\n", s->head);
	if (f && c->tree)
		fprintf(f, "%s refs/sbx/carry/tree\n", c->tree);
	if (f && c->tree && c->staged)
		fprintf(f, "%s refs/sbx/carry/index\n", c->staged);
	if (f)
		(void)fclose(f);
	return text;
}

/* ---- in the guest ---- */

/* As root: the place may be below directories that do not exist yet. */
static int make_place(const struct transfer *pl, struct problem *p)
{
	static const char script[] =
		"set -e; mkdir -p -- \"$1\"; "
		"[ -z \"$(ls -A -- \"$1\")\" ] || { echo \"$1 is not empty\" >&2; exit 1; }; "
		"chown \"$2\" -- \"$1\"";
	AUTO_FREE char *owner = xasprintf("%u:%u", (unsigned)getuid(), (unsigned)getgid());
	const char *argv[] = {"sh", "-c", script, "sh", pl->guest, owner, NULL};

	return transfer_run(pl, "root", argv, NULL, NULL, p);
}

static int init_clone(const struct transfer *pl, const char *branch, struct problem *p)
{
	AUTO_FREE char *format = xasprintf("--object-format=%s", pl->repo.format);
	AUTO_FREE char *initial = xasprintf("--initial-branch=%s", branch ? branch : "main");
	const char *argv[] = {"git", "init", "-q", format, initial, "--", pl->guest, NULL};

	return transfer_run(pl, NULL, argv, NULL, NULL, p);
}

/* The first line about a refused ref. */
static int say_refused(const char *report, struct problem *p)
{
	const char *line = strstr(report, "!\t");
	AUTO_FREE char *text = xstrndup(line, strcspn(line, "\n"));

	ui_clean(text);
	return err_set(&p->err, -EIO, "git in the sandbox refused a ref: %.300s", text);
}

/* git reports one ref of those that share a new shallow commit, so such a push is repeated. */
static int push_seed(
	const struct transfer *pl, const char *refs, const char *objects, struct problem *p)
{
	static const char *const specs[] = {"+refs/*:refs/*", NULL};
	int tries = access(pl->repo.shallow, F_OK) == 0 ? MAX_TRIES : 1;
	int r = refs && refs[0] ? -EREMOTEIO : 0;

	for (; r == -EREMOTEIO && tries > 0; tries--) {
		struct transfer_push t = {
			.refs = refs, .specs = specs, .objects = objects, .seed = true};

		r = transfer_push(pl, &t, p);
		if (r == -EREMOTEIO && tries == 1)
			r = say_refused(t.report, p);
		free(t.report);
	}
	return r < 0 ? err_wrap(&p->err, r, "cannot copy the repository to the sandbox") : 0;
}

/* HEAD, the files and the index; the refs that carried them are removed. Then remotes: pairs of
 * name and URL. */
static const char finish[] =
	"set -e; cd -- \"$1\"; branch=$2; head=$3; remote=$4; merge=$5; shift 5\n"
	"has() { git rev-parse -q --verify \"$1\" >/dev/null; }\n"
	"if [ -n \"$branch\" ]; then git symbolic-ref HEAD \"refs/heads/$branch\"\n"
	"else git update-ref --no-deref HEAD refs/sbx/carry/head; fi\n"
	"if has refs/sbx/carry/tree; then\n"
	"  git read-tree --reset -u refs/sbx/carry/tree\n"
	"  if has refs/sbx/carry/index; then git read-tree refs/sbx/carry/index\n"
	"  elif has HEAD; then git read-tree HEAD; else git read-tree --empty; fi\n"
	"elif has HEAD; then git read-tree --reset -u HEAD; fi\n"
	"git for-each-ref --format='delete %(refname)' refs/sbx | git update-ref --stdin\n"
	"git update-index -q --refresh || :\n"
	"while [ $# -gt 1 ]; do\n"
	"  git config \"remote.$1.url\" \"$2\"\n"
	"  git config \"remote.$1.fetch\" \"+refs/heads/*:refs/remotes/$1/*\"; shift 2; done\n"
	"if [ -n \"$head\" ] && has \"$head\"; then\n"
	"  git symbolic-ref refs/remotes/origin/HEAD \"$head\"; fi\n"
	"if [ -n \"$merge\" ]; then git config \"branch.$branch.remote\" \"$remote\"\n"
	"  git config \"branch.$branch.merge\" \"$merge\"; fi\n";

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

static int finish_clone(const struct transfer *pl, const struct clone_want *want,
	const struct state *s, struct problem *p)
{
	static const char *const args[] = {"symbolic-ref", "-q", "refs/remotes/origin/HEAD", NULL};
	const char *branch = want->branch ? want->branch : s->branch;
	AUTO_FREE char *origin = git_line(pl->repo.top, NULL, args);
	AUTO_FREE char *remote = NULL, *merge = NULL;
	const char *argv[9 + 2 * MAX_REMOTES + 1] = {
		"sh", "-c", finish, "sh", pl->guest, or_empty(branch), or_empty(origin)};
	CLEANUP(remote_list_done) struct remote_list list = {0};
	size_t n = 7;

	remote_list_read(&pl->repo, &list);
	if (!want->branch && s->branch)
		remote_tracking(&pl->repo, s->branch, &list, &remote, &merge);
	argv[n++] = or_empty(remote);
	argv[n++] = or_empty(merge);
	for (size_t i = 0; i < list.n && i < MAX_REMOTES; i++) {
		argv[n++] = list.name[i];
		argv[n++] = list.url[i];
	}
	return transfer_run(pl, NULL, argv, NULL, NULL, p);
}

static int fill_clone(const struct clone_want *want, const struct transfer *pl, struct problem *p)
{
	CLEANUP(state_done) struct state s = {0};
	AUTO_CARRY struct carry c = {0};
	AUTO_FREE char *refs = NULL;
	const char *branch;
	int r;

	read_state(&pl->repo, &s);
	branch = want->branch ? want->branch : s.branch;
	r = carry_make(&pl->repo, pl->id, s.head, want->carry, &c, p);
	if (r == 0)
		r = make_place(pl, p);
	if (r == 0)
		r = init_clone(pl, branch, p);
	if (r == 0) {
		refs = list_refs(&pl->repo, &s, branch, &c);
		r = push_seed(pl, refs, c.objects, p);
	}
	return r == 0 ? finish_clone(pl, want, &s, p) : r;
}

int clone_seed(const struct clone_want *want, const json_t *sandbox, struct problem *p)
{
	AUTO_TRANSFER struct transfer pl = {0};
	int r = transfer_of(sandbox, &pl, p);

	if (r == 0)
		r = repo_open(want->host, NULL, &pl.repo, p);
	if (r == 0)
		r = fill_clone(want, &pl, p);
	return r == 0 ? remote_add(&pl.repo, pl.ref, p) : r;
}
