/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/os/jail/broker.h"
#include "worker_internal.h"

/* What a spawner keeps. */
#define SOCK_FD 3
#define BROKER_FD 4

/* The spawner of this process. */
static struct {
	int sock, pidfd;
	pid_t pid;
} own = {.sock = -1, .pidfd = -1};

/* Large, and one question at a time. */
static struct worker_msg talk;

bool worker_is_on(void)
{
	return own.pid > 0;
}

bool worker_is_lost(void)
{
	return own.pid > 0 && own.sock < 0;
}

int spawner_pidfd(void)
{
	return own.pidfd;
}

/* ---- the start of the spawner ---- */

/* A copy of the broker's descriptors would hold its locks and its peers' connections. */
static int keep_only(int sock, int broker)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int high = fcntl(sock, F_DUPFD_CLOEXEC, 10), high2 = fcntl(broker, F_DUPFD_CLOEXEC, 10);

	if (null < 0 || high < 0 || high2 < 0)
		return -errno;
	for (int i = 0; i < 3; i++)
		if (dup2(null, i) < 0)
			return -errno;
	if (dup3(high, SOCK_FD, O_CLOEXEC) < 0 || dup3(high2, BROKER_FD, O_CLOEXEC) < 0 ||
		close_range(BROKER_FD + 1, ~0U, 0) < 0)
		return -errno;
	return 0;
}

static void become_spawner(const struct spawner_rules *rules, int sock, pid_t broker)
	__attribute__((noreturn));
static void become_spawner(const struct spawner_rules *rules, int sock, pid_t broker)
{
	static const int kept_out[] = {SIGTERM, SIGINT, SIGHUP};
	int broker_fd = (int)syscall(SYS_pidfd_open, broker, 0);
	sigset_t set;

	if (broker_fd < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != broker ||
		keep_only(sock, broker_fd) < 0 ||
		(!rules->keeps_privileges && jail_broker_spawner(NULL) < 0))
		_exit(1);
	/* The broker decides what they mean; the end of its socket ends this process. */
	(void)sigemptyset(&set);
	for (size_t i = 0; i < sizeof(kept_out) / sizeof(kept_out[0]); i++)
		(void)sigaddset(&set, kept_out[i]);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
	(void)prctl(PR_SET_NAME, "sbx-spawner");
	own.sock = own.pidfd = -1;
	own.pid = 0; /* runs the broker's requests itself */
	_exit(spawner_serve(rules, SOCK_FD, BROKER_FD));
}

int spawner_start(const struct spawner_rules *rules, struct err *err)
{
	AUTO_CLOSE int ours = -1, theirs = -1;
	pid_t broker = getpid(), pid;
	int pair[2];

	if (own.pid > 0)
		return err_set(err, -EALREADY, "the spawner is already running");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(err, -errno, "cannot create the spawner's socket");
	ours = pair[0];
	theirs = pair[1];
	pid = fork();
	if (pid < 0)
		return err_errno(err, -errno, "cannot start the spawner");
	if (pid == 0)
		become_spawner(rules, theirs, broker);
	own.pid = pid;
	own.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	own.sock = TAKE_FD(ours);
	if (own.pidfd < 0) {
		int r = -errno;

		spawner_stop();
		return err_errno(err, r, "cannot watch the spawner");
	}
	return 0;
}

void spawner_stop(void)
{
	if (own.pid <= 0)
		return;
	fd_close(&own.sock);
	(void)kill(own.pid, SIGKILL);
	(void)waitpid(own.pid, NULL, 0);
	fd_close(&own.pidfd);
	own.pid = 0;
}

/* ---- questions ---- */

static int refusal_worker(const struct worker_msg *m, struct err *err)
{
	char text[ERR_MAX_TEXT];

	if (slice_to_cstr(slice_of(m->body, m->n), text, sizeof(text)) < 0)
		text[0] = '\0';
	return text[0] ? err_set(err, m->code, "%s", text)
		       : err_errno(err, m->code, "the spawner failed");
}

int worker_ask(struct worker_msg *m, struct err *err)
{
	uint16_t kind = m->kind;
	int r = own.sock < 0 ? -ENOTCONN : packet_send(own.sock, m);

	m->n_fds = 0;		/* the caller's, still */
	if (r == -ETOOMANYREFS) /* the spawner has not heard anything */
		return err_set(err, r, WORKER_CROWDED);
	if (r == 0) {
		r = packet_recv(own.sock, m, WORKER_ANSWER_MS);
		r = r == 0 ? -EPIPE : r;
	}
	if (r > 0 && m->kind != kind) {
		worker_msg_done(m);
		r = -EBADMSG;
	}
	if (r < 0) {
		/* Its state is unknown: it is killed, and its children with it. */
		fd_close(&own.sock);
		(void)syscall(SYS_pidfd_send_signal, own.pidfd, SIGKILL, NULL, 0);
		return err_errno(err, r, "the spawner is not responding");
	}
	if (m->code < 0) {
		worker_msg_done(m);
		return refusal_worker(m, err);
	}
	return 0;
}

int worker_spawn(const struct jail_plan *plan, struct jail_child *ret_child, struct err *err)
{
	struct rd rd;
	int r;

	if (!worker_is_on())
		return jail_spawn(plan, ret_child, err);
	r = plan_put(plan, &talk, err);
	if (r == 0)
		r = worker_ask(&talk, err);
	if (r < 0)
		return r;
	rd = rd_init(slice_of(talk.body, talk.n));
	*ret_child = (struct jail_child){.pid = (pid_t)rd_u32(&rd), .nofile = rd_u32(&rd)};
	ret_child->pidfd = worker_take_fd(&talk, 0);
	ret_child->notify_fd = worker_take_fd(&talk, 1);
	worker_msg_done(&talk);
	if (rd_finish(&rd) < 0 || ret_child->pidfd < 0) {
		worker_end(ret_child);
		return err_set(err, -EBADMSG, "the spawner returned no process");
	}
	return 0;
}

static int ask_about(enum worker_kind kind, pid_t pid)
{
	struct wr w = wr_init(talk.body, sizeof(talk.body));
	int r;

	wr_u32(&w, (uint32_t)pid);
	talk.kind = (uint16_t)kind;
	talk.code = 0;
	talk.n = w.n;
	talk.n_fds = 0;
	r = worker_ask(&talk, NULL);
	return r < 0 ? r : talk.code;
}

void worker_kill(const struct jail_child *c)
{
	if (c->pidfd < 0)
		return;
	if (worker_is_on())
		(void)ask_about(WORKER_KILL, c->pid);
	else
		(void)syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
}

int worker_reap(const struct jail_child *c)
{
	struct pollfd p = {.fd = c->pidfd, .events = POLLIN};
	int status = -1, r;

	if (c->pidfd < 0 || poll(&p, 1, JAIL_START_TIMEOUT_MS) <= 0)
		return -1;
	if (!worker_is_on())
		return child_status(c->pid, &status) < 0 || status > 255 ? -1 : status;
	r = ask_about(WORKER_REAP, c->pid);
	return r < 0 || r > 255 ? -1 : r;
}

int worker_status(pid_t pid)
{
	int status = 0, r;

	if (worker_is_on())
		return ask_about(WORKER_REAP, pid);
	r = child_status(pid, &status);
	return r < 0 ? r : status;
}

void worker_end(struct jail_child *c)
{
	if (c->pidfd >= 0) {
		worker_kill(c);
		(void)worker_reap(c);
	}
	fd_close(&c->pidfd);
	fd_close(&c->notify_fd);
	c->pid = 0;
}

uint64_t worker_written(pid_t pid)
{
	struct rd rd;
	uint64_t n;

	if (pid <= 0)
		return 0;
	if (!worker_is_on())
		return child_written(pid);
	if (ask_about(WORKER_WRITTEN, pid) < 0)
		return 0;
	rd = rd_init(slice_of(talk.body, talk.n));
	n = rd_u64(&rd);
	return rd_finish(&rd) < 0 ? 0 : n;
}

struct worker_msg *worker_question(uint16_t kind)
{
	static struct worker_msg m;

	m.kind = kind;
	m.code = 0;
	m.n = m.n_fds = 0;
	return &m;
}

int worker_ask_fd(struct worker_msg *m, struct err *err)
{
	int r = worker_ask(m, err);
	int fd = r < 0 ? r : worker_take_fd(m, 0);

	if (r < 0)
		return r;
	worker_msg_done(m);
	return fd < 0 ? err_set(err, -EBADMSG, "the spawner returned no descriptor") : fd;
}
