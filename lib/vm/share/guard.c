/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "guard_internal.h"
#include "lib/base/fs/fd.h"
#include "lib/base/hash/siphash.h"
#include "lib/base/mem.h"
#include "lib/os/jail/broker.h"
#include "hide_internal.h"

#define SINK_BYTES 4096

/* ---- paths that were seen ---- */

static size_t slot_of(const struct guard_seen *s, const char *path, uint64_t *ret_hash)
{
	uint64_t hash = siphash(s->key, slice_from_str(path)) | 1; /* 0 is an empty slot */
	size_t i = hash >> 1 & (GUARD_SEEN - 1);

	while (s->slots[i] && s->slots[i] != hash)
		i = (i + 1) & (GUARD_SEEN - 1);
	*ret_hash = hash;
	return i;
}

bool guard_knows(const struct guard_seen *s, const char *path)
{
	uint64_t hash;

	return s->slots[slot_of(s, path, &hash)] != 0;
}

bool guard_see(struct guard_seen *s, const char *path)
{
	uint64_t hash;
	size_t i;

	if (s->n >= GUARD_SEEN / 4 * 3)
		guard_forget(s);
	i = slot_of(s, path, &hash);
	if (s->slots[i])
		return false;
	s->slots[i] = hash;
	s->n++;
	return true;
}

void guard_forget(struct guard_seen *s)
{
	memset(s->slots, 0, sizeof(s->slots));
	s->n = 0;
}

/* ---- events ---- */

/* The end of a path says more than its beginning. */
static void cut_path(char *to, size_t size, const char *path)
{
	size_t n = strlen(path);

	if (n < size)
		(void)strcpy(to, path);
	else
		(void)snprintf(to, size, "...%s", path + n - (size - 4));
}

void guard_tell(struct guard *g, enum guard_what what, enum dirty_op op, unsigned kind,
	const struct guard_path *p, const char *reason)
{
	static struct guard_event e;
	static char text[2 * GUARD_PATH_SIZE + GUARD_MAX_REASON];

	/* A guest that repeats itself fills no log. */
	(void)snprintf(text, sizeof(text), "%d %s %s", (int)what, p->text, reason ? reason : "");
	if (g->event_fd < 0 || (what != GUARD_REPORTED && !guard_see(&g->told, text)))
		return;
	memset(&e, 0, sizeof(e));
	e.what = what;
	e.op = op;
	e.kind = kind;
	e.lost = g->lost;
	if (p->mount)
		(void)snprintf(text, sizeof(text), "%s/%s", p->mount->host, p->in_mount);
	else
		(void)strcpy(text, p->text);
	cut_path(e.path, sizeof(e.path), text);
	(void)snprintf(e.reason, sizeof(e.reason), "%s", reason ? reason : "");
	if (send(g->event_fd, &e, sizeof(e), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		g->lost++;
	else
		g->lost = 0;
}

/* ---- the supervisor ---- */

static void tell_denied(struct guard *g, const struct guard_call *c)
{
	struct autorun_match a = {0}, b = {0};
	const struct guard_path *p = &c->a;
	size_t tree;

	if (c->a.rel)
		guard_find(g, c->a.rel, &a, &tree);
	if (c->type == GUARD_LINK && !guard_is_refused(&a) && c->b.rel) {
		guard_find(g, c->b.rel, &b, &tree);
		p = &c->b;
		a = b;
	}
	guard_tell(g, GUARD_DENIED, c->op, a.row ? a.row->kind : 0, p, NULL);
}

/* Whether the hand has recorded the path, so that it need not be asked again. */
static bool is_recorded(struct guard *g, const struct guard_call *c)
{
	static struct guard_path at;
	struct autorun_match m;
	size_t tree;

	if ((c->type != GUARD_OPEN && c->type != GUARD_REMOVE && c->type != GUARD_MODE) ||
		g->hand < 0)
		return false;
	guard_find(g, c->a.rel, &m, &tree);
	if (guard_report_path(g, &c->a, m.mode == AUTORUN_REPORT_TREE ? tree : 0, &at) < 0)
		return false;
	guard_dirty_sync(g);
	if (guard_knows(&g->reported, at.text))
		return true;
	/* A file that existed is not recorded until it is new. */
	if (m.mode != AUTORUN_REPORT_NEW)
		(void)guard_see(&g->reported, at.text);
	return false;
}

int guard_decide(struct guard *g, struct guard_call *c)
{
	bool ask = true;
	int r = GUARD_CONTINUE;

	if (c->type != GUARD_RENAME)
		r = guard_judge(g, c, &ask);
	if (r == -EACCES)
		tell_denied(g, c);
	if (r == GUARD_SINK)
		return guard_ask_hand(g, c);
	if (r < 0 || !ask || is_recorded(g, c))
		return r;
	return guard_ask_hand(g, c);
}

int guard_add_sink(const struct guard *g, int notify_fd, uint64_t id)
{
	struct seccomp_notif_addfd add = {
		.id = id, .srcfd = (uint32_t)g->sink_fd, .newfd_flags = O_CLOEXEC};
	int r = ioctl(notify_fd, SECCOMP_IOCTL_NOTIF_ADDFD, &add);

	return r < 0 ? -EACCES : r;
}

size_t guard_fds(const struct guard *g, int *ret)
{
	size_t n = 0;

	ret[n++] = g->hand;
	ret[n++] = g->proc_fd;
	ret[n++] = g->dir_fd;
	ret[n++] = g->sink_fd;
	if (g->event_fd >= 0)
		ret[n++] = g->event_fd;
	return n;
}

/* ---- both processes ---- */

void guard_free(struct guard **gp)
{
	struct guard *g = *gp;

	if (!g)
		return;
	for (size_t i = 0; i < g->n_mounts; i++) {
		free(g->mounts[i].host);
		free(g->mounts[i].guest);
		fd_close(&g->mounts[i].fd);
	}
	fd_close(&g->dir_fd);
	fd_close(&g->event_fd);
	fd_close(&g->proc_fd);
	fd_close(&g->sink_fd);
	fd_close(&g->hand);
	free(g);
	*gp = NULL;
}

static int add_mount(struct guard *g, const struct scaffold_pin *pin, struct err *err)
{
	struct guard_mount *m = &g->mounts[g->n_mounts++];

	*m = (struct guard_mount){.host = xstrdup(pin->host),
		.guest = xstrdup(pin->guest),
		.n_guest = strlen(pin->guest),
		.fd = -1};
	if (pin->ro || pin->cover || !pin->dir)
		return 0;
	m->fd = fcntl(pin->fd, F_DUPFD_CLOEXEC, 3);
	return m->fd < 0 ? err_errno(err, -errno, "cannot keep %s open", pin->host) : 0;
}

static int open_guard(struct guard *g, const struct guard_config *cfg, struct err *err)
{
	g->dir_fd = fcntl(cfg->dir_fd, F_DUPFD_CLOEXEC, 3);
	if (cfg->event_fd >= 0)
		g->event_fd = fcntl(cfg->event_fd, F_DUPFD_CLOEXEC, 3);
	g->proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (g->dir_fd < 0 || g->proc_fd < 0 ||
		getrandom(g->reported.key, sizeof(g->reported.key), 0) < 0 ||
		getrandom(g->told.key, sizeof(g->told.key), 0) < 0)
		return err_errno(err, -errno, "cannot prepare the guard");
	return 0;
}

/* The guest can write to it as to a small file, and cannot make it grow. */
static int open_sink(struct guard *g, struct err *err)
{
	g->sink_fd = memfd_create("sink", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (g->sink_fd < 0 || ftruncate(g->sink_fd, SINK_BYTES) < 0 ||
		fcntl(g->sink_fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return err_errno(err, -errno, "cannot prepare the guard");
	return 0;
}

int guard_new(const struct guard_config *cfg, const struct scaffold *scaffold, struct guard **ret,
	struct err *err)
{
	CLEANUP(guard_free) struct guard *g = xcalloc(1, sizeof(*g));
	int r = 0;

	*g = (struct guard){.level = cfg->level,
		.list = cfg->list,
		.dir_fd = -1,
		.event_fd = -1,
		.proc_fd = -1,
		.sink_fd = -1,
		.hand = -1};
	for (size_t i = 0; r == 0 && i < scaffold->n; i++)
		r = add_mount(g, &scaffold->pins[i], err);
	if (r == 0)
		r = open_guard(g, cfg, err);
	if (r == 0)
		r = open_sink(g, err);
	if (r == 0)
		r = guard_dirty_load(g, err);
	if (r < 0)
		return r;
	*ret = TAKE(g);
	return 0;
}

/* ---- the hand's process ---- */

static int seal_hand(struct guard *g, struct err *err)
{
	struct jail_root roots[SCAFFOLD_MAX_PINS + 1];
	char paths[SCAFFOLD_MAX_PINS + 1][32];
	size_t n = 0;
	int r;

	for (size_t i = 0; i <= g->n_mounts; i++) {
		int fd = i < g->n_mounts ? g->mounts[i].fd : g->dir_fd;

		if (fd < 0)
			continue;
		(void)snprintf(paths[n], sizeof(paths[n]), "/proc/self/fd/%d", fd);
		roots[n] = (struct jail_root){paths[n], true};
		n++;
	}
	r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
	if (r == 0)
		r = jail_broker_files(roots, n, err);
	return r < 0 ? r : jail_seal(JAIL_HAND, err);
}

static void become_hand(struct guard *g, pid_t parent) __attribute__((noreturn));
static void become_hand(struct guard *g, pid_t parent)
{
	struct rlimit none = {0, 0}, size = {2 * GUARD_MAX_COPIES, 2 * GUARD_MAX_COPIES};
	int fds[SCAFFOLD_MAX_PINS + 3];
	size_t n = 0;

	fd_close(&g->proc_fd);
	fd_close(&g->sink_fd);
	fds[n++] = g->hand;
	fds[n++] = g->dir_fd;
	fds[n++] = g->event_fd;
	for (size_t i = 0; i < g->n_mounts; i++)
		fds[n++] = g->mounts[i].fd;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent ||
		hide_keep_fds(fds, n) < 0)
		_exit(1);
	(void)prctl(PR_SET_NAME, "sbx-guard");
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)setrlimit(RLIMIT_FSIZE, &size);
	if (seal_hand(g, NULL) < 0)
		_exit(1);
	guard_hand_main(g);
}

int guard_start_hand(struct guard *g, struct jail_child *ret_child, struct err *err)
{
	struct jail_child c = {.pidfd = -1, .notify_fd = -1};
	struct clone_args args = {
		.flags = CLONE_PIDFD, .pidfd = (uintptr_t)&c.pidfd, .exit_signal = SIGCHLD};
	pid_t parent = getpid();
	int pair[2];
	long pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(err, -errno, "cannot create a socket pair");
	pid = syscall(SYS_clone3, &args, sizeof(args));
	g->hand = pair[pid != 0];
	if (pid == 0)
		become_hand(g, parent);
	(void)close(pair[0]);
	if (pid < 0)
		return err_errno(err, -errno, "cannot start the guard");
	c.pid = (pid_t)pid;
	*ret_child = c;
	return 0;
}
