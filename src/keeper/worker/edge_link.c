/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edge_link - the keeper's side of lib/os/ipc/edge_chan.h, and the life of the edge process.
 *
 * How      edge_start spawns sbx-edge in its jail, connects to the listening socket of QEMU for the
 *          guest's port, and passes that connection on with CONFIG. When edge exits, its streams
 *          are closed. A new edge starts after a pause in which the guest sees the port closed.
 *          After KEEPER_EDGE_TRIES starts in a row without reaching the guest, the keeper gives up.
 * Trust    edge may be compromised by the guest. Every message is checked against the phase table.
 *          A violation kills edge; after WORKER_MAX_VIOLATIONS the sandbox is stopped.
 */
#include "worker.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/base/trace.h"
#include "lib/os/ipc/edge_chan.h"

static int spawn_edge(
	struct keeper *k, struct worker *w, int sock, struct jail_child *ret, struct err *err)
{
	char ms[16], *argv[] = {(char *)"sbx-edge", (char *)"--first-ms", ms, NULL};

	(void)snprintf(ms, sizeof(ms), "%u",
		clock_limit_ms(k->accel == VMM_KVM ? EDGE_FIRST_MS : EDGE_FIRST_MS_TCG));
	return worker_spawn_jailed(k, w->ops, argv, sock, ret, err);
}

int edge_start(struct keeper *k, struct err *err)
{
	return worker_start(k, &k->edge->worker, err);
}

static void forget_streams(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_STREAMS; i++)
		if (k->streams[i].kind) {
			k->streams[i].kind = NULL;
			k->streams[i].gen = (k->streams[i].gen + 1) & 0xffffff;
		}
	k->state.sessions = 0;
}

static void drop_edge(struct keeper *k, struct worker *w, const char *why)
{
	forget_streams(k);
	k->edge->ops->on_end(k);
}

void edge_kill(struct keeper *k)
{
	worker_stop(k, &k->edge->worker, "");
}

static bool is_wanted(const struct keeper *k)
{
	return k->state.phase == KEEPER_STARTING || k->state.phase == KEEPER_RUNNING;
}

/* Restarts edge after a pause, or stops the sandbox if the guest stays unreachable. */
static void start_again(struct keeper *k)
{
	if (!k->vmm || !is_wanted(k))
		return;
	if (k->state.paused) /* by a full disk: the guest cannot be reached */
		k->edge->worker.tries = 0;
	if (k->edge->worker.tries >= KEEPER_EDGE_TRIES)
		k->life->stop(k, 0, "the connection to the guest was lost and cannot be restored");
	else
		worker_restart(k, &k->edge->worker);
}

void edge_on_exit(struct keeper *k)
{
	worker_on_exit(k, &k->edge->worker);
	link_push_state(k);
	start_again(k);
}

void edge_on_timer(struct keeper *k)
{
	struct err err = {0};
	int r;

	if (!is_wanted(k) || k->edge->worker.alive)
		return;
	r = edge_start(k, &err);
	if (r < 0) {
		log_error("%s", err_text(&err, r));
		start_again(k);
	}
}

/* Counted separately from tries, which READY resets: a compromised edge could send that. */
static void count_violation(struct keeper *k, struct worker *w)
{
	if (w->violations >= WORKER_MAX_VIOLATIONS)
		k->life->stop(k, 0, "sbx-edge violated its protocol repeatedly: see keeper.log");
	else
		start_again(k);
}

static int send_net(struct keeper *k, struct err *err)
{
	AUTO_CLOSE int port = hands_connect(k, HANDS_NET, err);
	int r = port < 0 ? port : chan_send_plain(k->edge->worker.sock, EDGE_NET, 0, port);

	return port < 0 || r == 0 ? r : err_errno(err, r, "did not take the guest's network");
}

static int send_config(struct keeper *k, struct worker *w, struct err *err)
{
	struct edge_config config = {.ready_ms = KEEPER_EDGE_READY_MS};
	AUTO_CLOSE int port = hands_connect(k, HANDS_CTL, err);
	int r;

	if (port < 0)
		return port;
	if (k->state.phase == KEEPER_STARTING)
		config.ready_ms = KEEPER_BOOT_MS_TCG;
	(void)!str_copy(config.sandbox, sizeof(config.sandbox), k->spec.id);
	k->edge->ops->fill_ca(k, &config);
	r = edge_ask_config(w->sock, &config, port);
	explicit_bzero(&config, sizeof(config));
	if (r < 0)
		return err_errno(err, r, "did not take its configuration");
	w->phase = chan_after(&edge_chan, w->phase, EDGE_CONFIG);
	/* In a snapshot, the network of the guest must not have been connected yet. */
	return k->plan == START_MAKE ? 0 : send_net(k, err);
}

static struct stream *find_stream(struct keeper *k, uint32_t id)
{
	struct stream *s = &k->streams[id % KEEPER_MAX_STREAMS];

	return s->kind && s->gen == id / KEEPER_MAX_STREAMS ? s : NULL;
}

static int close_stream(struct keeper *k, uint32_t id)
{
	struct stream *s = find_stream(k, id);
	const struct stream_kind *kind = s ? s->kind : NULL;

	if (!s)
		return -EBADMSG;
	s->kind = NULL;
	s->gen = (s->gen + 1) & 0xffffff;
	if (kind->is_session) {
		trace_line(TRACE_EXEC, "close stream=%u", id);
		k->state.sessions--;
		link_push_state(k);
	}
	if (kind->on_closed)
		kind->on_closed(k);
	return 0;
}

static void refuse_stream(struct keeper *k, uint32_t id)
{
	const struct stream *s = find_stream(k, id);

	if (s && s->kind->on_refused)
		s->kind->on_refused(k, id);
}

static int on_refused(struct keeper *k, const struct ipc_msg *msg)
{
	const struct stream *s = find_stream(k, msg->id);
	enum edge_reason reason;
	int r = edge_get_refused(msg, &reason);

	if (r < 0)
		return r;
	if (!s || !s->kind->is_quiet)
		log_warn("rejected a stream: %s", edge_reason_text(reason));
	refuse_stream(k, msg->id);
	return close_stream(k, msg->id);
}

static int on_opened(struct keeper *k, const struct ipc_msg *msg)
{
	uint16_t status;
	int r = edge_get_opened(msg, &status);

	if (r < 0)
		return r;
	if (status != 200)
		refuse_stream(k, msg->id);
	return find_stream(k, msg->id) ? 0 : -EBADMSG;
}

static void on_lost(const struct ipc_msg *msg)
{
	char text[EDGE_MAX_TEXT];

	if (edge_get_lost(msg, text) == 0)
		log_warn("sbx-edge lost the guest: %s", text);
}

static int take_message(struct keeper *k, struct worker *w, struct ipc_msg *msg, struct err *err)
{
	const struct edge_ops *ops = k->edge->ops;
	int r;

	switch (msg->type) {
	case EDGE_READY:
		if (chan_get_plain(&edge_chan, msg, EDGE_READY) < 0)
			return -EBADMSG;
		w->tries = 0;
		ops->on_ready(k);
		return 0;
	case EDGE_OPENED:
		return on_opened(k, msg);
	case EDGE_REFUSED:
		return on_refused(k, msg);
	case EDGE_CLOSED:
		r = chan_get_plain(&edge_chan, msg, EDGE_CLOSED);
		return r < 0 ? r : close_stream(k, msg->id);
	case EDGE_ASK:
		return ops->on_ask(k, msg, err);
	case EDGE_GONE:
		return ops->on_gone(k, msg);
	case EDGE_ENDED:
		return ops->on_ended(k, msg);
	case EDGE_CA:
		return ops->on_ca(k, msg);
	case EDGE_LOST:
		on_lost(msg); /* the exit follows */
		return 0;
	default:
		return -EBADMSG;
	}
}

static void tell_room(struct keeper *k, struct worker *w)
{
	k->edge->ops->on_room(k);
}

void edge_want_room(struct keeper *k)
{
	worker_want_room(k, &k->edge->worker);
}

static const struct worker_ops edge_worker = {
	.program = "sbx-edge",
	.profile = JAIL_EDGE,
	.ev_message = EV_EDGE,
	.ev_end = EV_EDGE_END,
	.ev_timer = EV_TIMER_EDGE,
	.chan = &edge_chan,
	.secret_message = EDGE_CA,
	.gap_ms = KEEPER_EDGE_GAP_MS,
	.max_gap_ms = KEEPER_EDGE_GAP_MS,
	.spawn = spawn_edge,
	.on_hello = send_config,
	.on_message = take_message,
	.on_room = tell_room,
	.on_end = drop_edge,
	.on_violation = count_violation,
};

void edge_init(struct keeper *k, const struct edge_ops *ops)
{
	worker_init(&k->edge->worker, &edge_worker, 0);
	k->edge->ops = ops;
}

bool edge_is_live(const struct keeper *k, struct loop_key key)
{
	return worker_is_current(&k->edge->worker, key);
}

void edge_on_event(struct keeper *k, const struct loop_event *ev)
{
	worker_on_event(k, &k->edge->worker, ev);
}

bool edge_is_alive(const struct keeper *k)
{
	return k->edge->worker.alive;
}

bool edge_is_up(const struct keeper *k)
{
	return k->edge->worker.alive && k->edge->worker.phase == EDGE_PHASE_RUN;
}

int edge_open_stream(struct keeper *k, const char *path, int fd, const struct stream_kind *kind,
	uint32_t *ret_stream)
{
	AUTO_CLOSE int owned = fd;
	size_t i = 0;
	int r;

	if (!edge_is_up(k))
		return -EAGAIN;
	while (i < KEEPER_MAX_STREAMS && k->streams[i].kind)
		i++;
	if (i == KEEPER_MAX_STREAMS)
		return -EMFILE;
	*ret_stream = k->streams[i].gen * KEEPER_MAX_STREAMS + (uint32_t)i;
	r = edge_ask_open(k->edge->worker.sock, *ret_stream, path, owned);
	if (r < 0)
		return r;
	k->streams[i].kind = kind;
	if (kind->is_session) {
		trace_line(TRACE_EXEC, "open stream=%u", *ret_stream);
		k->state.sessions++;
		link_push_state(k);
	}
	return 0;
}
