/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/rules/policy/netrule.h"

static void resources_have_one_canonical_text(void **state)
{
	static const char *const rows[][2] = {{"example.com", "example.com"},
		{"API.Example.com:443", "api.example.com:443"}, {"*.example.com", "*.example.com"},
		{"**.example.com:8000-9000", "**.example.com:8000-9000"},
		{"example.com:80-80", "example.com:80"},
		{"crl*.digicert.com:80", "crl*.digicert.com:80"},
		{"api[12].x.com", "api[12].x.com"}, {"[ab]pi.x.com:1", "[ab]pi.x.com:1"},
		{"**.*.x.com", "**.*.x.com"}, {"a.*.x.com", "a.*.x.com"}, {"**", "**"},
		{"**:22", "**:22"}, {"**:1-65535", "**:1-65535"}, {"1.2.3.4", "1.2.3.4"},
		{"1.2.3.4:22", "1.2.3.4:22"}, {"10.0.0.0/8", "10.0.0.0/8"},
		{"10.0.0.0/8:443", "10.0.0.0/8:443"}, {"0.0.0.0/0", "0.0.0.0/0"},
		{"1.2.3.4/32", "1.2.3.4"}, {"2001:DB8::1", "[2001:db8::1]"},
		{"[2001:db8::1]:443", "[2001:db8::1]:443"}, {"2001:db8::/32", "[2001:db8::/32]"},
		{"[2001:db8::/32]:443", "[2001:db8::/32]:443"}, {"::/0", "[::/0]"},
		{"example.com.", "example.com"}, {"localhost:8080", "localhost:8080"},
		{"*.b\xc3\xbc"
		 "cher.example",
			"*.xn--bcher-kva.example"}};
	char text[NETRULE_MAX_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct netrule nr;
		struct err err;

		for (size_t j = 0; j < 2; j++) { /* the canonical text gives itself */
			if (netrule_parse(slice_from_str(rows[i][j]), &nr, &err) < 0)
				fail_msg("%s: %s", rows[i][j], err.text);
			netrule_print(&nr, text);
			netrule_done(&nr);
			assert_string_equal(text, rows[i][1]);
		}
	}
}

static void odd_resources_are_refused(void **state)
{
	static const char *const bad[] = {"", "*", "*:443", ":443", "**.", "*.", "***", "***.com",
		"a.**", "a.**.com", "**com", "**.**.com", "example.*", "*.*", "com*", "a\\*.com",
		"a\\.com", "example.com:", "example.com:0", "example.com:65536",
		"example.com:443-80", "example.com:80-", "example.com:-80", "example.com:80-90-100",
		"example.com:http", "example.com:*", "443", "2130706433", "0x7f.1", "127.1",
		"010.0.0.1", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/08", "10.0.0.0/-1",
		"example.com/8", "10.0/8", "[10.0.0.0/8]", "::ffff:1.2.3.4", "[::ffff:0:0/96]",
		"[2001:db8::1", "2001:db8::1]", "[2001:db8::1]443", "[2001:db8::1/32]",
		"fe80::1%eth0", "a..com", "-a.com", "a b.com", "a[.com", "a[!b].com", "*.1.2.3.4",
		"**.10.0.0.1", "*.123", "*.0x7f", "\xc3\xbc*.com", "*.a\xe3\x80\x82net"};
	struct netrule nr;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (netrule_parse(slice_from_str(bad[i]), &nr, NULL) == 0)
			fail_msg("'%s' is taken", bad[i]);
	assert_int_equal(netrule_parse(slice_of("a\0.com", 6), &nr, NULL), -EINVAL);
}

static void the_hint_says_what_to_write(void **state)
{
	struct netrule nr;
	struct err err;

	assert_int_equal(netrule_parse(slice_from_str("10.1.2.3/8"), &nr, &err), -EINVAL);
	assert_non_null(strstr(err.text, "use 10.0.0.0/8"));
	assert_int_equal(netrule_parse(slice_from_str("443"), &nr, &err), -EINVAL);
	assert_non_null(strstr(err.text, "0.0.1.187"));
	assert_int_equal(netrule_parse(slice_from_str("*"), &nr, &err), -EINVAL);
	assert_non_null(strstr(err.text, "'**'"));
}

static bool meet(const char *a, const char *b)
{
	struct netrule x, y;
	bool one, other;

	assert_int_equal(netrule_parse(slice_from_str(a), &x, NULL), 0);
	assert_int_equal(netrule_parse(slice_from_str(b), &y, NULL), 0);
	one = netrule_may_meet(&x, &y);
	other = netrule_may_meet(&y, &x);
	assert_int_equal(one, other);
	netrule_done(&x);
	netrule_done(&y);
	return one;
}

static void resources_that_share_a_host_meet(void **state)
{
	static const char *const yes[][2] = {{"a.com", "a.com"}, {"**", "a.com"},
		{"**", "10.0.0.0/8"}, {"*.a.com", "b.a.com"}, {"**.a.com", "c.b.a.com"},
		{"**.a.com", "*.a.com"}, {"**.a.com", "**.b.a.com"}, {"*.a.com", "b*.a.com"},
		{"x*.a.com", "*y.a.com"}, {"10.0.0.0/8", "10.1.0.0/16"}, {"10.0.0.0/8", "10.1.2.3"},
		{"::/0", "2001:db8::1"}, {"**.a.com", "**.com"}, {"*.*.com", "b.a.com"},
		{"**.a.com", "*.*.a.com"}};
	static const char *const no[][2] = {{"a.com", "b.com"}, {"*.a.com", "a.com"},
		{"**.a.com", "a.com"}, {"*.a.com", "c.b.a.com"}, {"x*.a.com", "y*.a.com"},
		{"10.0.0.0/8", "11.0.0.0/8"}, {"::/0", "0.0.0.0/0"}, {"10.0.0.0/8", "a.com"},
		{"**.a.com", "**.b.com"}, {"*.a.com", "**.b.a.com"}};

	for (size_t i = 0; i < ARRAY_LEN(yes); i++)
		if (!meet(yes[i][0], yes[i][1]))
			fail_msg("%s and %s do not meet", yes[i][0], yes[i][1]);
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		if (meet(no[i][0], no[i][1]))
			fail_msg("%s and %s meet", no[i][0], no[i][1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resources_have_one_canonical_text),
		cmocka_unit_test(odd_resources_are_refused),
		cmocka_unit_test(the_hint_says_what_to_write),
		cmocka_unit_test(resources_that_share_a_host_meet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
