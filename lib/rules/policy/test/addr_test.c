/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/rules/policy/addr.h"

static struct addr get(const char *text)
{
	struct addr a = {0};

	if (addr_parse(slice_from_str(text), &a) < 0)
		fail_msg("%s does not parse", text);
	return a;
}

static enum addr_class class_of(const char *text)
{
	struct addr a = get(text);

	return addr_classify(&a, NULL);
}

static void strict_text_and_back(void **state)
{
	static const char *const same[] = {
		"0.0.0.0", "1.2.3.4", "255.255.255.255", "::", "::1", "2001:db8::1", "fe80::1:2"};
	static const char *const bad[] = {"", "1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.256",
		"1.2.3.4 ", " 1.2.3.4", "1..3.4", "0x1.2.3.4", "1.2.3.", ":", ":::", "1::2::3",
		"fe80::1%eth0", "[::1]", "::1 ", "12345::", "1.2.3.4444", "::1.2.3.04"};
	char text[ADDR_MAX_TEXT];
	struct addr a;

	for (size_t i = 0; i < ARRAY_LEN(same); i++) {
		a = get(same[i]);
		addr_print(&a, text);
		assert_string_equal(text, same[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (addr_parse(slice_from_str(bad[i]), &a) == 0)
			fail_msg("'%s' is taken for an address", bad[i]);
	assert_int_equal(addr_parse(slice_of("::1\0", 4), &a), -EINVAL);
	a = get("2001:DB8:0:0:0:0:0:1");
	addr_print(&a, text);
	assert_string_equal(text, "2001:db8::1");
}

static void a_mapped_address_is_the_ipv4_address(void **state)
{
	struct addr a = get("::ffff:10.1.2.3"), b = get("::ffff:a01:203"), c = get("10.1.2.3");

	assert_int_equal(a.n, 4);
	assert_true(addr_eq(&a, &c));
	assert_true(addr_eq(&b, &c));
}

static void every_range_has_its_class(void **state)
{
	static const struct {
		const char *addr;
		enum addr_class class;
	} rows[] = {
		{"8.8.8.8", ADDR_PUBLIC},
		{"1.1.1.1", ADDR_PUBLIC},
		{"9.255.255.255", ADDR_PUBLIC},
		{"11.0.0.0", ADDR_PUBLIC},
		{"172.15.255.255", ADDR_PUBLIC},
		{"172.32.0.0", ADDR_PUBLIC},
		{"100.63.255.255", ADDR_PUBLIC},
		{"100.128.0.0", ADDR_PUBLIC},
		{"223.255.255.255", ADDR_PUBLIC},
		{"168.63.129.15", ADDR_PUBLIC},
		{"2606:4700::1111", ADDR_PUBLIC},
		{"2a00:1450:4001::200e", ADDR_PUBLIC},
		{"10.0.0.0", ADDR_PRIVATE},
		{"10.255.255.255", ADDR_PRIVATE},
		{"172.16.0.0", ADDR_PRIVATE},
		{"172.31.255.255", ADDR_PRIVATE},
		{"192.168.0.1", ADDR_PRIVATE},
		{"fc00::1", ADDR_PRIVATE},
		{"fdff:ffff::1", ADDR_PRIVATE},
		{"fec0::1", ADDR_PRIVATE},
		{"127.0.0.1", ADDR_LOOPBACK},
		{"127.255.255.254", ADDR_LOOPBACK},
		{"::1", ADDR_LOOPBACK},
		{"169.254.0.1", ADDR_LINK_LOCAL},
		{"fe80::1", ADDR_LINK_LOCAL},
		{"febf::1", ADDR_LINK_LOCAL},
		{"100.64.0.0", ADDR_CGNAT},
		{"100.127.255.255", ADDR_CGNAT},
		{"169.254.169.254", ADDR_METADATA},
		{"169.254.170.2", ADDR_METADATA},
		{"169.254.170.23", ADDR_METADATA},
		{"100.100.100.200", ADDR_METADATA},
		{"168.63.129.16", ADDR_METADATA},
		{"192.0.0.192", ADDR_METADATA},
		{"fd00:ec2::254", ADDR_METADATA},
		{"fd00:ec2::23", ADDR_METADATA},
		{"fd20:ce::254", ADDR_METADATA},
		{"224.0.0.1", ADDR_MULTICAST},
		{"239.255.255.250", ADDR_MULTICAST},
		{"ff02::1", ADDR_MULTICAST},
		{"255.255.255.255", ADDR_BROADCAST},
		{"0.0.0.0", ADDR_UNSPECIFIED},
		{"0.1.2.3", ADDR_UNSPECIFIED},
		{"::", ADDR_UNSPECIFIED},
		{"198.18.0.1", ADDR_BENCHMARK},
		{"198.19.255.255", ADDR_BENCHMARK},
		{"2001:2::1", ADDR_BENCHMARK},
		{"192.0.2.1", ADDR_DOCUMENTATION},
		{"198.51.100.1", ADDR_DOCUMENTATION},
		{"203.0.113.1", ADDR_DOCUMENTATION},
		{"2001:db8::1", ADDR_DOCUMENTATION},
		{"3fff::1", ADDR_DOCUMENTATION},
		{"192.88.99.1", ADDR_TUNNEL},
		{"192.0.0.1", ADDR_RESERVED},
		{"240.0.0.1", ADDR_RESERVED},
		{"100::1", ADDR_RESERVED},
		{"4000::1", ADDR_RESERVED},
		{"2001:20::1", ADDR_RESERVED},
		{"5f00::1", ADDR_RESERVED},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (class_of(rows[i].addr) != rows[i].class)
			fail_msg("%s is %s, not %s", rows[i].addr,
				addr_class_name(class_of(rows[i].addr)),
				addr_class_name(rows[i].class));
}

/* Each way to write an IPv4 address inside an IPv6 one: what stands before and behind it. */
static const struct {
	const char *before, *behind;
	bool inverted;
} embeddings[] = {
	{"::ffff:", "", false},		/* mapped */
	{"::", "", false},		/* compatible */
	{"::ffff:0:", "", false},	/* translated */
	{"64:ff9b::", "", false},	/* NAT64 */
	{"2002:", "::1", false},	/* 6to4 */
	{"2001:0:", "::1", false},	/* Teredo's server */
	{"2001:0:808:808::", "", true}, /* Teredo's client */
	{"2606::5efe:", "", false},	/* ISATAP */
	{"2606::200:5efe:", "", false}, /* ISATAP of a global address */
};

static void ssrfcheck_cve_2026_43929_embedded_addresses_are_decoded(void **state)
{
	static const char *const forbidden[] = {"169.254.169.254", "127.0.0.1", "10.0.0.1",
		"172.16.5.5", "192.168.1.1", "100.64.0.1", "169.254.1.1", "100.100.100.200",
		"168.63.129.16", "224.0.0.1", "0.0.0.0"};

	for (size_t i = 0; i < ARRAY_LEN(forbidden); i++) {
		struct addr a = get(forbidden[i]);
		unsigned hi = (unsigned)a.b[0] << 8 | a.b[1], lo = (unsigned)a.b[2] << 8 | a.b[3];

		for (size_t j = 0; j < ARRAY_LEN(embeddings); j++) {
			unsigned flip = embeddings[j].inverted ? 0xffff : 0;
			char text[ADDR_MAX_TEXT];

			(void)snprintf(text, sizeof(text), "%s%04x:%04x%s", embeddings[j].before,
				hi ^ flip, lo ^ flip, embeddings[j].behind);
			if (class_of(text) == ADDR_PUBLIC)
				fail_msg("%s in %s is taken for public", forbidden[i], text);
			if (addr_classify(&a, NULL) == ADDR_METADATA &&
				class_of(text) != ADDR_METADATA)
				fail_msg("%s is %s", text, addr_class_name(class_of(text)));
		}
	}
	assert_int_equal(class_of("64:ff9b:1:a9fe:a9:fe00::"), ADDR_METADATA);
	assert_int_equal(class_of("64:ff9b:1::808:808"), ADDR_UNSPECIFIED);
	assert_int_equal(class_of("64:ff9b:1:808:8:800::"), ADDR_UNSPECIFIED);
	assert_int_equal(class_of("64:ff9b:1:808:8:800:808:808"), ADDR_TUNNEL);
	assert_int_equal(class_of("64:ff9b:1:808:8:800:a9fe:a9fe"), ADDR_METADATA);
	/* The IPv4 Internet seen from a network that has only IPv6. */
	assert_int_equal(class_of("64:ff9b::808:808"), ADDR_PUBLIC);
}

static void the_range_says_how_exactly_a_rule_must_name_it(void **state)
{
	static const struct {
		const char *addr;
		uint8_t prefix;
	} rows[] = {{"10.1.2.3", 8}, {"169.254.1.1", 16}, {"169.254.169.254", 32}, {"fd00::1", 7},
		{"fd00:ec2::254", 128}, {"64:ff9b::a01:203", 128}, {"2606::5efe:a01:203", 128}};
	struct addr_net net;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct addr a = get(rows[i].addr);

		(void)addr_classify(&a, &net);
		assert_int_equal(net.prefix, rows[i].prefix);
		assert_true(addr_net_has(&net, &a));
	}
}

static void networks_hold_their_addresses(void **state)
{
	struct addr a = get("10.255.255.255"), b = get("11.0.0.0"), c = get("::");
	struct addr_net wide = addr_net_of(&a, 8), all4 = addr_net_of(&a, 0);
	struct addr_net odd = addr_net_of(&a, 13);
	char text[ADDR_MAX_TEXT];

	addr_print(&odd.addr, text);
	assert_string_equal(text, "10.248.0.0");
	assert_true(addr_net_has(&wide, &a));
	assert_false(addr_net_has(&wide, &b));
	assert_true(addr_net_has(&all4, &b));
	assert_false(addr_net_has(&all4, &c));
	assert_true(addr_net_covers(&wide, &odd));
	assert_false(addr_net_covers(&odd, &wide));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strict_text_and_back),
		cmocka_unit_test(a_mapped_address_is_the_ipv4_address),
		cmocka_unit_test(every_range_has_its_class),
		cmocka_unit_test(ssrfcheck_cve_2026_43929_embedded_addresses_are_decoded),
		cmocka_unit_test(the_range_says_how_exactly_a_rule_must_name_it),
		cmocka_unit_test(networks_hold_their_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
