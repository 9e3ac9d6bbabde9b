/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve - a unix socket on which test programs are the guest.
 *
 * A connection begins with one line and becomes what it says:
 *
 *   tcp ADDR PORT   a caught connection: `ok N`, then its bytes both ways
 *   proxy           a connection to the proxy port: the same
 *   dns udp|tcp     `ok`, then messages with 2 length bytes in front, each answered before the next
 *   is read;
 *                   length 0: no answer was given, or the stream was reset (then `resets` of stats
 *                   grows)
 *   wire            with --raw: `ok`, then it is sbx.net of a new edge, byte for byte
 *   stats           one line of JSON; further lines may follow, as after the next ones
 *   how N           how stream N ended: open, end, reset; ? when it is not known any more
 *   reload          the policy file is read again: ok, or what is wrong
 *   forget          the peaks of processes that ended count from now: ok
 *   up              yes when edge and egress are ready, else no
 *   bridge PATH     `ok PORT`: from now on a connection to that port of 127.0.0.1 is a stream of
 *   PATH (/proxy,
 *                   /tcp/ADDR/PORT), for clients that know nothing of rigs; a stream that is reset
 *                   resets it
 *
 * A stream that ends well is closed; one that was reset is closed too, because a unix socket knows
 * no reset: ask `how N`. Half-close passes in both directions.
 */
#include "rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define CLIENTS 2048
#define LINE 256
#define LINGER_MS 2000 /* a client that went away keeps its stream so long */
#define DNS_MAX 65535

enum client_kind { CLIENT_FREE, CLIENT_LINE, CLIENT_STREAM, CLIENT_DNS };
enum ending { ENDING_NONE, ENDING_OPEN, ENDING_END, ENDING_RESET };

struct client {
	enum client_kind kind;
	int fd;
	uint32_t gen, sid, number;
	bool stream;	      /* sid is open */
	bool in_end, out_end; /* the client's end was seen; edge's end was seen */
	bool hup;
	bool bridged;
	struct bufq out; /* for the client */
	uint8_t *dns;	 /* a query being read or sent, then the answer */
	size_t n_dns, dns_at, want;
	struct loop_timer linger;
};

struct rig_server {
	struct rig *rig;
	int fd;
	struct client clients[CLIENTS];
	uint32_t next_number;
	struct {
		int fd;
		char path[WIRE_MAX_PATH];
	} bridges[RIG_BRIDGES];
	size_t n_bridges;
	struct {
		uint32_t number;
		enum ending how;
	} endings[RIG_ENDINGS];
};

static struct loop_key key_of(const struct rig_server *s, const struct client *c)
{
	return (struct loop_key){
		.kind = RIG_EV_CLIENT, .gen = c->gen, .idx = (uint32_t)(c - s->clients)};
}

static void set_ending(struct rig_server *s, const struct client *c, enum ending how)
{
	if (c->number == 0)
		return;
	s->endings[c->number % RIG_ENDINGS].number = c->number;
	s->endings[c->number % RIG_ENDINGS].how = how;
}

static void drop(struct rig_server *s, struct client *c)
{
	if (c->stream) {
		wire_reset(s->rig->net.wire, c->sid);
		set_ending(s, c, ENDING_RESET);
	}
	loop_timer_clear(&s->rig->loop, &c->linger);
	loop_del(&s->rig->loop, c->fd);
	fd_close(&c->fd);
	bufq_done(&c->out);
	free(c->dns);
	*c = (struct client){.fd = -1, .gen = c->gen + 1};
}

static void say(struct rig_server *s, struct client *c, const char *text)
{
	if (send(c->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)strlen(text))
		drop(s, c);
}

/* --- streams --- */

static void begin_stream(struct rig_server *s, struct client *c, const char *path)
{
	char text[32];
	int n = rig_guest_open(s->rig, path, (uint32_t)(c - s->clients), &c->sid);

	if (n < 0) {
		if (!c->bridged)
			say(s, c, "error no stream\n");
		if (c->kind != CLIENT_FREE)
			drop(s, c);
		return;
	}
	c->kind = CLIENT_STREAM;
	c->stream = true;
	c->number = ++s->next_number;
	set_ending(s, c, ENDING_OPEN);
	(void)snprintf(text, sizeof(text), "ok %u\n", c->number);
	if (!c->bridged)
		say(s, c, text);
}

static void send_out(struct rig_server *s, struct client *c)
{
	while (bufq_len(&c->out)) {
		struct slice run = bufq_peek(&c->out);
		ssize_t n = send(c->fd, run.p, run.n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			drop(s, c);
			return;
		}
		bufq_consume(&c->out, (size_t)n);
		if (c->stream)
			wire_consumed(s->rig->net.wire, c->sid, (size_t)n);
	}
	if (!c->stream && c->kind == CLIENT_STREAM)
		drop(s, c);
	else if (c->out_end)
		(void)shutdown(c->fd, SHUT_WR);
}

/* --- DNS: one query at a time --- */

static void begin_query(struct rig_server *s, struct client *c)
{
	ssize_t n = 1;

	while (n > 0 && !c->stream && c->n_dns < c->want) {
		n = read(c->fd, c->dns + c->n_dns, c->want - c->n_dns);
		if (n > 0)
			c->n_dns += (size_t)n;
		if (c->n_dns == 2 && c->want == 2)
			c->want += (size_t)c->dns[0] << 8 | c->dns[1];
	}
	if (n == 0 || (n < 0 && errno != EAGAIN)) {
		drop(s, c);
		return;
	}
	if (c->n_dns < c->want || c->stream)
		return;
	c->dns_at = 2;
	c->n_dns =
		2; /* the answer goes to the same place: edge gives none before it has the query */
	if (rig_guest_open(s->rig, c->number ? "/dns/tcp" : "/dns/udp", (uint32_t)(c - s->clients),
		    &c->sid) < 0) {
		drop(s, c);
		return;
	}
	c->stream = true;
	c->out_end = false;
}

static ssize_t pull_query(struct client *c, uint8_t *buf, size_t n)
{
	n = MIN(n, c->want - c->dns_at);
	memcpy(buf, c->dns + c->dns_at, n);
	c->dns_at += n;
	return (ssize_t)n;
}

static void end_query(struct rig_server *s, struct client *c, bool reset)
{
	size_t n = reset || c->n_dns < 2 ? 0 : c->n_dns - 2;

	c->stream = false;
	c->dns[0] = (uint8_t)(n >> 8);
	c->dns[1] = (uint8_t)n;
	if (send(c->fd, c->dns, n + 2, MSG_NOSIGNAL) != (ssize_t)n + 2) {
		drop(s, c);
		return;
	}
	c->n_dns = 0;
	c->want = 2;
	begin_query(s, c);
}

/* --- what the wire says --- */

static void on_data(void *ctx, uint32_t slot, struct slice bytes)
{
	struct rig_server *s = ctx;
	struct client *c = &s->clients[slot];

	if (c->kind == CLIENT_DNS) {
		size_t n = MIN(bytes.n, 2 + DNS_MAX - c->n_dns);

		memcpy(c->dns + c->n_dns, bytes.p, n);
		c->n_dns += n;
		wire_consumed(s->rig->net.wire, c->sid, bytes.n);
		return;
	}
	if (bufq_put(&c->out, bytes) != bytes.n)
		die("more came than the window of a stream");
	send_out(s, c);
}

static void on_end(void *ctx, uint32_t slot)
{
	struct rig_server *s = ctx;
	struct client *c = &s->clients[slot];

	c->out_end = true;
	if (c->kind == CLIENT_STREAM)
		send_out(s, c);
}

static void on_close(void *ctx, uint32_t slot, bool reset)
{
	struct rig_server *s = ctx;
	struct client *c = &s->clients[slot];

	if (slot == RIG_ALL) {
		for (uint32_t i = 0; i < CLIENTS; i++)
			if (s->clients[i].stream)
				on_close(ctx, i, true);
		return;
	}
	c->stream = false;
	if (c->kind == CLIENT_DNS) {
		end_query(s, c, reset);
		return;
	}
	set_ending(s, c, reset ? ENDING_RESET : ENDING_END);
	if (c->bridged && reset)
		(void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0},
			sizeof(struct linger));
	send_out(s, c);
}

static ssize_t pull(void *ctx, uint32_t slot, uint8_t *buf, size_t n)
{
	struct rig_server *s = ctx;
	struct client *c = &s->clients[slot];
	ssize_t got;

	if (c->kind == CLIENT_DNS)
		return pull_query(c, buf, n);
	got = read(c->fd, buf, n);
	if (got < 0)
		return errno == EAGAIN ? -EAGAIN : -ECONNRESET;
	if (got == 0)
		c->in_end = true;
	return got;
}

static const struct rig_guest_ops guest_ops = {
	.on_data = on_data,
	.on_end = on_end,
	.on_close = on_close,
	.pull = pull,
};

/* --- lines --- */

static uint64_t sum(const uint64_t *v, size_t n)
{
	uint64_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += v[i];
	return total;
}

static size_t print_worker(char *buf, size_t size, const char *name, const struct rig_worker *w)
{
	return (size_t)snprintf(buf, size,
		"\"%s\": {\"pid\": %d, \"starts\": %u, \"ends\": %u, \"rss_kib\": %lu, "
		"\"anon_kib\": %lu, "
		"\"peak_kib\": %lu, \"ended_peak_kib\": %lu}, ",
		name, (int)w->pid, w->starts, w->ends, rig_memory(w->pid, "VmRSS:"),
		rig_memory(w->pid, "RssAnon:"), rig_memory(w->pid, "VmHWM:"), w->ended_peak_kib);
}

void rig_print_stats(struct rig *r, char *buf, size_t size)
{
	const struct rig_stats *t = &r->stats;
	size_t n = (size_t)snprintf(buf, size, "{");

	n += print_worker(buf + n, size - n, "edge", &r->edge);
	n += print_worker(buf + n, size - n, "egress", &r->egress);
	n += (size_t)snprintf(buf + n, size - n, "\"outcomes\": {");
	for (unsigned i = 0; i < EGRESS_N_OUTCOMES; i++)
		if (t->results[i])
			n += (size_t)snprintf(buf + n, size - n, "\"%s\": %lu, ",
				egress_outcome_text((enum egress_outcome)i), t->results[i]);
	(void)snprintf(buf + n, size - n,
		"\"all\": %lu}, \"asks\": %lu, \"ask_tunnel\": %lu, \"ask_http\": %lu, "
		"\"ask_dns\": %lu, "
		"\"faults\": %lu, \"allowed\": %lu, \"refused\": %lu, \"opens\": %lu, \"closed\": "
		"%lu, "
		"\"up\": %lu, \"down\": %lu, \"streams\": %lu, \"resets\": %lu, \"lost\": %lu, "
		"\"violations\": %lu, \"rig_kib\": %lu}\n",
		sum(t->results, EGRESS_N_OUTCOMES), sum(t->asks, EDGE_N_ASK_KINDS),
		t->asks[EDGE_ASK_TUNNEL], t->asks[EDGE_ASK_HTTP], t->asks[EDGE_ASK_DNS], t->faults,
		t->allowed, t->refused, t->opens, t->closed, t->up, t->down, t->streams, t->resets,
		t->lost, t->violations, rig_memory(getpid(), "VmHWM:"));
}

static const char *ending_of(const struct rig_server *s, uint32_t number)
{
	static const char *const words[] = {
		[ENDING_NONE] = "?\n",
		[ENDING_OPEN] = "open\n",
		[ENDING_END] = "end\n",
		[ENDING_RESET] = "reset\n",
	};
	uint32_t i = number % RIG_ENDINGS;

	return words[s->endings[i].number == number ? s->endings[i].how : ENDING_NONE];
}

static void give_wire(struct rig_server *s, struct client *c)
{
	struct err err = {0};
	int fd;

	say(s, c, "ok\n");
	if (c->kind == CLIENT_FREE)
		return;
	fd = dup(c->fd);
	drop(s, c);
	if (rig_give_wire(s->rig, fd, &err) < 0)
		(void)fprintf(stderr, "netrig: %s\n", err.text);
}

static void begin_dns(struct rig_server *s, struct client *c, bool tcp)
{
	c->kind = CLIENT_DNS;
	c->number = tcp; /* such a client has no number of its own */
	c->dns = xmalloc(2 + DNS_MAX);
	c->want = 2;
	say(s, c, "ok\n");
}

static void begin_bridge(struct rig_server *s, struct client *c, const char *path)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct loop_key key = {.kind = RIG_EV_BRIDGE, .idx = (uint32_t)s->n_bridges};
	socklen_t n = sizeof(at);
	char text[32];

	if (s->n_bridges == RIG_BRIDGES || fd < 0 ||
		bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 4096) < 0 ||
		getsockname(fd, (struct sockaddr *)&at, &n) < 0 ||
		str_copy(s->bridges[s->n_bridges].path, WIRE_MAX_PATH, path) < 0 ||
		loop_add(&s->rig->loop, fd, EPOLLIN, key) < 0) {
		say(s, c, "error no bridge\n");
		return;
	}
	s->bridges[s->n_bridges++].fd = TAKE_FD(fd);
	(void)snprintf(text, sizeof(text), "ok %u\n", ntohs(at.sin_port));
	say(s, c, text);
}

static void on_line(struct rig_server *s, struct client *c, char *line)
{
	static char big[65536];
	char buf[4096], addr[46], path[WIRE_MAX_PATH];
	struct err err = {0};
	unsigned port, number;

	if (sscanf(line, "tcp %45s %u", addr, &port) == 2) {
		(void)snprintf(path, sizeof(path), "/tcp/%s/%u", addr, port);
		begin_stream(s, c, path);
	} else if (sscanf(line, "bridge %63s", path) == 1) {
		begin_bridge(s, c, path);
	} else if (strcmp(line, "proxy") == 0) {
		begin_stream(s, c, "/proxy");
	} else if (strcmp(line, "dns udp") == 0 || strcmp(line, "dns tcp") == 0) {
		begin_dns(s, c, line[4] == 't');
	} else if (strcmp(line, "wire") == 0 && s->rig->o.raw) {
		give_wire(s, c);
	} else if (strcmp(line, "stats") == 0) {
		rig_print_stats(s->rig, buf, sizeof(buf));
		say(s, c, buf);
	} else if (sscanf(line, "how %u", &number) == 1) {
		say(s, c, ending_of(s, number));
	} else if (strcmp(line, "reload") == 0) {
		int n = rig_reload(s->rig, &err);

		(void)snprintf(buf, sizeof(buf), "%s\n", n < 0 ? err_text(&err, n) : "ok");
		say(s, c, buf);
	} else if (strcmp(line, "forget") == 0) {
		s->rig->edge.ended_peak_kib = s->rig->egress.ended_peak_kib = 0;
		say(s, c, "ok\n");
	} else if (strcmp(line, "up") == 0) {
		say(s, c, rig_is_up(s->rig) ? "yes\n" : "no\n");
	} else if (s->rig->on_line && s->rig->on_line(s->rig, line, big, sizeof(big))) {
		say(s, c, big);
	} else {
		say(s, c, "error what?\n");
	}
}

/* Only the line is taken: what follows belongs to what it begins. */
static bool read_line(struct rig_server *s, struct client *c)
{
	char buf[LINE], *end;
	ssize_t n = recv(c->fd, buf, sizeof(buf), MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return false;
	end = n > 0 ? memchr(buf, '\n', (size_t)n) : NULL;
	if (n <= 0 || (!end && n == sizeof(buf))) {
		drop(s, c);
		return false;
	}
	if (!end)
		return false;
	(void)!recv(c->fd, buf, (size_t)(end - buf) + 1, 0);
	*end = '\0';
	on_line(s, c, buf);
	return c->kind == CLIENT_LINE;
}

/* --- events --- */

static struct client *accept_client(struct rig_server *s, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *c = NULL;

	if (fd < 0)
		return NULL;
	for (size_t i = 0; i < CLIENTS && !c; i++)
		c = s->clients[i].kind == CLIENT_FREE ? &s->clients[i] : NULL;
	if (!c) {
		fd_close(&fd);
		return NULL;
	}
	c->kind = CLIENT_LINE;
	c->fd = fd;
	bufq_init(&c->out, RIG_BUF);
	if (loop_add(&s->rig->loop, fd, EPOLLIN | EPOLLOUT | EPOLLET, key_of(s, c)) == 0)
		return c;
	drop(s, c);
	return NULL;
}

static void on_bridge(struct rig_server *s, uint32_t idx)
{
	struct client *c = accept_client(s, s->bridges[idx].fd);
	int on = 1;

	if (!c)
		return;
	c->bridged = true;
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	begin_stream(s, c, s->bridges[idx].path);
}

static void on_client(struct rig_server *s, struct client *c, uint32_t events)
{
	if (events == 0) { /* the linger timer */
		drop(s, c);
		return;
	}
	while (c->kind == CLIENT_LINE && read_line(s, c))
		;
	if (c->kind == CLIENT_DNS)
		begin_query(s, c);
	if (c->kind != CLIENT_STREAM)
		return;
	send_out(s, c);
	if (c->stream && !c->in_end)
		wire_resume(s->rig->net.wire, c->sid);
	if (c->stream && events & EPOLLHUP)
		loop_timer_set(
			&s->rig->loop, &c->linger, clock_mono_ms() + LINGER_MS, key_of(s, c));
}

bool rig_server_event(struct rig_server *s, const struct loop_event *ev)
{
	if (ev->key.kind == RIG_EV_LISTEN) {
		(void)accept_client(s, s->fd);
		return true;
	}
	if (ev->key.kind == RIG_EV_BRIDGE) {
		on_bridge(s, ev->key.idx);
		return true;
	}
	if (ev->key.kind != RIG_EV_CLIENT)
		return false;
	if (s->clients[ev->key.idx].kind != CLIENT_FREE &&
		s->clients[ev->key.idx].gen == ev->key.gen)
		on_client(s, &s->clients[ev->key.idx], ev->events);
	return true;
}

struct rig_server *rig_serve(struct rig *r, const char *path, struct err *err)
{
	struct rig_server *s = xcalloc(1, sizeof(*s));
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	s->rig = r;
	for (size_t i = 0; i < CLIENTS; i++)
		s->clients[i].fd = -1;
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd >= 0 && str_copy(sa.sun_path, sizeof(sa.sun_path), path) == 0 &&
		bind(s->fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 && listen(s->fd, 4096) == 0 &&
		loop_add(&r->loop, s->fd, EPOLLIN, (struct loop_key){.kind = RIG_EV_LISTEN}) == 0) {
		rig_guest_set(r, &guest_ops, s);
		return s;
	}
	(void)err_errno(err, -errno, "listening on %s", path);
	rig_server_free(s);
	return NULL;
}

void rig_server_free(struct rig_server *s)
{
	for (size_t i = 0; i < CLIENTS; i++)
		if (s->clients[i].kind != CLIENT_FREE)
			drop(s, &s->clients[i]);
	fd_close(&s->fd);
	free(s);
}
