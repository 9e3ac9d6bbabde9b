/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/http/canon/canon_named.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include "lib/base/mem.h"

#define H(name, value)                                              \
	{                                                           \
		{(const uint8_t *)(name), sizeof(name) - 1},        \
		{                                                   \
			(const uint8_t *)(value), sizeof(value) - 1 \
		}                                                   \
	}

static struct http_header list[] = {
	H("accept", "*/*"), H("x-a", "1"), H("x-b", ""), H("x-a", "a: b"), H("x-ab", "no")};
static const struct http_headers headers = {list, ARRAY_LEN(list), ARRAY_LEN(list)};

static int write_text(const char *names, char *ret, size_t size)
{
	struct wr wr = wr_init(ret, size - 1);
	int r = canon_named_write(&wr, &headers, slice_from_str(names));

	ret[wr.n] = '\0';
	return r;
}

static void only_named_headers_are_written(void **state)
{
	char text[256];

	assert_int_equal(write_text("x-a,x-b", text, sizeof(text)), 0);
	assert_string_equal(text, "x-a:1\nx-b:\nx-a:a: b\n");
	assert_int_equal(write_text("x", text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(write_text("", text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(write_text("x-a", text, 8), -ENAMETOOLONG);
}

static void what_was_written_is_read(void **state)
{
	struct http_header room[3];
	struct http_headers got = {room, 0, ARRAY_LEN(room)};
	char text[256];

	assert_int_equal(write_text("x-a,x-b", text, sizeof(text)), 0);
	assert_int_equal(canon_named_read(slice_from_str(text), &got), 0);
	assert_int_equal(got.n, 3);
	assert_true(slice_eq_str(got.list[0].name, "x-a"));
	assert_true(slice_eq_str(got.list[2].value, "a: b"));
	assert_int_equal(got.list[1].value.n, 0);
	assert_int_equal(canon_named_read(slice_of(NULL, 0), &got), 0);
	assert_int_equal(got.n, 0);
}

static void other_texts_are_not_read(void **state)
{
	static const char *const bad[] = {"x-a:1", "x-a\n", "x-a\nx-b:1\n", ":1\n", "X-A:1\n",
		"x a:1\n", "x-a: 1\n", "x-a:1 \n", "x-a:1\r\n", "\n", "a:\nb:\nc:\nd:\n"};
	struct http_header room[3];
	struct http_headers got = {room, 0, ARRAY_LEN(room)};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(canon_named_read(slice_from_str(bad[i]), &got), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_named_headers_are_written),
		cmocka_unit_test(what_was_written_is_read),
		cmocka_unit_test(other_texts_are_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
