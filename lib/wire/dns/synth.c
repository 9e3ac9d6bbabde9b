/* SPDX-License-Identifier: Apache-2.0 */
#include "synth_internal.h"

#include <errno.h>
#include "lib/base/hash/siphash.h"
#include "lib/base/mem.h"

#define NONE 0 /* slot 0 is never used, so that fresh memory is an empty table */
/* What malloc adds to a name, so that the budget is one of memory. */
#define NAME_OVERHEAD 24

struct synth *synth_new(const uint8_t seed[SYNTH_SEED])
{
	static const uint8_t label[] = "start";
	struct synth *s = xcalloc(1, sizeof(*s));

	memcpy(s->seed, seed, SYNTH_SEED);
	s->start = (uint32_t)(siphash(seed, slice_of(label, sizeof(label))) % SYNTH_N_ADDRS);
	s->n_fresh = SYNTH_N_ADDRS;
	return s;
}

/* calloc takes such sizes from the kernel, which gives pages as they are touched. */
static void make_table(struct synth *s)
{
	if (s->slots)
		return;
	s->slots = xcalloc(SYNTH_FIRST + SYNTH_N_ADDRS, sizeof(*s->slots));
	s->buckets = xcalloc(SYNTH_N_BUCKETS, sizeof(*s->buckets));
}

static void list_append(struct synth *s, struct list *l, uint32_t i)
{
	s->slots[i].prev = l->last;
	s->slots[i].next = NONE;
	if (l->last != NONE)
		s->slots[l->last].next = i;
	else
		l->first = i;
	l->last = i;
}

static void list_remove(struct synth *s, struct list *l, uint32_t i)
{
	struct slot *slot = &s->slots[i];

	if (slot->prev != NONE)
		s->slots[slot->prev].next = slot->next;
	else
		l->first = slot->next;
	if (slot->next != NONE)
		s->slots[slot->next].prev = slot->prev;
	else
		l->last = slot->prev;
}

static void touch_synth(struct synth *s, uint32_t i)
{
	if (s->slots[i].holds > 0)
		return;
	list_remove(s, &s->recent, i);
	list_append(s, &s->recent, i);
}

static uint32_t *bucket_of(const struct synth *s, uint32_t hash)
{
	return &s->buckets[hash % SYNTH_N_BUCKETS];
}

static uint32_t hash_of(const struct synth *s, struct slice name)
{
	return (uint32_t)siphash(s->seed, name);
}

static uint32_t find_synth(const struct synth *s, struct slice name, uint32_t hash)
{
	uint32_t i;

	if (!s->slots)
		return NONE;
	for (i = *bucket_of(s, hash); i != NONE; i = s->slots[i].chain) {
		const struct slot *slot = &s->slots[i];

		if (slot->hash == hash && slice_eq(slice_of(slot->name, slot->n), name))
			return i;
	}
	return NONE;
}

static void unchain_synth(struct synth *s, uint32_t i)
{
	uint32_t *at = bucket_of(s, s->slots[i].hash);

	while (*at != i)
		at = &s->slots[*at].chain;
	*at = s->slots[i].chain;
}

static void evict_synth(struct synth *s, uint32_t i, uint64_t now_ms)
{
	struct slot *slot = &s->slots[i];

	unchain_synth(s, i);
	list_remove(s, &s->recent, i);
	s->n_bytes -= slot->n + NAME_OVERHEAD;
	s->n_names--;
	free(slot->name);
	slot->name = NULL;
	slot->n = 0;
	slot->rested_s = (uint32_t)((now_ms + SYNTH_REST_MS + 999) / 1000);
	list_append(s, &s->resting, i);
}

/* Addresses never used come first, in a circle from the seed's start; then the longest rested. */
static uint32_t next_address(const struct synth *s, uint64_t now_ms)
{
	uint32_t i = s->resting.first;

	if (s->n_fresh > 0)
		return SYNTH_FIRST + (s->start + SYNTH_N_ADDRS - s->n_fresh) % SYNTH_N_ADDRS;
	return i != NONE && s->slots[i].rested_s <= now_ms / 1000 ? i : NONE;
}

static void take_address(struct synth *s, uint32_t i)
{
	if (s->n_fresh > 0)
		s->n_fresh--;
	else
		list_remove(s, &s->resting, i);
}

static bool is_full(const struct synth *s, size_t more)
{
	return s->n_names >= SYNTH_MAX_NAMES || s->n_bytes + more > SYNTH_MAX_BYTES;
}

/* Without an address for the new name no old one is given up. */
static int make_room(struct synth *s, size_t more, uint64_t now_ms, uint32_t *ret)
{
	uint32_t i = next_address(s, now_ms);

	if (i == NONE)
		return -EBUSY;
	while (is_full(s, more)) {
		if (s->recent.first == NONE)
			return -EBUSY;
		evict_synth(s, s->recent.first, now_ms);
	}
	take_address(s, i);
	*ret = i;
	return 0;
}

static int add_synth(
	struct synth *s, struct slice name, uint32_t hash, uint64_t now_ms, uint32_t *ret)
{
	size_t more = name.n + NAME_OVERHEAD;
	uint32_t *bucket = bucket_of(s, hash);
	struct slot *slot;
	int r = make_room(s, more, now_ms, ret);

	if (r < 0)
		return r;
	slot = &s->slots[*ret];
	*slot = (struct slot){
		.name = xmalloc(name.n), .n = (uint8_t)name.n, .hash = hash, .chain = *bucket};
	memcpy(slot->name, name.p, name.n);
	*bucket = *ret;
	list_append(s, &s->recent, *ret);
	s->n_bytes += more;
	s->n_names++;
	return 0;
}

static void describe_synth(uint32_t i, struct synth_addr *ret)
{
	*ret = (struct synth_addr){.id = i,
		.v4 = {198, (uint8_t)(18 + (i >> 16)), (uint8_t)(i >> 8), (uint8_t)i},
		.v6 = SYNTH_V6_PREFIX};
	ret->v6[13] = (uint8_t)(i >> 16);
	ret->v6[14] = (uint8_t)(i >> 8);
	ret->v6[15] = (uint8_t)i;
}

int synth_assign(struct synth *s, struct slice name, uint64_t now_ms, struct synth_addr *ret)
{
	uint32_t hash, i;
	int r;

	if (name.n == 0 || name.n > SYNTH_MAX_NAME)
		return -EINVAL;
	make_table(s);
	hash = hash_of(s, name);
	i = find_synth(s, name, hash);
	if (i != NONE) {
		touch_synth(s, i);
	} else {
		r = add_synth(s, name, hash, now_ms, &i);
		if (r < 0)
			return r;
	}
	describe_synth(i, ret);
	return 0;
}

static bool is_live(const struct synth *s, uint32_t i)
{
	return s->slots && i >= SYNTH_FIRST && i < SYNTH_FIRST + SYNTH_N_ADDRS && s->slots[i].n > 0;
}

static uint32_t number_of(struct slice addr)
{
	struct synth_addr a;
	uint32_t i;

	if (addr.n != 4 && addr.n != 16)
		return NONE;
	i = addr.n == 4 ? (uint32_t)(addr.p[1] & 1) : addr.p[13];
	i = i << 16 | (uint32_t)addr.p[addr.n - 2] << 8 | addr.p[addr.n - 1];
	/* The way back shows whether the other bytes are ours too. */
	describe_synth(i, &a);
	return slice_eq(addr, slice_of(addr.n == 4 ? a.v4 : a.v6, addr.n)) ? i : NONE;
}

int synth_find_addr(struct synth *s, struct slice addr, uint32_t *ret_id, struct slice *ret_name)
{
	uint32_t i = number_of(addr);

	if (!is_live(s, i))
		return -ENOENT;
	touch_synth(s, i);
	*ret_id = i;
	*ret_name = slice_of(s->slots[i].name, s->slots[i].n);
	return 0;
}

int synth_hold(struct synth *s, uint32_t id)
{
	if (!is_live(s, id))
		return -ENOENT;
	if (s->slots[id].holds++ == 0)
		list_remove(s, &s->recent, id);
	return 0;
}

void synth_release(struct synth *s, uint32_t id)
{
	assert(is_live(s, id) && s->slots[id].holds > 0);
	if (--s->slots[id].holds == 0)
		list_append(s, &s->recent, id);
}
