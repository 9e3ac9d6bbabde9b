/*
 * edge_link - the keeper's side of lib/os/ipc/edge_chan.h, and the life of the edge process.
 *
 * How      edge_start spawns sbx-edge in its jail, connects to the listening socket that qemu has
 *          behind the guest's port, and hands that connection over with CONFIG. When edge ends
 *          the streams are gone; after a pause in which the guest sees the port closed a new one
 *          is started, at most KEEPER_EDGE_TRIES times in a row without reaching the guest.
 * Trust    edge may be taken over by the guest: every message is checked against the phase table,
 *          a violation kills it, and after KEEPER_EDGE_VIOLATIONS the sandbox is stopped.
 */
#include "src/keeper/keeper.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/os/ipc/edge_chan.h"

static int spawn(struct keeper *k, int child_sock, struct err *err)
{
	AUTO_FREE char *program = paths_get(PATHS_LIBEXEC, "sbx-edge");
	char ms[16], *argv[] = {(char *)"sbx-edge", (char *)"--first-ms", ms, NULL};
	struct jail_fd fds[] = {{child_sock, 3}};
	struct jail_plan plan = {.profile = JAIL_EDGE,
		.program = program,
		.argv = argv,
		.fds = fds,
		.n_fds = ARRAY_LEN(fds),
		.log_fd = k->chatter_wr};

	(void)snprintf(ms, sizeof(ms), "%u",
		clock_limit_ms(k->accel == VMM_KVM ? EDGE_FIRST_MS : EDGE_FIRST_MS_TCG));
	return worker_spawn(&plan, &k->edge.child, err);
}

static struct loop_key message_key(const struct keeper *k)
{
	return (struct loop_key){.kind = EV_EDGE, .gen = k->edge.gen & 0xffffff};
}

static int watch(struct keeper *k)
{
	struct loop_key on_end = {.kind = EV_EDGE_END, .gen = k->edge.gen & 0xffffff};
	int r = loop_add(&k->loop, k->edge.sock, EPOLLIN, message_key(k));

	return r < 0 ? r : loop_add(&k->loop, k->edge.child.pidfd, EPOLLIN, on_end);
}

int edge_start(struct keeper *k, struct err *err)
{
	AUTO_CLOSE int theirs = -1;
	int fds[2];
	int r;

	r = ipc_pair(fds);
	if (r < 0)
		return err_errno(err, r, "making edge's socket");
	k->edge.sock = fds[0];
	theirs = fds[1];
	k->edge.phase = EDGE_PHASE_START;
	k->edge.has_said_ca = false;
	r = spawn(k, theirs, err);
	if (r < 0) {
		fd_close(&k->edge.sock);
		return err_wrap(err, r, "starting sbx-edge");
	}
	k->edge.alive = true;
	r = watch(k);
	if (r < 0)
		return err_errno(err, r, "watching sbx-edge");
	return 0;
}

static void forget_streams(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_STREAMS; i++)
		if (k->streams[i].used) {
			k->streams[i].used = false;
			k->streams[i].gen++;
		}
	k->state.sessions = 0;
	ports_on_edge_end(k);
}

static void reap(struct keeper *k)
{
	loop_del(&k->loop, k->edge.sock);
	loop_del(&k->loop, k->edge.child.pidfd);
	(void)worker_reap(&k->edge.child);
	fd_close(&k->edge.sock);
	fd_close(&k->edge.child.pidfd);
	k->edge.alive = false;
	k->edge.phase = EDGE_PHASE_END;
	k->edge.gen++;
	forget_streams(k);
	ask_drop_all(k);
	net_on_edge_end(k);
}

void edge_kill(struct keeper *k)
{
	loop_timer_clear(&k->loop, &k->edge.timer);
	if (!k->edge.alive)
		return;
	worker_kill(&k->edge.child);
	reap(k);
}

static bool wanted(const struct keeper *k)
{
	return k->state.phase == KEEPER_STARTING || k->state.phase == KEEPER_RUNNING;
}

/* Another one after a pause; or the end when the guest cannot be reached time after time. */
static void start_again(struct keeper *k)
{
	if (!wanted(k) || !k->vmm)
		return;
	if (++k->edge.tries > KEEPER_EDGE_TRIES) {
		stop_begin(k, 0, "the wire to the guest was lost and could not be restored");
		return;
	}
	loop_timer_set(&k->loop, &k->edge.timer, clock_mono_ms() + KEEPER_EDGE_GAP_MS,
		(struct loop_key){.kind = EV_TIMER_EDGE});
}

void edge_on_end(struct keeper *k)
{
	log_warn("sbx-edge ended");
	reap(k);
	link_push_state(k);
	start_again(k);
}

void edge_on_timer(struct keeper *k)
{
	struct err err = {0};
	int r;

	if (!wanted(k) || k->edge.alive)
		return;
	r = edge_start(k, &err);
	if (r < 0) {
		log_error("%s", err_text(&err, r));
		start_again(k);
	}
}

static void violation(struct keeper *k, const char *what)
{
	log_error("worker violation: sbx-edge %s; it is killed", what);
	record_violation(k, "edge", what);
	edge_kill(k);
	/* Counted apart from tries, which READY sets back: a taken-over edge could say that. */
	if (++k->edge.violations >= KEEPER_EDGE_VIOLATIONS)
		stop_begin(k, 0, "sbx-edge broke its protocol time after time: see keeper.log");
	else
		start_again(k);
}

int edge_send_net(struct keeper *k, struct err *err)
{
	AUTO_CLOSE int port = hands_connect(k, HANDS_NET, err);
	int r = port < 0 ? port : edge_ask_net(k->edge.sock, port);

	return port < 0 || r == 0 ? r : err_errno(err, r, "did not take the guest's network");
}

static int on_hello(struct keeper *k, const struct ipc_msg *msg, struct err *err)
{
	struct edge_config config = {.ready_ms = KEEPER_EDGE_READY_MS};
	AUTO_CLOSE int port = -1;
	char build[EDGE_MAX_BUILD];
	int r = edge_get_hello(msg, build);

	if (r < 0 || strcmp(build, EDGE_BUILD) != 0)
		return err_set(err, -EBADMSG, "is of another build");
	port = hands_connect(k, HANDS_CTL, err);
	if (port < 0)
		return port;
	if (k->state.phase == KEEPER_STARTING)
		config.ready_ms = KEEPER_BOOT_MS_TCG;
	(void)!str_copy(config.sandbox, sizeof(config.sandbox), k->spec.id);
	if (k->trust.has_ca) {
		config.n_saved = k->trust.ca.n_saved;
		memcpy(config.saved, k->trust.ca.saved, sizeof(config.saved));
	}
	r = edge_ask_config(k->edge.sock, &config, port);
	explicit_bzero(&config, sizeof(config));
	if (r < 0)
		return err_errno(err, r, "did not take its configuration");
	k->edge.phase = edge_phase_after(k->edge.phase, EDGE_CONFIG);
	/* In an image the guest's end of the network has never met anybody. */
	return k->warm.is_making || pool_waits(k) ? 0 : edge_send_net(k, err);
}

static struct stream *find_stream(struct keeper *k, uint32_t id)
{
	struct stream *s = &k->streams[id % KEEPER_MAX_STREAMS];

	return s->used && s->gen == id / KEEPER_MAX_STREAMS ? s : NULL;
}

static int close_stream(struct keeper *k, uint32_t id)
{
	struct stream *s = find_stream(k, id);

	if (!s)
		return -EBADMSG;
	s->used = false;
	s->gen = (s->gen + 1) & 0xffffff;
	if (s->session) {
		k->state.sessions--;
		link_push_state(k);
	}
	if (s->is_port)
		ports_on_closed(k);
	return 0;
}

static int on_refused(struct keeper *k, const struct ipc_msg *msg)
{
	enum edge_reason reason;
	int r = edge_get_refused(msg, &reason);

	if (r < 0)
		return r;
	/* To a published port where nobody listens inside: an everyday thing. */
	if (!find_stream(k, msg->id) || !find_stream(k, msg->id)->is_port)
		log_warn("a stream was refused: %s", edge_reason_text(reason));
	ask_on_refused(k, msg->id);
	return close_stream(k, msg->id);
}

static int on_opened(struct keeper *k, const struct ipc_msg *msg)
{
	uint16_t status;
	int r = edge_get_opened(msg, &status);

	if (r < 0)
		return r;
	if (status != 200)
		ask_on_refused(k, msg->id);
	return find_stream(k, msg->id) ? 0 : -EBADMSG;
}

static void on_lost(const struct ipc_msg *msg)
{
	char text[EDGE_MAX_TEXT];

	if (edge_get_lost(msg, text) == 0)
		log_warn("sbx-edge lost the guest: %s", text);
}

static int on_message(struct keeper *k, const struct ipc_msg *msg, struct err *err)
{
	if (!edge_phase_allows(k->edge.phase, EDGE_FROM_EDGE, msg->type))
		return err_set(err, -EBADMSG, "sent message %u out of phase", msg->type);
	k->edge.phase = edge_phase_after(k->edge.phase, msg->type);
	switch (msg->type) {
	case EDGE_HELLO:
		return on_hello(k, msg, err);
	case EDGE_READY:
		k->edge.tries = 0;
		start_on_ready(k);
		waiting_flush(k);
		ports_watch(k);
		if (k->state.phase == KEEPER_RUNNING)
			trust_send(k);
		return edge_get_nothing(msg);
	case EDGE_OPENED:
		return on_opened(k, msg);
	case EDGE_REFUSED:
		return on_refused(k, msg);
	case EDGE_CLOSED:
		return close_stream(k, msg->id);
	case EDGE_ASK:
		/* It has no network before the claim. */
		return pool_waits(k) ? -EBADMSG : net_on_ask(k, msg, err);
	case EDGE_CA:
		return trust_on_ca(k, msg);
	case EDGE_LOST:
		on_lost(msg); /* its end follows */
		return 0;
	default: /* a PONG too: the keeper asks none */
		return -EBADMSG;
	}
}

static void on_readable(struct keeper *k)
{
	static struct ipc_msg msg;
	struct err err = {0};
	int r = ipc_recv(k->edge.sock, &msg);

	if (r == -EAGAIN)
		return;
	if (r == 0) {
		/* The pidfd tells the rest. */
		loop_del(&k->loop, k->edge.sock);
		return;
	}
	if (r > 0) {
		r = msg.fd >= 0 ? -EBADMSG : on_message(k, &msg, &err);
		ipc_msg_done(&msg);
		if (msg.type == EDGE_CA)
			explicit_bzero(msg.body, sizeof(msg.body));
	}
	if (r < 0)
		violation(k, err.text[0] ? err.text : "sent a message that does not decode");
}

void edge_want_room(struct keeper *k)
{
	(void)!loop_mod(&k->loop, k->edge.sock, EPOLLIN | EPOLLOUT, message_key(k));
}

void edge_on_event(struct keeper *k, const struct loop_event *ev)
{
	uint32_t gen = k->edge.gen;

	if (ev->events & EPOLLOUT) {
		(void)!loop_mod(&k->loop, k->edge.sock, EPOLLIN, message_key(k));
		net_run(k);
	}
	if (ev->events & ~(uint32_t)EPOLLOUT && k->edge.alive && k->edge.gen == gen)
		on_readable(k);
}

bool edge_is_up(const struct keeper *k)
{
	return k->edge.alive && k->edge.phase == EDGE_PHASE_RUN;
}

int edge_open_stream(struct keeper *k, const char *path, int fd, bool session, uint32_t *ret_stream)
{
	AUTO_CLOSE int owned = fd;
	size_t i = 0;
	int r;

	if (!edge_is_up(k))
		return -EAGAIN;
	while (i < KEEPER_MAX_STREAMS && k->streams[i].used)
		i++;
	if (i == KEEPER_MAX_STREAMS)
		return -EMFILE;
	*ret_stream = k->streams[i].gen * KEEPER_MAX_STREAMS + (uint32_t)i;
	r = edge_ask_open(k->edge.sock, *ret_stream, path, owned);
	if (r < 0)
		return r;
	k->streams[i].used = true;
	k->streams[i].session = session;
	k->streams[i].is_port = false;
	if (session) {
		k->state.sessions++;
		link_push_state(k);
	}
	return 0;
}
