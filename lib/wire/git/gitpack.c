/* SPDX-License-Identifier: Apache-2.0 */
#include "gitpack_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/random.h>
#include "lib/base/hash/sha1.h"
#include "lib/base/hash/siphash.h"
#include "lib/base/mem.h"

#define HEAD_BYTES 12
#define TRAILER_BYTES SHA1_BYTES
#define MIN_ENTRY 9 /* a header, and the shortest stream of zlib */
/* Deltas that name their base may come before it. Each pass resolves all that can be. */
#define MAX_PASSES 64

struct gitpack *gitpack_new(const struct gitpack_limits *limits)
{
	struct gitpack *p = xcalloc(1, sizeof(*p));

	assert(limits->bytes <= GITPACK_MAX_BYTES);
	p->limits = *limits;
	return p;
}

void gitpack_free(struct gitpack **pp)
{
	struct gitpack *p = *pp;

	if (!p)
		return;
	gitpack_uncache(p);
	if (p->has_z)
		(void)inflateEnd(&p->z);
	free(p->bytes);
	free(p->entry);
	free(p->bucket);
	free(p);
	*pp = NULL;
}

int gitpack_put(struct gitpack *p, struct slice bytes, struct err *err)
{
	if (bytes.n == 0)
		return 0;
	if (bytes.n > p->limits.bytes - p->n_bytes)
		return err_set(err, -E2BIG, "the pack is larger than %u bytes", p->limits.bytes);
	if (p->n_bytes + bytes.n > p->size) {
		p->size = MAX(p->n_bytes + bytes.n, MIN(2 * p->size, p->limits.bytes));
		p->size = MAX(p->size, MIN(65536u, p->limits.bytes));
		p->bytes = xrealloc(p->bytes, p->size);
	}
	memcpy(p->bytes + p->n_bytes, bytes.p, bytes.n);
	p->n_bytes += bytes.n;
	return 0;
}

struct slice gitpack_bytes(const struct gitpack *p)
{
	return slice_of(p->bytes, p->n_bytes + p->n_trailer);
}

/* ---- the table ---- */

static uint32_t bucket_of(const struct gitpack *p, const struct git_oid *oid)
{
	return (uint32_t)siphash(p->key, slice_of(oid->b, GITOID_BYTES)) & p->mask;
}

static void make_table(struct gitpack *p, uint32_t n)
{
	uint32_t n_buckets = 16;

	while (n_buckets < n)
		n_buckets *= 2;
	p->mask = n_buckets - 1;
	p->bucket = xcalloc(n_buckets, sizeof(*p->bucket));
	p->entry = xcalloc(n + 1, sizeof(*p->entry));
	if (getrandom(p->key, sizeof(p->key), 0) != sizeof(p->key))
		abort();
}

int64_t gitpack_find(const struct gitpack *p, const struct git_oid *oid)
{
	uint32_t next = p->bucket ? p->bucket[bucket_of(p, oid)] : 0;

	while (next > 0 && !gitoid_eq(&p->entry[next - 1].oid, oid))
		next = p->entry[next - 1].next;
	return (int64_t)next - 1;
}

/* The object is known now: its type, its size and its name. */
static int add_object(struct gitpack *p, uint32_t i, enum gitobject_type type, uint32_t whole,
	struct sha1 *hash, struct err *err)
{
	struct gitpack_entry *e = &p->entry[i];
	uint32_t *bucket;

	sha1_end(hash, e->oid.b);
	if (gitpack_find(p, &e->oid) >= 0)
		return err_set(err, -EBADMSG, "the pack has an object twice");
	e->type = (uint8_t)type;
	e->whole = whole;
	bucket = &p->bucket[bucket_of(p, &e->oid)];
	e->next = *bucket;
	*bucket = i + 1;
	return 0;
}

static void begin_name(struct sha1 *hash, enum gitobject_type type, uint32_t size)
{
	static const char *const names[] = {"", "commit", "tree", "blob", "tag"};
	char head[32];
	int n = snprintf(head, sizeof(head), "%s %u", names[type], size);

	sha1_init(hash);
	sha1_add(hash, slice_of(head, (size_t)n + 1));
}

/* ---- entries ---- */

/* The type in three bits, the size in 4 and then 7 bits a byte. */
static int read_head(struct rd *rd, struct gitpack_entry *e)
{
	uint8_t c = rd_u8(rd);
	uint64_t size = c & 15;

	e->kind = (c >> 4) & 7;
	for (unsigned shift = 4; c & 0x80; shift += 7) {
		if (shift > 32)
			return -EBADMSG;
		c = rd_u8(rd);
		size |= (uint64_t)(c & 0x7f) << shift;
	}
	e->size = (uint32_t)size;
	return rd->bad || e->kind == 0 || e->kind == 5 ? -EBADMSG : size > UINT32_MAX ? -E2BIG : 0;
}

/* How far the base is in front of the entry: 7 bits a byte, each but the last with 1 added. */
static uint64_t read_distance(struct rd *rd)
{
	uint8_t c = rd_u8(rd);
	uint64_t v = c & 0x7f;

	while (c & 0x80 && !rd->bad && v < UINT32_MAX) {
		c = rd_u8(rd);
		v = ((v + 1) << 7) | (c & 0x7f);
	}
	return v;
}

static int find_base(struct gitpack *p, uint32_t i, uint64_t distance)
{
	struct gitpack_entry *e = &p->entry[i];
	uint32_t low = 0, high = i;

	if (distance == 0 || distance > e->at)
		return -EBADMSG;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (p->entry[middle].at < e->at - distance)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == i || p->entry[low].at != e->at - distance)
		return -EBADMSG;
	e->base = low;
	e->has_base = true;
	return 0;
}

static int read_base(struct gitpack *p, uint32_t i, struct rd *rd)
{
	struct gitpack_entry *e = &p->entry[i];
	struct slice name;

	if (e->kind == GITPACK_OFS_DELTA)
		return find_base(p, i, read_distance(rd));
	if (e->kind != GITPACK_REF_DELTA)
		return 0;
	/* until the object is known, this is the name of its base */
	name = rd_bytes(rd, GITOID_BYTES);
	if (rd->bad)
		return -EBADMSG;
	memcpy(e->oid.b, name.p, GITOID_BYTES);
	return 0;
}

static int read_entry(struct gitpack *p, uint32_t i, uint32_t *at, struct err *err)
{
	struct gitpack_entry *e = &p->entry[i];
	struct rd rd = rd_init(slice_of(p->bytes + *at, p->n_bytes - *at));
	bool is_delta;
	struct sha1 hash;
	int r = read_head(&rd, e);

	e->at = *at;
	e->slot = GITPACK_NO_SLOT;
	if (r == 0)
		r = read_base(p, i, &rd);
	if (r < 0 || rd.bad)
		return err_set(err, r < 0 ? r : -EBADMSG, "an entry of the pack is malformed");
	e->data = (uint32_t)(p->n_bytes - rd.n);
	is_delta = e->kind >= GITPACK_OFS_DELTA;
	if (!is_delta)
		begin_name(&hash, e->kind, e->size);
	r = gitpack_inflate(p, e->data, e->size, NULL, is_delta ? NULL : &hash, at, err);
	if (r < 0 || is_delta)
		return r;
	return add_object(p, i, e->kind, e->size, &hash, err);
}

/* ---- deltas ---- */

/* 1: resolved; 0: its base is not known yet. */
static int resolve_entry(struct gitpack *p, uint32_t i, struct err *err)
{
	struct gitpack_entry *e = &p->entry[i];
	struct gitpack_buf content;
	struct sha1 hash;
	int r;

	if (!e->has_base) {
		int64_t base = gitpack_find(p, &e->oid);

		e->has_base = base >= 0;
		e->base = (uint32_t)MAX(base, 0);
	}
	if (!e->has_base || p->entry[e->base].type == GITOBJECT_NONE)
		return 0;
	r = gitpack_unpack(p, i, &content, err);
	if (r < 0)
		return r;
	begin_name(&hash, p->entry[e->base].type, content.n);
	sha1_add(&hash, slice_of(content.p, content.n));
	r = add_object(p, i, p->entry[e->base].type, content.n, &hash, err);
	gitpack_cache(p, i, content);
	return r < 0 ? r : 1;
}

static int resolve_all(struct gitpack *p, struct err *err)
{
	for (unsigned pass = 0; pass < MAX_PASSES; pass++) {
		uint32_t n_left = 0, n_resolved = 0;

		for (uint32_t i = 0; i < p->n_entries; i++) {
			int r;

			if (p->entry[i].type != GITOBJECT_NONE)
				continue;
			r = resolve_entry(p, i, err);
			if (r < 0)
				return r;
			n_left += r == 0;
			n_resolved += r == 1;
		}
		if (n_left == 0)
			return 0;
		if (n_resolved == 0)
			break;
	}
	return err_set(
		err, -EBADMSG, "the pack refers to objects that are not in it (a thin pack)");
}

static int check_trailer(struct gitpack *p, struct err *err)
{
	uint8_t name[SHA1_BYTES];
	struct sha1 hash;

	p->n_bytes -= TRAILER_BYTES;
	p->n_trailer = TRAILER_BYTES;
	sha1_init(&hash);
	sha1_add(&hash, slice_of(p->bytes, p->n_bytes));
	sha1_end(&hash, name);
	if (memcmp(name, p->bytes + p->n_bytes, SHA1_BYTES) != 0)
		return err_set(err, -EBADMSG, "the checksum of the pack is wrong");
	return 0;
}

static uint32_t read_be32(const uint8_t *b)
{
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static int check_head(struct gitpack *p, uint32_t *ret_n, struct err *err)
{
	if (p->n_bytes < HEAD_BYTES + TRAILER_BYTES || memcmp(p->bytes, "PACK", 4) != 0)
		return err_set(err, -EBADMSG, "the push has no complete pack");
	if (read_be32(p->bytes + 4) != 2)
		return err_set(err, -EBADMSG, "the version of the pack is unknown");
	*ret_n = read_be32(p->bytes + 8);
	if (*ret_n > p->limits.objects)
		return err_set(err, -E2BIG, "the pack has more than %u objects", p->limits.objects);
	if (*ret_n > p->n_bytes / MIN_ENTRY)
		return err_set(err, -EBADMSG, "the pack has fewer objects than declared");
	return check_trailer(p, err);
}

int gitpack_index(struct gitpack *p, struct err *err)
{
	uint32_t n = 0, at = HEAD_BYTES;
	int r = check_head(p, &n, err);

	if (r < 0)
		return r;
	make_table(p, n);
	while (p->n_entries < n) {
		r = read_entry(p, p->n_entries, &at, err);
		if (r < 0)
			return r;
		p->n_entries++;
	}
	if (at != p->n_bytes)
		return err_set(err, -EBADMSG, "the pack has bytes after its last object");
	return resolve_all(p, err);
}

/* ---- questions ---- */

uint32_t gitpack_count(const struct gitpack *p)
{
	return p->n_entries;
}

enum gitobject_type gitpack_type(const struct gitpack *p, uint32_t i)
{
	return p->entry[i].type;
}

uint32_t gitpack_size(const struct gitpack *p, uint32_t i)
{
	return p->entry[i].whole;
}

int gitpack_load(struct gitpack *p, uint32_t i, uint8_t **ret, struct err *err)
{
	struct gitpack_buf content;
	int r = gitpack_unpack(p, i, &content, err);

	if (r == 0)
		*ret = content.p;
	return r;
}
