/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/secret/oauth/json.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

/* "key=value@depth " of each member, or the error. */
static int walk(const char *text, char *ret, size_t size)
{
	struct json_walk w = json_begin(slice_from_str(text));
	struct json_member m;
	size_t n = 0;
	int r;

	ret[0] = '\0';
	while ((r = json_next(&w, &m)) == 1)
		n += (size_t)snprintf(ret + n, size - n, "%.*s=%.*s@%u ", (int)m.key.n,
			(const char *)m.key.p, (int)m.value.n, (const char *)m.value.p, m.depth);
	return r;
}

static void members_come_in_their_order(void **state)
{
	char got[512];

	assert_int_equal(walk("{\"a\":\"x\\\"\",\"b\":{\"c\":-1.5e3,\"d\":[{\"e\":null},[2]]},"
			      "\"f\":true}",
				 got, sizeof(got)),
		0);
	assert_string_equal(got, "a=\"x\\\"\"@1 b=@1 c=-1.5e3@2 d=@2 e=null@4 f=true@1 ");
}

static void nothing_beside_the_standard(void **state)
{
	static const char *const bad[] = {"", "{", "{}{}", "[1]", "{\"a\":1,}", "{\"a\":[,]}",
		"{\"a\":\"\\q\"}", "{\"a\":\"\\u00\"}", "{\"a\":-}", "{\"a\":1e+}", "{\"a\":00}",
		"{\"a\"}", "{\"a\":nul}", "{\"a\":\"\t\"}", "{\"a\":1]", "{\"a\":[1}", "{\"\\"};
	char got[64];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (walk(bad[i], got, sizeof(got)) != -EBADMSG)
			fail_msg("%s", bad[i]);
	}
}

static void escapes_are_undone(void **state)
{
	uint8_t buf[16];
	struct slice text;

	assert_int_equal(
		json_unescape(slice_from_str("a\\/\\n\\u0041\\u00e9\xc3"), buf, sizeof(buf), &text),
		0);
	assert_true(slice_eq_str(text, "a/\nA\xff\xff"));
	assert_int_equal(json_unescape(slice_from_str("abcd"), buf, 3, &text), -EMSGSIZE);
	assert_true(json_is_word(slice_from_str("Access\\u005fToken"), "access_token"));
	assert_false(json_is_word(slice_from_str("access_tokens"), "access_token"));
	assert_false(json_is_word(slice_from_str(""), "a"));
}

static void strings_are_written(void **state)
{
	uint8_t buf[16];
	struct wr wr = wr_init(buf, sizeof(buf));

	json_put_string(&wr, slice_from_str("a\"b\\c/"));
	assert_true(slice_eq_str(slice_of(buf, wr.n), "\"a\\\"b\\\\c/\""));
	wr = wr_init(buf, 3);
	json_put_string(&wr, slice_from_str("ab"));
	assert_true(wr_finish(&wr) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_come_in_their_order),
		cmocka_unit_test(nothing_beside_the_standard),
		cmocka_unit_test(escapes_are_undone),
		cmocka_unit_test(strings_are_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
