/* SPDX-License-Identifier: Apache-2.0 */
#include "arena.h"

#include <stdalign.h>
#include <stdint.h>
#include "mem.h"

#define ALIGNMENT alignof(max_align_t)

void arena_init(struct arena *a, size_t size)
{
	*a = (struct arena){.size = size};
}

void arena_done(struct arena *a)
{
	free(a->block);
	*a = (struct arena){0};
}

void arena_reset(struct arena *a)
{
	a->n = a->last = 0;
	a->full = false;
}

/* Where the next piece would begin; size when there is no room for the gap. */
static size_t next_start(const struct arena *a)
{
	size_t gap = (ALIGNMENT - a->n % ALIGNMENT) % ALIGNMENT;

	return a->size - a->n < gap ? a->size : a->n + gap;
}

void *arena_alloc(struct arena *a, size_t n)
{
	size_t start = next_start(a);

	if (a->full || a->size - start < n) {
		a->full = true;
		return NULL;
	}
	if (!a->block)
		a->block = xmalloc(a->size);
	a->last = start;
	a->n = start + n;
	return a->block + start;
}

void *arena_calloc(struct arena *a, size_t n, size_t size)
{
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		a->full = true;
		return NULL;
	}
	p = arena_alloc(a, bytes);
	if (p)
		memset(p, 0, bytes);
	return p;
}

bool arena_extend(struct arena *a, const void *p, size_t n)
{
	if (a->full || !a->block || p != a->block + a->last)
		return false;
	if (a->size - a->last < n) {
		a->full = true;
		return false;
	}
	a->n = a->last + n;
	return true;
}

struct slice arena_dup(struct arena *a, struct slice s)
{
	void *p = arena_alloc(a, s.n);

	if (!p)
		return (struct slice){0};
	if (s.n)
		memcpy(p, s.p, s.n);
	return slice_of(p, s.n);
}
