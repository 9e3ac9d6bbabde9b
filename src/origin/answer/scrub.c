/* SPDX-License-Identifier: Apache-2.0 */
/* Searches an answer for the value before edge gets it: heads, content and trailers. Content that
 * is coded anyway (identity was requested) is decoded first, and forwarded decoded. Decoded data
 * may be much larger, so coded data waits here until edge has read; meanwhile nothing more is read
 * from the server. */
#include "answer.h"

#include <assert.h>
#include <errno.h>
#include "capture.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/secret/scrub/scrub.h"
#include "lib/secret/scrub/unpack.h"
#include "sweep.h"

#define MAX_CODED (2 * OUT_READ) /* maximum data of a line after it was given room */
/* Maximum output to edge of one step of a decoder. */
#define STEP_ROOM (OUT_READ + SCRUB_MAX_HOLD + CANON_MAX_END + 8 * CANON_FRAME_HEADER)
static_assert(STEP_ROOM < OUT_MAX, "an empty queue has room for a step");

struct scrub_state {
	struct sweep *sweep;
	uint32_t n_changes; /* of the values, at its creation */
	struct scrub stream;
	struct unpack *unpack; /* NULL: not coded */
	uint8_t *coded;
	size_t n_coded, at_coded;
	bool is_full; /* the decoder has more, edge has no room */
	uint8_t *end; /* END frame that arrived before the content was decoded */
	size_t n_end;
	uint32_t n_in_heads;  /* hits in headers */
	uint64_t n_in_fields; /* captured */
};

/* ---- one answer ---- */

static int state_new(struct origin *o, struct exchange *x)
{
	struct sweep *w = sweep_get(o, x);

	if (!w)
		return -EBADMSG;
	x->scrub = xcalloc(1, sizeof(*x->scrub));
	x->scrub->sweep = w;
	x->scrub->n_changes = o->n_changes;
	scrub_init(&x->scrub->stream, sweep_set(w));
	return 0;
}

/* The rest is also searched for all current values. */
static int state_join(struct origin *o, struct exchange *x)
{
	struct scrub_state *s = x->scrub;
	struct sweep *w = sweep_join(o, s->sweep);

	if (!w)
		return -EBADMSG;
	sweep_put(s->sweep);
	s->sweep = w;
	s->n_changes = o->n_changes;
	scrub_change(&s->stream, sweep_set(w));
	return 0;
}

/* Values were added or replaced since it began. */
static int state_renew(struct origin *o, struct exchange *x)
{
	return x->scrub->n_changes == o->n_changes ? 0 : state_join(o, x);
}

void answer_scrub_done(struct origin *o, struct exchange *x)
{
	struct scrub_state *s = TAKE(x->scrub);

	sweep_unpin(x);
	capture_free(o, x);
	if (!s)
		return;
	loop_timer_clear(&o->loop, &x->scrub_timer);
	scrub_done(&s->stream);
	unpack_free(s->unpack);
	if (s->coded)
		explicit_bzero(s->coded, MAX_CODED);
	free(s->coded);
	free(s->end);
	sweep_put(s->sweep);
	free(s);
}

static void count_scrub(struct exchange *x)
{
	uint64_t n = x->scrub->stream.n_hits + x->scrub->n_in_heads + x->scrub->n_in_fields;

	x->result.n_removed = (uint32_t)MIN(n, UINT32_MAX);
}

/* In place: the text of an answer is in the reader's memory, which origin owns. */
static void scrub_headers(struct exchange *x, struct http_headers *headers)
{
	const struct scrub_set *set = sweep_set(x->scrub->sweep);

	for (size_t i = 0; i < headers->n; i++) {
		struct http_header *h = &headers->list[i];

		x->scrub->n_in_heads +=
			(uint32_t)scrub_text(set, (uint8_t *)h->value.p, h->value.n);
		/* '*' is valid in a name; a value in lower case rarely matches, so this is rare */
		x->scrub->n_in_heads += (uint32_t)scrub_text(set, (uint8_t *)h->name.p, h->name.n);
	}
	count_scrub(x);
}

/* Removes headers that are true only for the coded data. */
static void forget_coding(struct http_resp *resp)
{
	static const char *const names[] = {"content-encoding", "content-length", "content-md5",
		"digest", "content-digest", "etag", "accept-ranges"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		canon_remove_header(&resp->headers, names[i]);
	resp->body = (struct http_body){.kind = HTTP_BODY_CHUNKED};
}

static int begin_content(struct exchange *x, struct http_resp *resp)
{
	enum unpack_coding coding = UNPACK_IDENTITY;
	size_t at;
	int r = canon_find_header(&resp->headers, "content-encoding", &at);

	if (r == -ENOENT || resp->body.kind == HTTP_BODY_NONE || resp->body.absent)
		return 0;
	if (r < 0 || unpack_parse(resp->headers.list[at].value, &coding, NULL) < 0)
		return -EBADMSG;
	if (coding == UNPACK_IDENTITY)
		return 0;
	if (resp->status == 206) /* a part of a coded text cannot be decoded */
		return -EBADMSG;
	x->scrub->unpack = unpack_new(coding);
	forget_coding(resp);
	return x->scrub->unpack ? 0 : -EBADMSG;
}

int answer_scrub_kept(
	struct origin *o, struct exchange *x, uint8_t *text, size_t n, uint32_t *n_removed)
{
	struct sweep *w = sweep_get(o, x);

	if (!w)
		return -EBADMSG;
	*n_removed += (uint32_t)scrub_text(sweep_set(w), text, n);
	sweep_put(w);
	return 0;
}

int answer_scrub_head(struct origin *o, struct exchange *x, struct http_resp *resp)
{
	int r = x->scrub ? state_renew(o, x) : state_new(o, x);

	if (r == 0)
		scrub_headers(x, &resp->headers);
	if (r == 0 && resp->status >= 200)
		r = begin_content(x, resp);
	if (r == 0)
		r = capture_begin(x, resp);
	if (r != 0)
		return MIN(r, 0);
	return answer_put_head(x, resp);
}

/* ---- content ---- */

typedef int put_fn(struct exchange *x, struct slice data);

static int put_raw(struct exchange *x, struct slice data)
{
	return out_put(&x->to_edge, data);
}

static uint8_t clean[OUT_READ + SCRUB_MAX_HOLD];

static int feed_scrub(struct exchange *x, struct slice data, put_fn *put)
{
	struct scrub *s = &x->scrub->stream;
	int r = 0;

	while (r == 0 && data.n > 0) {
		struct slice piece = slice_of(data.p, MIN(data.n, OUT_READ));

		data = slice_of(data.p + piece.n, data.n - piece.n);
		while (r == 0 && piece.n > 0) {
			size_t n = scrub_feed(s, &piece, clean, sizeof(clean));

			if (n > 0)
				r = put(x, slice_of(clean, n));
		}
	}
	count_scrub(x);
	return r;
}

static int feed_end(struct exchange *x, put_fn *put)
{
	size_t n;
	int r = 0;

	while (r == 0 && (n = scrub_end(&x->scrub->stream, clean, sizeof(clean))) > 0)
		r = put(x, slice_of(clean, n));
	count_scrub(x);
	return r;
}

/* Content without its coding. */
static int take_scrub(struct origin *o, struct exchange *x, struct slice data)
{
	return x->capture ? capture_keep(o, x, data) : feed_scrub(x, data, answer_put_data);
}

/* Data that looks like the beginning of a value is held no longer than this. */
static void set_idle(struct origin *o, struct exchange *x)
{
	const struct scrub *s = &x->scrub->stream;

	if (s->n_hold > s->n_shown)
		loop_timer_set(&o->loop, &x->scrub_timer, clock_mono_ms() + SCRUB_IDLE_MS,
			exchange_key(o, x, ORIGIN_EV_SCRUB));
}

bool answer_on_idle(struct exchange *x)
{
	uint8_t out[64];

	if (!x->scrub || (x->state != EXCHANGE_TALK && x->state != EXCHANGE_RAW))
		return false;
	size_t n = scrub_idle(&x->scrub->stream, out, sizeof(out));

	return n &&
	       (x->state == EXCHANGE_RAW ? put_raw : answer_put_data)(x, slice_of(out, n)) == 0;
}

static int put_last(struct exchange *x, struct http_headers *trailers)
{
	if (x->scrub->unpack && unpack_end(x->scrub->unpack, NULL) < 0)
		return -EBADMSG;
	int r = feed_end(x, answer_put_data);

	if (r == 0)
		scrub_headers(x, trailers);
	return r < 0 ? r : answer_put_end(x, trailers);
}

/* Decodes until everything is decoded or edge must read first. */
static int decode_scrub(struct origin *o, struct exchange *x)
{
	static uint8_t plain[OUT_READ];
	struct scrub_state *s = x->scrub;
	size_t n = 1;

	s->is_full = false;
	while (n > 0 || s->at_coded < s->n_coded) {
		struct slice in = slice_of(s->coded + s->at_coded, s->n_coded - s->at_coded);

		if (out_room(&x->to_edge) < STEP_ROOM) {
			s->is_full = true;
			return 0;
		}
		n = 0;
		if (unpack_feed(s->unpack, &in, plain, sizeof(plain), &n, NULL) < 0)
			return -EBADMSG;
		s->at_coded = s->n_coded - in.n;
		if (take_scrub(o, x, slice_of(plain, n)) < 0)
			return -EBADMSG;
	}
	s->at_coded = s->n_coded = 0;
	return 0;
}

/* The same with content that was held. */
static int pour_scrub(struct exchange *x)
{
	struct slice piece;

	x->scrub->is_full = false;
	while ((piece = capture_next(x, OUT_READ)).n > 0) {
		if (out_room(&x->to_edge) < STEP_ROOM) {
			x->scrub->is_full = true;
			return 0;
		}
		if (feed_scrub(x, piece, answer_put_data) < 0)
			return -EBADMSG;
		capture_passed(x, piece.n);
	}
	return 0;
}

/* The content is complete: forwards what was held. */
static int let_go(struct origin *o, struct exchange *x)
{
	struct scrub_state *s = x->scrub;
	struct http_resp resp = {0};
	size_t n = 0;
	int r;

	if (!x->capture || capture_is_open(x))
		return 0;
	if (s->unpack && unpack_end(s->unpack, NULL) < 0)
		return -EBADMSG;
	r = capture_open(o, x, &resp, &n);
	if (r < 0)
		return r;
	s->n_in_fields = n;
	/* the server may repeat them elsewhere */
	if (n && state_join(o, x) < 0)
		return -EBADMSG;
	scrub_headers(x, &resp.headers);
	r = answer_put_head(x, &resp);
	return r < 0 ? r : pour_scrub(x);
}

static int keep_coded(struct scrub_state *s, struct slice data)
{
	if (!s->coded)
		s->coded = xmalloc(MAX_CODED);
	memmove(s->coded, s->coded + s->at_coded, s->n_coded - s->at_coded);
	s->n_coded -= s->at_coded;
	s->at_coded = 0;
	if (data.n > MAX_CODED - s->n_coded)
		return -EBADMSG;
	memcpy(s->coded + s->n_coded, data.p, data.n);
	s->n_coded += data.n;
	return 0;
}

int answer_scrub(struct origin *o, struct exchange *x, struct slice data)
{
	struct scrub_state *s = x->scrub;
	int r = state_renew(o, x);

	if (r == 0 && !s->unpack) {
		r = take_scrub(o, x, data);
	} else if (r == 0) {
		r = keep_coded(s, data);
		if (r == 0)
			r = decode_scrub(o, x);
	}
	set_idle(o, x);
	return r;
}

int answer_scrub_raw(struct origin *o, struct exchange *x, struct slice data)
{
	int r = state_renew(o, x);

	if (r == 0)
		r = feed_scrub(x, data, put_raw);
	set_idle(o, x);
	return r;
}

int answer_scrub_raw_end(struct exchange *x)
{
	return feed_end(x, put_raw);
}

int answer_scrub_end(struct origin *o, struct exchange *x, struct http_headers *trailers)
{
	struct scrub_state *s = x->scrub;

	if (!s || state_renew(o, x) < 0 || (!s->is_full && let_go(o, x) < 0))
		return -EBADMSG;
	if (!s->is_full)
		return put_last(x, trailers);
	/* Copied: the text will be freed before it is sent. */
	struct wr wr = wr_init(
		xmalloc(CANON_MAX_END + CANON_FRAME_HEADER), CANON_MAX_END + CANON_FRAME_HEADER);

	s->end = wr.p;
	if (canon_put_end(&wr, OUT_STREAM, trailers) < 0)
		return -EBADMSG;
	s->n_end = wr.n;
	return 0;
}

bool answer_has_more(const struct exchange *x)
{
	return x->scrub && x->scrub->is_full;
}

bool answer_has_room(const struct exchange *x)
{
	size_t n_held = x->scrub ? x->scrub->stream.n_hold : 0;

	if (x->token) /* held here, and limited */
		return true;
	if (answer_has_more(x))
		return false;
	return x->talk->is_said ? out_room(&x->to_edge) >= 2 * LINE_READ + CANON_MAX_END + n_held
				: out_len(&x->to_edge) == 0;
}

int answer_scrub_more(struct origin *o, struct exchange *x)
{
	struct scrub_state *s = x->scrub;
	struct http_headers trailers = {0};
	int r = state_renew(o, x);

	if (r == 0)
		r = capture_is_open(x) ? pour_scrub(x) : decode_scrub(o, x);
	if (r == 0 && !s->is_full && s->end)
		r = let_go(o, x);
	if (r < 0 || s->is_full || !s->end)
		return r;
	arena_reset(&o->arena);
	r = canon_get_end(slice_of(s->end + CANON_FRAME_HEADER, s->n_end - CANON_FRAME_HEADER),
		&o->arena, &trailers);
	return r < 0 ? r : put_last(x, &trailers);
}
