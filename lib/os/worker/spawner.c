/* SPDX-License-Identifier: Apache-2.0 */
#include "spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "worker_internal.h"

/* Children of this spawner that were not reaped. */
static pid_t children[SPAWNER_MAX_CHILDREN];
static size_t n_places; /* of children that were ever used */
/* Those of them that the current question has started. */
static pid_t latest[2];
static size_t n_latest;

static pid_t *find_child(pid_t pid)
{
	for (size_t i = 0; i < n_places; i++)
		if (children[i] == pid)
			return &children[i];
	return NULL;
}

int spawner_keep(pid_t pid, struct err *err)
{
	pid_t *place = find_child(0);

	if (!place && n_places < SPAWNER_MAX_CHILDREN)
		place = &children[n_places++];
	if (!place)
		return err_set(err, -EAGAIN, "%d child processes are already running",
			SPAWNER_MAX_CHILDREN);
	*place = pid;
	if (n_latest < ARRAY_LEN(latest))
		latest[n_latest++] = pid;
	return 0;
}

void spawner_drop(pid_t pid)
{
	pid_t *place = pid > 0 ? find_child(pid) : NULL;

	if (!place)
		return;
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	*place = 0;
}

bool spawner_has(pid_t pid)
{
	return pid > 0 && find_child(pid);
}

/* ---- a child of the caller ---- */

/* 0 with the exit status, or WORKER_SIGNALED and the signal; -EAGAIN while it runs. */
int child_status(pid_t pid, int *ret_status)
{
	siginfo_t si = {0};

	if (waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG) < 0)
		return -errno;
	if (si.si_pid == 0)
		return -EAGAIN;
	*ret_status = si.si_code == CLD_EXITED ? si.si_status : WORKER_SIGNALED + si.si_status;
	return 0;
}

static ssize_t read_proc(pid_t pid, const char *name, char *buf, size_t size)
{
	char path[64];
	AUTO_CLOSE int fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, buf, size - 1);
	buf[n > 0 ? n : 0] = '\0';
	return n;
}

static uint64_t written_by(pid_t pid)
{
	char text[512];
	const char *at;

	if (read_proc(pid, "io", text, sizeof(text)) <= 0)
		return 0;
	at = strstr(text, "wchar: ");
	return at ? strtoull(at + 7, NULL, 10) : 0;
}

/* virtiofsd serves from a child of the process that was started. */
uint64_t child_written(pid_t pid)
{
	char name[64], text[256], *save = NULL;
	uint64_t n = written_by(pid);

	(void)snprintf(name, sizeof(name), "task/%d/children", (int)pid);
	if (read_proc(pid, name, text, sizeof(text)) <= 0)
		return n;
	for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save))
		n += written_by((pid_t)strtol(w, NULL, 10));
	return n;
}

/* ---- questions ---- */

static int check_plan(const struct spawner_rules *rules, const struct jail_plan *p, struct err *err)
{
	bool known = false;

	for (size_t i = 0; i < rules->n_programs && !known; i++)
		known = rules->programs[i].profile == p->profile &&
			strcmp(rules->programs[i].path, p->program) == 0;
	if (!known)
		return err_set(err, -EPERM, "starting %.200s is not permitted", p->program);
	return 0;
}

static int do_spawn(const struct spawner_rules *rules, struct worker_msg *q, struct worker_msg *a,
	struct err *err)
{
	static struct plan_box box;
	struct jail_child c = {.pidfd = -1, .notify_fd = -1};
	struct wr w = wr_init(a->body, sizeof(a->body));
	int r = plan_get(q, &box) < 0 ? -EBADMSG : check_plan(rules, &box.plan, err);

	if (r < 0)
		return r;
	box.plan.roots = rules->roots;
	box.plan.n_roots = rules->n_roots;
	r = jail_spawn(&box.plan, &c, err);
	if (r == 0)
		r = spawner_keep(c.pid, err);
	if (r < 0) {
		jail_child_kill(&c);
		return r;
	}
	wr_u32(&w, (uint32_t)c.pid);
	wr_u32(&w, c.nofile);
	a->n = w.n;
	a->fds[a->n_fds++] = c.pidfd;
	if (c.notify_fd >= 0)
		a->fds[a->n_fds++] = c.notify_fd;
	return 0;
}

/* No other process can have this number: the child was not reaped. */
static int do_child(const struct worker_msg *q, struct worker_msg *a, struct err *err)
{
	struct rd rd = rd_init(slice_of(q->body, q->n));
	struct wr w = wr_init(a->body, sizeof(a->body));
	pid_t pid = (pid_t)rd_u32(&rd), *place = pid > 0 ? find_child(pid) : NULL;
	int status = 0, r = 0;

	if (rd_finish(&rd) < 0 || q->n_fds)
		return -EBADMSG;
	if (!place)
		return err_set(err, -ESRCH, "process %d was not started by this spawner", (int)pid);
	if (q->kind == WORKER_KILL)
		return kill(pid, SIGKILL) < 0 ? -errno : 0;
	if (q->kind == WORKER_WRITTEN) {
		wr_u64(&w, child_written(pid));
		a->n = w.n;
		return 0;
	}
	r = child_status(pid, &status);
	if (r != -EAGAIN)
		*place = 0;
	return r < 0 ? r : status;
}

/* -EBADMSG: the broker is not what it was. */
static int answer_spawner(const struct spawner_rules *rules, struct worker_msg *q,
	struct worker_msg *a, struct err *err)
{
	switch (q->kind) {
	case WORKER_SPAWN:
		return do_spawn(rules, q, a, err);
	case WORKER_KILL:
	case WORKER_REAP:
	case WORKER_WRITTEN:
		return do_child(q, a, err);
	default:
		if (q->kind < WORKER_OWN || !rules->own)
			return -EBADMSG;
		return rules->own(rules->ctx, q, a, err);
	}
}

static void put_refusal(struct worker_msg *a, const struct err *err)
{
	worker_msg_done(a);
	a->n = strnlen(err->text, sizeof(err->text));
	memcpy(a->body, err->text, a->n);
}

/* The broker did not get the descriptors and receives an error: a process without an owner must not
 * run. */
static int refuse_late(int sock, struct worker_msg *a)
{
	struct err err = {0};

	while (n_latest)
		spawner_drop(latest[--n_latest]);
	a->code = err_set(&err, -EAGAIN, WORKER_CROWDED);
	put_refusal(a, &err);
	return packet_send(sock, a);
}

/* A fork of the broker's may have the socket, so that its end does not come. */
static bool has_broker(int sock, int broker)
{
	struct pollfd p[] = {{.fd = sock, .events = POLLIN}, {.fd = broker, .events = POLLIN}};
	int n;

	do {
		n = poll(p, ARRAY_LEN(p), -1);
	} while (n < 0 && errno == EINTR);
	return n > 0 && !p[1].revents;
}

int spawner_serve(const struct spawner_rules *rules, int sock, int broker)
{
	static struct worker_msg q, a;
	int r = 0;

	while (has_broker(sock, broker) && (r = packet_recv(sock, &q, -1)) > 0) {
		struct err err = {0};

		a.n = a.n_fds = n_latest = 0;
		a.kind = q.kind;
		a.code = answer_spawner(rules, &q, &a, &err);
		worker_msg_done(&q);
		if (a.code == -EBADMSG)
			return 1;
		if (a.code < 0)
			put_refusal(&a, &err);
		r = packet_send(sock, &a);
		if (r == -ETOOMANYREFS)
			r = refuse_late(sock, &a);
		worker_msg_done(&a);
		if (r < 0)
			return 1;
	}
	return r >= 0 ? 0 : 1;
}
