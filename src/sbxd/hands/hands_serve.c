/* SPDX-License-Identifier: Apache-2.0 */
/* The spawner's side of hands.h: every request is checked as if sbxd were compromised. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "hands_internal.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/process/keepenv.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/os/ipc/vault_sock.h"
#include "lib/os/jail/cgroup.h"
#include "lib/rules/settings/settings.h"

#define FIRST_FD 3    /* the first socket of a program */
#define FIRST_HIGH 16 /* above all descriptors of a program */
#define MAX_SOCKETS 2
#define MAX_ANCESTORS 8

/* ---- programs ---- */

/* This number of sockets, then the log. */
static bool are_fds(const struct worker_msg *q, size_t n_sockets)
{
	struct stat st;

	if (q->n_fds != n_sockets + 1)
		return false;
	for (size_t i = 0; i <= n_sockets; i++)
		if (fstat(q->fds[i], &st) < 0 ||
			(st.st_mode & S_IFMT) != (i < n_sockets ? S_IFSOCK : S_IFREG))
			return false;
	return true;
}

struct program {
	const char *what; /* for messages */
	char *const *argv;
	char *const *env;
	bool makes_session; /* itself: it enters its jail (lib/os/jail/self.c) */
};

/* In the child. A new session: no terminal or process group of sbxd affects it, and its group can
 * be killed as a whole. */
static void become_program(const char *path, const struct program *p, const int *fds, size_t n)
	__attribute__((noreturn));
static void become_program(const char *path, const struct program *p, const int *fds, size_t n)
{
	int high[MAX_SOCKETS + 1], null = open("/dev/null", O_RDWR);
	bool ok = null >= 0;

	if (!p->makes_session)
		(void)setsid();
	child_reset_signals();
	for (size_t i = 0; i < n; i++) {
		high[i] = fcntl(fds[i], F_DUPFD, FIRST_HIGH);
		ok = ok && high[i] >= 0;
	}
	if (!ok || dup2(null, 0) < 0 || dup2(high[n - 1], 1) < 0 || dup2(high[n - 1], 2) < 0)
		_exit(126);
	for (size_t i = 0; i + 1 < n; i++)
		if (dup2(high[i], FIRST_FD + (int)i) < 0)
			_exit(126);
	(void)close_range(FIRST_FD + (unsigned)n - 1, ~0u, 0);
	(void)execve(path, p->argv, p->env);
	(void)dprintf(2, "cannot start %s\n", p->argv[0]);
	_exit(127);
}

static int give_child(pid_t pid, struct worker_msg *a, struct err *err)
{
	struct wr w = wr_init(a->body, sizeof(a->body));
	AUTO_CLOSE int pidfd = pidfd_open(pid, 0);
	int r = pidfd < 0 ? err_errno(err, -errno, "cannot watch a program")
			  : spawner_keep(pid, err);

	if (r < 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return r;
	}
	wr_u32(&w, (uint32_t)pid);
	a->n = w.n;
	a->fds[a->n_fds++] = TAKE_FD(pidfd);
	return 0;
}

static int start_program(
	const struct program *p, const struct worker_msg *q, struct worker_msg *a, struct err *err)
{
	AUTO_FREE char *path = paths_get(PATHS_LIBEXEC, "%s", p->argv[0]);
	pid_t pid;

	if (access(path, X_OK) < 0)
		return err_errno(err, -errno, "cannot run the %s program %s", p->what, path);
	pid = fork();
	if (pid < 0)
		return err_errno(err, -errno, "cannot start %s", p->argv[0]);
	if (pid == 0)
		become_program(path, p, q->fds, q->n_fds);
	return give_child(pid, a, err);
}

static int start_keeper(
	char *const *argv, const struct worker_msg *q, struct worker_msg *a, struct err *err)
{
	char *env[KEEPENV_MAX + 1];
	const struct program p = {.what = "keeper", .argv = argv, .env = env};

	(void)keepenv_pick_few(env);
	return start_program(&p, q, a, err);
}

/* A later sbxd identifies the keeper by this note only: without a note it does not run. */
static int note_keeper(const char *id, struct worker_msg *a, struct err *err)
{
	struct rd rd = rd_init(slice_of(a->body, a->n));
	pid_t pid = (pid_t)rd_u32(&rd);
	int r = keeper_note_save(id, pid, err);

	if (r < 0)
		spawner_drop(pid);
	return r;
}

static int serve_keeper(const struct worker_msg *q, struct worker_msg *a, struct err *err)
{
	static const char *const ways[HANDS_N_WAYS] = {
		[HANDS_COLD] = "--cold", [HANDS_POOL] = "--pool"};
	AUTO_FREE char *state = child_state_option();
	struct rd rd = rd_init(slice_of(q->body, q->n));
	char id[SPEC_ID_LEN + 1];
	char *argv[] = {(char *)"sbx-keeper", (char *)"--id", id, state, NULL, NULL};
	unsigned way;
	int r;

	rd_cstr(&rd, id, sizeof(id));
	way = rd_u8(&rd);
	if (rd_finish(&rd) < 0 || !spec_is_id(id) || way >= HANDS_N_WAYS || !are_fds(q, 1))
		return -EBADMSG;
	argv[4] = (char *)(uintptr_t)ways[way];
	r = start_keeper(argv, q, a, err);
	if (r == 0)
		r = note_keeper(id, a, err);
	return r;
}

/* A word of the command line: not an option or a path. */
static bool is_word(const char *s)
{
	static const char ok[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:+@";

	return s[0] && s[0] != '-' && s[0] != '.' && strspn(s, ok) == strlen(s);
}

static int serve_maker(const struct worker_msg *q, struct worker_msg *a, struct err *err)
{
	AUTO_FREE char *state = child_state_option();
	struct rd rd = rd_init(slice_of(q->body, q->n));
	struct hands_image w = {0};
	char cpus[16], memory[32], disk[32];
	char *argv[] = {(char *)"sbx-keeper", (char *)"--make-image", state, (char *)"--template",
		w.template, (char *)"--cpus", cpus, (char *)"--memory", memory, (char *)"--disk",
		disk, (char *)"--accel", w.accel, NULL};

	rd_cstr(&rd, w.template, sizeof(w.template));
	(void)snprintf(cpus, sizeof(cpus), "%" PRIu32, rd_u32(&rd));
	(void)snprintf(memory, sizeof(memory), "%" PRIu64, rd_u64(&rd));
	(void)snprintf(disk, sizeof(disk), "%" PRIu64, rd_u64(&rd));
	rd_cstr(&rd, w.accel, sizeof(w.accel));
	if (rd_finish(&rd) < 0 || !are_fds(q, 0))
		return -EBADMSG;
	/* Texts that sbxd got from others: rejected, without stopping sbxd. */
	if (!is_word(w.template) || !is_word(w.accel))
		return err_set(err, -EINVAL, "no snapshot: wrong template or accelerator");
	return start_keeper(argv, q, a, err);
}

#define LIST_BYTES (LAYERS_MAX * 5 + 1) /* "9999," */

/* "1,3,4"; false if there are too many numbers, or one is wrong. */
static bool read_list(struct rd *rd, char buf[LIST_BYTES])
{
	unsigned n = rd_u8(rd), number = 1;
	size_t used = 0;

	buf[0] = '\0';
	for (unsigned i = 0; i < n && n <= LAYERS_MAX && number; i++) {
		number = rd_u16(rd);
		if (number > LAYERS_MAX_NUMBER)
			return false;
		used += (size_t)snprintf(
			buf + used, LIST_BYTES - used, "%s%u", used ? "," : "", number);
	}
	return n <= LAYERS_MAX && number;
}

static int serve_merger(const struct worker_msg *q, struct worker_msg *a, struct err *err)
{
	AUTO_FREE char *state = child_state_option();
	struct rd rd = rd_init(slice_of(q->body, q->n));
	char id[SPEC_ID_LEN + 1], root[LIST_BYTES], docker[LIST_BYTES];
	char *argv[] = {(char *)"sbx-keeper", (char *)"--merge", state, (char *)"--id", id,
		(char *)"--root", root, (char *)"--docker", docker, NULL};
	bool ok;

	rd_cstr(&rd, id, sizeof(id));
	ok = read_list(&rd, root) && read_list(&rd, docker);
	if (rd_finish(&rd) < 0 || !ok || !spec_is_id(id) || !are_fds(q, 0))
		return -EBADMSG;
	return start_keeper(argv, q, a, err);
}

/* The settings decide where its key is, not sbxd. */
static int serve_vault(const struct worker_msg *q, struct worker_msg *a, struct err *err)
{
	AUTO_SETTINGS struct settings set = {0};
	AUTO_FREE char *key = NULL;
	char *argv[] = {(char *)"sbx-vault-run", NULL, NULL}, *env[KEEPENV_MAX + 1];
	const struct program p = {.what = "vault", .argv = argv, .env = env};
	int r;

	if (q->n || !are_fds(q, 2))
		return -EBADMSG;
	r = settings_load(&set, err);
	if (r < 0)
		return r;
	argv[1] = key = xasprintf("--key=%s", settings_get(&set, SETTINGS_VAULT_KEY));
	(void)keepenv_pick(env);
	return start_program(&p, q, a, err);
}

/* "NAME=value" of this process; NULL: not set, or empty. */
static char *find_variable(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? xasprintf("%s=%s", name, value) : NULL;
}

/* As sd-bus looks for the session bus. Without one no process is started. */
static int serve_notify(const struct worker_msg *q, struct worker_msg *a, struct err *err)
{
	AUTO_FREE char *bus = find_variable("DBUS_SESSION_BUS_ADDRESS");
	AUTO_FREE char *run = find_variable("XDG_RUNTIME_DIR");
	AUTO_FREE char *path = run ? xasprintf("%s/bus", getenv("XDG_RUNTIME_DIR")) : NULL;
	char *argv[] = {(char *)"sbx-notify", NULL};
	char *env[] = {bus ? bus : run, bus ? run : NULL, NULL};
	const struct program p = {
		.what = "notification", .argv = argv, .env = env, .makes_session = true};

	if (q->n || !are_fds(q, 1))
		return -EBADMSG;
	if (!bus && (!path || access(path, F_OK) < 0))
		return err_set(err, -ENOENT, "the host has no session bus");
	return start_program(&p, q, a, err);
}

/* ---- signals ---- */

/* 0 if it has exited, or is not a pidfd. */
static pid_t pid_of(int pidfd)
{
	AUTO_FREE char *path = xasprintf("/proc/self/fdinfo/%d", pidfd), *text = NULL;
	const char *at;
	size_t n;
	long pid;

	if (file_load(path, 4096, &text, &n, NULL) < 0)
		return 0;
	at = strstr(text, "\nPid:");
	pid = at ? strtol(at + 5, NULL, 10) : 0;
	return pid > 1 && pid <= INT32_MAX ? (pid_t)pid : 0;
}

static bool has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) != 0;
}

/* Keepers of an earlier sbxd to which this spawner has connected: their own statements about
 * themselves are not used. */
static struct {
	pid_t pid; /* 0: free */
	int pidfd;
} adopted[KEEPER_MAX];

static bool is_adopted(pid_t pid)
{
	for (size_t i = 0; i < KEEPER_MAX; i++)
		if (adopted[i].pid == pid)
			return !has_ended(adopted[i].pidfd);
	return false;
}

static size_t place_for(pid_t pid)
{
	size_t place = KEEPER_MAX;

	for (size_t i = 0; i < KEEPER_MAX; i++) {
		if (adopted[i].pid == pid)
			return i;
		if (place == KEEPER_MAX && (!adopted[i].pid || has_ended(adopted[i].pidfd)))
			place = i;
	}
	return place;
}

/* The listener of its socket proves nothing: that is the last process that called listen, chosen by
 * the keeper, or another process that has its number now. */
static void remember_keeper(const char *id)
{
	pid_t pid = 0;
	AUTO_CLOSE int pidfd = keeper_note_open(id, &pid);
	size_t i = pidfd < 0 ? KEEPER_MAX : place_for(pid);

	if (i == KEEPER_MAX)
		return;
	if (adopted[i].pid)
		(void)close(adopted[i].pidfd);
	adopted[i].pid = pid;
	adopted[i].pidfd = TAKE_FD(pidfd);
}

static bool is_below_ours(pid_t pid)
{
	for (int i = 0; i < MAX_ANCESTORS && pid > 1; i++) {
		if (spawner_has(pid) || is_adopted(pid) || child_is_keeper(pid, NULL))
			return true;
		pid = child_parent_of(pid);
	}
	return false;
}

/* The number of a child that was not reaped is not reused, even after its exit: processes that it
 * forked have its group's number. */
static void send_signal(int fd, pid_t pid, enum hands_signal which)
{
	if (which == HANDS_KILL_GROUP && (spawner_has(pid) || is_adopted(pid) ||
						 (child_is_keeper(pid, NULL) && !has_ended(fd))))
		(void)kill(-pid, SIGKILL);
	(void)pidfd_send_signal(fd, which == HANDS_TERM ? SIGTERM : SIGKILL, NULL, 0);
}

/* Checks all before the first signal: after that a QEMU has no keeper as its parent. A failed check
 * does not stop the others. */
static int serve_signal(const struct worker_msg *q, struct err *err)
{
	struct rd rd = rd_init(slice_of(q->body, q->n));
	unsigned which = rd_u8(&rd);
	pid_t pids[HANDS_MAX_SIGNALLED], stranger = 0;

	if (rd_finish(&rd) < 0 || which >= HANDS_N_SIGNALS || !q->n_fds ||
		q->n_fds > HANDS_MAX_SIGNALLED)
		return -EBADMSG;
	for (size_t i = 0; i < q->n_fds; i++) {
		pids[i] = pid_of(q->fds[i]);
		if (pids[i] && !is_below_ours(pids[i])) {
			stranger = pids[i];
			pids[i] = 0;
		}
	}
	for (size_t i = 0; i < q->n_fds; i++)
		if (pids[i])
			send_signal(q->fds[i], pids[i], (enum hands_signal)which);
	if (stranger)
		return err_set(err, -EPERM, "refusing to signal process %d", (int)stranger);
	return 0;
}

/* The group's number is not reused while a member lives. If a process has that number, it is the
 * keeper itself or another program. */
static int serve_kill_rest(const struct worker_msg *q)
{
	struct rd rd = rd_init(slice_of(q->body, q->n));
	char id[SPEC_ID_LEN + 1];
	pid_t pid = 0;
	int fd;

	rd_cstr(&rd, id, sizeof(id));
	if (rd_finish(&rd) < 0 || !spec_is_id(id) || q->n_fds)
		return -EBADMSG;
	fd = keeper_note_open(id, &pid);
	if (pid > 1 && (fd >= 0 || (kill(pid, 0) < 0 && errno == ESRCH)))
		(void)kill(-pid, SIGKILL);
	fd_close(&fd);
	return 0;
}

/* ---- connections ---- */

static int connect_keeper(const char *id, struct err *err)
{
	AUTO_FREE char *path = paths_get(PATHS_RUNTIME, "s/%s/keeper.sock", id);
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	if (fd < 0)
		return err_errno(err, -errno, "cannot create a socket");
	if (str_copy(sa.sun_path, sizeof(sa.sun_path), path) < 0)
		return err_set(err, -ENAMETOOLONG, "%s is too long for a socket name", path);
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return err_errno(err, -errno, "cannot connect to %s", path);
	remember_keeper(id);
	return TAKE_FD(fd);
}

static int serve_to_keeper(const struct worker_msg *q, struct worker_msg *a, struct err *err)
{
	struct rd rd = rd_init(slice_of(q->body, q->n));
	char id[SPEC_ID_LEN + 1];

	rd_cstr(&rd, id, sizeof(id));
	if (rd_finish(&rd) < 0 || !spec_is_id(id) || q->n_fds)
		return -EBADMSG;
	return worker_give_fd(a, connect_keeper(id, err));
}

int hands_serve(void *ctx, struct worker_msg *q, struct worker_msg *a, struct err *err)
{
	switch ((enum hands_kind)q->kind) {
	case HANDS_KEEPER:
		return serve_keeper(q, a, err);
	case HANDS_MAKER:
		return serve_maker(q, a, err);
	case HANDS_MERGER:
		return serve_merger(q, a, err);
	case HANDS_VAULT:
		return serve_vault(q, a, err);
	case HANDS_NOTIFY:
		return serve_notify(q, a, err);
	case HANDS_SIGNAL:
		return serve_signal(q, err);
	case HANDS_SWEEP:
		if (q->n || q->n_fds)
			return -EBADMSG;
		jail_cgroup_sweep(NULL);
		return 0;
	case HANDS_TO_KEEPER:
		return serve_to_keeper(q, a, err);
	case HANDS_TO_VAULT:
		return q->n || q->n_fds ? -EBADMSG : worker_give_fd(a, vault_sock_connect(err));
	case HANDS_KILL_REST:
		return serve_kill_rest(q);
	}
	return -EBADMSG;
}
