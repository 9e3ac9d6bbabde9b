/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "lib/rules/settings/detach_keys.h"

static void test_parse(void **state)
{
	static const struct {
		const char *text, *keys;
		int r;
	} rows[] = {
		{"ctrl-\\", "\x1c", 0},
		{"ctrl-p,ctrl-q", "\x10\x11", 0},
		{"ctrl-a,d", "\001d", 0},
		{"", "", 0},
		{"none", "", 0},
		{"a,b,c,d,e,f,g,h", "abcdefgh", 0},
		{"a,b,c,d,e,f,g,h,i", "", -EINVAL},
		{"ctrl-", "", -EINVAL},
		{"ctrl-P", "", -EINVAL},
		{"ctrl-@", "", -EINVAL},
		{"ctrl-pq", "", -EINVAL},
		{"ctrl-p,", "", -EINVAL},
		{",", "", -EINVAL},
		{"hello", "", -EINVAL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct detach_keys k;
		struct err err;

		if (detach_keys_parse(rows[i].text, &k, &err) != rows[i].r)
			fail_msg("%s", rows[i].text);
		if (rows[i].r == 0) {
			assert_int_equal(k.n, strlen(rows[i].keys));
			assert_memory_equal(k.key, rows[i].keys, k.n);
		}
	}
}

static void test_match(void **state)
{
	assert_int_equal(detach_keys_match(0x1c, slice_from_str("\x1c"
								"ab")),
		1);
	assert_int_equal(detach_keys_match(0x1c, slice_from_str("\033[92;5u")), 7);
	assert_int_equal(detach_keys_match(0x1c, slice_from_str("\033[27;5;92~x")), 10);
	assert_int_equal(detach_keys_match(0x10, slice_from_str("\033[112;5u")), 8);
	assert_int_equal(detach_keys_match(0x10, slice_from_str("\033[112;5")), 0);
	assert_int_equal(detach_keys_match(0x10, slice_from_str("\033[92;5u")), 0);
	assert_int_equal(detach_keys_match('d', slice_from_str("d")), 1);
	assert_int_equal(detach_keys_match('d', slice_of(NULL, 0)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
