/* SPDX-License-Identifier: Apache-2.0 */
#include "mux.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/base/mem.h"

/* Control frames come on top of MUX_OUT; so many only if the peer does not read. */
#define OUT_LIMIT (4 * MUX_OUT)
/* Kept for the next frames, while there are streams: most are requests without a body. */
#define OUT_KEEP 4096
/* Otherwise the room for all that may wait. */
#define OUT_MOST (MUX_OUT + 2 * MUX_DATA_MAX)

static struct mux_stream **bucket_of(const struct mux *m, uint32_t id)
{
	return (struct mux_stream **)&m->streams[id % MUX_BUCKETS];
}

struct mux_stream *mux_find(const struct mux *m, uint32_t id)
{
	struct mux_stream *s = *bucket_of(m, id);

	while (s && s->id != id)
		s = s->next;
	return s;
}

/* ---- events ---- */

static void note_stream(struct mux_stream *s, unsigned events)
{
	struct mux *m = s->mux;
	bool is_noted = s->events;

	s->events |= events;
	if (is_noted)
		return;
	s->next_noted = NULL;
	if (m->last_noted)
		m->last_noted->next_noted = s;
	else
		m->first_noted = s;
	m->last_noted = s;
	m->n_noted++;
}

static void unnote_stream(struct mux_stream *s)
{
	struct mux *m = s->mux;
	struct mux_stream *before = NULL;

	if (!s->events)
		return;
	for (struct mux_stream *at = m->first_noted; at != s; at = at->next_noted)
		before = at;
	if (before)
		before->next_noted = s->next_noted;
	else
		m->first_noted = s->next_noted;
	if (m->last_noted == s)
		m->last_noted = before;
	m->n_noted--;
	s->events = 0;
}

struct mux_stream *mux_next(struct mux *m, unsigned *ret_events)
{
	struct mux_stream *s = m->first_noted;

	if (!s)
		return NULL;
	*ret_events = s->events;
	unnote_stream(s);
	return s;
}

/* ---- bytes for the socket ---- */

static uint8_t *out_room_for(struct mux *m, size_t n)
{
	if (m->out_at && m->out_at + m->out_n + n > m->out_size) {
		memmove(m->out, m->out + m->out_at, m->out_n);
		m->out_at = 0;
	}
	if (m->out_at + m->out_n + n > m->out_size) {
		m->out_size =
			m->out_n + n <= OUT_KEEP ? OUT_KEEP : MAX(m->out_n + n, (size_t)OUT_MOST);
		m->out = xrealloc(m->out, m->out_size);
	}
	return m->out + m->out_at + m->out_n;
}

static void put_frame(
	struct mux *m, enum mux_kind kind, uint32_t id, struct slice a, struct slice b)
{
	size_t n = a.n + b.n;
	struct wr wr = wr_init(out_room_for(m, MUX_HEADER + n), MUX_HEADER + n);

	wr_u32(&wr, (uint32_t)n);
	wr_u32(&wr, (uint32_t)kind | id << 8);
	wr_bytes(&wr, a);
	wr_bytes(&wr, b);
	m->out_n += wr.n;
}

static void put_window(struct mux_stream *s, size_t n)
{
	uint8_t buf[4];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u32(&wr, (uint32_t)n);
	put_frame(s->mux, MUX_WINDOW, s->id, slice_of(buf, sizeof(buf)), (struct slice){0});
}

static void put_plain(struct mux *m, enum mux_kind kind, uint32_t id)
{
	put_frame(m, kind, id, (struct slice){0}, (struct slice){0});
}

static void drop_out(struct mux *m)
{
	free(TAKE(m->out));
	m->out_at = m->out_n = m->out_size = 0;
}

/* There is room again: all that waited for it may try. */
static void tell_room(struct mux *m)
{
	m->is_full = false;
	for (size_t i = 0; i < MUX_BUCKETS; i++)
		for (struct mux_stream *s = m->streams[i]; s; s = s->next)
			if (s->wants_room && (s->credit || s->is_gone)) {
				s->wants_room = false;
				note_stream(s, MUX_WRITABLE);
			}
}

struct slice mux_out(const struct mux *m)
{
	return slice_of(m->out ? m->out + m->out_at : NULL, m->out_n);
}

void mux_sent(struct mux *m, size_t n)
{
	m->out_at += n;
	m->out_n -= n;
	if (!m->out_n)
		m->out_at = 0;
	if (!m->out_n && (m->out_size > OUT_KEEP || !m->n_streams))
		drop_out(m);
	if (m->is_full && m->out_n < MUX_OUT / 2)
		tell_room(m);
}

bool mux_may_feed(const struct mux *m)
{
	return m->out_n < OUT_LIMIT;
}

/* ---- streams ---- */

struct mux_stream *mux_open(struct mux *m, uint32_t id)
{
	struct mux_stream *s;

	if (id == 0 || id > MUX_MAX_ID || mux_find(m, id))
		return NULL;
	s = xcalloc(1, sizeof(*s));
	*s = (struct mux_stream){.mux = m,
		.id = id,
		.next = *bucket_of(m, id),
		.window = MUX_FIRST,
		.granted = MUX_FIRST,
		.credit = MUX_FIRST};
	*bucket_of(m, id) = s;
	m->n_streams++;
	return s;
}

static void free_stream(struct mux_stream *s)
{
	struct mux *m = s->mux;
	struct mux_stream **at = bucket_of(m, s->id);

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	unnote_stream(s);
	if (m->to == s)
		m->to = NULL;
	m->n_shared -= s->window - MUX_FIRST;
	m->n_streams--;
	free(s->in);
	free(s);
}

void mux_close(struct mux_stream *s)
{
	if (!s->is_gone)
		put_plain(s->mux, MUX_RESET, s->id);
	free_stream(s);
}

void mux_done(struct mux *m)
{
	for (size_t i = 0; i < MUX_BUCKETS; i++)
		while (m->streams[i])
			free_stream(m->streams[i]);
	drop_out(m);
	*m = (struct mux){0};
}

void mux_restart(struct mux *m)
{
	drop_out(m);
	m->to = NULL;
	m->n_head = m->left = 0;
	m->is_asked = m->is_broken = m->is_full = false;
	for (size_t i = 0; i < MUX_BUCKETS; i++)
		for (struct mux_stream *s = m->streams[i]; s; s = s->next) {
			s->is_gone = true;
			note_stream(s, MUX_READABLE | MUX_WRITABLE | MUX_GONE);
		}
}

/* ---- to the peer ---- */

size_t mux_send(struct mux_stream *s, struct slice a, struct slice b)
{
	struct mux *m = s->mux;
	size_t sent = 0;

	if (s->is_gone || s->is_shut)
		return 0;
	while (a.n + b.n > 0 && s->credit > 0 && m->out_n < MUX_OUT) {
		size_t n = MIN(MIN(a.n + b.n, s->credit), (size_t)MUX_DATA_MAX);
		struct slice x = slice_take(&a, n), y = slice_take(&b, n - x.n);

		put_frame(m, MUX_DATA, s->id, x, y);
		s->credit -= n;
		sent += n;
	}
	if (a.n + b.n > 0) {
		s->wants_room = true;
		m->is_full = m->is_full || s->credit > 0;
	}
	return sent;
}

void mux_shut(struct mux_stream *s)
{
	if (!s->is_shut && !s->is_gone)
		put_plain(s->mux, MUX_END, s->id);
	s->is_shut = true;
}

void mux_again(struct mux_stream *s)
{
	note_stream(s, MUX_READABLE);
}

/* ---- from the peer ---- */

struct slice mux_peek(const struct mux_stream *s)
{
	return slice_of(s->in ? s->in + s->in_at : NULL, s->in_n);
}

/* A reader that took everything may get more at a time. */
static void grow_window(struct mux_stream *s)
{
	size_t n = MIN(s->window, MUX_MAX_WINDOW - s->window);

	n = MIN(n, MUX_SHARED - s->mux->n_shared);
	s->kept_up = 0;
	s->window += n;
	s->taken += n;
	s->mux->n_shared += n;
}

static void shrink_window(struct mux_stream *s)
{
	size_t n = MIN(s->taken, s->window - MUX_FIRST);

	s->kept_up = 0;
	s->window -= n;
	s->taken -= n;
	s->mux->n_shared -= n;
}

void mux_take(struct mux_stream *s, size_t n)
{
	s->in_at += n;
	s->in_n -= n;
	s->taken += n;
	s->kept_up += n;
	if (!s->in_n) {
		free(TAKE(s->in));
		s->in_at = s->in_size = 0;
	}
	if (s->in_end || s->is_gone || s->taken < s->window / 2)
		return;
	if (!s->in_n && s->kept_up >= MUX_GROWS * s->window)
		grow_window(s);
	else if (s->in_n >= s->window / 4)
		shrink_window(s);
	if (!s->taken)
		return;
	put_window(s, s->taken);
	s->granted += s->taken;
	s->taken = 0;
}

static void keep_data(struct mux_stream *s, struct slice data)
{
	if (s->in_at + s->in_n + data.n > s->in_size && s->in_at) {
		memmove(s->in, s->in + s->in_at, s->in_n);
		s->in_at = 0;
	}
	if (s->in_n + data.n > s->in_size) {
		/* at once what may come, rather than piece by piece */
		s->in_size = MAX(s->in_n + data.n, s->window);
		s->in = xrealloc(s->in, s->in_size);
	}
	memcpy(s->in + s->in_at + s->in_n, data.p, data.n);
	s->in_n += data.n;
	note_stream(s, MUX_READABLE);
}

static void read_data(struct mux *m, struct slice *in)
{
	struct slice piece = slice_take(in, m->left);

	if (m->to && !m->to->is_gone)
		keep_data(m->to, piece);
	m->left -= piece.n;
	if (!m->left) {
		m->to = NULL;
		m->n_head = 0;
	}
}

/* 1: not open, and the user may open it. */
static int begin_data(struct mux *m, uint32_t id, size_t n)
{
	struct mux_stream *s = mux_find(m, id);

	if (!s && !m->is_asked) {
		m->is_asked = true;
		return 1;
	}
	m->is_asked = false;
	if (!s)
		put_plain(m, MUX_RESET, id);
	else if (s->in_end || s->is_gone || n > s->granted)
		return -EBADMSG;
	else
		s->granted -= n;
	m->to = s;
	m->left = n;
	return 0;
}

static int on_window(struct mux_stream *s, uint32_t n)
{
	if (n == 0 || n > MUX_MAX_WINDOW - s->credit)
		return -EBADMSG;
	s->credit += n;
	if (s->wants_room && s->mux->out_n < MUX_OUT) {
		s->wants_room = false;
		note_stream(s, MUX_WRITABLE);
	} else if (s->wants_room) {
		s->mux->is_full = true;
	}
	return 0;
}

/* A complete frame other than DATA. 1: as begin_data, for a stream that was closed very early. */
static int on_control(struct mux *m, enum mux_kind kind, uint32_t id)
{
	struct mux_stream *s = mux_find(m, id);
	struct rd rd = rd_init(slice_of(m->head + MUX_HEADER, 4));

	if (!s && kind == MUX_RESET && !m->is_asked) {
		m->is_asked = true;
		return 1;
	}
	m->is_asked = false;
	m->n_head = 0;
	if (!s)
		return 0; /* closed here, before the peer knew */
	/* it may come twice: for what was sent to a stream that was closed meanwhile */
	if (s->is_gone)
		return kind == MUX_RESET ? 0 : -EBADMSG;
	switch (kind) {
	case MUX_WINDOW:
		return on_window(s, rd_u32(&rd));
	case MUX_END:
		if (s->in_end)
			return -EBADMSG;
		s->in_end = true;
		note_stream(s, MUX_READABLE);
		return 0;
	default:
		s->is_gone = true;
		note_stream(s, MUX_READABLE | MUX_WRITABLE | MUX_GONE);
		return 0;
	}
}

static bool has_length(enum mux_kind kind, size_t n)
{
	if (kind == MUX_DATA)
		return n > 0 && n <= MUX_DATA_MAX;
	return n == (kind == MUX_WINDOW ? 4 : 0);
}

/* 1 as mux_feed, -EAGAIN when the frame's head is not complete. */
static int read_head(struct mux *m, struct slice *in)
{
	size_t want = MUX_HEADER;
	enum mux_kind kind;
	uint32_t n, word;

	for (int i = 0; i < 2; i++) {
		struct slice piece = slice_take(in, want - MIN(want, m->n_head));
		struct rd rd = rd_init(slice_of(m->head, MUX_HEADER));

		if (piece.n)
			memcpy(m->head + m->n_head, piece.p, piece.n);
		m->n_head += piece.n;
		if (m->n_head < want)
			return -EAGAIN;
		n = rd_u32(&rd);
		word = rd_u32(&rd);
		kind = word & 0xff;
		if (kind < MUX_DATA || kind >= MUX_N_KINDS || word >> 8 == 0 ||
			!has_length(kind, n))
			return -EBADMSG;
		want = kind == MUX_WINDOW ? MUX_HEADER + 4 : MUX_HEADER;
	}
	return kind == MUX_DATA ? begin_data(m, word >> 8, n) : on_control(m, kind, word >> 8);
}

int mux_feed(struct mux *m, struct slice *in)
{
	int r = m->is_broken ? -EBADMSG : 0;

	while (r == 0 && (in->n || m->is_asked)) {
		if (m->left)
			read_data(m, in);
		else
			r = read_head(m, in);
	}
	m->is_broken = r == -EBADMSG;
	return r == -EAGAIN ? 0 : r;
}

uint32_t mux_unknown(const struct mux *m)
{
	struct rd rd = rd_init(slice_of(m->head + 4, 4));

	return rd_u32(&rd) >> 8;
}
