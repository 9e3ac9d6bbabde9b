/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "lib/base/mem.h"
#include "mint_internal.h"

static uint32_t hash_of(const struct mint_cache *c, struct slice name)
{
	uint64_t h = c->seed;

	for (size_t i = 0; i < name.n; i++)
		h = (h ^ name.p[i]) * 0x100000001b3ull;
	return (uint32_t)((h ^ h >> 32) * 0x9e3779b97f4a7c15ull >> 32);
}

static struct mint_entry **bucket_of(struct mint_cache *c, uint32_t hash)
{
	return &c->bucket[hash & (MINT_BUCKETS - 1)];
}

/* Off and on the list by use. */
static void unlink_use(struct mint_cache *c, struct mint_entry *e)
{
	*(e->newer ? &e->newer->older : &c->newest) = e->older;
	*(e->older ? &e->older->newer : &c->oldest) = e->newer;
}

static void link_newest(struct mint_cache *c, struct mint_entry *e)
{
	e->newer = NULL;
	e->older = c->newest;
	*(c->newest ? &c->newest->newer : &c->oldest) = e;
	c->newest = e;
}

static void drop_cache(struct mint_cache *c, struct mint_entry *e)
{
	struct mint_entry **at = bucket_of(c, e->hash);

	while (*at != e)
		at = &(*at)->next_in_bucket;
	*at = e->next_in_bucket;
	unlink_use(c, e);
	c->n--;
	free(e);
}

static struct mint_entry *look_up(struct mint_cache *c, struct slice name, uint32_t hash)
{
	struct mint_entry *e = *bucket_of(c, hash);

	while (e && (e->hash != hash || !slice_eq(slice_of(e->bytes, e->n_name), name)))
		e = e->next_in_bucket;
	return e;
}

struct mint_entry *mint_cache_find(struct mint_cache *c, struct slice name)
{
	struct mint_entry *e = look_up(c, name, hash_of(c, name));

	if (e && e != c->newest) {
		unlink_use(c, e);
		link_newest(c, e);
	}
	return e;
}

struct mint_entry *mint_cache_put(struct mint_cache *c, struct slice name, struct slice der)
{
	uint32_t hash = hash_of(c, name);
	struct mint_entry *e = look_up(c, name, hash), **bucket = bucket_of(c, hash);

	if (e)
		drop_cache(c, e);
	else if (c->n == MINT_MAX_LEAVES)
		drop_cache(c, c->oldest);
	e = xmalloc(sizeof(*e) + name.n + der.n);
	*e = (struct mint_entry){.next_in_bucket = *bucket,
		.hash = hash,
		.n_name = (uint8_t)name.n,
		.n_der = (uint16_t)der.n};
	memcpy(e->bytes, name.p, name.n);
	memcpy(e->bytes + name.n, der.p, der.n);
	*bucket = e;
	link_newest(c, e);
	c->n++;
	return e;
}

void mint_cache_done(struct mint_cache *c)
{
	while (c->oldest)
		drop_cache(c, c->oldest);
}
