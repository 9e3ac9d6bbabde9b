/*
 * ask - the keeper's own small questions to the guest: /setup, /trust, /stats, /power, /forget,
 * /denied.
 *
 * How      The request body goes into one end of a socket pair whose other end edge bridges to a
 *          stream; the answer comes back the same way and ends with end-of-file. Each question
 *          has a deadline.
 * Trust    The answer is the guest's: bounded by the fixed buffer, decoded strictly by
 *          lib/wire/guestapi, and nothing but a text and a few numbers to show.
 */
#include "src/keeper/keeper.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"

static const char *const ask_paths[] = {
	[ASK_SETUP] = GUEST_PATH_SETUP,
	[ASK_STATS] = GUEST_PATH_STATS,
	[ASK_POWER] = GUEST_PATH_POWER,
	[ASK_TRUST] = GUEST_PATH_TRUST,
	[ASK_PARK] = GUEST_PATH_PARK,
	[ASK_WAKE] = GUEST_PATH_WAKE,
	[ASK_IDLE] = GUEST_PATH_STATS,
	[ASK_PARK_IMAGE] = GUEST_PATH_PARK,
	[ASK_FREEZE] = GUEST_PATH_PARK,
	[ASK_THAW] = GUEST_PATH_WAKE,
	[ASK_FORGET] = GUEST_PATH_FORGET,
	[ASK_DENIED] = GUEST_PATH_DENIED,
};

void ask_init(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_ASKS; i++)
		k->asks[i].fd = -1;
}

static void deliver(struct keeper *k, struct ask *a, bool ok);

static void finish(struct keeper *k, struct ask *a)
{
	loop_timer_clear(&k->loop, &a->timer);
	loop_del(&k->loop, a->fd);
	fd_close(&a->fd);
	a->kind = ASK_NONE;
	a->gen = (a->gen + 1) & 0xffffff;
}

static struct ask *free_ask(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_ASKS; i++)
		if (k->asks[i].kind == ASK_NONE)
			return &k->asks[i];
	return NULL;
}

static void on_refused(struct keeper *k, uint32_t stream)
{
	for (size_t i = 0; i < KEEPER_MAX_ASKS; i++)
		if (k->asks[i].kind != ASK_NONE && k->asks[i].stream == stream)
			deliver(k, &k->asks[i], false);
}

static const struct stream_kind ask_stream = {.on_refused = on_refused};

/* Both ends of a stream; the request is written whole, then the writing side is shut. */
static int send_request(
	struct keeper *k, enum ask_kind kind, struct slice body, uint32_t *ret_stream)
{
	AUTO_CLOSE int ours = -1, theirs = -1;
	int fds[2];
	int size = GUEST_MAX_BODY * 2;
	int r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return -errno;
	ours = fds[0];
	theirs = fds[1];
	(void)setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	r = body.n ? fd_write_all(ours, body.p, body.n) : 0;
	if (r < 0)
		return r;
	(void)shutdown(ours, SHUT_WR);
	r = edge_open_stream(k, ask_paths[kind], TAKE_FD(theirs), &ask_stream, ret_stream);
	return r < 0 ? r : TAKE_FD(ours);
}

int ask_guest(struct keeper *k, enum ask_kind kind, struct slice body, uint32_t timeout_ms,
	int link, uint32_t link_msg)
{
	struct ask *a = free_ask(k);
	struct loop_key key;
	int fd, r;

	if (!a)
		return -EMFILE;
	fd = send_request(k, kind, body, &a->stream);
	if (fd < 0)
		return fd;
	key = (struct loop_key){.kind = EV_ASK, .gen = a->gen, .idx = (uint32_t)(a - k->asks)};
	r = loop_add(&k->loop, fd, EPOLLIN, key);
	if (r < 0) {
		fd_close(&fd);
		return r;
	}
	a->fd = fd;
	a->kind = kind;
	a->n = 0;
	a->link = link;
	a->link_gen = link >= 0 ? k->links[link].gen : 0;
	a->link_msg = link_msg;
	key.kind = EV_TIMER_ASK;
	loop_timer_set(&k->loop, &a->timer, clock_mono_ms() + timeout_ms, key);
	return 0;
}

static void answer_stats(struct keeper *k, const struct ask *a, struct slice body)
{
	struct keeper_stats stats = {0};
	struct link *l = a->link >= 0 ? &k->links[a->link] : NULL;

	if (!l || l->fd < 0 || l->gen != a->link_gen)
		return;
	if (guest_get_stats(body, &stats) < 0)
		link_answer(k, a->link, a->link_gen, a->link_msg, -EBADMSG,
			"the guest's answer does not decode");
	else if (keeper_send_stats(l->fd, a->link_msg, &stats) < 0)
		log_warn("sbxd does not take the statistics");
}

/* ok false: no answer, or one that could not be read. */
static void deliver(struct keeper *k, struct ask *a, bool ok)
{
	struct slice body = slice_of(a->body, ok ? a->n : 0);
	struct guest_reply reply = {.text = "the guest gave no answer"};
	struct ask done = *a;
	struct keeper_stats stats;

	finish(k, a);
	switch (done.kind) {
	case ASK_SETUP:
		if (body.n && guest_get_reply(body, &reply) < 0)
			reply = (struct guest_reply){.text = "the guest's answer does not decode"};
		start_on_setup_answer(k, &reply);
		break;
	case ASK_TRUST:
		if (body.n && guest_get_reply(body, &reply) < 0)
			reply = (struct guest_reply){.text = "the guest's answer does not decode"};
		trust_on_answer(k, &reply);
		break;
	case ASK_PARK:
	case ASK_WAKE:
		if (body.n && guest_get_reply(body, &reply) < 0)
			reply = (struct guest_reply){.text = "the guest's answer does not decode"};
		if (done.kind == ASK_PARK)
			suspend_on_parked(k, &reply);
		else
			suspend_on_woken(k, &reply);
		break;
	case ASK_IDLE:
		if (guest_get_stats(slice_of(done.body, body.n), &stats) == 0)
			idle_on_stats(k, &stats);
		break;
	case ASK_FREEZE:
	case ASK_THAW:
		if (body.n && guest_get_reply(body, &reply) < 0)
			reply = (struct guest_reply){.text = "the guest's answer does not decode"};
		(done.kind == ASK_FREEZE ? freeze_on_parked : freeze_on_woken)(k, &reply);
		break;
	case ASK_PARK_IMAGE:
		if (body.n && guest_get_reply(body, &reply) < 0)
			reply = (struct guest_reply){.text = "the guest's answer does not decode"};
		make_on_parked(k, &reply);
		break;
	case ASK_STATS:
		answer_stats(k, &done, slice_of(done.body, body.n));
		break;
	case ASK_FORGET: /* what counts is that no lookup waits any more */
		crowd_on_answer(k);
		break;
	case ASK_DENIED:
		denied_on_answer(k);
		break;
	case ASK_POWER: /* what counts is that qemu ends */
	case ASK_NONE:
		break;
	}
}

void ask_on_readable(struct keeper *k, const struct loop_event *ev)
{
	struct ask *a = &k->asks[ev->key.idx];
	ssize_t n = read(a->fd, a->body + a->n, sizeof(a->body) - a->n);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		deliver(k, a, n == 0);
		return;
	}
	a->n += (size_t)n;
	if (a->n == sizeof(a->body))
		deliver(k, a, false);
}

void ask_on_timeout(struct keeper *k, const struct loop_event *ev)
{
	deliver(k, &k->asks[ev->key.idx], false);
}

void ask_drop_all(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_ASKS; i++)
		if (k->asks[i].kind != ASK_NONE)
			deliver(k, &k->asks[i], false);
}
