/* SPDX-License-Identifier: Apache-2.0 */
#include "hands.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include "hands_internal.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"

#define REAP_MS 5000

static_assert(SPAWNER_MAX_CHILDREN > KEEPER_MAX + 8, "a place for each child");

int hands_start(struct err *err)
{
	static const struct spawner_rules rules = {.own = hands_serve, .keeps_privileges = true};

	return spawner_start(&rules, err);
}

static struct wr body_of(struct worker_msg *m)
{
	return wr_init(m->body, sizeof(m->body));
}

static int ask_child(struct worker_msg *m, struct hands_child *ret, struct err *err)
{
	AUTO_CLOSE int fd = worker_ask_fd(m, err);
	struct rd rd = rd_init(slice_of(m->body, m->n));
	pid_t pid;

	if (fd < 0)
		return fd;
	pid = (pid_t)rd_u32(&rd);
	if (rd_finish(&rd) < 0 || pid <= 1)
		return err_set(err, -EBADMSG, "the spawner returned no process");
	*ret = (struct hands_child){.pid = pid, .pidfd = TAKE_FD(fd)};
	return 0;
}

int hands_keeper(const char *id, enum hands_way way, int channel, int log_fd,
	struct hands_child *ret, struct err *err)
{
	struct worker_msg *m = worker_question(HANDS_KEEPER);
	struct wr w = body_of(m);

	wr_cstr(&w, id);
	wr_u8(&w, (uint8_t)way);
	m->n = w.n;
	m->fds[m->n_fds++] = channel;
	m->fds[m->n_fds++] = log_fd;
	return ask_child(m, ret, err);
}

int hands_maker(
	const struct hands_image *wish, int log_fd, struct hands_child *ret, struct err *err)
{
	struct worker_msg *m = worker_question(HANDS_MAKER);
	struct wr w = body_of(m);

	wr_cstr(&w, wish->template);
	wr_u32(&w, wish->cpus);
	wr_u64(&w, wish->memory);
	wr_u64(&w, wish->disk);
	wr_cstr(&w, wish->accel);
	m->n = w.n;
	m->fds[m->n_fds++] = log_fd;
	return ask_child(m, ret, err);
}

int hands_merger(const char *id, const struct layers layers[TEMPLATE_N_DISKS], int log_fd,
	struct hands_child *ret, struct err *err)
{
	struct worker_msg *m = worker_question(HANDS_MERGER);
	struct wr w = body_of(m);

	wr_cstr(&w, id);
	for (size_t i = 0; i < TEMPLATE_N_DISKS; i++) {
		wr_u8(&w, (uint8_t)layers[i].n);
		for (size_t k = 0; k < layers[i].n; k++)
			wr_u16(&w, (uint16_t)layers[i].number[k]);
	}
	m->n = w.n;
	m->fds[m->n_fds++] = log_fd;
	return ask_child(m, ret, err);
}

int hands_vault(int listener, int channel, int log_fd, struct hands_child *ret, struct err *err)
{
	struct worker_msg *m = worker_question(HANDS_VAULT);

	m->fds[m->n_fds++] = listener;
	m->fds[m->n_fds++] = channel;
	m->fds[m->n_fds++] = log_fd;
	return ask_child(m, ret, err);
}

int hands_notify(int channel, int log_fd, struct hands_child *ret, struct err *err)
{
	struct worker_msg *m = worker_question(HANDS_NOTIFY);

	m->fds[m->n_fds++] = channel;
	m->fds[m->n_fds++] = log_fd;
	return ask_child(m, ret, err);
}

int hands_reap(pid_t pid, struct hands_end *ret)
{
	int r = worker_status(pid);

	if (r < 0)
		return r;
	*ret = (struct hands_end){.was_killed = r >= WORKER_SIGNALED,
		.status = r >= WORKER_SIGNALED ? r - WORKER_SIGNALED : r};
	return 0;
}

void hands_reap_killed(const struct hands_child *c)
{
	struct pollfd p = {.fd = c->pidfd, .events = POLLIN};
	struct hands_end end;

	if (poll(&p, 1, REAP_MS) > 0)
		(void)!hands_reap(c->pid, &end);
}

static void signal_both(int pidfd, int second, enum hands_signal signal)
{
	struct worker_msg *m = worker_question(HANDS_SIGNAL);
	struct wr w = body_of(m);
	struct err err = {0};

	if (pidfd < 0)
		return;
	wr_u8(&w, (uint8_t)signal);
	m->n = w.n;
	m->fds[m->n_fds++] = pidfd;
	if (second >= 0)
		m->fds[m->n_fds++] = second;
	if (worker_ask(m, &err) < 0)
		log_warn("%s", err.text);
}

void hands_signal(int pidfd, enum hands_signal signal)
{
	signal_both(pidfd, -1, signal);
}

void hands_kill_keeper(int pidfd, int qemu_pidfd)
{
	signal_both(pidfd, qemu_pidfd, HANDS_KILL_GROUP);
}

void hands_kill_rest(const char *id)
{
	struct worker_msg *m = worker_question(HANDS_KILL_REST);
	struct wr w = body_of(m);
	struct err err = {0};

	wr_cstr(&w, id);
	m->n = w.n;
	if (worker_ask(m, &err) < 0)
		log_warn("%s", err.text);
}

void hands_sweep(void)
{
	(void)!worker_ask(worker_question(HANDS_SWEEP), NULL);
}

int hands_to_keeper(const char *id, struct err *err)
{
	struct worker_msg *m = worker_question(HANDS_TO_KEEPER);
	struct wr w = body_of(m);

	wr_cstr(&w, id);
	m->n = w.n;
	return worker_ask_fd(m, err);
}

int hands_to_vault(struct err *err)
{
	return worker_ask_fd(worker_question(HANDS_TO_VAULT), err);
}
