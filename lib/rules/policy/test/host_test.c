/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "lib/rules/policy/host.h"

typedef int from_fn(struct slice text, struct host *ret, struct err *err);

static from_fn *const readers[] = {host_from_wire, host_from_text};

static void names_become_canonical(void **state)
{
	static const char *const rows[][2] = {{"example.com", "example.com"},
		{"EXAMPLE.Com", "example.com"}, {"example.com.", "example.com"},
		{"localhost", "localhost"}, {"_dmarc.a_b.example", "_dmarc.a_b.example"},
		{"r3---sn-abc.example", "r3---sn-abc.example"}, {"1.2.3.com", "1.2.3.com"},
		{"0xg", "0xg"}, {"1.0xz", "1.0xz"}, {"a.b1", "a.b1"}};
	struct host h;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (size_t j = 0; j < ARRAY_LEN(readers); j++) {
			assert_int_equal(readers[j](slice_from_str(rows[i][0]), &h, NULL), 0);
			assert_false(h.is_addr);
			assert_string_equal(h.name, rows[i][1]);
			assert_int_equal(h.n, strlen(rows[i][1]));
		}
	}
}

static void bad_names_are_refused(void **state)
{
	static const char *const bad[] = {"", ".", "..", "example.com..", ".example.com", "a..b",
		"-a.example", "a-.example", "a.-", "a b", "a\tb", "a/b", "a%41", "a@b", "a\\b",
		"a,b", "*.example.com", "a#b", "a?b", "example.com:", "[example.com]", "[]", "[",
		"[::1", "::1]", "[::1].", "[::1%lo]", "fe80::1%25eth0", "[1.2.3.4]", ":",
		"1.2.3.4.5", "256.1.1.1", "1.2.3.256", "1.2.65536", "1.16777216", "4294967296",
		"0x100000000", "0x", "09", "1.2.3.08", "1.2.3.0x", "foo.1", "foo.0x1f", "a.b.7",
		"99999999999999999999", "1.2.3.4..", "040000000000"};
	struct host h;
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		for (size_t j = 0; j < ARRAY_LEN(readers); j++)
			if (readers[j](slice_from_str(bad[i]), &h, &err) == 0)
				fail_msg("'%s' is taken for host %s", bad[i], h.name);
}

static void lengths_end_at_63_and_253(void **state)
{
	char label[70], name[300] = "";
	struct host h;

	memset(label, 'a', sizeof(label));
	assert_int_equal(host_from_wire(slice_of(label, 63), &h, NULL), 0);
	assert_int_equal(host_from_wire(slice_of(label, 64), &h, NULL), -EINVAL);
	for (size_t i = 0; i < 254; i++)
		name[i] = i % 50 == 49 ? '.' : 'a';
	assert_int_equal(host_from_wire(slice_of(name, 253), &h, NULL), 0);
	assert_int_equal(h.n, 253);
	assert_int_equal(host_from_wire(slice_of(name, 254), &h, NULL), -EINVAL);
	name[253] = '.';
	assert_int_equal(host_from_wire(slice_of(name, 254), &h, NULL), 0);
}

static void every_spelling_of_an_ipv4_address_is_that_address(void **state)
{
	static const char *const rows[][2] = {{"127.0.0.1", "127.0.0.1"}, {"0x7f.1", "127.0.0.1"},
		{"2130706433", "127.0.0.1"}, {"017700000001", "127.0.0.1"},
		{"0x7F000001", "127.0.0.1"}, {"127.1", "127.0.0.1"}, {"127.0.1", "127.0.0.1"},
		{"0177.0.0.01", "127.0.0.1"}, {"0x7f.0x0.0x0.0x1", "127.0.0.1"},
		{"0x7f.00.0.1", "127.0.0.1"}, {"127.0.0.1.", "127.0.0.1"},
		{"0000000000000177.0.0.1", "127.0.0.1"}, {"0", "0.0.0.0"},
		{"0xa9fea9fe", "169.254.169.254"}, {"2852039166", "169.254.169.254"},
		{"0251.0376.0251.0376", "169.254.169.254"}, {"169.16689662", "169.254.169.254"},
		{"0xa9.0376.43518", "169.254.169.254"}, {"443", "0.0.1.187"}, {"[::1]", "::1"},
		{"::1", "::1"}, {"[::ffff:127.0.0.1]", "127.0.0.1"}, {"::FFFF:7f00:1", "127.0.0.1"},
		{"[2001:DB8:0::1]", "2001:db8::1"}};
	struct host h;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (size_t j = 0; j < ARRAY_LEN(readers); j++) {
			if (readers[j](slice_from_str(rows[i][0]), &h, NULL) < 0)
				fail_msg("%s is refused", rows[i][0]);
			assert_true(h.is_addr);
			assert_string_equal(h.name, rows[i][1]);
		}
	}
}

/* Numbers that are 127.0.0.1 only in 64 bits that overflow. */
static void a_number_that_overflows_is_refused(void **state)
{
	static const char *const rows[] = {"0x1000000007f000001", "18446744075840258049",
		"02000000000017700000001", "0x100000000", "4294967296", "0x1000000000000007f.1"};
	struct host h;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t j = 0; j < ARRAY_LEN(readers); j++)
			if (readers[j](slice_from_str(rows[i]), &h, NULL) != -EINVAL)
				fail_msg("%s is %s", rows[i], h.name);
}

/* Whatever libc would take for an address is never a name here. */
static void what_inet_aton_takes_is_never_a_name(void **state)
{
	static const char *const parts[] = {"0", "1", "255", "256", "0x7f", "0x", "017", "08",
		"65535", "65536", "16777215", "16777216", "4294967295", "4294967296", "0xffffffff",
		"00", "037777777777"};
	size_t seen = 0;

	srandom(1);
	for (int i = 0; i < 200000; i++) {
		char text[128] = "";
		struct in_addr in;
		struct host h;
		int n = 1 + (int)(random() % 4);

		for (int j = 0; j < n; j++) {
			size_t at = strlen(text);

			(void)snprintf(text + at, sizeof(text) - at, "%s%s", j ? "." : "",
				parts[(size_t)random() % ARRAY_LEN(parts)]);
		}
		int r = host_from_wire(slice_from_str(text), &h, NULL);

		if (r == 0 && !h.is_addr)
			fail_msg("'%s' is a name", text);
		if (inet_aton(text, &in)) {
			seen++;
			if (r < 0 || memcmp(&in, h.addr.b, 4) != 0)
				fail_msg("'%s' is not what libc makes of it", text);
		}
	}
	assert_true(seen > 1000);
}

/* attacker\0.allowed.com: only letters, digits, '-', '_' and '.' go through, at any place. */
static void socks5_nul_byte_every_byte_value_at_every_place(void **state)
{
	static const char base[] = "attacker.allowed.com";

	for (size_t r = 0; r < ARRAY_LEN(readers); r++) {
		for (size_t at = 0; at <= strlen(base); at++) {
			for (int c = 0; c < 256; c++) {
				char text[sizeof(base) + 1];
				struct host h;
				size_t n = strlen(base) + 1;
				bool ok = c < 0x80 && c &&
					  strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLM"
						 "NOPQRSTUVWXYZ0123456789-_.",
						  c);

				memcpy(text, base, at);
				text[at] = (char)c;
				memcpy(text + at + 1, base + at, strlen(base) - at);
				if (readers[r](slice_of(text, n), &h, NULL) < 0)
					continue;
				if (!ok)
					fail_msg("byte 0x%02x at %zu goes through", c, at);
				assert_int_equal(strlen(h.name), h.n);
				assert_true(h.n == n || (c == '.' && h.n == n - 1));
			}
		}
	}
}

static void international_names_become_a_labels(void **state)
{
	static const char *const rows[][2] = {{"b\xc3\xbc"
					       "cher.example",
						      "xn--bcher-kva.example"},
		{"B\xc3\x9c"
		 "CHER.example",
			"xn--bcher-kva.example"},
		{"fa\xc3\x9f.de", "xn--fa-hia.de"}, /* sharp s stays: non-transitional */
		{"xn--bcher-kva.example", "xn--bcher-kva.example"},
		{"XN--BCHER-KVA.example", "xn--bcher-kva.example"},
		{"a\xe3\x80\x82"
		 "example",
			"a.example"},			   /* the ideographic full stop */
		{"\xef\xbd\x85xample.com", "example.com"}, /* full width e */
		{"_x.b\xc3\xbc"
		 "cher.example",
			"_x.xn--bcher-kva.example"}};
	struct host h;
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (host_from_text(slice_from_str(rows[i][0]), &h, &err) < 0)
			fail_msg("%s: %s", rows[i][1], err.text);
		assert_string_equal(h.name, rows[i][1]);
		if ((rows[i][0][0] | 0x20) != 'x')
			assert_int_equal(
				host_from_wire(slice_from_str(rows[i][0]), &h, NULL), -EINVAL);
	}
	/* Full width digits are an address, and a dot among them stays a dot. */
	assert_int_equal(host_from_text(slice_from_str("\xef\xbc\x91"
						       "27.0.0.1"),
				 &h, NULL),
		0);
	assert_true(h.is_addr);
	assert_string_equal(h.name, "127.0.0.1");
}

static void bad_international_names_are_refused(void **state)
{
	static const char *const bad[] = {"\xff.example", "b\xc3.example", "\xe2\x80\x8b.example",
		"a\xe2\x80\xae.example", "xn--a.example", "xn--.example", "xn--zzzzzz99999.example",
		"\xe2\x84\x80.example", "\xcc\x80.example"};
	char longer[HOST_MAX_INPUT + 2];
	struct host h;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (host_from_text(slice_from_str(bad[i]), &h, NULL) == 0)
			fail_msg("row %zu is taken for %s", i, h.name);
	memset(longer, 0xc3, sizeof(longer));
	assert_int_equal(host_from_text(slice_of(longer, sizeof(longer)), &h, NULL), -EINVAL);
	assert_int_equal(host_from_text(slice_of("b\xc3\xbc\0.com", 8), &h, NULL), -EINVAL);
}

static void targets_are_cut_into_host_and_port(void **state)
{
	static const struct {
		const char *target, *host;
		int port; /* -1: refused */
	} rows[] = {{"a.example", "a.example", 0}, {"a.example:443", "a.example", 443},
		{"[::1]:80", "[::1]", 80}, {"[::1]", "[::1]", 0}, {"::1", "::1", 0},
		{"1.2.3.4:65535", "1.2.3.4", 65535}, {"a:0", NULL, -1}, {"a:", NULL, -1},
		{"a:65536", NULL, -1}, {"a:080", NULL, -1}, {"a:+80", NULL, -1},
		{"a: 80", NULL, -1}, {"a:80x", NULL, -1}, {"a:999999", NULL, -1}, {"", "", 0}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct slice host;
		uint16_t port;
		int r = host_split(slice_from_str(rows[i].target), &host, &port, NULL);

		assert_int_equal(r, rows[i].port < 0 ? -EINVAL : 0);
		if (r < 0)
			continue;
		assert_true(slice_eq_str(host, rows[i].host));
		assert_int_equal(port, rows[i].port);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_become_canonical),
		cmocka_unit_test(bad_names_are_refused),
		cmocka_unit_test(lengths_end_at_63_and_253),
		cmocka_unit_test(every_spelling_of_an_ipv4_address_is_that_address),
		cmocka_unit_test(a_number_that_overflows_is_refused),
		cmocka_unit_test(what_inet_aton_takes_is_never_a_name),
		cmocka_unit_test(socks5_nul_byte_every_byte_value_at_every_place),
		cmocka_unit_test(international_names_become_a_labels),
		cmocka_unit_test(bad_international_names_are_refused),
		cmocka_unit_test(targets_are_cut_into_host_and_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
