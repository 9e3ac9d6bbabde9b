/* SPDX-License-Identifier: Apache-2.0 */
#include "jks.h"

#include <errno.h>
#include <stdio.h>
#include "pem.h"
#include "lib/base/hash/sha1.h"
#include "lib/base/mem.h"

#define MAGIC 0xfeedfeed
#define VERSION 2
#define TRUSTED 2
#define SALT "Mighty Aphrodite"
#define HEAD_BYTES 12
#define TYPE "X.509"

/* This format is big-endian, struct wr is not. */
static void put_be(struct wr *wr, uint64_t v, unsigned n)
{
	while (n-- > 0)
		wr_u8(wr, (uint8_t)(v >> (8 * n)));
}

static uint64_t get_be(struct rd *rd, unsigned n)
{
	uint64_t v = 0;

	while (n-- > 0)
		v = v << 8 | rd_u8(rd);
	return v;
}

static void put_utf(struct wr *wr, const char *s)
{
	put_be(wr, strlen(s), 2);
	wr_bytes(wr, slice_from_str(s));
}

static void put_entry(struct wr *wr, const char *alias, struct slice der)
{
	put_be(wr, TRUSTED, 4);
	put_utf(wr, alias);
	put_be(wr, 0, 8); /* creation time */
	put_utf(wr, TYPE);
	put_be(wr, der.n, 4);
	wr_bytes(wr, der);
}

static void sum_up(struct slice bytes, uint8_t ret[SHA1_BYTES])
{
	struct sha1 s;

	sha1_init(&s);
	for (const char *p = JKS_PASSWORD; *p; p++)
		sha1_add(&s, slice_of((const char[]){0, *p}, 2));
	sha1_add(&s, slice_from_str(SALT));
	sha1_add(&s, bytes);
	sha1_end(&s, ret);
}

static int finish_jks(struct wr *wr, uint32_t n_entries)
{
	struct wr head = wr_init(wr->p, HEAD_BYTES);
	uint8_t sum[SHA1_BYTES];

	put_be(&head, MAGIC, 4);
	put_be(&head, VERSION, 4);
	put_be(&head, n_entries, 4);
	sum_up(slice_of(wr->p, wr->n), sum);
	wr_bytes(wr, slice_of(sum, sizeof(sum)));
	return wr_finish(wr);
}

static struct wr begin_jks(uint8_t *buf)
{
	static const uint8_t head[HEAD_BYTES];
	struct wr wr = wr_init(buf, JKS_MAX_BYTES);

	wr_bytes(&wr, slice_of(head, sizeof(head)));
	return wr;
}

int jks_from_pem(const char *bundle, uint8_t **ret, size_t *ret_n)
{
	AUTO_FREE uint8_t *buf = xmalloc(JKS_MAX_BYTES);
	struct wr wr = begin_jks(buf);
	uint32_t count = 0;
	int r;

	for (;;) {
		size_t n;
		AUTO_FREE uint8_t *der = pem_next(&bundle, &n);
		char alias[32];

		if (!der)
			break;
		snprintf(alias, sizeof(alias), "sbx-%u", count++);
		put_entry(&wr, alias, slice_of(der, n));
	}
	r = finish_jks(&wr, count);
	if (r < 0)
		return r;
	*ret_n = wr.n;
	*ret = TAKE(buf);
	return 0;
}

struct entry {
	struct slice alias, all;
};

static struct entry get_entry(struct rd *rd)
{
	struct rd from = *rd;
	struct entry e = {0};

	if (get_be(rd, 4) != TRUSTED)
		rd->bad = true;
	e.alias = rd_bytes(rd, get_be(rd, 2));
	(void)get_be(rd, 8);
	(void)rd_bytes(rd, get_be(rd, 2));
	(void)rd_bytes(rd, get_be(rd, 4));
	if (!rd->bad)
		e.all = slice_of(from.p, from.n - rd->n);
	return e;
}

static bool has_sum(struct slice store)
{
	uint8_t sum[SHA1_BYTES];

	if (store.n < HEAD_BYTES + SHA1_BYTES)
		return false;
	sum_up(slice_of(store.p, store.n - SHA1_BYTES), sum);
	return !memcmp(sum, store.p + store.n - SHA1_BYTES, SHA1_BYTES);
}

/* Copies all entries except the one of that name; returns their number. */
static uint32_t copy_others(struct wr *wr, struct rd *rd, const char *alias)
{
	uint32_t left = (uint32_t)get_be(rd, 4), count = 0;

	for (; left > 0 && !rd->bad; left--) {
		struct entry e = get_entry(rd);

		if (slice_eq_str(e.alias, alias))
			continue;
		wr_bytes(wr, e.all);
		count++;
	}
	return count;
}

int jks_put(struct slice store, const char *alias, struct slice der, uint8_t **ret, size_t *ret_n)
{
	AUTO_FREE uint8_t *buf = xmalloc(JKS_MAX_BYTES);
	struct wr wr = begin_jks(buf);
	struct rd rd = rd_init(store);
	uint32_t count;
	int r;

	if (!has_sum(store))
		return -EBADMSG;
	rd.n -= SHA1_BYTES;
	if (get_be(&rd, 4) != MAGIC || get_be(&rd, 4) != VERSION)
		return -EBADMSG;
	count = copy_others(&wr, &rd, alias);
	if (rd_finish(&rd) < 0)
		return -EBADMSG;
	if (der.n > 0) {
		put_entry(&wr, alias, der);
		count++;
	}
	r = finish_jks(&wr, count);
	if (r < 0)
		return r;
	*ret_n = wr.n;
	*ret = TAKE(buf);
	return 0;
}
