/* SPDX-License-Identifier: Apache-2.0 */
/* Packs that no git writes. What git writes is in gitpush_oracle.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <zlib.h>
#include "lib/base/hash/sha1.h"
#include "lib/base/mem.h"
#include "lib/wire/git/gitobject.h"
#include "lib/wire/git/gitpack.h"

#define BLOB 3
#define OFS 6
#define REF 7

static const struct gitpack_limits limits = {
	.bytes = 1u << 20, .objects = 100, .work = UINT64_C(8) << 20};

struct maker {
	uint8_t p[1u << 20];
	size_t n, at; /* at: where the last entry begins */
	uint8_t n_objects;
};
static struct maker m;

static void begin(void)
{
	memcpy(m.p, "PACK\0\0\0\2\0\0\0\0", 12);
	m.n = 12;
	m.n_objects = 0;
}

static void put_size(uint8_t kind, size_t size)
{
	uint8_t c = (uint8_t)(kind << 4 | (size & 15));

	for (size >>= 4; size > 0; size >>= 7) {
		m.p[m.n++] = c | 0x80;
		c = size & 0x7f;
	}
	m.p[m.n++] = c;
}

/* `base` is a name for REF and a distance for OFS. */
static void put_entry(uint8_t kind, struct slice content, size_t declared, struct slice base)
{
	uLongf n = sizeof(m.p) - m.n;

	m.at = m.n;
	put_size(kind, declared);
	if (base.n > 0)
		memcpy(m.p + m.n, base.p, base.n);
	m.n += base.n;
	n = sizeof(m.p) - m.n;
	assert_int_equal(compress(m.p + m.n, &n, content.n ? content.p : m.p, content.n), Z_OK);
	m.n += n;
	m.n_objects++;
}

static void put_blob(const char *text)
{
	put_entry(BLOB, slice_from_str(text), strlen(text), (struct slice){0});
}

static void put_delta(uint8_t kind, struct slice base, const char *delta, size_t n)
{
	put_entry(kind, slice_of(delta, n), n, base);
}

static void finish(void)
{
	struct sha1 hash;

	m.p[11] = m.n_objects;
	sha1_init(&hash);
	sha1_add(&hash, slice_of(m.p, m.n));
	sha1_end(&hash, m.p + m.n);
	m.n += SHA1_BYTES;
}

static int read_made(struct gitpack **ret, struct err *err)
{
	AUTO_GITPACK struct gitpack *p = gitpack_new(&limits);
	int r = 0;

	for (size_t at = 0; r == 0 && at < m.n; at += 1000)
		r = gitpack_put(p, slice_of(m.p + at, MIN(1000, m.n - at)), err);
	if (r == 0)
		r = gitpack_index(p, err);
	if (r == 0 && ret)
		*ret = TAKE(p);
	return r;
}

static void refused(int want, const char *say)
{
	struct err err = {0};

	assert_int_equal(read_made(NULL, &err), want);
	if (!strstr(err.text, say))
		fail_msg("%s", err.text);
}

static void name_of(const char *text, uint8_t ret[SHA1_BYTES])
{
	char head[32];
	struct sha1 hash;
	int n = snprintf(head, sizeof(head), "blob %zu", strlen(text));

	sha1_init(&hash);
	sha1_add(&hash, slice_of(head, (size_t)n + 1));
	sha1_add(&hash, slice_from_str(text));
	sha1_end(&hash, ret);
}

/* Base of 5 bytes, result of 8: the whole base, then "!!!". */
#define DELTA "\5\10\x90\5\3!!!"

static void assert_blob(struct gitpack *p, const char *text)
{
	AUTO_FREE uint8_t *content = NULL;
	struct git_oid oid;
	int64_t i;

	name_of(text, oid.b);
	i = gitpack_find(p, &oid);
	assert_true(i >= 0);
	assert_int_equal(gitpack_type(p, (uint32_t)i), GITOBJECT_BLOB);
	assert_int_equal(gitpack_load(p, (uint32_t)i, &content, NULL), 0);
	assert_int_equal(gitpack_size(p, (uint32_t)i), strlen(text));
	assert_memory_equal(content, text, strlen(text));
}

static void deltas_find_bases_before_and_after_them(void **state)
{
	AUTO_GITPACK struct gitpack *p = NULL, *q = NULL;
	uint8_t name[SHA1_BYTES], distance;

	begin();
	put_blob("hello");
	distance = (uint8_t)(m.n - m.at);
	put_delta(OFS, slice_of(&distance, 1), DELTA, 8);
	finish();
	assert_int_equal(read_made(&p, NULL), 0);
	assert_blob(p, "hello!!!");
	begin();
	name_of("hello", name);
	put_delta(REF, slice_of(name, sizeof(name)), DELTA, 8);
	put_blob("hello");
	finish();
	assert_int_equal(read_made(&q, NULL), 0);
	assert_blob(q, "hello!!!");
}

static void a_thin_pack_is_refused(void **state)
{
	uint8_t name[SHA1_BYTES];

	begin();
	name_of("on the server", name);
	put_blob("hello");
	put_delta(REF, slice_of(name, sizeof(name)), DELTA, 8);
	finish();
	refused(-EBADMSG, "thin pack");
}

static void deltas_that_are_each_other_s_base_are_refused(void **state)
{
	uint8_t a[SHA1_BYTES] = {1}, b[SHA1_BYTES] = {2};

	begin();
	put_delta(REF, slice_of(a, sizeof(a)), DELTA, 8);
	put_delta(REF, slice_of(b, sizeof(b)), DELTA, 8);
	finish();
	refused(-EBADMSG, "thin pack");
}

static void malformed_deltas_are_refused(void **state)
{
	static const struct {
		const char *p;
		size_t n;
	} rows[] = {
		{"\5\10\x90\6\2!!", 7},	   /* more than the base has */
		{"\5\10\x91\1\5\3!!!", 9}, /* from 1, 5 bytes */
		{"\5\10\x90\5\4!!!!", 9},  /* a longer result */
		{"\5\11\x90\5\3!!!", 8},   /* a shorter one */
		{"\4\10\x90\5\3!!!", 8},   /* another base */
		{"\5\10\x90\5\0\3!!!", 9}, /* operation 0 */
		{"\5\10\x90\5\3!!", 7},	   /* cut off */
		{"\5", 1}, {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11},
		{"\5\10\x80", 3}, /* 65,536 bytes */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t distance;

		begin();
		put_blob("hello");
		distance = (uint8_t)(m.n - m.at);
		put_delta(OFS, slice_of(&distance, 1), rows[i].p, rows[i].n);
		finish();
		refused(-EBADMSG, "delta");
	}
}

static void a_base_is_the_beginning_of_an_entry(void **state)
{
	static const uint8_t distances[] = {0, 1, 12, 100};

	for (size_t i = 0; i < ARRAY_LEN(distances); i++) {
		begin();
		put_blob("hello");
		put_delta(OFS, slice_of(&distances[i], 1), DELTA, 8);
		finish();
		refused(-EBADMSG, "entry");
	}
}

static void an_object_that_is_there_twice_is_refused(void **state)
{
	begin();
	put_blob("hello");
	put_blob("hello");
	finish();
	refused(-EBADMSG, "twice");
}

static void wrong_sizes_are_refused(void **state)
{
	begin();
	put_entry(BLOB, slice_from_str("hello"), 4, (struct slice){0});
	finish();
	refused(-EBADMSG, "larger");
	begin();
	put_entry(BLOB, slice_from_str("hello"), 6, (struct slice){0});
	finish();
	refused(-EBADMSG, "unpacked");
	begin();
	put_entry(5, slice_from_str("hello"), 5, (struct slice){0});
	finish();
	refused(-EBADMSG, "entry");
}

static void bytes_around_the_objects_are_refused(void **state)
{
	begin();
	put_blob("hello");
	m.p[m.n++] = 0;
	finish();
	refused(-EBADMSG, "after its last");
	begin();
	put_blob("hello");
	finish();
	m.p[m.n - 1] ^= 1;
	refused(-EBADMSG, "checksum");
	m.p[m.n - 1] ^= 1;
	m.p[7] = 3;
	refused(-EBADMSG, "version");
	m.n = 20;
	refused(-EBADMSG, "no complete pack");
}

static void a_pack_that_unpacks_to_too_much_is_refused(void **state)
{
	static uint8_t zeros[9u << 20];

	begin();
	put_entry(BLOB, slice_of(zeros, sizeof(zeros)), sizeof(zeros), (struct slice){0});
	finish();
	refused(-E2BIG, "unpacks to too much");
}

/* Each delta doubles its base: 40 of them would be 5 TiB. */
static void deltas_that_double_are_refused(void **state)
{
	size_t n = 5;

	begin();
	put_blob("hello");
	for (int i = 0; i < 40; i++, n *= 2) {
		uint8_t distance = (uint8_t)(m.n - m.at), delta[64];
		struct wr wr = wr_init(delta, sizeof(delta));

		for (int k = 0; k < 2; k++) {
			uint64_t v = k ? 2 * n : n;

			for (; v > 127; v >>= 7)
				wr_u8(&wr, (uint8_t)(v | 0x80));
			wr_u8(&wr, (uint8_t)v);
		}
		for (int k = 0; k < 2; k++) {
			wr_u8(&wr, 0xf0);
			wr_u24(&wr, (uint32_t)MIN(n, 0xffffffu));
		}
		put_delta(OFS, slice_of(&distance, 1), (const char *)delta, wr.n);
	}
	finish();
	refused(-E2BIG, "too much");
}

static void limits_of_bytes_and_objects_hold(void **state)
{
	AUTO_GITPACK struct gitpack *p =
		gitpack_new(&(struct gitpack_limits){.bytes = 100, .objects = 1, .work = 1000});
	static const uint8_t zeros[101];
	struct err err = {0};

	assert_int_equal(gitpack_put(p, slice_of(zeros, 60), &err), 0);
	assert_int_equal(gitpack_put(p, slice_of(zeros, 41), &err), -E2BIG);
	begin();
	put_blob("hello");
	m.n_objects = 101;
	finish();
	refused(-E2BIG, "100 objects");
	m.p[11] = 50;
	refused(-EBADMSG, "fewer");
}

/* ---- objects ---- */

#define OID "aaaaaaaaaaaaaaaaaaaa"

static int read_tree(const char *text, size_t n)
{
	struct gittree t;
	int r, count = 0;

	gittree_init(&t, slice_of(text, n));
	while ((r = gittree_next(&t)) == 1)
		count++;
	return r < 0 ? r : count;
}
#define TREE(text) read_tree(text, sizeof(text) - 1)

static void trees_are_read_as_git_fsck_wants_them(void **state)
{
	assert_int_equal(TREE(""), 0);
	assert_int_equal(TREE("100644 a\0" OID "40000 b\0" OID "160000 c\0" OID), 3);
	assert_int_equal(TREE("100644 a.b\0" OID "40000 a\0" OID "100644 a0\0" OID), 3);
	assert_int_equal(TREE("40000 a\0" OID "100644 a.b\0" OID), -EBADMSG);
	assert_int_equal(TREE("100644 b\0" OID "100644 a\0" OID), -EBADMSG);
	assert_int_equal(TREE("100644 a\0" OID "100644 a\0" OID), -EBADMSG);
	assert_int_equal(TREE("100644 a\0" OID "40000 a\0" OID), -EBADMSG);
	assert_int_equal(TREE("040000 a\0" OID), -EBADMSG);
	assert_int_equal(TREE("100600 a\0" OID), -EBADMSG);
	assert_int_equal(TREE("100644 \0" OID), -EBADMSG);
	assert_int_equal(TREE("100644 .\0" OID), -EBADMSG);
	assert_int_equal(TREE("100644 ..\0" OID), -EBADMSG);
	assert_int_equal(TREE("100644 a/b\0" OID), -EBADMSG);
	assert_int_equal(TREE("100644 a\0aaaa"), -EBADMSG);
	assert_int_equal(TREE("100644 a"), -EBADMSG);
}

#define HEX "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void commits_are_read_as_git_reads_them(void **state)
{
	struct gitcommit c;

	assert_int_equal(
		gitcommit_parse(slice_from_str("tree " HEX "\nparent " HEX "\nparent " HEX
					       "\nauthor A U <a@x> 1 +0000\n"
					       "committer A <a@x> 1 +0000\n\n\nSubject\nrest"),
			&c),
		0);
	assert_int_equal(c.n_parents, 2);
	assert_true(slice_eq_str(c.author, "A U <a@x>"));
	assert_true(slice_eq_str(c.subject, "Subject"));
	assert_int_equal(gitcommit_parse(slice_from_str("parent " HEX "\n"), &c), -EBADMSG);
	assert_int_equal(
		gitcommit_parse(slice_from_str("tree " HEX "\nparent AAAA\n"), &c), -EBADMSG);
	assert_int_equal(gitcommit_parse(slice_from_str("tree " HEX "\n"), &c), -EBADMSG);
	assert_int_equal(gitcommit_parse(slice_from_str("tree " HEX), &c), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deltas_find_bases_before_and_after_them),
		cmocka_unit_test(a_thin_pack_is_refused),
		cmocka_unit_test(deltas_that_are_each_other_s_base_are_refused),
		cmocka_unit_test(malformed_deltas_are_refused),
		cmocka_unit_test(a_base_is_the_beginning_of_an_entry),
		cmocka_unit_test(an_object_that_is_there_twice_is_refused),
		cmocka_unit_test(wrong_sizes_are_refused),
		cmocka_unit_test(bytes_around_the_objects_are_refused),
		cmocka_unit_test(a_pack_that_unpacks_to_too_much_is_refused),
		cmocka_unit_test(deltas_that_double_are_refused),
		cmocka_unit_test(limits_of_bytes_and_objects_hold),
		cmocka_unit_test(trees_are_read_as_git_fsck_wants_them),
		cmocka_unit_test(commits_are_read_as_git_reads_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
