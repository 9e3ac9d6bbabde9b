/* SPDX-License-Identifier: Apache-2.0 */
/* The server of origin_play.h: valid and invalid output on a line. */
#include "origin_play_internal.h"

#include <stdio.h>
#include "lib/base/mem.h"
#include "src/origin/line/line_h2.h"

#define WINDOW "\x00\x04\x00\x10\x00\x00" /* SETTINGS: 1 MiB */

static struct exchange *pick(uint8_t which)
{
	struct exchange *found[PLAY_EDGES + 1];
	unsigned n = 0;

	for (size_t i = 0; i < ORIGIN_SLOTS && n <= PLAY_EDGES; i++)
		if (play_origin.exchanges[i].state == EXCHANGE_TALK &&
			play_origin.exchanges[i].line)
			found[n++] = &play_origin.exchanges[i];
	return n ? found[which % n] : NULL;
}

/* A value sent with this request, or one of the last ones; "" if there is none. */
static const char *pick_value(const struct exchange *x, uint8_t how)
{
	unsigned back = how / 8 % (ORIGIN_MAX_RETIRED + 1);

	if (how & 4 || back == ORIGIN_MAX_RETIRED || back >= play_n_values)
		return x->result.serial ? play_values[x->result.serial - 1] : "";
	return play_values[play_n_values - 1 - back];
}

static void say(struct side *s, const void *p, size_t n)
{
	s->in = xrealloc(s->in, s->n_in + n);
	memcpy(s->in + s->n_in, p, n);
	s->n_in += n;
	s->is_new = true;
}

static void frame(struct side *s, uint8_t type, uint8_t flags, int32_t id, const void *p, size_t n)
{
	const uint8_t head[9] = {(uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n, type, flags,
		(uint8_t)(id >> 24), (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id};

	say(s, head, sizeof(head));
	if (n)
		say(s, p, n);
}

void play_server_hello(struct side *s)
{
	frame(s, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
}

static int32_t stream_of(const struct exchange *x)
{
	const struct h2_stream *s = x->stream;

	return s && s->id > 0 ? s->id : 1;
}

/* No field is put into a table, so each block is independent. */
static void block(struct side *s, const struct exchange *x, uint8_t flags,
	const char *const pairs[][2], size_t n)
{
	nghttp2_nv nva[4];
	nghttp2_hd_deflater *deflater;
	uint8_t buf[1024];
	ssize_t len;

	for (size_t i = 0; i < n; i++)
		nva[i] = (nghttp2_nv){(uint8_t *)pairs[i][0], (uint8_t *)pairs[i][1],
			strlen(pairs[i][0]), strlen(pairs[i][1]), NGHTTP2_NV_FLAG_NO_INDEX};
	play_check(nghttp2_hd_deflate_new(&deflater, 4096) == 0, "HPACK");
	len = nghttp2_hd_deflate_hd(deflater, buf, sizeof(buf), nva, n);
	nghttp2_hd_deflate_del(deflater);
	play_check(len >= 0, "HPACK");
	frame(s, NGHTTP2_HEADERS, flags | NGHTTP2_FLAG_END_HEADERS, stream_of(x), buf, (size_t)len);
}

enum { HEAD_OK, HEAD_INTERIM, HEAD_REFUSED, HEAD_SHORT, N_HEADS };

static void say_head(struct exchange *x, uint8_t how)
{
	static const char *const status[] = {"200", "103", "200", "204"};
	struct side *s = play_side(x->line);
	unsigned kind = how % N_HEADS;
	bool is_end = kind == HEAD_SHORT;
	const char *value = pick_value(x, how);
	const char *const pairs[][2] = {
		{":status", status[kind]}, {"x-echo", value}, {"content-encoding", "gzip, gzip"}};
	AUTO_FREE char *text = NULL;

	play_stats->n_said_back += value[0] != 0;
	if (s->is_h2) {
		block(s, x, is_end ? NGHTTP2_FLAG_END_STREAM : 0, pairs,
			kind == HEAD_REFUSED ? 3 : 2);
		return;
	}
	text = xasprintf("HTTP/1.1 %s X\r\nx-echo: %s\r\n%s%s\r\n", status[kind], value,
		kind == HEAD_REFUSED ? "content-encoding: gzip, gzip\r\n" : "",
		kind == HEAD_OK || kind == HEAD_REFUSED ? "transfer-encoding: chunked\r\n" : "");
	say(s, text, strlen(text));
}

static void say_piece(struct exchange *x, const char *text, size_t n)
{
	struct side *s = play_side(x->line);
	char size[16];

	if (n == 0)
		return;
	if (s->is_h2) {
		frame(s, NGHTTP2_DATA, 0, stream_of(x), text, n);
		return;
	}
	say(s, size, (size_t)snprintf(size, sizeof(size), "%zx\r\n", n));
	say(s, text, n);
	say(s, "\r\n", 2);
}

static void flood(struct exchange *x)
{
	static const char zeros[16384];

	say_piece(x, zeros, sizeof(zeros));
	say_piece(x, zeros, sizeof(zeros));
}

/* Between two pieces other steps may happen. */
static void say_data(struct exchange *x, uint8_t how)
{
	static unsigned depth;
	AUTO_FREE char *value = xasprintf("%s", pick_value(x, how));
	uint32_t gen = x->gen;
	size_t cut = how & 2 ? play_next() % (strlen(value) + 1) : strlen(value);

	say_piece(x, value, cut);
	if (how & 1 && depth == 0) {
		depth++;
		play_turn();
		play_step(play_next());
		depth--;
	}
	if (x->gen != gen || x->state != EXCHANGE_TALK || !x->line)
		return;
	say_piece(x, value + cut, strlen(value) - cut);
	play_stats->n_said_back += value[0] != 0;
}

static void say_end(struct exchange *x, uint8_t how)
{
	struct side *s = play_side(x->line);
	const char *value = pick_value(x, how);
	const char *const pairs[][2] = {{"x-last", value}};
	AUTO_FREE char *text = NULL;

	if (s->is_h2 && how & 1) {
		block(s, x, NGHTTP2_FLAG_END_STREAM, pairs, 1);
	} else if (s->is_h2) {
		frame(s, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, stream_of(x), NULL, 0);
	} else {
		text = how & 1 ? xasprintf("0\r\nx-last: %s\r\n\r\n", value)
			       : xasprintf("0\r\n\r\n");
		say(s, text, strlen(text));
	}
}

static void reset(struct exchange *x, uint8_t how)
{
	static const uint8_t codes[] = {NGHTTP2_NO_ERROR, NGHTTP2_REFUSED_STREAM, NGHTTP2_CANCEL,
		NGHTTP2_HTTP_1_1_REQUIRED, NGHTTP2_INTERNAL_ERROR};
	struct side *s = play_side(x->line);
	const uint8_t code[4] = {0, 0, 0, codes[how % ARRAY_LEN(codes)]};

	if (s->is_h2 && how < 224)
		frame(s, NGHTTP2_RST_STREAM, 0, stream_of(x), code, sizeof(code));
	else
		s->is_cut = s->is_new = true;
}

static void other_frame(struct exchange *x, uint8_t how)
{
	struct side *s = play_side(x->line);
	uint8_t raw[16];

	if (!s->is_h2)
		return;
	switch (how % 7) {
	case 0:
		frame(s, NGHTTP2_SETTINGS, 0, 0, WINDOW, 6);
		break;
	case 1:
		frame(s, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
		break;
	case 2:
		frame(s, NGHTTP2_WINDOW_UPDATE, 0, 0, "\x00\x10\x00\x00", 4);
		break;
	case 3:
		frame(s, NGHTTP2_WINDOW_UPDATE, 0, stream_of(x), "\x00\x10\x00\x00", 4);
		break;
	case 4:
		frame(s, NGHTTP2_PING, 0, 0, "12345678", 8);
		break;
	case 5:
		frame(s, NGHTTP2_GOAWAY, 0, 0, "\x00\x00\x00\x01\x00\x00\x00\x00", 8);
		break;
	default:
		for (size_t i = 0; i < sizeof(raw); i++)
			raw[i] = play_next();
		frame(s, raw[0] % 11, raw[1], raw[2] % 8, raw + 3, raw[15] % 12);
	}
}

static void set_room(struct exchange *x, uint8_t how)
{
	struct side *s = play_side(x->line);

	s->room = how & 1 ? SIZE_MAX : how % 8 ? (size_t)how * 1024 : 0;
	s->is_new = true;
}

static void fire_timer(struct exchange *x, uint8_t how)
{
	if (how & 1 && answer_on_idle(x))
		talk_pump(&play_origin, x);
	else if (how % 8 == 0)
		exchange_on_timer(&play_origin, x);
}

void play_server_step(enum play_step what)
{
	struct exchange *x = pick(play_next());
	uint8_t how = play_next();

	if (!x)
		return;
	switch (what) {
	case PLAY_HEAD:
		say_head(x, how);
		break;
	case PLAY_DATA:
		if (how >= PLAY_FLOOD)
			flood(x);
		else
			say_data(x, how);
		break;
	case PLAY_END:
		say_end(x, how);
		break;
	case PLAY_RESET:
		reset(x, how);
		break;
	case PLAY_ROOM:
		set_room(x, how);
		break;
	case PLAY_FRAME:
		other_frame(x, how);
		break;
	default:
		fire_timer(x, how);
	}
}
