/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask - the keeper's own requests to the guest: /setup, /trust, /stats, /power, /forget, /denied.
 *
 * How      The request body is written to one end of a socket pair; edge bridges the other end to a
 *          stream. The answer arrives the same way and ends with end-of-file. Each request has a
 *          deadline.
 * Trust    Input: answers of the guest, limited by the fixed buffer, decoded strictly by
 *          lib/wire/guestapi. An answer is only a text and a few numbers to show.
 */
#include "guest.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"

void ask_init(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_ASKS; i++)
		k->asks[i].fd = -1;
}

static void deliver_reply(struct keeper *k, struct ask *a, bool ok);

static void finish_ask(struct keeper *k, struct ask *a)
{
	loop_timer_clear(&k->loop, &a->timer);
	loop_del(&k->loop, a->fd);
	fd_close(&a->fd);
	a->kind = NULL;
	a->gen = (a->gen + 1) & 0xffffff;
}

static void set_timer(struct keeper *k, struct ask *a)
{
	loop_timer_set(&k->loop, &a->timer, clock_mono_ms() + a->timeout_ms,
		(struct loop_key){
			.kind = EV_TIMER_ASK, .gen = a->gen, .idx = (uint32_t)(a - k->asks)});
}

static struct ask *free_ask(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_ASKS; i++)
		if (!k->asks[i].kind)
			return &k->asks[i];
	return NULL;
}

static void on_refused(struct keeper *k, uint32_t stream)
{
	for (size_t i = 0; i < KEEPER_MAX_ASKS; i++)
		if (k->asks[i].kind && k->asks[i].stream == stream)
			deliver_reply(k, &k->asks[i], false);
}

static const struct stream_kind ask_stream = {.on_refused = on_refused};

/* Both ends of a stream; the request is written completely, then the writing side is shut. */
static int send_request(
	struct keeper *k, const struct ask_kind *kind, struct slice body, uint32_t *ret_stream)
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
	r = edge_open_stream(k, kind->path, TAKE_FD(theirs), &ask_stream, ret_stream);
	return r < 0 ? r : TAKE_FD(ours);
}

int ask_guest(struct keeper *k, const struct ask_kind *kind, struct slice body, uint32_t timeout_ms,
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
	a->timeout_ms = timeout_ms;
	set_timer(k, a);
	return 0;
}

/* ok false: no answer, or one that is too long. */
static void deliver_reply(struct keeper *k, struct ask *a, bool ok)
{
	struct guest_reply reply = {.text = "no response from the guest"};
	struct ask done = *a; /* the handler may reuse the slot for another request */
	struct slice body = slice_of(done.body, ok ? done.n : 0);

	finish_ask(k, a);
	if (done.kind->on_reply) {
		if (body.n && guest_get_reply(body, &reply) < 0)
			reply = (struct guest_reply){.text = "invalid response from the guest"};
		done.kind->on_reply(k, &reply);
	}
	if (done.kind->on_body)
		done.kind->on_body(k, &done, body);
	if (done.kind->on_over)
		done.kind->on_over(k);
}

bool ask_is_live(const struct keeper *k, struct loop_key key)
{
	return k->asks[key.idx].kind && k->asks[key.idx].gen == key.gen;
}

void ask_on_readable(struct keeper *k, const struct loop_event *ev)
{
	struct ask *a = &k->asks[ev->key.idx];
	ssize_t n = read(a->fd, a->body + a->n, sizeof(a->body) - a->n);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		deliver_reply(k, a, n == 0);
		return;
	}
	a->n += (size_t)n;
	if (a->n == sizeof(a->body))
		deliver_reply(k, a, false);
}

void ask_give_time(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_ASKS; i++)
		if (k->asks[i].kind && k->asks[i].kind->is_patient)
			set_timer(k, &k->asks[i]);
}

void ask_on_timeout(struct keeper *k, const struct loop_event *ev)
{
	struct ask *a = &k->asks[ev->key.idx];

	if (k->state.paused && a->kind->is_patient)
		set_timer(k, a);
	else
		deliver_reply(k, a, false);
}

void ask_drop_all(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_ASKS; i++)
		if (k->asks[i].kind)
			deliver_reply(k, &k->asks[i], false);
}
