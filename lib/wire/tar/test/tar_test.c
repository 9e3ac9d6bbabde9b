/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/tar/tar.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "lib/wire/tar/tar_internal.h"

static uint8_t archive[256 << 10];
static size_t n_archive;

static void add(const struct tar_entry *e, const char *body)
{
	size_t n;

	assert_int_equal(
		tar_write_entry(e, archive + n_archive, sizeof(archive) - n_archive, &n), 0);
	n_archive += n;
	memcpy(archive + n_archive, body, strlen(body));
	n_archive += strlen(body) + tar_padding(strlen(body));
}

static void add_end(void)
{
	n_archive += TAR_END_BYTES;
}

static void begin(void)
{
	memset(archive, 0, sizeof(archive));
	n_archive = 0;
}

/* Puts the checksum right after a test has changed a header. */
static void sign(size_t at)
{
	unsigned sum = 0;

	memset(archive + at + TAR_AT_SUM, ' ', 8);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += archive[at + i];
	(void)snprintf((char *)archive + at + TAR_AT_SUM, 8, "%06o", sum);
}

/* Everything that was read, as one line of text; the same whatever the pieces are. */
static int replay(size_t piece, char *out, size_t size)
{
	static struct tar_reader r;
	struct err err = {0};
	size_t at = 0, n = 0;
	int k = TAR_EV_MORE;

	tar_reader_init(&r);
	out[0] = '\0';
	while (at < n_archive && k >= 0 && k != TAR_EV_END) {
		struct slice in = slice_of(archive + at, MIN(piece, n_archive - at));

		at += in.n;
		while ((k = tar_read(&r, &in, &err)) == TAR_EV_ENTRY || k == TAR_EV_DATA) {
			if (k == TAR_EV_ENTRY)
				n += (size_t)snprintf(out + n, size - n,
					"[%c %s>%s %o %u:%u %llu %lld.%09u]",
					tar_type_letter(r.entry.type), r.entry.name, r.entry.link,
					r.entry.mode, r.entry.uid, r.entry.gid,
					(unsigned long long)r.entry.size,
					(long long)r.entry.mtime_s, r.entry.mtime_ns);
			else
				n += (size_t)snprintf(
					out + n, size - n, "%.*s", (int)r.data.n, r.data.p);
			assert_true(n < size);
		}
	}
	return k;
}

/* The same events whole, byte by byte and in odd pieces. */
static void expect(int result, const char *text)
{
	static const size_t pieces[] = {1 << 20, 1, 7, 511, 512, 513};
	static char out[32 << 10];

	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		assert_int_equal(replay(pieces[i], out, sizeof(out)), result);
		if (text)
			assert_string_equal(out, text);
	}
}

static void plain_entries(void **state)
{
	begin();
	add(&(struct tar_entry){.type = TAR_DIR, .name = "d", .mode = 0755, .uid = 5, .gid = 6},
		"");
	add(&(struct tar_entry){.name = "d/f", .mode = 04644, .size = 5, .mtime_s = 77}, "hello");
	add(&(struct tar_entry){.type = TAR_SYMLINK, .name = "d/l", .link = "f", .mode = 0777}, "");
	add(&(struct tar_entry){.type = TAR_HARDLINK, .name = "d/h", .link = "d/f"}, "");
	add_end();
	expect(TAR_EV_END, "[5 d> 755 5:6 0 0.000000000][0 d/f> 4644 0:0 5 77.000000000]hello"
			   "[2 d/l>f 777 0:0 0 0.000000000][1 d/h>d/f 0 0:0 0 0.000000000]");
}

static void long_values_need_pax(void **state)
{
	struct tar_entry e = {
		.mode = 0600, .mtime_s = -2, .mtime_ns = 500000000, .uid = 4000000000u};
	char want[TAR_MAX_PATH + 100];

	memset(e.name, 'n', 4000);
	begin();
	add(&e, "");
	add_end();
	(void)snprintf(want, sizeof(want), "[0 %s> 600 4000000000:0 0 -2.500000000]", e.name);
	expect(TAR_EV_END, want);
	e = (struct tar_entry){.name = "big", .size = 1ull << 40, .mtime_s = 1, .mtime_ns = 7};
	begin();
	add(&e, "");
	expect(TAR_EV_MORE, NULL); /* its body does not come */
}

/* Archives of other programs: GNU's long names and binary numbers. */
static void gnu_forms(void **state)
{
	struct tar_entry ext = {.name = "././@LongLink", .size = 12};

	begin();
	add(&ext, "long/name/x");
	archive[TAR_AT_TYPE] = 'L';
	sign(0);
	add(&(struct tar_entry){.name = "short", .mode = 0600}, "");
	memcpy(archive + 2 * TAR_BLOCK + TAR_AT_MTIME, "\x80\0\0\0\0\0\0\0\0\0\1\0", 12);
	sign((size_t)2 * TAR_BLOCK);
	add_end();
	expect(TAR_EV_END, "[0 long/name/x> 600 0:0 0 256.000000000]");
}

static void put_pax(const char *records)
{
	struct tar_entry e = {.name = "x", .size = strlen(records)};

	begin();
	add(&e, records);
	archive[TAR_AT_TYPE] = 'x';
	sign(0);
	add(&(struct tar_entry){.name = "f"}, "");
	add_end();
}

static void wrong_pax_records(void **state)
{
	static const char *const wrong[] = {"9 path=a", "99 path=a\n", "0 path=a\n", "x path=a\n",
		" path=a\n", "11 path=a\n", "8 patha\n", "6 =ab\n", "11 size=-1\n",
		"29 size=99999999999999999999\n", "9 path=a\n9 path=b\n", "13 mtime=1.x\n",
		"18 uid=4294967296\n", "22 GNU.sparse.major=1\n", "99999999999999999999 path=a\n",
		"4294967306 path=a\n"};

	put_pax("9 path=a\n");
	expect(TAR_EV_END, "[0 a> 0 0:0 0 0.000000000]");
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		put_pax(wrong[i]);
		expect(-EBADMSG, NULL);
	}
	put_pax("9 path=a\n");
	memcpy(archive + TAR_BLOCK + 7, "\0\n", 2);
	expect(-EBADMSG, NULL);
	put_pax("9 path=a\n");
	archive[TAR_AT_TYPE] = 'g';
	sign(0);
	expect(-EBADMSG, NULL);
}

static void one_file(void)
{
	begin();
	add(&(struct tar_entry){.name = "f", .mode = 0600, .size = 3}, "abc");
	add_end();
}

static void set_and_sign(size_t at, const char *bytes, size_t n)
{
	one_file();
	memcpy(archive + at, bytes, n);
	sign(0);
}

static void wrong_headers(void **state)
{
	one_file();
	expect(TAR_EV_END, "[0 f> 600 0:0 3 0.000000000]abc");
	archive[3] ^= 1;
	expect(-EBADMSG, "");
	set_and_sign(TAR_AT_SIZE, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12);
	expect(-EBADMSG, "");
	set_and_sign(TAR_AT_SIZE, "-0000000001", 12);
	expect(-EBADMSG, "");
	set_and_sign(TAR_AT_SIZE, "\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 12);
	expect(-EBADMSG, "");
	set_and_sign(TAR_AT_MODE, "000x600", 8);
	expect(-EBADMSG, "");
	set_and_sign(TAR_AT_TYPE, "S", 1);
	expect(-EBADMSG, "");
	set_and_sign(TAR_AT_TYPE, "Q", 1);
	expect(-EBADMSG, "");
	set_and_sign(TAR_AT_TYPE, "5", 1);
	expect(-EBADMSG, ""); /* a folder with a body */
	set_and_sign(TAR_AT_NAME, "\0", 1);
	expect(-EBADMSG, "");
	set_and_sign(TAR_AT_TYPE, "2", 1);
	expect(-EBADMSG, ""); /* a link to nowhere */
}

static void cut_off_anywhere(void **state)
{
	static char out[4096];

	one_file();
	for (size_t full = n_archive, n = 0; n < full; n++) {
		n_archive = n;
		assert_int_equal(replay(1 << 20, out, sizeof(out)), TAR_EV_MORE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_entries),
		cmocka_unit_test(long_values_need_pax),
		cmocka_unit_test(gnu_forms),
		cmocka_unit_test(wrong_pax_records),
		cmocka_unit_test(wrong_headers),
		cmocka_unit_test(cut_off_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
