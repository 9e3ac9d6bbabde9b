/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/settings/settings.h"
#include "lib/vm/share/place.h"
#include "lib/wire/tar/tree.h"
#include "lib/client/api/sandbox.h"
#include "attach.h"
#include "cp_between.h"
#include "lib/client/api/cp_dest.h"
#include "lib/client/api/out_place.h"
#include "lib/client/cli/quote.h"
#include "session_run.h"
#include "session.h"

#define QUIET_MS 1000 /* shorter copies show no progress */

static const struct opt_def opts[] = {
	{'L', "follow-link", NULL, "if SRC is a symlink, copy its target"},
	{'q', "quiet", NULL, "do not print what was copied"},
	{0},
};

/* One side of a copy. */
struct place {
	char *ref; /* NULL: on the host */
	const char *path;
};

/* Report of the half on the host, sent through a pipe at its end. */
struct report {
	int r;
	struct tree_count n;
	struct err err;
};

struct copy {
	struct place src, dst;
	bool follow, quiet;
	char as[256];	     /* the name of the source in a destination directory */
	struct cp_dest dest; /* the side on the host, resolved */
	struct tree_guard guard;
	struct stat *closed; /* of guard */
};

static uint64_t began_ms; /* for show_bytes, which has no argument for it */

static void place_done(struct place *p)
{
	free(p->ref);
}

/* NAME:PATH is in a sandbox; a slash or a dot before the colon makes it a file of the host. */
static void parse_place(const char *arg, struct place *ret)
{
	const char *colon = strchr(arg, ':');

	*ret = (struct place){.path = arg};
	if (!colon || colon == arg || memchr(arg, '/', (size_t)(colon - arg)) || arg[0] == '.')
		return;
	ret->ref = xstrndup(arg, (size_t)(colon - arg));
	ret->path = colon + 1;
}

static void show_bytes(struct session *s)
{
	char text[64], size[32];

	if (clock_mono_ms() - began_ms < QUIET_MS)
		return;
	str_from_size(s->n_in + s->n_out, size, sizeof(size));
	(void)snprintf(text, sizeof(text), "copying: %s", size);
	ui_busy(text);
}

/* ---- the half on the host, in a child: reads or writes the archive ---- */

static int unpack_in_workspace(const struct copy *c, int archive, struct report *rep)
{
	AUTO_CLOSE int root = place_open(c->dest.root, &rep->err);

	if (root < 0)
		return root == -ELOOP ? -EBADMSG : root; /* -ELOOP is for its contents */
	return tree_unpack_guarded(
		archive, root, c->dest.path, c->as, &c->guard, &rep->n, &rep->err);
}

static int pack_in_workspace(const struct copy *c, int archive, struct report *rep)
{
	AUTO_CLOSE int root = place_open(c->dest.root, &rep->err);

	if (root < 0)
		return root == -ELOOP ? -EBADMSG : root;
	return tree_pack_beneath(
		root, c->dest.path, c->follow ? TREE_FOLLOW : 0, archive, &rep->n, &rep->err);
}

static void host_half(const struct copy *c, int archive, int report_fd)
{
	struct report rep = {0};

	if (c->dst.ref && c->dest.root)
		rep.r = pack_in_workspace(c, archive, &rep);
	else if (c->dst.ref)
		rep.r = tree_pack_path(
			c->dest.path, c->follow ? TREE_FOLLOW : 0, archive, &rep.n, &rep.err);
	else if (c->dest.root)
		rep.r = unpack_in_workspace(c, archive, &rep);
	else
		rep.r = tree_unpack_guarded(
			archive, -1, c->dest.path, c->as, &c->guard, &rep.n, &rep.err);
	_exit(fd_write_all(report_fd, &rep, sizeof(rep)) < 0);
}

/* Returns the child's pid and the fds that stay here. */
static pid_t start_host_half(const struct copy *c, int *ret_archive, int *ret_report)
{
	int archive[2], report[2];
	pid_t pid;

	if (pipe2(archive, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(report, O_CLOEXEC) < 0) {
		(void)close(archive[0]);
		(void)close(archive[1]);
		return -errno;
	}
	pid = fork();
	if (pid == 0) {
		/* A reader that holds a writer's end would wait for itself. */
		(void)close(archive[c->dst.ref ? 0 : 1]);
		host_half(c, archive[c->dst.ref ? 1 : 0], report[1]);
	}
	(void)close(archive[c->dst.ref ? 1 : 0]);
	(void)close(report[1]);
	*ret_archive = archive[c->dst.ref ? 0 : 1];
	*ret_report = report[0];
	return pid < 0 ? -EAGAIN : pid;
}

static void take_report(pid_t pid, int report_fd, struct report *ret)
{
	if (fd_read_full(report_fd, ret, sizeof(*ret)) != (ssize_t)sizeof(*ret))
		*ret = (struct report){
			.r = err_set(&ret->err, -EIO, "the copy process exited unexpectedly")};
	(void)waitpid(pid, NULL, 0);
}

/* ---- the half in the sandbox: a builtin of sbx-guest ---- */

static int guest_half(const struct copy *c, int archive, struct session *s, struct problem *p)
{
	const char *pack[] = {
		"pack", c->follow ? "-L" : c->src.path, c->follow ? c->src.path : NULL, NULL};
	const char *unpack[] = {"unpack", c->dst.path, c->as, NULL};
	const char *ref = c->dst.ref ? c->dst.ref : c->src.ref;
	static struct session_link link; /* the session is the caller's and outlives this call */
	/* `unpack` prints nothing. Output of a compromised guest must not reach the terminal. */
	AUTO_CLOSE int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int conn = null < 0 ? -errno : api_stream(ref, API_TIMEOUT_MS, p);

	if (null < 0)
		return err_errno(&p->err, conn, "cannot open /dev/null");
	if (conn < 0)
		return conn;
	link = attach_link(ref);
	s->link = &link;
	s->spec.flags = (uint8_t)(EXEC_F_BUILTIN | (c->dst.ref ? EXEC_F_STDIN : 0));
	s->spec.user = (char *)"root";
	s->spec.cwd = (char *)"/";
	s->spec.argv = (char **)(c->dst.ref ? unpack : pack);
	s->in_fd = c->dst.ref ? archive : -1;
	s->out_fd = c->dst.ref ? null : archive;
	s->err_fd = STDERR_FILENO;
	return session_run(s, conn, p);
}

static int say_guest_failed(int status, const char *text, struct problem *p)
{
	size_t n = strcspn(text, "\n");

	if (n > 0)
		return err_set(
			&p->err, -EIO, "in the sandbox: %.*s", (int)MIN(n, (size_t)400), text);
	return err_set(
		&p->err, -EIO, "the copy process in the sandbox exited with status %d", status);
}

/* Replaces the error about a symlink in a workspace by one with its path and a command. */
static int say_link(const struct copy *c, struct problem *p)
{
	AUTO_FREE char *whole = xasprintf("%s/%s", c->dest.root, c->dest.path);
	AUTO_FREE char *link = place_find_link(whole);
	AUTO_FREE char *quoted = quote_sh(link);

	(void)err_set(&p->err, -ELOOP,
		"'%.300s' is a symbolic link in the workspace %.300s, and a sandbox can create such links: use the path it points to, if that is %s",
		link, c->dest.root,
		c->dst.ref ? "what should be copied" : "where the copy should go");
	if (strlen(quoted) + sizeof("readlink -f -- ") > sizeof(p->hint))
		return problem_hint(p, -ELOOP, "sbx cp --help");
	return problem_hint(p, -ELOOP, "readlink -f -- %s", quoted);
}

/* Finds the first failure: a half that stops breaks the pipe of the other. */
static int judge_cp(const struct copy *c, int status, const struct report *rep,
	const char *guest_text, struct problem *p)
{
	bool pipe_broke = status == 128 + SIGPIPE;
	/* Then nothing was sent, or not all of it, and the sandbox reports it missing. */
	bool at_source = c->dst.ref && rep->r != -EPIPE;

	if (rep->r < 0 && (status == 0 || pipe_broke || at_source)) {
		p->err = rep->err;
		return rep->r == -ELOOP && c->dest.root ? say_link(c, p) : rep->r;
	}
	if (status < 0)
		return status;
	if (status > 0)
		return say_guest_failed(status, guest_text, p);
	return 0;
}

static int run_copy(const struct copy *c, struct tree_count *ret_n, struct problem *p)
{
	char guest_text[1024] = "";
	struct session s = {
		.err_text = guest_text, .err_size = sizeof(guest_text), .tick = show_bytes};
	AUTO_CLOSE int archive = -1, report = -1;
	struct report rep = {0};
	pid_t pid;
	int status;

	pid = start_host_half(c, &archive, &report);
	if (pid < 0)
		return err_errno(&p->err, (int)pid, "cannot start the copy process");
	status = guest_half(c, archive, &s, p);
	fd_close(&archive);
	take_report(pid, report, &rep);
	*ret_n = rep.n;
	return judge_cp(c, status, &rep, guest_text, p);
}

/* The archive itself to stdout. */
static int stream_out(const struct copy *c, struct problem *p)
{
	char guest_text[1024] = "";
	struct session s = {.err_text = guest_text, .err_size = sizeof(guest_text)};
	int status;

	if (isatty(STDOUT_FILENO))
		return err_set(&p->err, -EINVAL, "refusing to write an archive to a terminal");
	status = guest_half(c, STDOUT_FILENO, &s, p);
	return status > 0 ? say_guest_failed(status, guest_text, p) : status;
}

static int check_places(const struct copy *c, struct problem *p)
{
	const struct place *inside = c->src.ref ? &c->src : &c->dst;

	if (!c->src.ref && !c->dst.ref) {
		(void)err_set(&p->err, -EINVAL,
			"SRC or DST must be in a sandbox: expected SANDBOX:/PATH");
		return problem_usage(p, -EINVAL, "cp");
	}
	if (inside->path[0] != '/' || (c->src.ref && c->dst.ref && c->dst.path[0] != '/')) {
		(void)err_set(&p->err, -EINVAL, "the path in the sandbox must be absolute: '%s'",
			inside->path[0] == '/' ? c->dst.path : inside->path);
		return problem_usage(p, -EINVAL, "cp");
	}
	if (c->dst.ref && strcmp(c->src.path, "-") == 0) {
		(void)err_set(&p->err, -EINVAL, "reading an archive from stdin is not supported");
		return problem_hint(
			p, -EINVAL, "sbx exec -i %s tar x -C %s", c->dst.ref, c->dst.path);
	}
	return 0;
}

/* Detects a wrong source before a stopped sandbox is started for it. */
static int check_source(const struct copy *c, struct problem *p)
{
	if (c->src.ref || access(c->src.path, F_OK) == 0 || errno != ENOENT)
		return 0;
	/* a dangling symlink can be copied too */
	if (faccessat(AT_FDCWD, c->src.path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return err_errno(&p->err, -ENOENT, "cannot find '%s'", c->src.path);
}

/* The last component is copied as it is; symlinks in the path to it are followed. */
static int find_source(struct copy *c, struct problem *p)
{
	CLEANUP(cp_dest_done) struct cp_dest above = {0};
	AUTO_FREE char *dir = xstrdup(c->src.path);
	int r;

	if (c->follow || strcmp(c->as, ".") == 0 || str_ends(c->src.path, "/"))
		return out_place_source(c->src.path, &c->dest, p);
	r = out_place_source(dirname(dir), &above, p);
	if (r == 0)
		c->dest = (struct cp_dest){
			.root = TAKE(above.root), .path = xasprintf("%s/%s", above.path, c->as)};
	return r;
}

/* The destination as an absolute path, without a trailing slash. */
static char *dest_path(const struct cp_dest *d)
{
	char *path = d->root ? xasprintf("%s/%s", d->root, d->path) : xstrdup(d->path);
	size_t n = strlen(path);

	while (n > 1 && (str_ends(path, "/") || str_ends(path, "/.")))
		path[--n] = '\0';
	return path;
}

static bool is_near_dest(const struct copy *c, const char *host)
{
	AUTO_FREE char *dest = dest_path(&c->dest);

	return place_is_in(host, dest) || place_is_in(dest, host);
}

/* A path that cannot be opened, because its file system is gone or a symlink replaced it, fails
 * only a copy that could reach it. */
static int add_closed(struct copy *c, const char *host, struct err *err)
{
	AUTO_CLOSE int fd = place_open(host, err);
	struct stat st;

	if (fd == -ENOENT || (fd < 0 && !is_near_dest(c, host)))
		return 0;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return err_errno(err, -errno, "cannot read the attributes of %s", host);
	c->closed = xrealloc(c->closed, (c->guard.n_closed + 1) * sizeof(st));
	c->closed[c->guard.n_closed++] = st;
	c->guard.closed = c->closed;
	return 0;
}

/* Paths that the sandbox cannot write must not be writable through names in an archive either. */
static int close_read_only(struct copy *c, struct problem *p)
{
	AUTO_JSON json_t *s = NULL;
	const json_t *w;
	size_t i;
	int r = sandbox_get(c->src.ref, &s, p);

	json_array_foreach (json_object_get(s, "workspaces"), i, w)
		if (r == 0 && json_is_true(json_object_get(w, "ro")))
			r = add_closed(c, api_str(w, "host"), &p->err);
	return r;
}

/* Sandboxes are paused if the file system of their disks is full; others belong to the user. */
static void keep_reserve(struct copy *c, uint64_t bytes)
{
	AUTO_FREE char *state = paths_get(PATHS_STATE, NULL);
	struct stat st;

	if (stat(state, &st) < 0)
		return;
	c->guard.reserve = bytes;
	c->guard.reserve_dev = st.st_dev;
}

static int find_dest(struct copy *c, struct problem *p)
{
	AUTO_SETTINGS struct settings set = {0};
	int r = settings_load(&set, &p->err);

	if (r < 0)
		return r;
	keep_reserve(c, settings_get_u64(&set, SETTINGS_DISK_RESERVE));
	r = out_place_dest(c->dst.path, &c->dest, p);
	return r < 0 ? r : close_read_only(c, p);
}

static void say_copied(const struct copy *c, const struct tree_count *n)
{
	char size[32];

	ui_progress_end();
	if (n->skipped)
		ui_warning(
			"skipped %llu sockets, FIFOs or devices", (unsigned long long)n->skipped);
	if (c->quiet)
		return;
	str_from_size(n->bytes, size, sizeof(size));
	ui_note("Copied %llu file%s, %s to %s%s%s", (unsigned long long)n->files,
		n->files == 1 ? "" : "s", size, c->dst.ref ? c->dst.ref : "", c->dst.ref ? ":" : "",
		c->dst.path);
}

/* From one sandbox to another, or to another place of the same one. */
static int copy_between(const struct copy *c, struct problem *p)
{
	const struct cp_between between = {.src_ref = c->src.ref,
		.src_path = c->src.path,
		.dst_ref = c->dst.ref,
		.dst_path = c->dst.path,
		.as = c->as,
		.follow = c->follow};
	uint64_t bytes = 0;
	char size[32];
	int r = sandbox_start(c->src.ref, NULL, NULL, p);

	if (r == 0)
		r = sandbox_start(c->dst.ref, NULL, NULL, p);
	if (r == 0)
		r = cp_between(&between, &bytes, p);
	if (r < 0 || c->quiet)
		return r;
	str_from_size(bytes, size, sizeof(size));
	ui_note("Copied %s:%s to %s:%s, an archive of %s", c->src.ref, c->src.path, c->dst.ref,
		c->dst.path, size);
	return 0;
}

static int copy_all(struct copy *c, struct problem *p)
{
	struct tree_count n = {0};
	int r = check_places(c, p);

	if (r == 0 && c->src.ref && c->dst.ref)
		return copy_between(c, p);
	if (r == 0)
		r = check_source(c, p);
	if (r == 0)
		r = sandbox_start(c->src.ref ? c->src.ref : c->dst.ref, NULL, NULL, p);
	if (r < 0)
		return r;
	began_ms = clock_mono_ms();
	if (c->src.ref && strcmp(c->dst.path, "-") == 0)
		return stream_out(c, p);
	if (!c->dst.ref)
		r = find_dest(c, p);
	else
		r = find_source(c, p);
	if (r == 0)
		r = run_copy(c, &n, p);
	if (r == 0)
		say_copied(c, &n);
	return r;
}

static int run_cp(struct opts *o)
{
	struct copy c = {.follow = opts_has(o, "follow-link"), .quiet = opts_has(o, "quiet")};
	struct problem p = {0};
	int r;

	parse_place(o->args.v[0], &c.src);
	parse_place(o->args.v[1], &c.dst);
	tree_base_name(c.src.path, c.as, sizeof(c.as));
	r = copy_all(&c, &p);
	place_done(&c.src);
	place_done(&c.dst);
	cp_dest_done(&c.dest);
	free(c.closed);
	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}

const struct verb verb_cp = {
	.name = "cp",
	.group = "sandboxes",
	.args = "SRC DST",
	.summary = "copy files into, out of or between sandboxes",
	.about =
		"Copies a file or a directory between the host and a sandbox, or between two sandboxes. A\n"
		"path in a sandbox is SANDBOX:/ABSOLUTE/PATH. As with docker cp, if DST is an existing directory, SRC is copied\n"
		"into it; otherwise DST is created. SRC/. copies the contents of SRC. Modes, times,\n"
		"symlinks and hard links are kept. On the host, you own all files, and set-id bits are\n"
		"removed. With DST -, a tar archive is written to stdout.\n\n"
		"Nothing outside DST is written, whatever the sandbox sends, and nothing in a read-only\n"
		"workspace of the sandbox below DST. Symlinks in a workspace on the path to DST are not\n"
		"followed: a sandbox can create them.",
	.examples = "  sbx cp notes.txt demo:/tmp/\n"
		    "  sbx cp demo:/home/agent/out ./out\n"
		    "  sbx cp demo:/home/agent/out other:/tmp/\n"
		    "  sbx cp demo:/var/log - | tar t\n",
	.opts = opts,
	.min = 2,
	.max = 2,
	.first = VERB_COPY,
	.others = VERB_COPY,
	.run = run_cp,
};
