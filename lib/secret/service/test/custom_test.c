/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/secret/service/custom.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/secret/service/services.h"

#define PLAIN                                                                             \
	.name = "own", .hosts = "api.example.com", .header = "X-Key", .format = "Key %s", \
	.env = "OWN_KEY", .sentinel = "own-proxy-managed-1"

static int parse(const struct custom *c, struct service *ret, struct err *err)
{
	AUTO_FREE char *text = NULL;
	int r = custom_text(c, &text, err);

	return r < 0 ? r : service_parse(slice_from_str(text), "own", ret, err);
}

static void test_plain(void **state)
{
	const struct custom c = {PLAIN};
	AUTO_SERVICE struct service s = {0};
	struct err err = {0};

	assert_int_equal(parse(&c, &s, &err), 0);
	assert_string_equal(s.name, "own");
	assert_int_equal(s.n_slots, 1);
	assert_string_equal(s.slot[0].header, "x-key");
	assert_string_equal(s.slot[0].format, "Key %s");
	assert_int_equal(s.slot[0].n_hosts, 1);
	assert_int_equal(s.slot[0].host[0].ports.lo, 443);
	assert_int_equal(s.n_envs, 1);
	assert_string_equal(s.env[0].sentinel, "own-proxy-managed-1");
}

static void test_several(void **state)
{
	struct custom c = {PLAIN};
	AUTO_SERVICE struct service s = {0};
	struct err err = {0};

	c.hosts = "a.example.com:8443 *.b.example.com";
	c.env = "A B";
	assert_int_equal(parse(&c, &s, &err), 0);
	assert_int_equal(s.slot[0].n_hosts, 2);
	assert_int_equal(s.slot[0].host[0].ports.lo, 8443);
	assert_int_equal(s.slot[0].host[1].ports.lo, 443);
	assert_int_equal(s.n_envs, 2);
}

static void test_without_variable(void **state)
{
	struct custom c = {PLAIN};
	AUTO_SERVICE struct service s = {0};
	struct err err = {0};

	c.env = c.sentinel = "";
	assert_int_equal(parse(&c, &s, &err), 0);
	assert_int_equal(s.n_envs, 0);
}

/* Whatever a word holds, it stays a word. */
static void test_no_way_out_of_the_line(void **state)
{
	static const char *const bad[] = {"", " ", "a\nend", "a\rb", "a #b", "#a", "a\tb", "\x7f",
		"\xc3\xa4", "a\nslot x\nhost evil.example.com:443\nheader a %s"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		for (unsigned field = 0; field < 5; field++) {
			struct custom c = {PLAIN};
			const char **at[] = {&c.hosts, &c.header, &c.format, &c.env, &c.sentinel};
			AUTO_SERVICE struct service s = {0};
			struct err err = {0};

			*at[field] = bad[i];
			if (field == 3 && !bad[i][0])
				continue; /* no variable is fine */
			assert_int_not_equal(parse(&c, &s, &err), 0);
			assert_true(err.text[0]);
		}
	}
}

static void test_refused(void **state)
{
	static const struct custom bad[] = {
		{"own", "**", "x-key", "%s", "", ""},
		{"own", "10.0.0.0/8", "x-key", "%s", "", ""},
		{"own", "*.com", "x-key", "%s", "", ""},
		{"own", "a.example.com", "host", "%s", "", ""},
		{"own", "a.example.com", "content-length", "%s", "", ""},
		{"own", "a.example.com", "x key", "%s", "", ""},
		{"own", "a.example.com", "x-key", "no place", "", ""},
		{"own", "a.example.com", "x-key", "%s %s", "", ""},
		{"own", "a.example.com", "x-key", "%d", "", ""},
		{"own", "a.example.com", "x-key", "%s", "A=B", "x-proxy-managed"},
		{"own", "a.example.com", "x-key", "%s", "A", "sk-short"},
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO_SERVICE struct service s = {0};
		struct err err = {0};

		if (parse(&bad[i], &s, &err) == 0)
			fail_msg("row %zu was taken", i);
		assert_true(err.text[0]);
	}
}

static void test_long(void **state)
{
	struct custom c = {PLAIN};
	AUTO_FREE char *hosts = xcalloc(1, 20000), *text = NULL;
	struct err err = {0};

	for (size_t i = 0; i < 900; i++)
		strcat(hosts, "a.example.com ");
	strcat(hosts, "b.example.com");
	c.hosts = hosts;
	assert_int_equal(custom_text(&c, &text, &err), -E2BIG);
	assert_null(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_without_variable),
		cmocka_unit_test(test_no_way_out_of_the_line),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
