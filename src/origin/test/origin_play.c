/* SPDX-License-Identifier: Apache-2.0 */
#include "origin_play_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/rules/policy/test/policy_text.h"
#include "src/origin/line/line_h2.h"

#define ROUNDS 3
#define FORGED 0x800000 /* in the id of an exchange whose request has no ticket */

static const char service_text[] = "service 1\nname demo\nabout Demo\n"
				   "token api.example.com:443 /oauth/token\n"
				   "field access access_token dm-oat01-proxy-managed\n"
				   "field refresh refresh_token dm-ort01-proxy-managed\n"
				   "slot api\nhost api.example.com:443\n"
				   "header authorization Bearer %s\nvalue access\nend\n";

/* The data that edge received for one exchange. */
struct edge {
	struct mux_stream *s; /* NULL: free */
	struct out out;
	struct canon_reader reader;
	uint8_t *got; /* heads, content and trailers concatenated */
	size_t n_got;
	bool is_ended, is_lazy, has_head, is_over;
};

struct origin play_origin;
struct mux play_mux; /* edge's end of the channel */
static struct edge edges[PLAY_EDGES];
static struct side sides[ORIGIN_MAX_CONNS];
char play_values[PLAY_VALUES][40];
unsigned play_n_values;
static uint32_t wants[64], needs[8];
static unsigned n_wants, n_needs;
static bool next_is_h2, next_is_mute;
static struct slice steps;
static int channel[2];
static uint32_t n_ids;
struct play_stats *play_stats;

void play_check(bool ok, const char *what)
{
	if (ok)
		return;
	(void)fprintf(stderr, "origin_play: %s\n", what);
	abort();
}

uint8_t play_next(void)
{
	uint8_t c = steps.n ? steps.p[0] : 0;

	if (steps.n)
		steps = slice_of(steps.p + 1, steps.n - 1);
	return c;
}

/* ---- control.c: the keeper reads everything immediately ---- */

bool control_want(struct origin *unused, uint32_t id)
{
	play_check(n_wants < ARRAY_LEN(wants), "more WANTs than lines");
	wants[n_wants++] = id;
	return true;
}

bool control_need(struct origin *unused, uint32_t id, const struct origin_need *need)
{
	play_check(n_needs < ARRAY_LEN(needs), "more NEEDs than values");
	needs[n_needs++] = id;
	return true;
}

bool control_tokens(struct origin *unused, uint32_t id, const struct origin_tokens *what, int fd)
{
	play_check(false, "TOKENS without a token endpoint");
	return false;
}

void control_report(struct origin *unused, struct exchange *x)
{
	uint32_t gen = x->gen;

	if (x->result_due)
		play_stats->n_removed += x->result.n_removed;
	if (x->result_due && x->id & FORGED)
		play_check(!x->result.used && (x->result.outcome == ORIGIN_BAD_REQUEST ||
						      x->result.outcome == ORIGIN_GONE),
			"a request that nobody decided was not refused");
	x->result_due = false;
	if (!x->closed_due)
		return;
	*x = (struct exchange){.gen = gen + 1};
	play_origin.n_open--;
}

/* ---- tls.c: bytes in memory ---- */

struct side *play_side(const struct line *l)
{
	return &sides[l - play_origin.lines];
}

int tls_begin(struct origin *unused, struct line *l)
{
	struct side *s = play_side(l);

	free(s->in);
	*s = (struct side){.is_h2 = next_is_h2 && !l->h1_only, .is_new = true, .room = SIZE_MAX};
	if (s->is_h2 && !next_is_mute)
		play_server_hello(s);
	return 0;
}

int tls_handshake(struct origin *unused, struct line *l, const char **ret_why)
{
	l->ops = play_side(l)->is_h2 ? &line_h2 : &line_h1;
	return 0;
}

void tls_end(struct line *l)
{
	free(TAKE(play_side(l)->in));
}

ssize_t line_recv(struct line *l, void *p, size_t n)
{
	struct side *s = play_side(l);
	size_t take = MIN(n, s->n_in - s->at);

	if (take == 0)
		return s->is_cut ? 0 : -EAGAIN;
	memcpy(p, s->in + s->at, take);
	s->at += take;
	return (ssize_t)take;
}

bool line_may_have_more(const struct line *l)
{
	return true;
}

ssize_t line_send(struct line *l, struct slice bytes)
{
	struct side *s = play_side(l);
	size_t take = MIN(bytes.n, s->room);

	if (s->is_cut)
		return -EPIPE;
	if (take == 0)
		return -EAGAIN;
	if (s->room != SIZE_MAX)
		s->room -= take;
	return (ssize_t)take;
}

/* ---- edge ---- */

static bool is_in(const struct edge *e, const char *value)
{
	return e->n_got && memmem(e->got, e->n_got, value, strlen(value));
}

static void take_frame(struct edge *e, const struct canon_frame *f)
{
	play_check(!e->is_over, "a frame behind the end");
	play_check(f->kind != CANON_DATA || e->has_head, "content before the head");
	if (f->kind == CANON_HEAD) {
		struct http_resp resp;

		arena_reset(&play_origin.arena);
		play_check(canon_get_resp(f->payload, &play_origin.arena, &resp) == 0,
			"a head that is none");
		play_check(!e->has_head, "a head behind the last one");
		e->has_head = resp.status >= 200;
	}
	e->is_over = f->kind == CANON_END || f->kind == CANON_RESET;
	play_stats->n_ended += f->kind == CANON_END;
	if (f->payload.n == 0)
		return;
	e->got = xrealloc(e->got, e->n_got + f->payload.n);
	memcpy(e->got + e->n_got, f->payload.p, f->payload.n);
	e->n_got += f->payload.n;
}

static void carry_out(struct mux *from, struct mux *to)
{
	struct slice out = mux_out(from), in = out;
	int r;

	while ((r = mux_feed(to, &in)) == 1)
		;
	play_check(r == 0, "a frame of the channel is refused");
	mux_sent(from, out.n);
}

void play_carry(void)
{
	carry_out(&play_mux, &play_origin.mux);
	carry_out(&play_origin.mux, &play_mux);
}

static void edge_reads(struct edge *e)
{
	struct canon_frame frame;
	struct slice in;
	size_t n;
	int r;

	play_carry();
	while ((n = (in = mux_peek(e->s)).n) > 0) {
		while ((r = canon_reader_feed(&e->reader, &in, &frame)) == 1)
			take_frame(e, &frame);
		play_check(r == 0, "edge got what is no frame");
		mux_take(e->s, n);
		play_carry();
	}
	for (unsigned i = 0; i < play_n_values; i++)
		play_check(!is_in(e, play_values[i]), "a value reached the guest");
}

static void edge_writes(struct edge *e)
{
	size_t n;

	do {
		n = out_len(&e->out) ? mux_send(e->s, out_peek(&e->out), (struct slice){0}) : 0;
		out_consume(&e->out, n);
		play_carry();
	} while (n);
}

static void edge_closes(struct edge *e)
{
	if (!e->s)
		return;
	edge_reads(e);
	mux_close(e->s);
	play_carry();
	out_done(&e->out);
	canon_reader_done(&e->reader);
	free(e->got);
	*e = (struct edge){0};
}

static struct ticket make_ticket(const struct http_req *q)
{
	const struct ticket_request t = {.tls = true,
		.method = q->method,
		.host = q->host,
		.port = q->port,
		.path = q->path};
	struct ticket ticket;

	ticket_make(&t, &ticket);
	return ticket;
}

static struct http_req make_request(bool has_content)
{
	return (struct http_req){.method = slice_from_str(has_content ? "POST" : "GET"),
		.scheme = HTTP_SCHEME_HTTPS,
		.host = slice_from_str("api.example.com"),
		.port = 443,
		.path = slice_from_str("/"),
		.te_trailers = true,
		.body = {.kind = has_content ? HTTP_BODY_CHUNKED : HTTP_BODY_NONE}};
}

static void put_request(struct edge *e, const struct http_req *q)
{
	struct wr wr = out_wr(&e->out, CANON_MAX_HEAD + CANON_FRAME_HEADER);

	play_check(canon_put_req(&wr, OUT_STREAM, q) == 0, "a request cannot be written");
	out_put_wr(&e->out, &wr);
}

static void put_end(struct edge *e)
{
	const struct http_headers none = {0};
	struct wr wr = out_wr(&e->out, CANON_MAX_END + CANON_FRAME_HEADER);

	if (e->is_ended)
		return;
	e->is_ended = true;
	play_check(canon_put_end(&wr, OUT_STREAM, &none) == 0, "an end cannot be written");
	out_put_wr(&e->out, &wr);
}

static void put_content(struct edge *e)
{
	static const uint8_t content[16384];
	struct wr wr;

	while (e->s && !e->s->is_gone && !e->is_ended && out_len(&e->out) == 0) {
		wr = out_wr(&e->out, sizeof(content) + CANON_FRAME_HEADER);
		play_check(canon_put_data_head(&wr, OUT_STREAM, sizeof(content)) == 0, "content");
		wr_bytes(&wr, slice_of(content, sizeof(content)));
		out_put_wr(&e->out, &wr);
		edge_writes(e);
	}
}

/* NULL: there is no place for one more. */
static struct edge *open_exchange(const struct http_req *decided, uint32_t flag)
{
	const struct ticket ticket = make_ticket(decided);
	struct edge *e = edges;

	while (e < edges + PLAY_EDGES && e->s)
		e++;
	if (e == edges + PLAY_EDGES)
		return NULL;
	n_ids = n_ids % (FORGED - 1) + 1;
	*e = (struct edge){.s = mux_open(&play_mux, n_ids | flag)};
	play_check(e->s, "a number is in use");
	canon_reader_init(&e->reader);
	play_stats->n_exchanges++;
	exchange_open(&play_origin, n_ids | flag, &ticket, -1);
	return e;
}

static void ask(bool has_content)
{
	const struct http_req q = make_request(has_content);
	struct edge *e = open_exchange(&q, 0);

	if (!e)
		return;
	put_request(e, &q);
	if (!has_content)
		put_end(e);
	edge_writes(e);
}

/* Changes the request a little. */
static void forge(struct http_req *q, uint8_t how)
{
	static const char *const methods[] = {"PUT", "HEAD", "get", "DELETE"};
	static const char *const paths[] = {"//", "/.", "/%2f", "/a", "/;"};
	static const char *const queries[] = {"", "a", "/", "?"};

	switch (how % 5) {
	case 0:
		q->method = slice_from_str(methods[how / 5 % ARRAY_LEN(methods)]);
		break;
	case 1:
		q->path = slice_from_str(paths[how / 5 % ARRAY_LEN(paths)]);
		break;
	case 2:
		q->has_query = true;
		q->query = slice_from_str(queries[how / 5 % ARRAY_LEN(queries)]);
		break;
	case 3:
		q->host = slice_from_str("api.example.org");
		break;
	default:
		q->port = (uint16_t)(1 + how);
	}
}

/* A ticket is for one request: not for another, not for two, and not after its time. */
static void forge_request(uint8_t how)
{
	struct http_req q = make_request(false);
	bool is_late = how % 16 == 14, is_twice = how % 16 == 15;
	struct edge *e = open_exchange(&q, is_twice ? 0 : FORGED);

	if (!e)
		return;
	play_stats->n_forged++;
	for (size_t i = 0; is_late && i < ORIGIN_SLOTS; i++)
		if (play_origin.exchanges[i].id == (n_ids | FORGED))
			exchange_on_timer(&play_origin, &play_origin.exchanges[i]);
	if (is_twice)
		put_request(e, &q);
	else if (!is_late)
		forge(&q, how / 16 + how * 5);
	put_request(e, &q);
	put_end(e);
	edge_writes(e);
}

/* ---- a turn ---- */

static bool has_turn(const struct line *l)
{
	return l->timer.pos && l->timer.at_ms <= clock_mono_ms();
}

/* As edge-triggered epoll: a reported event is not reported again. */
static void turn_lines(void)
{
	for (size_t i = 0; i < ORIGIN_MAX_CONNS; i++) {
		struct line *l = &play_origin.lines[i];
		struct side *s = play_side(l);
		bool is_told = l->state == LINE_READY && s->is_new;

		if (is_told) {
			s->is_new = false;
			l->ops->on_event(&play_origin, l);
		} else if (l->state == LINE_READY && has_turn(l)) {
			loop_timer_clear(&play_origin.loop, &l->timer);
			line_on_timer(&play_origin, l->timer.key);
		}
	}
}

/* The server's content that edge has not received. */
static bool is_waiting(const struct exchange *x)
{
	const struct side *s = play_side(x->line);
	const struct h2_stream *stream = x->stream;

	return s->at < s->n_in || (stream && s->is_h2 && bufq_len(&stream->held));
}

static void check_flow(void)
{
	for (size_t i = 0; i < ORIGIN_SLOTS; i++) {
		const struct exchange *x = &play_origin.exchanges[i];

		if (x->state != EXCHANGE_TALK || !x->line || !is_waiting(x))
			continue;
		play_stats->n_full++;
		play_check(!answer_has_room(x) || play_side(x->line)->is_new || has_turn(x->line),
			"content waits although edge has room");
	}
}

void play_turn(void)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < PLAY_EDGES; i++)
			if (edges[i].s)
				edge_writes(&edges[i]);
		exchange_run_streams(&play_origin);
		turn_lines();
		for (unsigned i = 0; i <= ORIGIN_MAX_CONNS && play_origin.lines_due; i++)
			line_serve(&play_origin);
		for (size_t i = 0; i < PLAY_EDGES; i++)
			if (edges[i].s && !edges[i].is_lazy)
				edge_reads(&edges[i]);
	}
	check_flow();
}

/* ---- keeper and vault ---- */

static void receive(int (*fn)(struct origin *, struct ipc_msg *))
{
	static struct ipc_msg msg;

	msg.fd = -1;
	play_check(ipc_recv(channel[1], &msg) == 1, "no message");
	play_check(fn(&play_origin, &msg) == 0, "a message is refused");
	ipc_msg_done(&msg);
}

static uint32_t take_first(uint32_t *list, unsigned *n)
{
	uint32_t id = list[0];

	memmove(list, list + 1, --*n * sizeof(*list));
	return id;
}

static void give_socket(uint8_t how)
{
	struct egress_result result = {.outcome = EGRESS_CONNECTED, .addr = "192.0.2.7"};
	int fd = -1;

	if (n_wants == 0)
		return;
	if (how % 16 == 15)
		result = (struct egress_result){.outcome = EGRESS_TIMEOUT};
	else
		fd = eventfd(0, EFD_CLOEXEC);
	next_is_h2 = how % 2 == 0;
	next_is_mute = how % 8 == 2;
	play_check(origin_answer_want(channel[0], take_first(wants, &n_wants), &result, fd) == 0,
		"SOCKET");
	fd_close(&fd);
	receive(line_on_socket);
}

static int value_stream(unsigned i)
{
	struct vault_frame frame = {
		.serial = i + 1, .name = "demo.access", .value = slice_from_str(play_values[i])};
	uint8_t head[VAULT_FRAME_MAX_HEAD];
	struct wr wr = wr_init(head, sizeof(head));
	int fds[2];

	play_check(pipe2(fds, O_CLOEXEC) == 0 && vault_frame_head(&frame, &wr) == 0, "a stream");
	play_check(write(fds[1], head, wr.n) == (ssize_t)wr.n, "a stream");
	play_check(
		write(fds[1], frame.value.p, frame.value.n) == (ssize_t)frame.value.n, "a stream");
	(void)close(fds[1]);
	return fds[0];
}

static unsigned new_value(uint8_t how)
{
	static uint32_t n_made;

	if ((how & 12 && play_n_values) || play_n_values == PLAY_VALUES)
		return play_n_values - 1;
	(void)snprintf(play_values[play_n_values], sizeof(play_values[0]), "oat-%08x-CANARY-%u",
		++n_made * 2654435761U, play_n_values);
	return play_n_values++;
}

static void give_value(uint8_t how)
{
	struct origin_value answer = {.given = how % 8 != 7};
	struct value *v = &play_origin.value[ORIGIN_ACCESS];
	int fd = -1;

	if (n_needs == 0)
		return;
	if (answer.given)
		fd = value_stream(new_value(how));
	play_check(origin_answer_need(channel[0], take_first(needs, &n_needs), &answer, fd) == 0,
		"VALUE");
	fd_close(&fd);
	receive(value_on_message);
	if (v->state == VALUE_READING)
		value_on_event(
			&play_origin, (struct loop_key){.gen = v->gen, .idx = ORIGIN_ACCESS});
}

static int on_renew(struct origin *unused, struct ipc_msg *msg)
{
	return value_on_renew(&play_origin, msg);
}

static void renew(void)
{
	play_check(origin_ask_renew(channel[0], ORIGIN_HAS_ACCESS) == 0, "RENEW");
	receive(on_renew);
}

/* ---- steps ---- */

static void edge_step(enum play_step what)
{
	struct edge *e = &edges[play_next() % PLAY_EDGES];

	if (!e->s)
		return;
	switch (what) {
	case PLAY_UPLOAD:
		put_content(e);
		break;
	case PLAY_FINISH:
		put_end(e);
		break;
	case PLAY_READ:
		e->is_lazy = !e->is_lazy;
		if (!e->is_lazy)
			edge_reads(e);
		break;
	default:
		edge_closes(e);
	}
}

static void expire(void)
{
	play_origin.value[ORIGIN_ACCESS].until_ms = 0;
}

void play_step(uint8_t c)
{
	enum play_step what = c % PLAY_N_STEPS;

	switch (what) {
	case PLAY_TURN:
		play_turn();
		break;
	case PLAY_GET:
	case PLAY_POST:
		ask(what == PLAY_POST);
		break;
	case PLAY_FORGE:
		forge_request(play_next());
		break;
	case PLAY_UPLOAD:
	case PLAY_FINISH:
	case PLAY_CANCEL:
	case PLAY_READ:
		edge_step(what);
		break;
	case PLAY_SOCKET:
		give_socket(play_next());
		break;
	case PLAY_VALUE:
		give_value(play_next());
		break;
	case PLAY_RENEW:
		renew();
		break;
	case PLAY_EXPIRE:
		expire();
		break;
	default:
		play_server_step(what);
	}
	/* usually each step has its own turn; sometimes several share one */
	if (c < 192)
		play_turn();
}

/* ---- begin and end ---- */

static void begin(void)
{
	static const struct keeper_ops keeper = {
		.want = control_want, .need = control_need, .tokens = control_tokens};

	secret_forbid_hidden();
	play_origin.ops = &exchange_ops;
	play_origin.keeper = &keeper;
	play_check(loop_init(&play_origin.loop) == 0 && ipc_pair(channel) == 0, "no loop");
	play_origin.exchanges = xcalloc(ORIGIN_SLOTS, sizeof(*play_origin.exchanges));
	for (size_t i = 0; i < ORIGIN_N_WHICH; i++)
		play_origin.value[i].fd = -1;
	play_origin.config = (struct origin_config){
		.host = "api.example.com", .port = 443, .has = ORIGIN_HAS_ACCESS};
	arena_init(&play_origin.arena, HTTP_ARENA_SIZE);
	play_check(host_from_wire(slice_from_str("api.example.com"), &play_origin.host, NULL) == 0,
		"a host");
	play_check(service_parse(
			   slice_from_str(service_text), "play", &play_origin.service, NULL) == 0,
		"service");
	play_origin.policy =
		policy_load(slice_from_str("policy 1\nallow network **\nend\n"), "policy", "demo");
}

/* Edge and server are closed: nothing must be left. */
static void finish(void)
{
	for (size_t i = 0; i < PLAY_EDGES; i++)
		edge_closes(&edges[i]);
	for (size_t i = 0; i < ORIGIN_MAX_CONNS; i++)
		sides[i].is_cut = sides[i].is_new = true;
	play_turn();
	for (size_t i = 0; i < ORIGIN_SLOTS; i++)
		if (play_origin.exchanges[i].state == EXCHANGE_ENDING)
			exchange_on_timer(&play_origin, &play_origin.exchanges[i]);
	play_check(play_origin.n_open == 0, "an exchange is left");
	play_carry();
	play_check(!play_origin.mux.n_streams && !play_mux.n_streams, "a stream is left");
	for (size_t i = 0; i < ORIGIN_MAX_CONNS; i++) {
		play_check(play_origin.lines[i].n_exchanges == 0, "a line is held");
		if (play_origin.lines[i].state != LINE_FREE)
			line_drop(&play_origin, &play_origin.lines[i]);
	}
	play_check(play_origin.loop.n_timers == 0, "a timer is left");
	play_origin.lines_due = false;
	play_origin.spoken = LINE_NONE;
	n_wants = 0;
}

void play_forget(void)
{
	if (!play_origin.exchanges)
		return;
	value_wipe_all(&play_origin);
	sweep_done(&play_origin);
	play_origin.n_retired = 0;
	n_needs = play_n_values = 0;
}

void play_run(struct slice text, struct play_stats *ret_stats)
{
	play_stats = ret_stats;
	if (!play_origin.exchanges)
		begin();
	steps = text;
	while (steps.n)
		play_step(play_next());
	finish();
}
