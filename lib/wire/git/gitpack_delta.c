/* SPDX-License-Identifier: Apache-2.0 */
#include "gitpack_internal.h"

#include <errno.h>
#include "lib/base/hash/sha1.h"
#include "lib/base/mem.h"

/* ---- bytes of one entry ---- */

static int add_work(struct gitpack *p, uint64_t n, struct err *err)
{
	p->work += n;
	if (p->work > p->limits.work)
		return err_set(err, -E2BIG, "the pack unpacks to too much");
	return 0;
}

static int start_inflate(struct gitpack *p, uint32_t at)
{
	int r = p->has_z ? inflateReset(&p->z) : inflateInit(&p->z);

	p->has_z = true;
	p->z.next_in = p->bytes + at;
	p->z.avail_in = (uInt)(p->n_bytes - at);
	return r == Z_OK ? 0 : -EBADMSG;
}

int gitpack_inflate(struct gitpack *p, uint32_t at, uint32_t size, uint8_t *dest, void *hash,
	uint32_t *ret_end, struct err *err)
{
	UNINITIALIZED uint8_t window[32768];
	uint32_t total = 0;
	int z = start_inflate(p, at) == 0 ? Z_OK : Z_DATA_ERROR;

	while (z == Z_OK) {
		bool to_window = !dest || total == size;
		uInt room = to_window ? sizeof(window) : size - total;
		uInt before = p->z.avail_in, n;

		p->z.next_out = to_window ? window : dest + total;
		p->z.avail_out = room;
		z = inflate(&p->z, Z_NO_FLUSH);
		n = room - p->z.avail_out;
		if (n > size - total)
			return err_set(err, -EBADMSG, "an object is larger than declared");
		if (hash)
			sha1_add(hash, slice_of(to_window ? window : dest + total, n));
		total += n;
		if (add_work(p, n + (before - p->z.avail_in), err) < 0)
			return -E2BIG;
	}
	if (z != Z_STREAM_END || total != size)
		return err_set(err, -EBADMSG, "an object of the pack cannot be unpacked");
	*ret_end = (uint32_t)(p->n_bytes - p->z.avail_in);
	return 0;
}

/* ---- deltas ---- */

static uint64_t read_size(struct rd *rd)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 63; shift += 7) {
		uint8_t c = rd_u8(rd);

		v |= (uint64_t)(c & 0x7f) << shift;
		if (!(c & 0x80))
			return v;
	}
	rd->bad = true;
	return 0;
}

/* The bytes of a number that has the bits of `which` set. */
static uint32_t read_parts(struct rd *rd, uint8_t which, unsigned n)
{
	uint32_t v = 0;

	for (unsigned i = 0; i < n; i++)
		if (which & (1u << i))
			v |= (uint32_t)rd_u8(rd) << (8 * i);
	return v;
}

static void copy_base(struct rd *rd, uint8_t op, struct slice base, struct wr *wr)
{
	uint32_t at = read_parts(rd, op & 0xf, 4), n = read_parts(rd, (op >> 4) & 7, 3);

	if (n == 0)
		n = 0x10000;
	if (at > base.n || n > base.n - at)
		wr->bad = true;
	else
		wr_bytes(wr, slice_of(base.p + at, n));
}

/* The result is on the heap. */
static int apply_delta(struct slice base, struct slice delta, struct gitpack_buf *ret)
{
	struct rd rd = rd_init(delta);
	uint64_t n_base = read_size(&rd), n = read_size(&rd);
	AUTO_FREE uint8_t *out = NULL;
	struct wr wr;

	if (rd.bad || n_base != base.n || n > GITPACK_MAX_LOAD)
		return n > GITPACK_MAX_LOAD && !rd.bad ? -E2BIG : -EBADMSG;
	out = xmalloc(n + 1);
	wr = wr_init(out, n);
	while (rd.n > 0 && !rd.bad && !wr.bad) {
		uint8_t op = rd_u8(&rd);

		if (op & 0x80)
			copy_base(&rd, op, base, &wr);
		else if (op > 0)
			wr_bytes(&wr, rd_bytes(&rd, op));
		else
			wr.bad = true;
	}
	if (rd.bad || wr.bad || wr.n != n)
		return -EBADMSG;
	*ret = (struct gitpack_buf){.p = TAKE(out), .n = (uint32_t)n};
	return 0;
}

/* ---- the cache ---- */

/* A content that the cache owns, or NULL. */
static const uint8_t *find_cached(struct gitpack *p, uint32_t i)
{
	uint16_t slot = p->entry[i].slot;

	if (slot == GITPACK_NO_SLOT)
		return NULL;
	p->cache[slot].used = ++p->clock;
	return p->cache[slot].p;
}

static void drop_slot(struct gitpack *p, unsigned slot)
{
	if (!p->cache[slot].p)
		return;
	p->entry[p->cache[slot].entry].slot = GITPACK_NO_SLOT;
	p->n_cached -= p->cache[slot].n;
	free(TAKE(p->cache[slot].p));
	p->cache[slot].used = 0;
}

static unsigned oldest_slot(const struct gitpack *p, bool only_used)
{
	unsigned best = GITPACK_NO_SLOT;

	for (unsigned i = 0; i < GITPACK_CACHE_SLOTS; i++)
		if ((p->cache[i].p || !only_used) &&
			(best == GITPACK_NO_SLOT || p->cache[i].used < p->cache[best].used))
			best = i;
	return best;
}

void gitpack_cache(struct gitpack *p, uint32_t i, struct gitpack_buf bytes)
{
	unsigned slot;

	if (bytes.n > GITPACK_CACHE_BYTES / 4 || p->entry[i].slot != GITPACK_NO_SLOT) {
		free(bytes.p);
		return;
	}
	while (p->n_cached + bytes.n > GITPACK_CACHE_BYTES)
		drop_slot(p, oldest_slot(p, true));
	slot = oldest_slot(p, false);
	drop_slot(p, slot);
	p->cache[slot].p = bytes.p;
	p->cache[slot].n = bytes.n;
	p->cache[slot].entry = i;
	p->cache[slot].used = ++p->clock;
	p->entry[i].slot = (uint16_t)slot;
	p->n_cached += bytes.n;
}

void gitpack_uncache(struct gitpack *p)
{
	for (unsigned i = 0; i < GITPACK_CACHE_SLOTS; i++)
		drop_slot(p, i);
}

/* ---- contents ---- */

static int inflate_entry(struct gitpack *p, uint32_t i, struct gitpack_buf *ret, struct err *err)
{
	uint32_t n = p->entry[i].size, end;
	AUTO_FREE uint8_t *out = NULL;
	int r;

	if (n > GITPACK_MAX_LOAD)
		return err_set(err, -E2BIG, "an object of the pack is too large to be read");
	out = xmalloc((size_t)n + 1);
	r = gitpack_inflate(p, p->entry[i].data, n, out, NULL, &end, err);
	if (r < 0)
		return r;
	*ret = (struct gitpack_buf){.p = TAKE(out), .n = n};
	return 0;
}

static int apply_entry(
	struct gitpack *p, uint32_t i, struct slice base, struct gitpack_buf *ret, struct err *err)
{
	struct gitpack_buf delta = {0};
	int r = inflate_entry(p, i, &delta, err);

	if (r < 0)
		return r;
	r = apply_delta(base, slice_of(delta.p, delta.n), ret);
	free(delta.p);
	if (r < 0)
		return err_set(err, r, "a delta of the pack is malformed");
	return add_work(p, ret->n, err);
}

static struct gitpack_buf copy_cached(struct gitpack *p, uint32_t i)
{
	struct gitpack_buf copy = {.n = p->entry[i].whole};

	copy.p = xmalloc((size_t)copy.n + 1);
	memcpy(copy.p, find_cached(p, i), copy.n);
	p->work += copy.n;
	return copy;
}

/* From the entry up to one that is in the cache or is no delta: its last is *ret_n - 1. */
static int find_chain(
	struct gitpack *p, uint32_t i, uint32_t *chain, unsigned *ret_n, struct err *err)
{
	unsigned n = 0;

	for (;;) {
		if (n > GITPACK_MAX_CHAIN)
			return err_set(err, -EBADMSG, "a chain of deltas is too long");
		chain[n++] = i;
		if (find_cached(p, i) || p->entry[i].kind < GITPACK_OFS_DELTA)
			break;
		i = p->entry[i].base;
	}
	*ret_n = n;
	return 0;
}

/* Applies the deltas of a chain, the last but one first, and keeps what is between in the cache. */
static int apply_chain(struct gitpack *p, const uint32_t *chain, unsigned n,
	struct gitpack_buf *now, struct err *err)
{
	int r = 0;

	for (unsigned k = n - 1; r == 0 && k-- > 0;) {
		const uint8_t *cached = now->p ? NULL : find_cached(p, chain[k + 1]);
		struct slice base = cached ? slice_of(cached, p->entry[chain[k + 1]].whole)
					   : slice_of(now->p, now->n);
		struct gitpack_buf next = {0};

		r = apply_entry(p, chain[k], base, &next, err);
		if (!cached)
			gitpack_cache(p, chain[k + 1], *now);
		*now = next;
	}
	return r;
}

int gitpack_unpack(struct gitpack *p, uint32_t i, struct gitpack_buf *ret, struct err *err)
{
	UNINITIALIZED uint32_t chain[GITPACK_MAX_CHAIN + 1];
	struct gitpack_buf now = {0};
	unsigned n = 0;
	int r = find_chain(p, i, chain, &n, err);

	if (r < 0)
		return r;
	if (!find_cached(p, chain[n - 1]))
		r = inflate_entry(p, chain[n - 1], &now, err);
	else if (n == 1)
		now = copy_cached(p, i);
	if (r == 0)
		r = apply_chain(p, chain, n, &now, err);
	if (r < 0)
		free(now.p);
	else
		*ret = now;
	return r;
}
