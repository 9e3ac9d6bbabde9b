/* SPDX-License-Identifier: Apache-2.0 */
#include "guard.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "machine.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define MAX_WHY (GUARD_MAX_REASON + 96)

static_assert(DIRTY_MAX_DETAIL + 1 >= GUARD_MAX_REASON, "a reason fits into a row");

void guard_init(struct keeper *k)
{
	k->guard->fd = -1;
	k->guard->bucket = bucket_init(GUARD_BURST, GUARD_RATE);
}

int guard_open(struct keeper *k, int *ret_event_fd, struct err *err)
{
	int fds[2];

	*ret_event_fd = -1;
	fd_close(&k->guard->fd);
	if (k->spec.guard == SPEC_GUARD_OFF)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return err_errno(err, -errno, "cannot create a socket pair");
	k->guard->fd = fds[0];
	*ret_event_fd = fds[1];
	return 0;
}

int guard_watch(struct keeper *k)
{
	struct loop_key key = {.kind = EV_GUARD, .gen = k->share_gen};

	return k->guard->fd < 0 ? 0 : loop_add(&k->loop, k->guard->fd, EPOLLIN, key);
}

void guard_drop(struct keeper *k)
{
	if (k->guard->fd < 0)
		return;
	loop_del(&k->loop, k->guard->fd);
	fd_close(&k->guard->fd);
}

/* ---- what an event is about ---- */

static bool is_valid(const struct guard_event *e)
{
	return e->what < GUARD_N_WHATS && e->op < DIRTY_N_OPS && e->kind <= DIRTY_MAX_KIND &&
	       e->path[0] && memchr(e->path, 0, sizeof(e->path)) &&
	       memchr(e->reason, 0, sizeof(e->reason));
}

/* The part of a host path that is in a workspace; *ret_mount is the rest. */
static const char *split_path(const struct keeper *k, const char *path, const char **ret_mount)
{
	size_t longest = 0;

	*ret_mount = "/";
	if (path[0] != '/') /* its beginning was cut off */
		return path;
	for (size_t i = 0; i < k->spec.n_workspaces + k->spec.n_mounts; i++) {
		const char *host = hands_nth_mount(k, i)->host;
		size_t n = strlen(host);

		if (n <= longest || !str_starts(path, host) || path[n] != '/')
			continue;
		longest = n;
		*ret_mount = host;
	}
	return path + longest + 1;
}

/* The program that runs the file. */
static const char *program_of(struct keeper *k, unsigned kind, const char *path)
{
	struct guard *g = k->guard;
	struct autorun_match match = {0};
	struct err err = {0};
	size_t tree;

	if (!g->was_loaded && autorun_load(&g->list, &err) < 0)
		log_warn("%s", err.text);
	g->was_loaded = true;
	if (g->list)
		autorun_find(g->list, path, GUARD_STRICT, &match, &tree);
	if (g->list && (!match.row || match.row->kind != kind))
		match.row = autorun_kind(g->list, kind);
	return match.row ? match.row->program : "a program of the host";
}

/* "git runs it", "git runs it: core.fsmonitor" */
static void put_why(
	struct keeper *k, const struct guard_event *e, const char *path, char buf[MAX_WHY])
{
	(void)snprintf(buf, MAX_WHY, "%.60s runs it%s%s", program_of(k, e->kind, path),
		e->reason[0] ? ": " : "", e->reason);
}

static void record_event(
	struct keeper *k, const struct guard_event *e, const char *path, const char *why)
{
	static const char *const types[] = {[GUARD_DENIED] = "denied",
		[GUARD_REPORTED] = "reported",
		[GUARD_CHECKED] = "checked"};
	char op[AUDIT_MAX_OP], rule[16];
	struct audit_event ev = {.kind = AUDIT_KIND_DECISION,
		.decision = e->what == GUARD_DENIED ? AUDIT_DENY : AUDIT_ALLOW,
		.action = slice_from_str(AUDIT_ACTION_GUARD),
		.type = slice_from_str(types[e->what]),
		.reason = slice_from_str(why),
		.count = k->guard->n_lost ? k->guard->n_lost + 1 : 0};

	(void)snprintf(op, sizeof(op), "%s %s", dirty_op_name((enum dirty_op)e->op), path);
	(void)snprintf(rule, sizeof(rule), "kind-%u", e->kind);
	ev.op = slice_from_str(op);
	ev.rule = slice_from_str(rule);
	record_decision(k, &ev);
	k->guard->n_lost = 0;
}

/* ---- denied writes ---- */

/* Programs try again and again; one line is enough. */
static bool is_recent(struct guard *g, const struct guard_event *e, uint64_t now)
{
	for (size_t i = 0; i < GUARD_N_RECENT; i++) {
		const struct guard_event *was = &g->recent[i].event;

		if (g->recent[i].time_ms && now - g->recent[i].time_ms < GUARD_RECENT_MS &&
			strcmp(was->path, e->path) == 0 && strcmp(was->reason, e->reason) == 0)
			return true;
	}
	g->recent[g->n_recent].event = *e;
	g->recent[g->n_recent].time_ms = now;
	g->n_recent = (g->n_recent + 1) % GUARD_N_RECENT;
	return false;
}

static int open_denied(const struct keeper *k)
{
	AUTO_FREE char *path = xasprintf("%s/guard/denied", k->dir);
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > (off_t)GUARD_MAX_DENIED &&
		ftruncate(fd, 0) < 0)
		fd_close(&fd);
	return fd;
}

static void append_denied(
	struct keeper *k, const struct guard_event *e, const char *mount, const char *path)
{
	static uint8_t line[DIRTY_MAX_LINE];
	static struct dirty_row row;
	struct wr wr = wr_init(line, sizeof(line));
	AUTO_CLOSE int fd = open_denied(k);

	row = (struct dirty_row){.time_ms = clock_wall_ms(),
		.kind = e->kind,
		.op = (enum dirty_op)e->op,
		.state = DIRTY_DENIED};
	(void)!str_copy(row.mount, sizeof(row.mount), mount);
	(void)!str_copy(row.path, sizeof(row.path), path);
	(void)!str_copy(row.detail, sizeof(row.detail), e->reason);
	if (fd < 0 || dirty_encode(&wr, &row) < 0 || fd_write_all(fd, line, wr.n) < 0)
		log_warn("cannot list a denied write to a workspace");
}

/* A name must not become a line. */
static void put_clean(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

/* For sbx-why in the guest. The name is the guest's: a command has it only if no shell and no
 * pattern changes it. */
static void tell_guest(struct keeper *k, const char *path, char why[MAX_WHY])
{
	char text[DENIED_TEXT], name[512];
	bool is_plain = autorun_is_typed(path);

	(void)snprintf(name, sizeof(name), "%s", path);
	put_clean(name);
	put_clean(why);
	(void)snprintf(text, sizeof(text),
		"Blocked by the guard: %s\n"
		"  reason:  %s on the host\n"
		"  allow:   sbx update %s --guard%s%s && sbx restart %s     (run on the host)\n",
		name, why, k->spec.name, is_plain ? "-except " : " report", is_plain ? path : "",
		k->spec.name);
	denied_add(k, text);
}

/* ---- */

static void take_event(struct keeper *k, const struct guard_event *e)
{
	uint64_t now = clock_mono_ms();
	const char *mount, *path = split_path(k, e->path, &mount);
	char why[MAX_WHY];

	k->guard->n_lost += e->lost;
	put_why(k, e, path, why);
	if (bucket_take(&k->guard->bucket, now))
		record_event(k, e, path, why);
	else
		k->guard->n_lost++;
	if (e->what != GUARD_DENIED || is_recent(k->guard, e, now))
		return;
	append_denied(k, e, mount, path);
	tell_guest(k, path, why);
}

void guard_on_event(struct keeper *k)
{
	static struct guard_event e;

	for (unsigned i = 0; i < GUARD_MAX_READ; i++) {
		struct iovec iov = {.iov_base = &e, .iov_len = sizeof(e)};
		size_t n_fds = 0;
		ssize_t n = fd_recv(k->guard->fd, &iov, 1, NULL, &n_fds, MSG_DONTWAIT);

		if (n == -EAGAIN || n == -EINTR)
			return;
		if (n <= 0 && n != -EBADMSG) { /* the supervisor exited: EV_SHARE_END follows */
			guard_drop(k);
			return;
		}
		if (n_fds == 0 && n == sizeof(e) && is_valid(&e))
			take_event(k, &e);
		else
			k->guard->n_lost++;
	}
}
