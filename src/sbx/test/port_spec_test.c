/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "src/sbx/sandbox/port_spec.h"

static void specs_are_read_as_users_know_them(void **state)
{
	static const struct {
		const char *text, *ip, *ip2;
		unsigned host_port, port;
	} rows[] = {
		{"8080", "127.0.0.1", "", 0, 8080},
		{"18081:8080", "127.0.0.1", "", 18081, 8080},
		{"18081:8080/tcp4", "127.0.0.1", "", 18081, 8080},
		{"18081:8080/tcp6", "::1", "", 18081, 8080},
		{"18081:8080/tcp", "127.0.0.1", "::1", 18081, 8080},
		{"0.0.0.0:80:3000", "0.0.0.0", "", 80, 3000},
		{"127.0.0.1::3000", "127.0.0.1", "", 0, 3000},
		{"[::1]:8080:80", "::1", "", 8080, 80},
		{"[FE80::0:1]::80/tcp", "fe80::1", "", 0, 80},
		{"[::]:8080:80", "::", "", 8080, 80},
		{"localhost:8080:80", "127.0.0.1", "::1", 8080, 80},
		{"localhost:8080:80/tcp4", "127.0.0.1", "", 8080, 80},
		{"localhost:8080:80/tcp6", "::1", "", 8080, 80},
		{"1:65535", "127.0.0.1", "", 1, 65535},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct port_spec s;
		struct err err = {0};

		if (port_spec_parse(rows[i].text, &s, &err) < 0)
			fail_msg("%s: %s", rows[i].text, err.text);
		assert_string_equal(s.ip[0], rows[i].ip);
		assert_string_equal(s.ip[1], rows[i].ip2);
		assert_int_equal(s.n_ips, rows[i].ip2[0] ? 2 : 1);
		assert_int_equal(s.host_port, rows[i].host_port);
		assert_int_equal(s.port, rows[i].port);
	}
}

static void what_is_none_is_refused_with_a_reason(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"", "expected 1 to 65535"},
		{"0", "expected 1 to 65535"},
		{"65536", "expected 1 to 65535"},
		{"http", "expected 1 to 65535"},
		{":80", "expected 1 to 65535"},
		{"80:", "expected 1 to 65535"},
		{"0:80", "expected 1 to 65535"},
		{"8080:80/", "expected tcp, tcp4 or tcp6"},
		{"8080:80/udp", "only TCP is supported"},
		{"8080:80/udp6", "only TCP is supported"},
		{"8080:80/sctp", "expected tcp, tcp4 or tcp6"},
		{"::1:8080:80", "invalid port '1:8080:80': expected 1 to 65535"},
		{"[::1:8080:80", "expected ']:' after"},
		{"[::1]8080:80", "expected ']:' after"},
		{"[::1]:80", "missing"},
		{"::1", "invalid host address ''"},
		{"127.0.0.1:8080:80/tcp6", "invalid host address '127.0.0.1' for tcp6"},
		{"[::1]:8080:80/tcp4", "invalid host address '::1' for tcp4"},
		{"example.com:8080:80", "invalid host address 'example.com'"},
		{"127.1:8080:80", "invalid host address '127.1'"},
		{"1:2:3:4", "invalid port '3:4': expected 1 to 65535"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct port_spec s;
		struct err err = {0};

		assert_int_equal(port_spec_parse(rows[i].text, &s, &err), -EINVAL);
		if (!strstr(err.text, rows[i].why) || !strstr(err.text, "SANDBOX_PORT"))
			fail_msg("%s: %s", rows[i].text, err.text);
	}
}

static void ports_are_shown_in_short(void **state)
{
	json_t *list = json_array();
	char *text = port_spec_summary(list);

	assert_string_equal(text, "-");
	free(text);
	json_array_append_new(
		list, json_pack("{s:s,s:i,s:i,s:s}", "host_ip", "127.0.0.1", "host_port", 8080,
			      "sandbox_port", 3000, "protocol", "tcp4"));
	text = port_spec_summary(list);
	assert_string_equal(text, "127.0.0.1:8080->3000/tcp4");
	free(text);
	json_array_append_new(list, json_pack("{s:s,s:i}", "host_ip", "::1", "host_port", 0));
	text = port_spec_summary(list);
	assert_string_equal(text, "127.0.0.1:8080->3000/tcp4 (+1)");
	free(text);
	text = port_spec_address(json_array_get(list, 1));
	assert_string_equal(text, "[::1]:any");
	free(text);
	json_decref(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(specs_are_read_as_users_know_them),
		cmocka_unit_test(what_is_none_is_refused_with_a_reason),
		cmocka_unit_test(ports_are_shown_in_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
