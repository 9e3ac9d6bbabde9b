/* SPDX-License-Identifier: Apache-2.0 */
#include "exec_ring.h"

#include <assert.h>
#include <string.h>
#include "lib/base/mem.h"

void exec_ring_init(struct exec_ring *r, size_t size)
{
	*r = (struct exec_ring){.size = size};
}

void exec_ring_done(struct exec_ring *r)
{
	free(r->buf);
	r->buf = NULL;
	r->base = r->end;
}

/* Returns the contiguous bytes at an offset. */
static struct slice piece_ring(const struct exec_ring *r, uint64_t at, size_t n)
{
	size_t i = (size_t)(at % r->size);

	return slice_of(r->buf + i, MIN(n, r->size - i));
}

static uint8_t byte_at(const struct exec_ring *r, uint64_t at)
{
	return r->buf[at % r->size];
}

/* Size of the frame that begins there, with its header. */
static size_t frame_size(const struct exec_ring *r, uint64_t at)
{
	return EXEC_HEADER + ((size_t)byte_at(r, at + 1) | (size_t)byte_at(r, at + 2) << 8 |
				     (size_t)byte_at(r, at + 3) << 16);
}

static void write_at(struct exec_ring *r, uint64_t at, struct slice s)
{
	size_t i = (size_t)(at % r->size), n = MIN(s.n, r->size - i);

	memcpy(r->buf + i, s.p, n);
	if (s.n > n)
		memcpy(r->buf, s.p + n, s.n - n);
}

size_t exec_ring_room(const struct exec_ring *r, uint64_t keep)
{
	uint64_t from = MAX(keep, r->base);
	size_t used = (size_t)(r->end - MIN(from, r->end)), room = r->size - used;

	return room <= EXEC_HEADER ? 0 : MIN(room - EXEC_HEADER, (size_t)EXEC_RING_FRAME);
}

static void follow_ring(
	const struct exec_ring *r, uint64_t at, uint64_t end, struct screen *screen, struct bufq *q)
{
	while (at < end) {
		struct slice s = piece_ring(r, at, (size_t)(end - at));

		screen_replay(screen, s, q);
		at += s.n;
	}
}

static void drop_first(struct exec_ring *r, struct screen *screen)
{
	size_t n = frame_size(r, r->base);

	if (screen)
		follow_ring(r, r->base + EXEC_HEADER, r->base + n, screen, NULL);
	r->base += n;
}

void exec_ring_put(struct exec_ring *r, enum exec_type type, struct slice data, uint64_t keep,
	struct screen *screen)
{
	uint8_t head[EXEC_HEADER];

	assert(data.n > 0 && data.n <= exec_ring_room(r, keep));
	if (!r->buf)
		r->buf = xmalloc(r->size);
	while (exec_ring_len(r) + EXEC_HEADER + data.n > r->size)
		drop_first(r, screen);
	exec_head(head, type, data.n);
	write_at(r, r->end, slice_of(head, sizeof(head)));
	write_at(r, r->end + sizeof(head), data);
	r->end += sizeof(head) + data.n;
}

void exec_ring_drop(struct exec_ring *r, uint64_t at)
{
	r->base = MIN(MAX(at, r->base), r->end);
	if (r->base == r->end)
		exec_ring_done(r);
}

uint64_t exec_ring_copy(const struct exec_ring *r, uint64_t at, struct bufq *q, size_t most)
{
	size_t n;

	while (at < r->end && (n = frame_size(r, at)) <= most) {
		uint64_t end = at + n;

		while (at < end) {
			struct slice s = piece_ring(r, at, (size_t)(end - at));

			(void)bufq_put(q, s);
			at += s.n;
		}
		most -= n;
	}
	return at;
}

void exec_ring_data(const struct exec_ring *r, uint64_t at, struct bufq *q)
{
	for (uint64_t frame = r->base; frame < r->end;) {
		uint64_t end = frame + frame_size(r, frame), i = frame + EXEC_HEADER;

		while (frame >= at && i < end) {
			struct slice s = piece_ring(r, i, (size_t)(end - i));

			(void)bufq_put(q, s);
			i += s.n;
		}
		frame = end;
	}
}

void exec_ring_replay(const struct exec_ring *r, struct screen *screen, struct bufq *q)
{
	for (uint64_t at = r->base; at < r->end;) {
		size_t n = frame_size(r, at);

		follow_ring(r, at + EXEC_HEADER, at + n, screen, q);
		at += n;
	}
}
