/* SPDX-License-Identifier: Apache-2.0 */
#include "share.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "guard_internal.h"
#include "hide.h"
#include "lib/base/fs/fd.h"
#include "lib/os/worker/worker.h"
#include "scaffold.h"

#define LISTEN_FD 3
#define MAX_ARGS 24

/* The two virtiofsd there are, with their words for the same thing. */
enum flavour { FLAVOUR_C, FLAVOUR_RUST };

static const struct program {
	const char *path;
	enum flavour flavour;
} programs[] = {
	/* 1.13: Debian 13, where the next one is a link to it and must not be taken for the
	 * other kind */
	{"/usr/libexec/virtiofsd", FLAVOUR_RUST},
	{"/usr/lib/qemu/virtiofsd", FLAVOUR_C},	    /* QEMU 7.2: Debian 12 */
	{"/usr/lib/virtiofsd", FLAVOUR_RUST},	    /* other distributions */
	{"/usr/libexec/qemu/virtiofsd", FLAVOUR_C}, /* other distributions */
};

/* Its libraries; unmounted when it has entered its own sandbox. */
static const struct jail_mount libraries[] = {
	{"/usr/lib", "/usr/lib", 0},
	{"/lib", "/lib", JAIL_MOUNT_OPTIONAL},
	{"/lib64", "/lib64", JAIL_MOUNT_OPTIONAL},
	{"/usr/lib64", "/usr/lib64", JAIL_MOUNT_OPTIONAL},
	{"/etc/ld.so.cache", "/etc/ld.so.cache", JAIL_MOUNT_OPTIONAL},
};

/* cache=auto and no write-back: changes of the host are seen, and changes of the guest are on the
 * host immediately. cache=auto lets the guest cache names and sizes for 1 s; with timeout=0.5 a
 * slow guest took twice the time for `git status` (docs/figures.md). Submounts are announced, so
 * that equal inode numbers of two workspaces stay apart. No xattr: the guest must not read or set
 * what host programs believe. readdirplus would look up hidden names while listing, and fail the
 * whole list. */
static size_t c_options(const struct share_config *cfg, const char **argv)
{
	size_t n = 0;

	argv[n++] = "--fd=3";
	argv[n++] = "-o";
	argv[n++] = "source=" SCAFFOLD_SOURCE;
	argv[n++] = "-o";
	argv[n++] = "sandbox=namespace,cache=auto,no_writeback,no_xattr,announce_submounts";
	argv[n++] = "-o";
	argv[n++] = cfg->locks ? "flock,posix_lock" : "no_flock,no_posix_lock";
	argv[n++] = "--rlimit-nofile=0";
	argv[n++] = "-o";
	argv[n++] = "log_level=warn";
	if (cfg->n_hide) {
		argv[n++] = "-o";
		argv[n++] = "no_readdirplus";
	}
	return n;
}

/* Tried with 1.13.2 of Debian 13. It has no options for locks: they stay in the guest; nor for the
 * time that names are believed: 1 s. */
static size_t rust_options(const struct share_config *cfg, const char **argv)
{
	size_t n = 0;

	argv[n++] = "--fd=3";
	argv[n++] = "--shared-dir=" SCAFFOLD_SOURCE;
	argv[n++] = "--sandbox=namespace";
	argv[n++] = "--seccomp=kill";
	argv[n++] = "--cache=auto";
	argv[n++] = "--announce-submounts";
	argv[n++] = "--inode-file-handles=never";
	argv[n++] = "--rlimit-nofile=0";
	argv[n++] = "--log-level=warn";
	if (cfg->n_hide)
		argv[n++] = "--no-readdirplus";
	return n;
}

static int find_program(const char *wanted, struct program *ret_p, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		if (wanted && strcmp(wanted, programs[i].path) != 0)
			continue;
		if (access(programs[i].path, X_OK) < 0)
			continue;
		*ret_p = programs[i];
		return 0;
	}
	if (wanted && access(wanted, X_OK) == 0) {
		*ret_p = (struct program){wanted, FLAVOUR_RUST};
		return 0;
	}
	return err_set(err, -ENOENT,
		"virtiofsd is not installed: apt install virtiofsd (Debian 12: qemu-system-common)");
}

/* ---- the socket, made in the child ---- */

struct build {
	const struct scaffold *scaffold;
	int listen_fd; /* a number to put the listening socket at */
	int give_fd;   /* where the connected end goes */
};

static int send_one(int sock, int fd)
{
	const struct iovec iov = {.iov_base = &(char){0}, .iov_len = 1};
	ssize_t n = fd_send(sock, &iov, 1, &fd, 1, 0);

	return n < 0 ? (int)n : 0;
}

static int recv_one(int sock, int *ret_fd)
{
	const struct iovec iov = {.iov_base = &(char){0}, .iov_len = 1};
	size_t n_fds = 1;
	ssize_t n = fd_recv(sock, &iov, 1, ret_fd, &n_fds, MSG_DONTWAIT);

	if (n < 0)
		return (int)n;
	return n_fds == 1 ? 0 : -EBADMSG;
}

/* An abstract name is known in its net namespace only, which is the child's own. */
static int make_sockets(const struct build *b)
{
	AUTO_CLOSE int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	AUTO_CLOSE int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	socklen_t n = sizeof(sa_family_t);

	if (listener < 0 || client < 0)
		return -errno;
	if (bind(listener, (struct sockaddr *)&addr, n) < 0 || listen(listener, 1) < 0)
		return -errno;
	n = sizeof(addr);
	if (getsockname(listener, (struct sockaddr *)&addr, &n) < 0 ||
		connect(client, (struct sockaddr *)&addr, n) < 0)
		return -errno;
	if (dup3(listener, b->listen_fd, O_CLOEXEC) < 0)
		return -errno;
	return send_one(b->give_fd, client);
}

static int build_in_child(void *ctx, int new_root, struct err *err)
{
	const struct build *b = ctx;
	int r = make_sockets(b);

	if (r < 0)
		return err_errno(err, r, "cannot create the vhost-user socket");
	return scaffold_build(b->scaffold, new_root, err);
}

/* ---- */

int share_check(const struct share_config *cfg, struct err *err)
{
	CLEANUP(scaffold_done) struct scaffold s = {0};
	int r = hide_check(cfg->hide, cfg->n_hide, err);

	return r < 0 ? r : scaffold_pin(cfg, &s, err);
}

static int spawn_share(const struct share_config *cfg, const struct program *prog, struct build *b,
	struct jail_child *ret_child, struct err *err)
{
	const char *argv[MAX_ARGS] = {"virtiofsd"};
	struct jail_fd fds[] = {{b->listen_fd, LISTEN_FD}};
	struct jail_plan plan = {.profile = JAIL_VIRTIOFSD,
		.program = prog->path,
		.argv = (char *const *)(uintptr_t)argv,
		.mounts = libraries,
		.n_mounts = ARRAY_LEN(libraries),
		.fds = fds,
		.n_fds = ARRAY_LEN(fds),
		.log_fd = cfg->log_fd,
		.scaffold = build_in_child,
		.scaffold_ctx = b,
		.special_files = cfg->special_files,
		.notify_paths = cfg->n_hide > 0,
		.notify_changes = cfg->guard.level != GUARD_OFF,
		.notify_full = cfg->room};

	if (prog->flavour == FLAVOUR_C)
		(void)c_options(cfg, argv + 1);
	else
		(void)rust_options(cfg, argv + 1);
	return jail_spawn(&plan, ret_child, err);
}

static int start_guard(const struct share_config *cfg, const struct scaffold *scaffold,
	struct share *s, struct guard **ret, struct err *err)
{
	int r;

	if (cfg->guard.level == GUARD_OFF)
		return 0;
	r = guard_new(&cfg->guard, scaffold, ret, err);
	return r < 0 ? r : guard_start_hand(*ret, &s->hand, err);
}

/* Who answers to virtiofsd's notifications: the supervisor of hidden and guarded names, which
 * passes on those that are about room, or the caller alone. */
static int supervise_share(const struct share_config *cfg, const struct scaffold *scaffold,
	struct share *s, struct err *err)
{
	CLEANUP(guard_free) struct guard *guard = NULL;
	struct hide_ask ask = {.globs = cfg->hide,
		.n = cfg->n_hide,
		.room = {.sock = -1, .full_at = jail_full_at(s->child.nofile)}};
	int r = start_guard(cfg, scaffold, s, &guard, err);

	s->room.nofile = s->child.nofile;
	if (r == 0 && !cfg->n_hide && !guard) {
		s->room.fd = TAKE_FD(s->child.notify_fd);
		return 0;
	}
	if (r == 0 && cfg->room)
		r = room_pair(&s->room, &ask.room, err);
	ask.guard = guard;
	if (r == 0)
		r = hide_start(&s->child.notify_fd, &ask, &s->hidden, err);
	fd_close(&ask.room.sock);
	return r;
}

static int start_share(const struct share_config *cfg, const struct program *prog,
	const struct scaffold *scaffold, struct share *s, struct err *err)
{
	AUTO_CLOSE int place = open("/dev/null", O_RDONLY | O_CLOEXEC);
	AUTO_CLOSE int ours = -1;
	AUTO_CLOSE int theirs = -1;
	int pair[2], r;

	if (place < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(err, -errno, "cannot create a socket pair");
	ours = pair[0];
	theirs = pair[1];
	struct build b = {.scaffold = scaffold, .listen_fd = place, .give_fd = theirs};
	r = spawn_share(cfg, prog, &b, &s->child, err);
	if (r < 0)
		return r;
	r = recv_one(ours, &s->vhost_fd);
	if (r < 0)
		return err_errno(err, r, "cannot receive the vhost-user socket");
	return supervise_share(cfg, scaffold, s, err);
}

static int check_notify(const struct share_config *cfg, struct err *err)
{
	if ((cfg->guard.level == GUARD_OFF && !cfg->n_hide && !cfg->room) || jail_can_notify())
		return 0;
	return err_set(err, -EOPNOTSUPP,
		"cannot share the workspaces: the kernel has no seccomp notification");
}

int share_start(const struct share_config *cfg, struct share *ret_share, struct err *err)
{
	CLEANUP(scaffold_done) struct scaffold scaffold = {0};
	struct share s = SHARE_EMPTY;
	struct program prog = {0};
	int r = hide_check(cfg->hide, cfg->n_hide, err);

	if (r == 0)
		r = check_notify(cfg, err);
	if (r == 0)
		r = find_program(cfg->program, &prog, err);
	if (r == 0 && cfg->locks && prog.flavour == FLAVOUR_RUST)
		r = err_set(err, -EOPNOTSUPP,
			"%s cannot share locks with the host: start without them", prog.path);
	if (r == 0)
		r = scaffold_pin(cfg, &scaffold, err);
	if (r == 0)
		r = start_share(cfg, &prog, &scaffold, &s, err);
	if (r < 0) {
		share_stop(&s);
		return r;
	}
	*ret_share = s;
	return 0;
}

void share_stop(struct share *s)
{
	worker_end(&s->child);
	worker_end(&s->hidden);
	worker_end(&s->hand);
	fd_close(&s->room.fd);
	fd_close(&s->vhost_fd);
}
