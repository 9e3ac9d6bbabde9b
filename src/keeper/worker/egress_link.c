/*
 * egress_link - the keeper's side of lib/os/ipc/egress_chan.h, and the life of the egress process.
 *
 * How      egress_start spawns sbx-egress in its jail; when it says HELLO it is told settings,
 *          resolver and policy, and when it has loaded that it is given exchanges (net.c). When it
 *          ends, what it had open is over and another one is started after a pause that grows with
 *          each that did not live long.
 * Trust    egress may be taken over by an origin or a resolver: every message is checked against
 *          the phase table, a violation kills it, and after KEEPER_EGRESS_VIOLATIONS the sandbox is
 *          stopped.
 */
#include "src/keeper/keeper.h"

#include <errno.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"

void egress_init(struct keeper *k)
{
	k->egress.sock = k->egress.child.pidfd = -1;
	k->egress.phase = EGRESS_PHASE_END;
}

static bool wanted(const struct keeper *k)
{
	return k->state.phase == KEEPER_STARTING || k->state.phase == KEEPER_RUNNING;
}

static int spawn(struct keeper *k, int child_sock, struct err *err)
{
	AUTO_FREE char *program = paths_get(PATHS_LIBEXEC, "sbx-egress");
	char *argv[] = {(char *)"sbx-egress", NULL};
	struct jail_fd fds[] = {{child_sock, 3}};
	struct jail_plan plan = {.profile = JAIL_EGRESS,
		.program = program,
		.argv = argv,
		.fds = fds,
		.n_fds = ARRAY_LEN(fds),
		.log_fd = k->chatter_wr};

	return worker_spawn(&plan, &k->egress.child, err);
}

static struct loop_key message_key(const struct keeper *k)
{
	return (struct loop_key){.kind = EV_EGRESS, .gen = k->egress.gen & 0xffffff};
}

static int watch(struct keeper *k)
{
	struct loop_key on_end = {.kind = EV_EGRESS_END, .gen = k->egress.gen & 0xffffff};
	int r = loop_add(&k->loop, k->egress.sock, EPOLLIN, message_key(k));

	return r < 0 ? r : loop_add(&k->loop, k->egress.child.pidfd, EPOLLIN, on_end);
}

/* Another one after a pause. There is no last try: without egress nothing leaves, that is all. */
static void start_again(struct keeper *k)
{
	uint64_t now = clock_mono_ms();
	uint64_t gap = KEEPER_EGRESS_GAP_MS;

	if (!wanted(k))
		return;
	if (now - k->egress.started_ms >= KEEPER_EGRESS_STEADY_MS)
		k->egress.tries = 0;
	gap = MIN(gap << MIN(k->egress.tries, 10u), (uint64_t)KEEPER_EGRESS_MAX_GAP_MS);
	k->egress.tries++;
	loop_timer_set(
		&k->loop, &k->egress.timer, now + gap, (struct loop_key){.kind = EV_TIMER_EGRESS});
}

static int try_start(struct keeper *k, struct err *err)
{
	AUTO_CLOSE int theirs = -1;
	int fds[2];
	int r = ipc_pair(fds);

	if (r < 0)
		return err_errno(err, r, "making egress's socket");
	k->egress.sock = fds[0];
	theirs = fds[1];
	k->egress.phase = EGRESS_PHASE_START;
	r = spawn(k, theirs, err);
	if (r < 0) {
		fd_close(&k->egress.sock);
		return err_wrap(err, r, "starting sbx-egress");
	}
	k->egress.alive = true;
	r = watch(k);
	if (r < 0) {
		egress_kill(k);
		return err_errno(err, r, "watching sbx-egress");
	}
	return 0;
}

void egress_start(struct keeper *k)
{
	struct err err = {0};
	int r;

	loop_timer_clear(&k->loop, &k->egress.timer);
	if (k->egress.alive || !wanted(k))
		return;
	k->egress.started_ms = clock_mono_ms();
	/* The first begins the time in which what is asked waits; a later one does not prolong it.
	 */
	if (!k->egress.lost_ms)
		k->egress.lost_ms = k->egress.started_ms;
	r = try_start(k, &err);
	if (r < 0) {
		log_error("%s", err_text(&err, r));
		start_again(k);
	}
}

void egress_on_timer(struct keeper *k)
{
	egress_start(k);
}

static void reap(struct keeper *k)
{
	loop_del(&k->loop, k->egress.sock);
	loop_del(&k->loop, k->egress.child.pidfd);
	(void)worker_reap(&k->egress.child);
	fd_close(&k->egress.sock);
	fd_close(&k->egress.child.pidfd);
	if (k->egress.has_policy)
		k->egress.lost_ms = clock_mono_ms();
	k->egress.alive = k->egress.has_policy = false;
	k->egress.phase = EGRESS_PHASE_END;
	k->egress.gen++;
	k->egress.n_loaded = k->egress.n_sent;
	netpolicy_on_egress_end(k);
	net_on_egress_end(k);
}

void egress_kill(struct keeper *k)
{
	loop_timer_clear(&k->loop, &k->egress.timer);
	if (!k->egress.alive)
		return;
	worker_kill(&k->egress.child);
	reap(k);
}

void egress_on_end(struct keeper *k)
{
	log_warn("sbx-egress ended");
	reap(k);
	start_again(k);
}

void egress_restart(struct keeper *k, const char *why)
{
	if (!k->egress.alive)
		return;
	log_error("sbx-egress %s: it is killed", why);
	egress_kill(k);
	start_again(k);
}

static void violation(struct keeper *k, const char *what)
{
	log_error("worker violation: sbx-egress %s; it is killed", what);
	record_violation(k, "egress", what);
	egress_kill(k);
	if (++k->egress.violations >= KEEPER_EGRESS_VIOLATIONS)
		stop_begin(k, 0, "sbx-egress broke its protocol time after time: see keeper.log");
	else
		start_again(k);
}

static int on_hello(struct keeper *k, const struct ipc_msg *msg, struct err *err)
{
	char build[EGRESS_MAX_BUILD];
	int r = egress_get_hello(msg, build);

	if (r < 0 || strcmp(build, EGRESS_BUILD) != 0)
		return err_set(err, -EBADMSG, "is of another build");
	/* It may have been killed meanwhile, which is no fault of its own. */
	if (netpolicy_send(k) < 0)
		egress_restart(k, "did not take its configuration");
	return 0;
}

/* Its number must be one of a policy that was sent and not said to be loaded. When two came close
 * together it may speak of the second only. */
static int on_loaded(struct keeper *k, const struct ipc_msg *msg)
{
	char text[EGRESS_MAX_TEXT];
	uint32_t waiting = k->egress.n_sent - k->egress.n_loaded;
	int r = egress_get_loaded(msg, text);

	if (r < 0 || msg->id == k->egress.n_loaded || msg->id - k->egress.n_loaded > waiting)
		return -EBADMSG;
	k->egress.n_loaded = msg->id;
	k->egress.has_policy = true;
	netpolicy_on_loaded(k, text);
	conns_on_room(k);
	net_run(k);
	return 0;
}

static int on_message(struct keeper *k, struct ipc_msg *msg, struct err *err)
{
	if (!egress_phase_allows(k->egress.phase, EGRESS_FROM_EGRESS, msg->type))
		return err_set(err, -EBADMSG, "sent message %u out of phase", msg->type);
	k->egress.phase = egress_phase_after(k->egress.phase, msg->type);
	switch (msg->type) {
	case EGRESS_HELLO:
		return on_hello(k, msg, err);
	case EGRESS_LOADED:
		return on_loaded(k, msg);
	case EGRESS_RESULT:
		return net_on_result(k, msg);
	case EGRESS_CLOSED:
		return net_on_closed(k, msg);
	default:
		return -EBADMSG;
	}
}

static void on_readable(struct keeper *k)
{
	static struct ipc_msg msg;
	struct err err = {0};
	int r = ipc_recv(k->egress.sock, &msg);

	if (r == -EAGAIN)
		return;
	if (r == 0) {
		/* The pidfd tells the rest. */
		loop_del(&k->loop, k->egress.sock);
		return;
	}
	if (r > 0) {
		/* A connection may come with a RESULT only. */
		r = msg.fd >= 0 && msg.type != EGRESS_RESULT ? -EBADMSG : on_message(k, &msg, &err);
		ipc_msg_done(&msg);
	}
	if (r < 0)
		violation(k, err.text[0] ? err.text : "sent a message that does not decode");
}

void egress_on_event(struct keeper *k, const struct loop_event *ev)
{
	uint32_t gen = k->egress.gen;

	if (ev->events & EPOLLOUT) {
		(void)!loop_mod(&k->loop, k->egress.sock, EPOLLIN, message_key(k));
		conns_on_room(k);
		net_run(k);
	}
	if (ev->events & ~(uint32_t)EPOLLOUT && k->egress.alive && k->egress.gen == gen)
		on_readable(k);
}

void egress_want_room(struct keeper *k)
{
	(void)!loop_mod(&k->loop, k->egress.sock, EPOLLIN | EPOLLOUT, message_key(k));
}

bool egress_is_up(const struct keeper *k)
{
	return k->egress.alive && k->egress.phase == EGRESS_PHASE_RUN && k->egress.has_policy;
}
