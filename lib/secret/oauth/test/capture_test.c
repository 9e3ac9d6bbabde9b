/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/secret/oauth/capture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"

static const char service[] =
	"service 1\nname demo\nabout Demo\n"
	"capture GET /a token\ncapture GET /a Temp_Key\ncapture GET /b other\n"
	"slot api\nhost api.example.com:443\nheader authorization Bearer %s\nend\n";

#define RULES 3 /* those of /a */

static char seen[256];

static void see(void *user, struct slice value)
{
	size_t n = strlen(seen);

	(void)snprintf(seen + n, sizeof(seen) - n, "%.*s,", (int)value.n, (const char *)value.p);
}

/* What is left of the text, in `buf`. */
static int clean(const char *text, size_t n, char *buf, size_t size)
{
	AUTO_SERVICE struct service s = {0};
	uint8_t room[16];
	struct capture_to to = {.buf = room, .size = sizeof(room), .found = see};
	int r;

	assert_true(n < size);
	memcpy(buf, text, n);
	buf[n] = '\0';
	seen[0] = '\0';
	assert_int_equal(service_parse(slice_from_str(service), "demo", &s, NULL), 0);
	r = capture_clean(&s, RULES, (uint8_t *)buf, n, &to);
	return r < 0 ? r : (int)to.n;
}

static void named_fields_lose_their_values(void **state)
{
	static const struct {
		const char *from, *to, *seen;
		int n;
	} rows[] = {
		{"{\"token\":\"abc\"}", "{\"token\":\"***\"}", "abc,", 1},
		{"{\"a\":1,\"b\":\"abc\",\"token\": \"abc\" }",
			"{\"a\":1,\"b\":\"abc\",\"token\": \"***\" }", "abc,", 1},
		{"[{\"x\":{\"token\":\"in\"}},[{\"temp_key\":\"k\"}],\"token\"]",
			"[{\"x\":{\"token\":\"**\"}},[{\"temp_key\":\"*\"}],\"token\"]", "in,k,",
			2},
		{"{\"token\":\"one\",\"token\":\"two\"}", "{\"token\":\"***\",\"token\":\"***\"}",
			"one,two,", 2},
		{"{\"\\u0074oken\":\"abc\",\"TOKEN\":\"d\\u0065\\\"f\"}",
			"{\"\\u0074oken\":\"***\",\"TOKEN\":\"**********\"}", "abc,de\"f,", 2},
		{"{\"token\":\"\",\"temp_key\":null,\"other\":\"x\",\"tokens\":\"y\"}",
			"{\"token\":\"\",\"temp_key\":null,\"other\":\"x\",\"tokens\":\"y\"}", "",
			0},
		{"{\"token\":false}", "{\"token\":false}", "", 0},
		{"{\"token\":\"longer than the buffer\"}", "{\"token\":\"**********************\"}",
			"", 1},
		{"[]", "[]", "", 0},
		{" {} ", " {} ", "", 0},
		{"{\"a\":\"\\\"token\\\":\\\"abc\\\"\"}", "{\"a\":\"\\\"token\\\":\\\"abc\\\"\"}",
			"", 0},
	};
	char buf[256];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (clean(rows[i].from, strlen(rows[i].from), buf, sizeof(buf)) != rows[i].n)
			fail_msg("row %zu", i);
		assert_string_equal(buf, rows[i].to);
		assert_string_equal(seen, rows[i].seen);
	}
}

static void other_values_of_such_a_field_are_refused(void **state)
{
	static const char *const bad[] = {"{\"token\":1234}", "{\"token\":[\"abc\"]}",
		"{\"a\":[{\"token\":{\"v\":\"abc\"}}]}", "{\"token\":{}}"};
	char buf[64];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (clean(bad[i], strlen(bad[i]), buf, sizeof(buf)) != -EPROTO)
			fail_msg("%s", bad[i]);
}

static void other_texts_are_refused(void **state)
{
	static const char *const bad[] = {"", " ", "null", "\"token\"", "{\"token\":\"abc\"",
		"{\"token\":\"abc\"}{}", "f({\"token\":\"abc\"})", "\xef\xbb\xbf{}", "token=abc",
		"{'token':'abc'}", "{\"token\":\"abc\"}\n{\"token\":\"abc\"}", "[{}"};
	char buf[64];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (clean(bad[i], strlen(bad[i]), buf, sizeof(buf)) != -EBADMSG)
			fail_msg("%s", bad[i]);
	assert_int_equal(clean("{\0\"}", 4, buf, sizeof(buf)), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(named_fields_lose_their_values),
		cmocka_unit_test(other_values_of_such_a_field_are_refused),
		cmocka_unit_test(other_texts_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
