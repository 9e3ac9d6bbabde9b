/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "worker.h"
#include "lib/base/clock.h"
#include "lib/base/fs/paths.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/os/worker/worker.h"

/* The phase in which no message is allowed. */
static uint8_t last_phase(const struct worker_ops *ops)
{
	return ops->chan->n_phases - 1;
}

void worker_init(struct worker *w, const struct worker_ops *ops, uint32_t idx)
{
	*w = (struct worker){.ops = ops,
		.phase = last_phase(ops),
		.child = {.pidfd = -1},
		.sock = -1,
		.idx = idx};
}

bool worker_is_current(const struct worker *w, struct loop_key key)
{
	return w->alive && w->gen == key.gen;
}

static const char *target_of(const struct worker *w)
{
	return w->ops->get_target ? w->ops->get_target(w) : "";
}

static struct loop_key event_key(const struct worker *w, uint8_t kind)
{
	return (struct loop_key){.kind = kind, .gen = w->gen, .idx = w->idx};
}

int worker_spawn_jailed(struct keeper *k, const struct worker_ops *ops, char *const *argv, int sock,
	struct jail_child *ret, struct err *err)
{
	AUTO_FREE char *program = paths_get(PATHS_LIBEXEC, "%s", ops->program);
	char *plain[] = {(char *)ops->program, NULL};
	struct jail_fd fds[] = {{sock, 3}};
	struct jail_plan plan = {.profile = ops->profile,
		.program = program,
		.argv = argv ? argv : plain,
		.fds = fds,
		.n_fds = ARRAY_LEN(fds),
		.log_fd = k->chatter_wr};

	return worker_spawn(&plan, ret, err);
}

static int watch_worker(struct keeper *k, struct worker *w)
{
	int r = loop_add(&k->loop, w->sock, EPOLLIN, event_key(w, w->ops->ev_message));

	if (r < 0)
		return r;
	return loop_add(&k->loop, w->child.pidfd, EPOLLIN, event_key(w, w->ops->ev_end));
}

int worker_start(struct keeper *k, struct worker *w, struct err *err)
{
	const struct worker_ops *ops = w->ops;
	AUTO_CLOSE int ours = -1, theirs = -1;
	int fds[2], r = ipc_pair(fds);

	w->started_ms = clock_mono_ms();
	if (r < 0)
		return err_errno(err, r, "cannot create the socket of %s", ops->program);
	ours = fds[0];
	theirs = fds[1];
	r = ops->spawn ? ops->spawn(k, w, theirs, &w->child, err)
		       : worker_spawn_jailed(k, ops, NULL, theirs, &w->child, err);
	if (r < 0)
		return err_wrap(err, r, "cannot start %s", ops->program);
	w->sock = TAKE_FD(ours);
	ipc_trace(w->sock, ops->chan, CHAN_FROM_KEEPER, target_of(w));
	w->phase = 0;
	w->alive = true;
	r = watch_worker(k, w);
	if (r < 0) { /* an unwatched process would never be restarted */
		worker_stop(k, w, "cannot watch the process");
		return err_errno(err, r, "cannot watch %s", ops->program);
	}
	return 0;
}

static bool is_wanted(const struct keeper *k)
{
	return k->state.phase == KEEPER_STARTING || k->state.phase == KEEPER_RUNNING;
}

void worker_restart(struct keeper *k, struct worker *w)
{
	const struct worker_ops *ops = w->ops;
	uint64_t now = clock_mono_ms(), gap;

	if (!is_wanted(k))
		return;
	if (ops->steady_ms && now - w->started_ms >= ops->steady_ms)
		w->tries = 0;
	gap = MIN((uint64_t)ops->gap_ms << MIN(w->tries, 10u), (uint64_t)ops->max_gap_ms);
	w->tries++;
	loop_timer_set(&k->loop, &w->timer, now + gap, (struct loop_key){.kind = ops->ev_timer});
}

static void reap_worker(struct keeper *k, struct worker *w, const char *why)
{
	loop_del(&k->loop, w->sock);
	loop_del(&k->loop, w->child.pidfd);
	(void)worker_reap(&w->child);
	fd_close(&w->sock);
	fd_close(&w->child.pidfd);
	w->alive = false;
	w->phase = last_phase(w->ops);
	w->gen++;
	w->ops->on_end(k, w, why);
}

void worker_stop(struct keeper *k, struct worker *w, const char *why)
{
	loop_timer_clear(&k->loop, &w->timer);
	if (!w->alive)
		return;
	worker_kill(&w->child);
	reap_worker(k, w, why);
}

void worker_on_exit(struct keeper *k, struct worker *w)
{
	char why[64];

	(void)snprintf(why, sizeof(why), "%s ended", w->ops->program);
	log_warn("%s %sended", w->ops->program, target_of(w));
	reap_worker(k, w, why);
}

static void end_violator(struct keeper *k, struct worker *w, const char *what)
{
	const char *program = w->ops->program;
	char text[512], why[64];

	(void)snprintf(text, sizeof(text), "%s%.200s", target_of(w), what);
	(void)snprintf(why, sizeof(why), "%s violated its protocol", program);
	log_error("worker violation: %s %s; killed", program, text);
	record_violation(k, program, text);
	worker_stop(k, w, why);
	w->violations++;
	w->ops->on_violation(k, w);
}

static int check_hello(const struct ipc_msg *msg, struct err *err)
{
	char build[CHAN_MAX_BUILD];
	int r = chan_get_hello(msg, build);

	if (r < 0 || strcmp(build, SBX_BUILD) != 0)
		return err_set(err, -EBADMSG, "has a different build");
	return 0;
}

static int take_message(struct keeper *k, struct worker *w, struct ipc_msg *msg, struct err *err)
{
	const struct worker_ops *ops = w->ops;
	int r;

	if (!chan_allows(ops->chan, w->phase, CHAN_FROM_WORKER, msg->type))
		return err_set(err, -EBADMSG, "sent message %u (%s) out of phase", msg->type,
			chan_name(ops->chan, msg->type));
	w->phase = chan_after(ops->chan, w->phase, msg->type);
	if (msg->fd >= 0 && !chan_may_have_fd(ops->chan, msg->type))
		return err_set(err, -EBADMSG, "sent a descriptor with message %u", msg->type);
	if (msg->type != CHAN_HELLO)
		return ops->on_message(k, w, msg, err);
	r = check_hello(msg, err);
	return r < 0 ? r : ops->on_hello(k, w, err);
}

/* Handles one message, or what ipc_recv returned instead. Returns whether more may follow. */
static bool on_received(struct keeper *k, struct worker *w, struct ipc_msg *msg, int r)
{
	uint32_t gen = w->gen;
	struct err err = {0};

	if (r == 0) { /* the event of the pidfd follows */
		loop_del(&k->loop, w->sock);
		return false;
	}
	if (r > 0) {
		r = take_message(k, w, msg, &err);
		ipc_msg_done(msg);
		if (msg->type == w->ops->secret_message)
			explicit_bzero(msg->body, sizeof(msg->body));
	}
	if (!w->alive || w->gen != gen)
		return false;
	if (r < 0)
		end_violator(k, w, err.text[0] ? err.text : "sent an invalid message");
	return r >= 0;
}

/* All that arrived, in one call: a second one only to learn that there is no more would cost as
 * much as the first. */
static void read_messages(struct keeper *k, struct worker *w)
{
	static struct ipc_batch batch; /* too large for the stack of every event */
	static struct ipc_msg msg;
	int sock = w->sock, r = ipc_batch_recv(sock, &batch);

	if (r == -EAGAIN)
		return;
	if (r < 0)
		(void)on_received(k, w, &msg, r);
	while ((r = ipc_batch_next(sock, &batch, &msg)) != -EAGAIN && on_received(k, w, &msg, r))
		;
	ipc_batch_done(&batch);
}

void worker_want_room(struct keeper *k, struct worker *w)
{
	(void)!loop_mod(&k->loop, w->sock, EPOLLIN | EPOLLOUT, event_key(w, w->ops->ev_message));
}

void worker_on_event(struct keeper *k, struct worker *w, const struct loop_event *ev)
{
	uint32_t gen = w->gen;

	if (ev->events & EPOLLOUT) {
		(void)!loop_mod(&k->loop, w->sock, EPOLLIN, event_key(w, w->ops->ev_message));
		w->ops->on_room(k, w);
	}
	if (ev->events & ~(uint32_t)EPOLLOUT && w->alive && w->gen == gen)
		read_messages(k, w);
}
