/* SPDX-License-Identifier: Apache-2.0 */
#include "edge.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>
#include "lib/base/mem.h"
#include "lib/base/str.h"

/* After this many concurrent connections, returning free memory to the kernel is worthwhile. */
#define MANY_CONNS 32
#define STREAMS_A_TURN 16
/* Of glibc's malloc, for each size up to this. */
#define BLOCKS_KEPT 7
#define BLOCKS_SMALL 1032

static const struct wire_ops net_wire_ops;
static const struct conn_ops conn_ops = {
	.drop_engine = http_drop,
	.deafen_tls = open_deafen,
	.free_tls = open_free,
	.stream_consumed = h2_stream_consumed,
	.stream_resume = h2_stream_resume,
	.stream_reset = h2_stream_reset,
	.stream_over = h2_stream_over,
};

void net_start(struct edge *e, int fd)
{
	uint8_t seed[SYNTH_SEED];

	e->net = xcalloc(1, sizeof(*e->net));
	e->net->budget = EDGE_BUDGET;
	e->conn_ops = &conn_ops;
	e->net->port = (struct port){
		.name = "the network channel", .ev = EDGE_EV_NET, .on_fed = tunnel_flush};
	if (getrandom(seed, sizeof(seed), 0) != sizeof(seed))
		abort();
	e->net->synth = synth_new(seed);
	port_start(e, &e->net->port, fd, wire_new(WIRE_SERVER, WIRE_NET, &net_wire_ops, e));
}

/* ---- from the rest of edge ---- */

void net_on_event(struct edge *e, uint32_t events)
{
	port_on_event(e, &e->net->port, events);
}

/* Lets the engine refill pulled data and TLS refill consumed data; true if any did. */
static bool give_room(struct edge *e)
{
	struct net *net = e->net;
	bool any = net->room;

	while (net->room) {
		struct conn *c;

		budget_keep(e);
		c = net->room;
		if (!c)
			break;
		net->room = c->next_room;
		c->in_room = false;
		if (c->state == CONN_ENDING)
			continue;
		if (c->open)
			open_on_room(e, c);
		else if (c->state == CONN_TUNNEL)
			tunnel_on_room(e, c);
		else
			http_on_room(e, c);
	}
	return any;
}

/* Streams of channels have moved: the engines take their turn. A few at a time, so that their
 * output leaves before others have some. */
static bool run_streams(struct edge *e)
{
	for (unsigned i = 0; i < STREAMS_A_TURN; i++) {
		uint32_t events;
		struct conn *c;

		budget_keep(e);
		c = channel_next(e, &events);
		if (!c)
			return i > 0;
		proxy_on_fd(e, c, events);
	}
	return true;
}

/* malloc keeps a few freed blocks of each small size, wherever they are, and their pages with them.
 * Blocks that lie together take their place. */
static void settle_blocks(void)
{
	void *old[BLOCKS_KEPT], *next[BLOCKS_KEPT];

	for (size_t size = 24; size <= BLOCKS_SMALL; size += 16) {
		for (size_t i = 0; i < BLOCKS_KEPT; i++)
			old[i] = xmalloc(size);
		for (size_t i = 0; i < BLOCKS_KEPT; i++)
			next[i] = xmalloc(size);
		for (size_t i = 0; i < BLOCKS_KEPT; i++)
			free(next[i]);
		for (size_t i = 0; i < BLOCKS_KEPT; i++)
			free(old[i]);
	}
}

void net_flush(struct edge *e)
{
	struct net *net = e->net;
	bool any, more;

	do {
		budget_keep(e);
		port_flush(e, &net->port);
		any = run_streams(e);
		any = give_room(e) || any;
		more = channel_flush(e);
	} while (!e->control.done && (more || (any && !net->port.blocked)));
	if (net->n_conns == 0 && net->n_most >= MANY_CONNS) {
		net->n_most = 0;
		port_trim(&net->port);
		port_trim(&e->ctl);
		settle_blocks();
		(void)malloc_trim(0);
	}
}

void net_on_conn_event(struct edge *e, struct loop_event ev)
{
	struct conn *c;

	budget_keep(e);
	c = conn_find(e, ev.key.idx, ev.key.gen);
	if (!c || c->fd < 0)
		return;
	if (c->state == CONN_HTTP)
		proxy_on_fd(e, c, ev.events);
	else if (c->state != CONN_ENDING)
		tunnel_on_fd(e, c, ev.events);
}

void net_on_channel(struct edge *e, uint32_t id, int fd)
{
	if (e->net)
		channel_add(e, id, fd);
	else
		(void)close(fd);
}

void net_on_channel_event(struct edge *e, const struct loop_event *ev)
{
	channel_on_event(e, ev->key.gen, ev->events);
}

/* The guest does not read its last data, or does not close a connection that edge has closed. */
static void on_end_timer(struct edge *e, struct conn *c)
{
	if (c->n_pulled == c->n_pulled_then) {
		conn_reset(e, c);
		return;
	}
	c->n_pulled_then = c->n_pulled;
	conn_set_timer(e, c, CONN_END_MS);
}

void net_on_timer(struct edge *e, struct loop_key key)
{
	struct conn *c = conn_find(e, key.idx, key.gen);

	if (!c)
		return;
	switch (c->state) {
	case CONN_SNIFFING:
		if (c->kind == CONN_DNS || c->kind == CONN_LINK)
			conn_reset(e, c);
		else
			caught_on_timer(e, c);
		return;
	case CONN_CHECKING:
		check_on_timer(e, c);
		return;
	case CONN_OPENING:
	case CONN_TUNNEL:
		tunnel_on_timer(e, c);
		return;
	case CONN_SHAKING:
		open_on_timer(e, c);
		return;
	case CONN_HTTP:
		proxy_on_timer(e, c);
		return;
	case CONN_H2:
		h2_on_timer(e, c);
		return;
	case CONN_ENDING:
		on_end_timer(e, c);
		return;
	case CONN_ASKED:
		return;
	}
}

static void agent_on_verdict(
	struct edge *e, struct conn *c, const struct edge_verdict *verdict, int fd)
{
	if (!verdict->allowed || conn_take_fd(e, c, fd) < 0)
		conn_reset(e, c);
	else
		tunnel_begin(e, c);
}

static void route_verdict(
	struct edge *e, struct conn *c, const struct edge_verdict *verdict, int fd)
{
	AUTO_CLOSE int own = fd;

	c->asking = false;
	if (c->state == CONN_HTTP)
		proxy_on_verdict(e, c, verdict, TAKE_FD(own));
	else if (c->state == CONN_ASKED && c->kind == CONN_DNS)
		name_on_verdict(e, c, verdict);
	else if (c->state == CONN_ASKED && c->kind == CONN_MAY)
		caught_on_may(e, c, verdict);
	else if (c->state == CONN_ASKED && c->kind == CONN_LINK)
		link_on_verdict(e, c, verdict);
	else if (c->state == CONN_ASKED && c->kind == CONN_AGENT)
		agent_on_verdict(e, c, verdict, TAKE_FD(own));
	else if (c->state == CONN_ASKED)
		tunnel_on_verdict(e, c, verdict, TAKE_FD(own));
	else /* closed meanwhile */
		conn_free_if_over(e, c);
}

int net_on_verdict(struct edge *e, uint32_t id, const struct edge_verdict *verdict, int fd)
{
	AUTO_CLOSE int own = fd;
	struct asked asked;
	struct conn *c;
	bool is_open;

	if (!e->net || asks_take(e, id, &asked) < 0)
		return -EBADMSG;
	if (verdict->allowed && asked.fault)
		return -EBADMSG;
	if (verdict->wants_id && asked.kind != EDGE_ASK_HTTP && !verdict->opened)
		return -EBADMSG;
	if (verdict->opened && (asked.kind != EDGE_ASK_TUNNEL || !e->opener))
		return -EBADMSG;
	is_open = verdict->allowed && !verdict->opened && edge_ask_has_socket(asked.kind);
	/* a stream only inside TLS: to an origin, or else a socket to a clerk */
	if ((fd >= 0 || verdict->stream) != is_open || (verdict->stream && !asked.tls))
		return -EBADMSG;
	(void)!str_copy(e->net->sandbox, sizeof(e->net->sandbox), verdict->sandbox);
	c = e->net->conns[asked.idx];
	e->net->due_stream = verdict->stream;
	if (asked.fault) {
		c->reporting = false;
		conn_free_if_over(e, c);
	} else {
		route_verdict(e, c, verdict, TAKE_FD(own));
	}
	if (e->net->due_stream) /* its client has left */
		channel_refuse(e, verdict->channel, verdict->stream);
	asks_flush(e);
	return 0;
}

/* ---- from the wire ---- */

static enum conn_kind kind_of(const char *path)
{
	if (strcmp(path, "/proxy") == 0)
		return CONN_PROXY;
	if (str_starts(path, "/tcp/"))
		return CONN_TCP;
	if (str_starts(path, "/may/"))
		return CONN_MAY;
	if (strcmp(path, "/dns/udp") == 0 || strcmp(path, "/dns/tcp") == 0)
		return CONN_DNS;
	if (strcmp(path, "/agent") == 0)
		return CONN_AGENT;
	if (strcmp(path, "/link") == 0)
		return CONN_LINK;
	return CONN_FREE;
}

/* The host's SSH agent: no target is determined, and its data is not inspected. */
static void agent_ask(struct edge *e, struct conn *c)
{
	const struct edge_ask ask = {.kind = EDGE_ASK_AGENT, .via = EDGE_VIA_FORWARD};

	c->state = CONN_ASKED;
	conn_ask(e, c, &ask);
}

static int begin_net(struct edge *e, struct conn *c, const char *path)
{
	switch (c->kind) {
	case CONN_TCP:
		return caught_open(e, c, path + strlen("/tcp/"));
	case CONN_MAY:
		return caught_may(e, c, path + strlen("/may/"));
	case CONN_PROXY:
		http_begin(e, c);
		return 0;
	case CONN_DNS:
		c->via = EDGE_VIA_TRANSPARENT;
		c->over_udp = strcmp(path, "/dns/udp") == 0;
		conn_set_timer(e, c, e->first_ms);
		return 0;
	case CONN_AGENT:
		agent_ask(e, c);
		return 0;
	case CONN_LINK:
		c->via = EDGE_VIA_FORWARD;
		conn_set_timer(e, c, e->first_ms);
		return 0;
	case CONN_STREAM:
	case CONN_FREE:
		break;
	}
	return -EINVAL;
}

static int on_open(void *ctx, uint32_t sid, const char *path, uint32_t *ret_slot)
{
	struct edge *e = ctx;
	enum conn_kind kind = kind_of(path);
	struct conn *c;
	int r;

	if (kind == CONN_FREE)
		return -EINVAL;
	budget_keep(e);
	if (e->net->n_conns == NET_MAX_CONNS)
		return -EBUSY;
	c = conn_new(e, kind, sid);
	*ret_slot = c->idx;
	/* The status of /may is its answer. */
	r = kind == CONN_MAY ? 0 : wire_reply(e->net->port.wire, sid, 200);
	if (r == 0)
		r = begin_net(e, c, path);
	/* The wire resets a rejected stream. */
	if (r < 0)
		conn_over(e, c);
	return r;
}

static void put_bytes(struct edge *e, struct conn *c, struct slice bytes)
{
	/* Only a DNS query can exceed its queue: the others have a window's room. */
	if (bufq_put(&c->in, bytes) != bytes.n) {
		conn_reset(e, c);
		return;
	}
	switch (c->state) {
	case CONN_SNIFFING:
		if (c->kind == CONN_TCP)
			caught_on_bytes(e, c);
		return;
	case CONN_CHECKING:
		check_on_bytes(e, c, bytes);
		return;
	case CONN_HTTP:
		proxy_on_bytes(e, c);
		return;
	default: /* waiting */
		return;
	}
}

static void on_data(void *ctx, uint32_t sid, uint32_t slot, struct slice bytes)
{
	struct edge *e = ctx;
	struct conn *c = e->net->conns[slot];
	uint32_t gen = c->gen;

	budget_keep(e);
	c = conn_find(e, slot, gen);
	if (!c || !c->sid)
		return;
	if (c->state == CONN_TUNNEL)
		tunnel_on_bytes(e, c, bytes);
	else if (c->state == CONN_ENDING)
		wire_consumed(e->net->port.wire, sid, bytes.n);
	else if (c->open)
		open_on_bytes(e, c, bytes);
	else
		put_bytes(e, c, bytes);
}

static void on_end(void *ctx, uint32_t sid, uint32_t slot)
{
	struct edge *e = ctx;
	struct conn *c = e->net->conns[slot];
	uint32_t gen = c->gen;

	tunnel_flush(e);
	c = conn_find(e, slot, gen);
	if (!c)
		return;
	if (c->open) {
		open_on_end(e, c);
		return;
	}
	c->in_end = true;
	switch (c->state) {
	case CONN_SNIFFING:
		if (c->kind == CONN_DNS)
			name_on_end(e, c);
		else if (c->kind == CONN_LINK)
			link_on_end(e, c);
		else
			caught_on_bytes(e, c);
		return;
	case CONN_CHECKING:
		check_on_bytes(e, c, (struct slice){0});
		return;
	case CONN_TUNNEL:
		tunnel_on_end(e, c);
		return;
	case CONN_HTTP:
		proxy_on_bytes(e, c);
		return;
	default:
		return;
	}
}

static void on_close(void *ctx, uint32_t sid, uint32_t slot, int error)
{
	struct edge *e = ctx;
	struct conn *c = e->net->conns[slot];
	uint32_t gen = c->gen;

	if (!error)
		tunnel_flush(e);
	c = conn_find(e, slot, gen);
	if (!c)
		return;
	/* Both sides have closed; egress has not received all data yet. */
	if (!error && c->state == CONN_TUNNEL && bufq_len(&c->in)) {
		c->sid = 0;
		conn_set_timer(e, c, CONN_END_MS);
	} else {
		conn_over(e, c);
	}
}

static ssize_t pull_opened(struct edge *e, struct conn *c, uint8_t *buf, size_t n)
{
	ssize_t r = open_pull(c, buf, n);

	if (r > 0) {
		c->n_pulled += (size_t)r;
		conn_note_room(e, c);
	}
	return r;
}

static ssize_t pull_net(void *ctx, uint32_t sid, uint32_t slot, uint8_t *buf, size_t n)
{
	struct edge *e = ctx;
	struct conn *c = e->net->conns[slot];

	if (c->open)
		return pull_opened(e, c, buf, n);
	if (bufq_len(&c->out)) {
		n = bufq_take(&c->out, buf, n);
		if (bufq_len(&c->out) == 0)
			bufq_trim(&c->out);
		c->n_pulled += n;
		conn_note_room(e, c);
		return (ssize_t)n;
	}
	if (c->out_end)
		return 0;
	if (c->fd >= 0 && (c->state == CONN_TUNNEL || c->state == CONN_CHECKING))
		return tunnel_pull(e, c, buf, n);
	return -EAGAIN;
}

static const struct wire_ops net_wire_ops = {
	.on_open = on_open,
	.on_data = on_data,
	.on_end = on_end,
	.on_close = on_close,
	.pull = pull_net,
};
