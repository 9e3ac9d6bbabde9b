/* SPDX-License-Identifier: Apache-2.0 */
#include "tar_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define OCTAL_7 07777777u
#define OCTAL_11 077777777777ull

/* One pax record: its length counts its own digits, so it is found by trying. */
static void put_record(struct wr *wr, const char *key, const char *value)
{
	size_t body = strlen(key) + strlen(value) + 3, n = body + 1;
	char head[64];

	while (n != body + (size_t)snprintf(head, sizeof(head), "%zu", n))
		n = body + strlen(head);
	(void)snprintf(head, sizeof(head), "%zu %s=", n, key);
	wr_bytes(wr, slice_from_str(head));
	wr_bytes(wr, slice_from_str(value));
	wr_bytes(wr, slice_from_str("\n"));
}

static void put_number(struct wr *wr, const char *key, uint64_t v)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, v);
	put_record(wr, key, text);
}

static void put_mtime(struct wr *wr, const struct tar_entry *e)
{
	bool borrow = e->mtime_s < 0 && e->mtime_ns > 0;
	uint64_t s = e->mtime_s < 0 ? (uint64_t) - (e->mtime_s + borrow) : (uint64_t)e->mtime_s;
	uint32_t ns = borrow ? 1000000000u - e->mtime_ns : e->mtime_ns;
	char text[48];

	(void)snprintf(text, sizeof(text), "%s%" PRIu64 ".%09u", e->mtime_s < 0 ? "-" : "", s,
		(unsigned)ns);
	put_record(wr, "mtime", text);
}

static void put_records(struct wr *wr, const struct tar_entry *e)
{
	if (strlen(e->name) > 100)
		put_record(wr, "path", e->name);
	if (strlen(e->link) > 100)
		put_record(wr, "linkpath", e->link);
	if (e->size > OCTAL_11)
		put_number(wr, "size", e->size);
	if (e->uid > OCTAL_7)
		put_number(wr, "uid", e->uid);
	if (e->gid > OCTAL_7)
		put_number(wr, "gid", e->gid);
	if (e->mtime_ns > 0 || e->mtime_s < 0 || (uint64_t)e->mtime_s > OCTAL_11)
		put_mtime(wr, e);
}

static void put_octal(uint8_t *at, size_t n, uint64_t v)
{
	at[n - 1] = '\0';
	for (size_t i = n - 1; i > 0; i--, v >>= 3)
		at[i - 1] = (uint8_t)('0' + (v & 7));
}

static void put_text(uint8_t *at, size_t n, const char *s)
{
	memcpy(at, s, strnlen(s, n));
}

static void put_block(struct wr *wr, const struct tar_entry *e, char letter)
{
	uint8_t b[TAR_BLOCK] = {0};
	uint64_t mtime = e->mtime_s < 0 ? 0 : MIN((uint64_t)e->mtime_s, OCTAL_11);
	unsigned sum = 0;

	put_text(b + TAR_AT_NAME, 100, e->name);
	put_octal(b + TAR_AT_MODE, 8, e->mode & 07777);
	put_octal(b + TAR_AT_UID, 8, MIN(e->uid, OCTAL_7));
	put_octal(b + TAR_AT_GID, 8, MIN(e->gid, OCTAL_7));
	put_octal(b + TAR_AT_SIZE, 12, MIN(e->size, OCTAL_11));
	put_octal(b + TAR_AT_MTIME, 12, mtime);
	b[TAR_AT_TYPE] = (uint8_t)letter;
	put_text(b + TAR_AT_LINK, 100, e->link);
	memcpy(b + TAR_AT_MAGIC,
		"ustar\0"
		"00",
		8);
	memset(b + TAR_AT_SUM, ' ', 8);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += b[i];
	put_octal(b + TAR_AT_SUM, 7, sum);
	wr_bytes(wr, slice_of(b, sizeof(b)));
}

int tar_write_entry(const struct tar_entry *e, uint8_t *buf, size_t size, size_t *ret_n)
{
	static const struct tar_entry pax = {.name = "PaxHeaders/x", .mode = 0644};
	static const uint8_t zeros[TAR_BLOCK];
	uint8_t records[2 * TAR_MAX_PATH + 512];
	struct wr rec = wr_init(records, sizeof(records)), wr = wr_init(buf, size);
	struct tar_entry head = pax;

	assert(e->type < TAR_N_TYPES && memchr(e->name, 0, TAR_MAX_PATH));
	put_records(&rec, e);
	if (wr_finish(&rec) < 0)
		return -EMSGSIZE;
	if (rec.n > 0) {
		head.size = rec.n;
		put_block(&wr, &head, 'x');
		wr_bytes(&wr, slice_of(records, rec.n));
		wr_bytes(&wr, slice_of(zeros, tar_padding(rec.n)));
	}
	put_block(&wr, e, tar_type_letter(e->type));
	if (wr_finish(&wr) < 0)
		return -EMSGSIZE;
	*ret_n = wr.n;
	return 0;
}
