/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/secret/secret/scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"

/* Of "s3cr+t/canary~value:0123456789!" as another program writes it. */
#define VALUE "s3cr+t/canary~value:0123456789!"
#define CONTROL "no secret at all"

static struct book book;

static int setup(void **state)
{
	struct book_entry *e = xcalloc(1, sizeof(*e)), *old;

	assert_int_equal(secret_copy(&e->value, slice_from_str(VALUE), NULL), 0);
	memcpy(e->meta.name, "canary", 7);
	return book_put(&book, e, &old, NULL);
}

static int teardown(void **state)
{
	book_done(&book);
	return 0;
}

/* How often any value was found, without the control. */
static uint64_t n_found(const struct scan *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->n_owners; i++)
		n += s->owners[i].times;
	return n;
}

static uint64_t found_in(const char *text, size_t piece)
{
	struct scan *s = scan_new(&book, CONTROL, NULL);
	size_t n = strlen(text), room;
	uint64_t found;

	assert_non_null(s);
	for (size_t at = 0; at < n; at += piece) {
		size_t m = MIN(piece, n - at);
		uint8_t *p = scan_room(s, &room);

		assert_true(m <= room);
		memcpy(p, text + at, m);
		scan_feed(s, m);
	}
	found = n_found(s);
	scan_free(s);
	return found;
}

static void test_forms(void **state)
{
	static const char *const texts[] = {
		VALUE, "733363722b742f63616e6172797e76616c75653a3031323334353637383921",
		"733363722B742F63616E6172797E76616C75653A3031323334353637383921",
		"s3cr%2Bt%2Fcanary~value%3A0123456789%21",
		"%73%33%63%72%2B%74%2F%63%61%6E%61%72%79%7E%76%61%6C%75%65%3A%30%31%32",
		"%73%33%63%72%2b%74%2f%63%61%6e%61%72%79%7e%76%61%6c%75%65%3a%30%31%32",
		"czNjcit0L2NhbmFyeX52YWx1ZTowMTIzNDU2Nzg5IQ==",
		"eHMzY3IrdC9jYW5hcnl+dmFsdWU6MDEyMzQ1Njc4OSE=",	  /* one byte before it */
		"eHhzM2NyK3QvY2FuYXJ5fnZhbHVlOjAxMjM0NTY3ODkheQ", /* two, and one behind */
		"eHMzY3IrdC9jYW5hcnl-dmFsdWU6MDEyMzQ1Njc4OSE",	  /* base64url */
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		AUTO_FREE char *text = xasprintf("before %s behind, and more of it", texts[i]);

		if (found_in(text, 4096) == 0)
			fail_msg("not found: %s", texts[i]);
		/* as many when it comes in pieces */
		for (size_t piece = 1; piece < 60; piece += 7)
			assert_int_equal(found_in(text, piece), found_in(text, 4096));
	}
}

static void test_nothing_else(void **state)
{
	assert_int_equal(found_in("s3cr+t/canary~value:0123456788!", 4096), 0);
	assert_int_equal(found_in("nothing of it is in here at all", 4096), 0);
	assert_int_equal(found_in(VALUE VALUE " " VALUE, 5), 3);
}

/* Whose it was is said; a control is found as it is only, and is no value. */
static void test_owners_and_control(void **state)
{
	static const char text[] =
		"no secret at all, " VALUE ", no secret at all, bm8gc2VjcmV0IGF0IGFsbA==";
	struct book_entry *short_one = xcalloc(1, sizeof(*short_one)), *old;
	struct scan *s;
	size_t room;

	assert_int_equal(secret_copy(&short_one->value, slice_from_str("1234567"), NULL), 0);
	memcpy(short_one->meta.name, "short", 6);
	assert_int_equal(book_put(&book, short_one, &old, NULL), 0);
	s = scan_new(&book, CONTROL, NULL);
	memcpy(scan_room(s, &room), text, sizeof(text));
	scan_feed(s, sizeof(text));
	assert_int_equal(s->n_owners, 2);
	assert_int_equal(s->n_bytes, sizeof(text));
	assert_int_equal(s->owners[SCAN_CONTROL].times, 2);
	assert_string_equal(s->owners[0].name, "canary");
	assert_int_equal(s->owners[0].times, 1);
	assert_true(s->owners[0].is_looked);
	assert_string_equal(s->owners[1].name, "short");
	assert_false(s->owners[1].is_looked);
	assert_int_equal(n_found(s), 1);
	scan_free(s);
}

/* Zeros are passed over in steps: nothing beside them is missed, wherever it begins. */
static void test_zeros(void **state)
{
	static char text[4096];

	for (size_t at = 0; at < 64; at++) {
		struct scan *s = scan_new(&book, "", NULL);
		size_t room;

		memset(text, 0, sizeof(text));
		memcpy(text + at, VALUE, strlen(VALUE));
		memcpy(text + 1000 + at, VALUE, strlen(VALUE));
		memcpy(scan_room(s, &room), text, sizeof(text));
		scan_feed(s, sizeof(text));
		assert_int_equal(n_found(s), 2);
		scan_free(s);
	}
}

/* What a hole is between does not belong together. */
static void test_skip(void **state)
{
	struct scan *s = scan_new(&book, "", NULL);
	size_t half = strlen(VALUE) / 2, room;

	memcpy(scan_room(s, &room), VALUE, half);
	scan_feed(s, half);
	scan_skip(s);
	memcpy(scan_room(s, &room), &VALUE[half], strlen(VALUE) - half);
	scan_feed(s, strlen(VALUE) - half);
	assert_int_equal(n_found(s), 0);
	scan_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_forms, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_else, setup, teardown),
		cmocka_unit_test_setup_teardown(test_owners_and_control, setup, teardown),
		cmocka_unit_test_setup_teardown(test_zeros, setup, teardown),
		cmocka_unit_test_setup_teardown(test_skip, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
