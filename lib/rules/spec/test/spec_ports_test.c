/* SPDX-License-Identifier: Apache-2.0 */
/* The ports of a spec: what they may be, and when two of them are in each other's way. */
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>
#include <jansson.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/rules/spec/spec.h"

static int decode(const char *ports, struct spec *ret, struct err *err)
{
	AUTO_FREE char *text = xasprintf("{\"name\":\"demo\",\"ports\":%s}", ports);

	return spec_decode(slice_from_str(text), ret, err);
}

static void test_ports_come_back_as_they_went(void **state)
{
	AUTO_SPEC struct spec spec = {0};
	AUTO_SPEC struct spec again = {0};
	AUTO_SPEC struct spec copy = {0};
	AUTO_FREE char *text = NULL;
	struct err err = {0};

	assert_int_equal(
		decode("[{\"sandbox_port\":8080},"
		       "{\"host_ip\":\"0.0.0.0\",\"host_port\":18081,\"sandbox_port\":80,"
		       "\"protocol\":\"tcp\"},"
		       "{\"host_ip\":\"FE80::0:1\",\"host_port\":1,\"sandbox_port\":65535},"
		       "{\"host_port\":5000,\"sandbox_port\":5000,\"protocol\":\"tcp6\"}]",
			&spec, &err),
		0);
	assert_int_equal(spec.n_ports, 4);
	assert_string_equal(spec.ports[0].host_ip, "127.0.0.1");
	assert_int_equal(spec.ports[0].host_port, 0);
	assert_int_equal(spec.ports[0].port, 8080);
	assert_string_equal(spec.ports[2].host_ip, "fe80::1");
	assert_string_equal(spec.ports[3].host_ip, "::1");
	assert_string_equal(spec_port_protocol(&spec.ports[1]), "tcp4");
	assert_string_equal(spec_port_protocol(&spec.ports[3]), "tcp6");
	text = spec_encode(&spec);
	assert_int_equal(spec_decode(slice_from_str(text), &again, &err), 0);
	assert_true(spec_matches(&spec, &again));
	spec_copy(&spec, &copy);
	assert_true(spec_matches(&spec, &copy));
	copy.ports[1].host_port++;
	assert_false(spec_matches(&spec, &copy));
	copy.ports[1].host_port--;
	copy.n_ports--;
	assert_false(spec_matches(&spec, &copy));
}

static void test_a_wrong_port_is_refused_with_a_sentence(void **state)
{
	static const struct {
		const char *ports, *text;
	} rows[] = {
		{"{}", "ports must be a list"},
		{"[1]", "a port must be an object"},
		{"[{}]", "missing sandbox_port of a port"},
		{"[{\"sandbox_port\":0}]", "sandbox_port must be a whole number from 1 to 65535"},
		{"[{\"sandbox_port\":65536}]", "sandbox_port must be"},
		{"[{\"sandbox_port\":\"80\"}]", "sandbox_port must be"},
		{"[{\"sandbox_port\":80,\"host_port\":-1}]", "host_port must be"},
		{"[{\"sandbox_port\":80,\"host_ip\":\"localhost\"}]",
			"invalid host_ip 'localhost'"},
		{"[{\"sandbox_port\":80,\"host_ip\":\"127.1\"}]", "invalid host_ip '127.1'"},
		{"[{\"sandbox_port\":80,\"host_ip\":\"224.0.0.1\"}]",
			"expected the address of one host"},
		{"[{\"sandbox_port\":80,\"host_ip\":7}]", "must be a string"},
		{"[{\"sandbox_port\":80,\"state\":\"open\"}]", "unknown field 'state' of a port"},
		{"[{\"sandbox_port\":80,\"protocol\":\"udp\"}]", "only TCP is supported"},
		{"[{\"sandbox_port\":80,\"protocol\":\"sctp\"}]", "must be tcp, tcp4 or tcp6"},
		{"[{\"sandbox_port\":80,\"host_ip\":\"::1\",\"protocol\":\"tcp4\"}]",
			"invalid address ::1 for tcp4"},
		{"[{\"sandbox_port\":80},{\"sandbox_port\":80}]", "already published"},
		{"[{\"sandbox_port\":80,\"host_port\":9},{\"sandbox_port\":81,\"host_port\":9}]",
			"port 127.0.0.1:9/tcp is already published"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_SPEC struct spec spec = {0};
		struct err err = {0};

		assert_int_equal(decode(rows[i].ports, &spec, &err), -EINVAL);
		if (!strstr(err.text, rows[i].text))
			fail_msg("%s: %s", rows[i].ports, err.text);
		assert_null(spec.ports);
	}
}

static void test_too_many_ports_are_refused(void **state)
{
	for (int n = SPEC_MAX_PORTS; n <= SPEC_MAX_PORTS + 1; n++) {
		AUTO_SPEC struct spec spec = {0};
		AUTO_FREE char *text = NULL;
		json_t *list = json_array();
		struct err err = {0};

		for (int i = 1; i <= n; i++)
			json_array_append_new(list, json_pack("{s:i}", "sandbox_port", i));
		text = json_dumps(list, 0);
		json_decref(list);
		assert_int_equal(decode(text, &spec, &err), n > SPEC_MAX_PORTS ? -E2BIG : 0);
	}
}

static void test_ports_meet_by_address_and_number(void **state)
{
	static const struct {
		struct spec_port a, b;
		bool meet;
	} rows[] = {
		{{"127.0.0.1", 80, 1}, {"127.0.0.1", 80, 2}, true},
		{{"127.0.0.1", 80, 1}, {"127.0.0.2", 80, 1}, false},
		{{"127.0.0.1", 80, 1}, {"0.0.0.0", 80, 1}, true},
		{{"0.0.0.0", 80, 1}, {"127.0.0.1", 80, 1}, true},
		{{"127.0.0.1", 80, 1}, {"::", 80, 1}, false},
		{{"::1", 80, 1}, {"::", 80, 1}, true},
		{{"127.0.0.1", 80, 1}, {"127.0.0.1", 81, 1}, false},
		{{"127.0.0.1", 0, 1}, {"127.0.0.1", 0, 1}, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(spec_port_meets(&rows[i].a, &rows[i].b), rows[i].meet);
}

static void test_a_socket_listens_at_its_address(void **state)
{
	static const char *const ips[] = {"127.0.0.1", "::1"};

	for (size_t i = 0; i < ARRAY_LEN(ips); i++) {
		struct spec_port p = {.port = 1}, other = {.host_ip = "127.0.0.2", .port = 1};
		struct sockaddr sa;
		socklen_t n = sizeof(sa);
		AUTO_CLOSE int fd = -1, idle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		(void)snprintf(p.host_ip, sizeof(p.host_ip), "%s", ips[i]);
		fd = spec_port_listen(&(struct spec_port){.host_ip = "127.0.0.1"}, 1);
		assert_int_equal(getsockname(fd, &sa, &n), 0);
		fd_close(&fd);
		assert_int_equal(bind(idle, &sa, n), 0); /* does not listen */
		fd = spec_port_listen(&p, 1);
		if (i == 1 && fd == -EADDRNOTAVAIL)
			continue; /* a host without IPv6 */
		assert_true(fd >= 0);
		assert_true(spec_port_is_at(&p, fd));
		assert_false(spec_port_is_at(&other, fd));
		assert_false(spec_port_is_at(&p, idle));
		p.host_port = 1;
		assert_false(spec_port_is_at(&p, fd));
	}
	assert_int_equal(spec_port_listen(&(struct spec_port){.host_ip = "localhost"}, 1), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ports_come_back_as_they_went),
		cmocka_unit_test(test_a_wrong_port_is_refused_with_a_sentence),
		cmocka_unit_test(test_too_many_ports_are_refused),
		cmocka_unit_test(test_ports_meet_by_address_and_number),
		cmocka_unit_test(test_a_socket_listens_at_its_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
