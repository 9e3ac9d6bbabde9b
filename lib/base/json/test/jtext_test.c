/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/json/jtext.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

/* "key=value@depth " of each member, or the error. */
static int walk(const char *text, char *ret, size_t size)
{
	struct jtext_walk w = jtext_begin(slice_from_str(text), JTEXT_MAX_DEPTH);
	struct jtext_member m;
	size_t n = 0;
	int r;

	ret[0] = '\0';
	while ((r = jtext_next(&w, &m)) == 1)
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
		"{\"a\"}", "{\"a\":nul}", "{\"a\":\"\t\"}", "{\"a\":1]", "{\"a\":[1}", "{\"\\",
		"[]", "1", "null", "}", "{]", "{\"a\":}", "{\"a\":[1,]}", "{\"a\":[,1]}",
		"{\"a\":01}", "{\"a\":1.}", "{\"a\":.5}", "{\"a\":+1}", "{\"a\":1e}",
		"{\"a\":\"\n\"}", "{\"a\":\"\\u12g4\"}", "{\"a\":\"}", "{\"a\":1}}", "{\"a\":1} x",
		"{a:1}", "{1:1}", "{\"a\":{\"b\":1]}", "{\"a\" 1}", "{\"a\":1 \"b\":2}", "{,}",
		"{\v}"};
	char got[64];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (walk(bad[i], got, sizeof(got)) != -EBADMSG)
			fail_msg("%s", bad[i]);
	}
}

static void levels_are_limited(void **state)
{
	char text[3 * JTEXT_MAX_DEPTH] = "", got[64];

	for (unsigned n = 1; n <= JTEXT_MAX_DEPTH + 1; n++) {
		memset(text, '[', n);
		memset(text + n, ']', n);
		text[2 * n] = '\0';
		assert_int_equal(
			jtext_end(slice_from_str(text), 0), n <= JTEXT_MAX_DEPTH ? 2 * n : 0);
	}
	struct jtext_walk w = jtext_begin(slice_from_str("{\"a\":{\"b\":{}}}"), 2);
	struct jtext_member m;

	assert_int_equal(jtext_next(&w, &m), 1);
	assert_int_equal(jtext_next(&w, &m), -EBADMSG);
	assert_int_equal(walk("{\"a\":{\"b\":{}}}", got, sizeof(got)), 0);
}

static void an_array_is_taken_on_request(void **state)
{
	struct jtext_walk w = jtext_begin(slice_from_str(" [{\"a\":1}] "), 2);
	struct jtext_member m;

	w.takes_array = true;
	assert_int_equal(jtext_next(&w, &m), 1);
	assert_true(slice_eq_str(m.key, "a"));
	assert_int_equal(jtext_next(&w, &m), 0);
}

static void a_value_ends_where_it_ends(void **state)
{
	static const struct {
		const char *text;
		size_t at, end;
	} rows[] = {{"{}x", 0, 2}, {"[1,[2]],", 0, 7}, {"x\"a\\\"\":", 1, 6}, {"-1.5e+3]", 0, 7},
		{"true}", 0, 4}, {"nul", 0, 0}, {"", 0, 0}, {"a", 1, 0}, {"{\"a\":[}", 0, 0},
		{"{\"a\":1", 0, 0}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(jtext_end(slice_from_str(rows[i].text), rows[i].at), rows[i].end);
	assert_int_equal(jtext_skip(slice_from_str("a \t\r\n b"), 1), 6);
	assert_int_equal(jtext_skip(slice_from_str("a  "), 1), 3);
}

static void strings_are_decoded_in_place(void **state)
{
	static const struct {
		const char *raw, *text; /* NULL: refused */
	} rows[] = {{"", ""}, {"a\\/\\n\\\"\\\\", "a/\n\"\\"},
		{"\\u0041\\u00e9\\u20aC", "A\xc3\xa9\xe2\x82\xac"},
		{"\\ud83d\\ude00!", "\xf0\x9f\x98\x80!"}, {"\xc3\xa9", "\xc3\xa9"},
		{"\\udbff\\udfff", "\xf4\x8f\xbf\xbf"}, {"\\ud83d", NULL}, {"\\ud83dx", NULL},
		{"\\ud83d\\n", NULL}, {"\\ud83d\\ud83d", NULL}, {"\\ud83d\\ue000", NULL},
		{"\\ude00\\ude00", NULL}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t buf[64];
		size_t n = strlen(rows[i].raw);
		ssize_t r;

		memcpy(buf, rows[i].raw, n);
		r = jtext_decode(slice_of(buf, n), buf, n);
		if (!rows[i].text) {
			assert_int_equal(r, -EBADMSG);
			continue;
		}
		assert_int_equal(r, strlen(rows[i].text));
		assert_memory_equal(buf, rows[i].text, (size_t)r);
		if (r > 0)
			assert_int_equal(
				jtext_decode(slice_from_str(rows[i].raw), buf, (size_t)r - 1),
				-EMSGSIZE);
	}
}

static void escapes_are_undone(void **state)
{
	uint8_t buf[16];
	struct slice text;

	assert_int_equal(
		jtext_ascii(slice_from_str("a\\/\\n\\u0041\\u00e9\xc3"), buf, sizeof(buf), &text),
		0);
	assert_true(slice_eq_str(text, "a/\nA\xff\xff"));
	assert_int_equal(jtext_ascii(slice_from_str("abcd"), buf, 3, &text), -EMSGSIZE);
	assert_true(jtext_is_word(slice_from_str("Access\\u005fToken"), "access_token"));
	assert_false(jtext_is_word(slice_from_str("access_tokens"), "access_token"));
	assert_false(jtext_is_word(slice_from_str(""), "a"));
}

static void strings_are_written(void **state)
{
	uint8_t buf[16];
	struct wr wr = wr_init(buf, sizeof(buf));

	jtext_put_string(&wr, slice_from_str("a\"b\\c/"));
	assert_true(slice_eq_str(slice_of(buf, wr.n), "\"a\\\"b\\\\c/\""));
	wr = wr_init(buf, 3);
	jtext_put_string(&wr, slice_from_str("ab"));
	assert_true(wr_finish(&wr) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_come_in_their_order),
		cmocka_unit_test(nothing_beside_the_standard),
		cmocka_unit_test(levels_are_limited),
		cmocka_unit_test(an_array_is_taken_on_request),
		cmocka_unit_test(a_value_ends_where_it_ends),
		cmocka_unit_test(strings_are_decoded_in_place),
		cmocka_unit_test(escapes_are_undone),
		cmocka_unit_test(strings_are_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
