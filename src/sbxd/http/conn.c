/* SPDX-License-Identifier: Apache-2.0 */
#include "conn.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/rules/settings/settings.h"

#define CONN_IN_BYTES 16384
#define CONN_IDLE_MS 300000
#define CONN_REQUEST_MS 10000
#define CONN_WRITE_MS 30000

void conns_init(struct conns *cs, const struct conn_ops *ops)
{
	*cs = (struct conns){.ops = ops, .served.since_ms = clock_wall_ms()};
}

static struct loop_key key_of(const struct conn *c, enum sbxd_ev kind)
{
	return (struct loop_key){.kind = (uint8_t)kind, .gen = c->gen, .idx = c->idx};
}

static void reset_slot(struct conn *c, uint32_t idx, uint32_t gen)
{
	*c = (struct conn){.idx = idx, .gen = gen, .fd = -1, .passed_fd = -1};
}

static void watch_events(struct sbxd *d, struct conn *c, uint32_t events)
{
	if (c->armed == events)
		return;
	c->armed = events;
	if (loop_mod(&d->loop, c->fd, events, key_of(c, SBXD_EV_CONN)) < 0)
		log_error("cannot watch a connection");
}

static void set_timer(struct sbxd *d, struct conn *c, uint64_t ms)
{
	loop_timer_set(&d->loop, &c->timer, clock_mono_ms() + ms, key_of(c, SBXD_EV_CONN_TIMER));
}

void conn_close(struct sbxd *d, struct conn *c)
{
	conn_loss_fn *loss = c->loss;
	char id[SPEC_ID_LEN + 1];

	if (c->state == CONN_FREE)
		return;
	memcpy(id, c->loss_id, sizeof(id));
	if (c->state == CONN_WATCHING)
		d->conns->n_watching--;
	if (c->state != CONN_HANDED)
		loop_del(&d->loop, c->fd);
	loop_timer_clear(&d->loop, &c->timer);
	fd_close(&c->fd);
	fd_close(&c->passed_fd);
	bufq_done(&c->in);
	api_http_done(&c->http);
	free(c->out);
	json_decref(c->later.answer);
	reset_slot(c, c->idx, (c->gen + 1) & 0xffffff);
	d->conns->n_used--;
	/* Last: it may wake other connections, and this one is already closed. */
	if (loss)
		loss(d, id);
}

void conn_on_loss(struct conn *c, conn_loss_fn *fn, const char *id)
{
	c->loss = fn;
	(void)snprintf(c->loss_id, sizeof(c->loss_id), "%s", id);
}

void conns_done(struct sbxd *d)
{
	for (size_t i = 0; i < d->conns->n_slots; i++) {
		conn_close(d, d->conns->slot[i]);
		free(d->conns->slot[i]);
	}
	d->conns->n_slots = 0;
}

size_t conn_unsent(const struct conn *c)
{
	return c->out_n - c->out_at;
}

static void queue_bytes(struct conn *c, const void *p, size_t n)
{
	if (c->out_at == c->out_n)
		c->out_at = c->out_n = 0;
	if (c->out_room - c->out_n < n && c->out_at) {
		memmove(c->out, c->out + c->out_at, conn_unsent(c));
		c->out_n -= c->out_at;
		c->out_at = 0;
	}
	if (c->out_room - c->out_n < n) {
		c->out_room = c->out_n + MAX(n, c->out_n);
		c->out = xrealloc(c->out, c->out_room);
	}
	memcpy(c->out + c->out_n, p, n);
	c->out_n += n;
}

/* Returns false if the connection was lost (and closed). */
static bool flush_output(struct sbxd *d, struct conn *c)
{
	while (conn_unsent(c)) {
		ssize_t r = send(
			c->fd, c->out + c->out_at, conn_unsent(c), MSG_NOSIGNAL | MSG_DONTWAIT);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0 && errno == EAGAIN)
			return true;
		if (r < 0) {
			conn_close(d, c);
			return false;
		}
		c->out_at += (size_t)r;
	}
	free(TAKE(c->out));
	c->out_n = c->out_at = c->out_room = 0;
	return true;
}

static void start_reading(struct sbxd *d, struct conn *c)
{
	api_http_reset(&c->http);
	c->state = CONN_READING;
	c->wait = NULL;
	c->ask_id = c->vault_op = 0;
	fd_close(&c->passed_fd);
	c->too_many_fds = false;
	/* Pipelined data is already buffered: only a writable socket wakes the loop. */
	watch_events(d, c, bufq_len(&c->in) ? EPOLLIN | EPOLLOUT : EPOLLIN);
	set_timer(d, c, CONN_IDLE_MS);
}

/* Continues after a part of the reply was sent. */
static void go_on_writing(struct sbxd *d, struct conn *c)
{
	if (!flush_output(d, c))
		return;
	if (conn_unsent(c)) {
		watch_events(d, c, EPOLLOUT);
		set_timer(d, c, CONN_WRITE_MS);
		return;
	}
	c->loss = NULL; /* the client has its reply */
	if (c->http.keep)
		start_reading(d, c);
	else
		conn_close(d, c);
}

static void tally_reply(struct sbxd *d, const struct conn *c, int status)
{
	struct tally *t = &d->conns->served.of[status < 400   ? SERVED_GOOD
					       : status < 500 ? SERVED_REFUSED
							      : SERVED_FAILED];

	t->n++;
	t->us += clock_mono_us() - c->since_us;
}

/* `type` NULL: JSON. */
static void send_reply(
	struct sbxd *d, struct conn *c, int status, const char *type, const char *body)
{
	char head[API_HTTP_HEAD_ROOM];
	size_t n = body ? strlen(body) : 0, head_n;

	assert(c->state == CONN_READING || c->state == CONN_WAITING);
	tally_reply(d, c, status);
	head_n = api_http_put_head(head, status, type, n, c->http.keep);
	queue_bytes(c, head, head_n);
	if (n)
		queue_bytes(c, body, n);
	c->state = CONN_WRITING;
	c->wait = NULL;
	c->answered = true;
	go_on_writing(d, c);
}

void conn_reply(struct sbxd *d, struct conn *c, int status, const char *body)
{
	send_reply(d, c, status, NULL, body);
}

void conn_reply_text(struct sbxd *d, struct conn *c, const char *type, const char *body)
{
	send_reply(d, c, 200, type, body);
}

void conn_wait(struct sbxd *d, struct conn *c, conn_wait_fn *fn, const char *id, uint64_t ms)
{
	c->state = CONN_WAITING;
	c->wait = fn;
	(void)snprintf(c->wait_id, sizeof(c->wait_id), "%s", id);
	c->deadline_ms = clock_mono_ms() + ms;
	set_timer(d, c, ms);
	watch_events(d, c, EPOLLRDHUP);
}

void conn_start_watch(struct sbxd *d, struct conn *c)
{
	char head[API_HTTP_HEAD_ROOM];
	size_t n = api_http_put_chunked_head(head);

	queue_bytes(c, head, n);
	c->state = CONN_WATCHING;
	c->live = false;
	c->cursor[0] = '\0';
	d->conns->n_watching++;
	loop_timer_clear(&d->loop, &c->timer);
	watch_events(d, c, EPOLLIN | EPOLLOUT);
}

bool conn_push(struct sbxd *d, struct conn *c, struct slice bytes)
{
	char size[API_HTTP_HEAD_ROOM];

	if (conn_unsent(c) + bytes.n > CONN_MAX_QUEUE) {
		log_info("dropped a watcher that does not read");
		conn_close(d, c);
		return false;
	}
	queue_bytes(c, size, api_http_put_chunk_size(size, bytes.n));
	queue_bytes(c, bytes.p, bytes.n);
	queue_bytes(c, "\r\n", 2);
	watch_events(d, c, EPOLLIN | EPOLLOUT);
	return true;
}

void conns_wake(struct sbxd *d, const char *id)
{
	for (size_t i = 0; i < d->conns->n_slots; i++) {
		struct conn *c = d->conns->slot[i];

		if ((c->state == CONN_WAITING || c->state == CONN_HANDED) && c->wait &&
			(!id || !c->wait_id[0] || strcmp(c->wait_id, id) == 0))
			c->wait(d, c, false);
	}
}

struct conn *conns_find_asker(struct sbxd *d, const char *id, uint32_t ask_id)
{
	for (size_t i = 0; ask_id && i < d->conns->n_slots; i++) {
		struct conn *c = d->conns->slot[i];

		if ((c->state == CONN_WAITING || c->state == CONN_HANDED) && c->ask_id == ask_id &&
			strcmp(c->wait_id, id) == 0)
			return c;
	}
	return NULL;
}

void conn_hand_over(struct sbxd *d, struct conn *c)
{
	loop_del(&d->loop, c->fd);
	c->armed = 0;
	c->state = CONN_HANDED;
}

/* Consumes buffered data; a complete request is answered before the next one is parsed. */
static void take_bytes(struct sbxd *d, struct conn *c)
{
	uint32_t gen = c->gen;

	while (c->gen == gen && c->state == CONN_READING && bufq_len(&c->in)) {
		struct slice s = bufq_peek(&c->in);
		bool first = c->http.n == 0;

		bufq_consume(&c->in, api_http_feed(&c->http, s));
		c->since_us = clock_mono_us();
		if (c->http.state == API_HTTP_BAD) {
			d->conns->ops->on_malformed(d, c, c->http.status, c->http.why);
			return;
		}
		if (c->http.state == API_HTTP_READY)
			d->conns->ops->on_request(d, c);
		else if (first)
			set_timer(d, c, CONN_REQUEST_MS);
	}
	if (c->gen == gen)
		bufq_trim(&c->in);
}

/* As bufq_recv, with one passed descriptor for the call that needs one. */
static ssize_t fill_input(struct conn *c)
{
	char bytes[CONN_IN_BYTES];
	struct iovec iov = {.iov_base = bytes, .iov_len = MIN(sizeof(bytes), bufq_space(&c->in))};
	AUTO_CLOSE int fd = -1;
	size_t n_fds = 1;
	ssize_t n = fd_recv(c->fd, &iov, 1, &fd, &n_fds, MSG_DONTWAIT);

	if (n < 0)
		return n;
	if (n_fds > 1 || (n_fds && c->passed_fd >= 0))
		c->too_many_fds = true;
	else if (n_fds && !c->too_many_fds)
		c->passed_fd = TAKE_FD(fd);
	(void)bufq_put(&c->in, slice_of(bytes, (size_t)n));
	return n;
}

static void on_readable(struct sbxd *d, struct conn *c)
{
	ssize_t r;

	watch_events(d, c, EPOLLIN);
	if (bufq_len(&c->in)) {
		take_bytes(d, c);
		return;
	}
	r = fill_input(c);
	if (r == -EAGAIN)
		return;
	if (r <= 0) {
		conn_close(d, c);
		return;
	}
	take_bytes(d, c);
}

/* A watcher sends nothing: data and end-of-file both close it. */
static void on_watcher(struct sbxd *d, struct conn *c, uint32_t events)
{
	if (events & (EPOLLIN | EPOLLRDHUP)) {
		conn_close(d, c);
		return;
	}
	if (!flush_output(d, c))
		return;
	if (!c->live && !d->conns->ops->on_room(d, c))
		return;
	watch_events(d, c, conn_unsent(c) ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static struct conn *find_conn(struct sbxd *d, struct loop_key key)
{
	struct conn *c;

	assert(key.idx < d->conns->n_slots);
	c = d->conns->slot[key.idx];
	return c->state != CONN_FREE && c->gen == key.gen ? c : NULL;
}

void conn_on_event(struct sbxd *d, const struct loop_event *ev)
{
	struct conn *c = find_conn(d, ev->key);

	if (!c)
		return;
	if (ev->events & (EPOLLERR | EPOLLHUP)) {
		conn_close(d, c);
		return;
	}
	switch (c->state) {
	case CONN_READING:
		on_readable(d, c);
		break;
	case CONN_WAITING:
		if (ev->events & EPOLLRDHUP)
			conn_close(d, c);
		break;
	case CONN_WRITING:
		go_on_writing(d, c);
		if (c->gen == ev->key.gen && c->state == CONN_READING)
			take_bytes(d, c);
		break;
	case CONN_WATCHING:
		on_watcher(d, c, ev->events);
		break;
	case CONN_HANDED:
	case CONN_FREE:
		break;
	}
}

void conn_on_timer(struct sbxd *d, const struct loop_event *ev)
{
	struct conn *c = find_conn(d, ev->key);

	if (!c)
		return;
	if (c->state == CONN_WAITING || c->state == CONN_HANDED)
		c->wait(d, c, true);
	else if (c->state == CONN_READING && c->http.n) {
		c->http.keep = false;
		d->conns->ops->on_malformed(d, c, 400, "incomplete request: timed out after 10 s");
	} else
		conn_close(d, c);
}

/* One attempt to send the reason; the peer gets no slot either way. */
static void turn_away(int fd, int status, const char *code, const char *why)
{
	char text[512], head[API_HTTP_HEAD_ROOM];
	int n = snprintf(
		text, sizeof(text), "{\"error\":{\"code\":\"%s\",\"message\":\"%s\"}}", code, why);
	size_t k = api_http_put_head(head, status, NULL, (size_t)n, false);

	(void)!send(fd, head, k, MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE);
	(void)!send(fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static size_t most_conns(void)
{
	AUTO_SETTINGS struct settings set = {0};
	size_t max;

	if (settings_load(&set, NULL) < 0)
		settings_done(&set); /* then the default */
	max = (size_t)settings_get_u64(&set, SETTINGS_DAEMON_CONNECTIONS);
	return max ? max : CONN_MAX;
}

static struct conn *free_slot(struct conns *cs)
{
	struct conn *c;

	if (cs->n_used >= CONN_FEW && cs->n_used >= most_conns())
		return NULL;
	for (size_t i = 0; i < cs->n_slots; i++)
		if (cs->slot[i]->state == CONN_FREE)
			return cs->slot[i];
	if (cs->n_slots == CONN_MAX)
		return NULL;
	c = xcalloc(1, sizeof(*c));
	reset_slot(c, (uint32_t)cs->n_slots, 0);
	cs->slot[cs->n_slots++] = c;
	return c;
}

/* False if there is none. */
static bool accept_one(struct sbxd *d)
{
	AUTO_CLOSE int fd = accept4(d->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct conn *c;

	if (fd < 0)
		return false;
	if (!fd_is_same_user(fd)) {
		log_warn("refused a connection from another user");
		turn_away(fd, 403, "forbidden", "permission denied: sbxd is owned by another user");
		return true;
	}
	c = free_slot(d->conns);
	if (!c) {
		turn_away(fd, 503, "busy",
			"too many connections: see the setting daemon.max-connections");
		return true;
	}
	c->fd = fd;
	if (loop_add(&d->loop, fd, EPOLLIN, key_of(c, SBXD_EV_CONN)) < 0) {
		c->fd = -1;
		return true;
	}
	(void)TAKE_FD(fd);
	c->armed = EPOLLIN;
	d->conns->n_used++;
	bufq_init(&c->in, CONN_IN_BYTES);
	start_reading(d, c);
	return true;
}

void conn_on_accept(struct sbxd *d)
{
	(void)accept_one(d);
}

void conns_accept_rest(struct sbxd *d)
{
	while (accept_one(d))
		continue;
}

bool conns_owe(const struct sbxd *d)
{
	for (size_t i = 0; i < d->conns->n_slots; i++) {
		const struct conn *c = d->conns->slot[i];

		/* A new connection is about to send a request; a connection after its reply may
		 * stay idle forever. */
		if (c->state == CONN_WAITING || c->state == CONN_WRITING ||
			(c->state == CONN_READING &&
				(!c->answered || c->http.n || bufq_len(&c->in))))
			return true;
	}
	return false;
}
