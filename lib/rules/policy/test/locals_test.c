/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "lib/base/mem.h"
#include "lib/rules/policy/locals_read.h"
#include "lib/rules/policy/policy.h"
#include "lib/rules/policy/test/policy_text.h"

static struct addr addr(const char *text)
{
	struct addr a = {0};

	assert_int_equal(addr_parse(slice_from_str(text), &a), 0);
	return a;
}

static void add(struct addr_locals *l, const char *text, uint8_t prefix, bool is_own)
{
	struct addr a = addr(text);
	struct addr_net net = addr_net_of(&a, prefix);

	assert_true(addr_locals_add(l, &net, is_own));
}

static void put_host(struct addr_locals *l)
{
	*l = (struct addr_locals){0};
	add(l, "127.0.0.1", 32, true);
	add(l, "192.168.1.5", 32, true);
	add(l, "93.184.216.34", 32, true);
	add(l, "93.184.216.0", 24, false);
	add(l, "2a00:1:2:3::99", 128, true);
	add(l, "2a00:1:2:3::", 64, false);
	add(l, "2a00:1::", 32, false);
	add(l, "203.0.114.0", 24, true); /* a local route */
}

static void classes_of_this_host_and_its_network(void **state)
{
	static const struct {
		const char *addr;
		enum addr_class class;
		unsigned prefix;
	} rows[] = {
		{"127.0.0.1", ADDR_LOOPBACK, 8},
		{"192.168.1.5", ADDR_OWN, 32},
		{"192.168.1.6", ADDR_PRIVATE, 16},
		{"93.184.216.34", ADDR_OWN, 32},
		{"93.184.216.35", ADDR_LAN, 24},
		{"93.184.217.34", ADDR_PUBLIC, 0},
		{"203.0.114.77", ADDR_OWN, 32},
		{"2a00:1:2:3::99", ADDR_OWN, 128},
		{"2a00:1:2:3::98", ADDR_LAN, 64},
		{"2a00:1:2:4::99", ADDR_LAN, 32},
		{"2a00:2:2:4::99", ADDR_PUBLIC, 3},
		{"64:ff9b::5db8:d822", ADDR_OWN, 128}, /* 93.184.216.34 by NAT64 */
		{"64:ff9b::5db8:d823", ADDR_LAN, 128},
		{"64:ff9b::808:808", ADDR_PUBLIC, 96},
	};
	struct addr_locals l;

	put_host(&l);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct addr a = addr(rows[i].addr);
		struct addr_net range;

		if (addr_locals_classify(&l, &a, &range) != rows[i].class ||
			range.prefix != rows[i].prefix)
			fail_msg("%s: %s, prefix %u", rows[i].addr,
				addr_class_name(addr_locals_classify(&l, &a, NULL)), range.prefix);
	}
}

static bool decide(const char *rules, const char *name, bool by_name, bool is_own)
{
	AUTO_FREE char *text = xasprintf("policy 1\n%s\nend\n", rules);
	struct policy *p = policy_load(slice_from_str(text), "test", "demo");
	struct policy_decision d;
	struct addr_locals l;
	struct host host = {0};
	struct addr a = addr(name);
	struct policy_op op = {.kind = RULE_NETWORK,
		.host = &host,
		.port = 443,
		.locals = is_own ? NULL : &l,
		.is_own = is_own};

	put_host(&l);
	assert_null(policy_fault(p));
	assert_int_equal(
		host_from_wire(slice_from_str(by_name ? "name.example" : name), &host, NULL), 0);
	if (by_name)
		policy_decide_address(p, &op, &a, &d);
	else
		policy_decide(p, &op, &d);
	policy_free(p);
	return d.allowed;
}

/* As an address of its own, behind an allowed name, and where only the connection shows it. */
static void own_addresses_need_a_rule_that_names_them(void **state)
{
	static const char *const wide[] = {"allow network **:1-65535", "allow network name.example",
		"allow network 93.184.216.0/24,192.168.0.0/16,[2a00::/16]"};
	static const char *const own[] = {"93.184.216.34", "192.168.1.5", "2a00:1:2:3::99"};

	for (size_t i = 0; i < ARRAY_LEN(wide); i++) {
		for (size_t n = 0; n < ARRAY_LEN(own); n++) {
			assert_false(decide(wide[i], own[n], false, false));
			assert_false(decide(wide[i], own[n], true, false));
			assert_false(decide(wide[i], own[n], true, true));
		}
	}
	assert_true(decide("allow network 93.184.216.34", "93.184.216.34", false, false));
	assert_true(decide("allow network 93.184.216.34", "93.184.216.34", true, true));
	assert_true(decide("allow network [2a00:1:2:3::99]", "2a00:1:2:3::99", true, false));
	assert_false(decide("allow network 93.184.216.34:80", "93.184.216.34", false, false));
	/* Others are as they were. */
	assert_true(decide("allow network name.example", "8.8.8.8", true, false));
	assert_true(decide("allow network 127.0.0.0/8", "127.0.0.1", true, true));
}

static void the_local_network_needs_a_rule_for_it(void **state)
{
	assert_false(decide("allow network **", "93.184.216.35", false, false));
	assert_false(decide("allow network name.example", "93.184.216.35", true, false));
	assert_false(decide("allow network 93.184.0.0/16", "93.184.216.35", true, false));
	assert_true(decide("allow network 93.184.216.0/24", "93.184.216.35", true, false));
	assert_true(decide("allow network 93.184.216.35", "93.184.216.35", false, false));
	assert_true(decide("allow network [2a00:1:2:3::/64]", "2a00:1:2:3::98", true, false));
}

static void a_full_list_keeps_what_it_has(void **state)
{
	struct addr_locals l = {0}, other = {0};
	struct addr a = addr("93.184.216.0");
	struct addr_net net;

	for (unsigned i = 0; i < ADDR_MAX_LOCALS; i++) {
		a.b[2] = (uint8_t)i;
		net = addr_net_of(&a, 32);
		assert_true(addr_locals_add(&l, &net, true));
		assert_true(addr_locals_add(&l, &net, true));
	}
	assert_int_equal(l.n, ADDR_MAX_LOCALS);
	net = addr_net_of(&a, 24);
	assert_false(addr_locals_add(&l, &net, true));
	assert_false(addr_locals_eq(&l, &other));
	other = l;
	assert_true(addr_locals_eq(&l, &other));
	other.list[7].is_own = false;
	assert_false(addr_locals_eq(&l, &other));
}

/* ---- what the kernel says ---- */

struct packet {
	uint8_t b[4096];
	size_t n;
};

static void *room(struct packet *p, size_t n)
{
	void *at = p->b + p->n;

	p->n += NLMSG_ALIGN(n);
	assert_in_range(p->n, 0, sizeof(p->b));
	return at;
}

static void put_attr(struct packet *p, uint16_t type, const char *text)
{
	struct addr a = addr(text);
	struct rtattr *rta = room(p, RTA_LENGTH(a.n));

	*rta = (struct rtattr){.rta_type = type, .rta_len = (uint16_t)RTA_LENGTH(a.n)};
	memcpy(RTA_DATA(rta), a.b, a.n);
}

static void put_address(struct packet *p, int family, const char *local, const char *other)
{
	size_t at = p->n;
	struct nlmsghdr *h = room(p, NLMSG_LENGTH(sizeof(struct ifaddrmsg)));

	*(struct ifaddrmsg *)NLMSG_DATA(h) =
		(struct ifaddrmsg){.ifa_family = (uint8_t)family, .ifa_prefixlen = 24};
	if (local)
		put_attr(p, IFA_LOCAL, local);
	put_attr(p, IFA_ADDRESS, other);
	*h = (struct nlmsghdr){.nlmsg_len = (uint32_t)(p->n - at), .nlmsg_type = RTM_NEWADDR};
}

static void put_route(
	struct packet *p, uint8_t type, const char *to, uint8_t prefix, const char *gw)
{
	size_t at = p->n;
	struct nlmsghdr *h = room(p, NLMSG_LENGTH(sizeof(struct rtmsg)));

	*(struct rtmsg *)NLMSG_DATA(h) =
		(struct rtmsg){.rtm_family = strchr(to, ':') ? AF_INET6 : AF_INET,
			.rtm_dst_len = prefix,
			.rtm_type = type};
	put_attr(p, RTA_DST, to);
	if (gw)
		put_attr(p, RTA_GATEWAY, gw);
	*h = (struct nlmsghdr){.nlmsg_len = (uint32_t)(p->n - at), .nlmsg_type = RTM_NEWROUTE};
}

static void the_kernels_lists_are_read(void **state)
{
	struct packet p = {0};
	struct addr_locals l = {0}, want = {0};
	struct nlmsghdr *h;

	put_address(&p, AF_INET, "192.168.1.5", "192.168.1.5");
	put_address(&p, AF_INET, "93.184.216.34", "93.184.216.1"); /* point to point */
	put_address(&p, AF_INET6, NULL, "2a00:1:2:3::99");
	put_address(&p, AF_INET6, NULL, "2a00:1:2:3::99");
	put_route(&p, RTN_UNICAST, "93.184.216.0", 24, NULL);
	put_route(&p, RTN_UNICAST, "8.8.8.0", 24, "93.184.216.1"); /* behind a gateway */
	put_route(&p, RTN_UNICAST, "192.168.1.0", 24, NULL);	   /* private anyway */
	put_route(&p, RTN_UNICAST, "128.0.0.0", 1, NULL);	   /* all of a VPN */
	put_route(&p, RTN_UNREACHABLE, "9.9.9.0", 24, NULL);
	put_route(&p, RTN_UNICAST, "2a00:1:2:3::", 64, NULL);
	put_route(&p, RTN_UNICAST, "2000::", 3, NULL);
	put_route(&p, RTN_UNICAST, "9.9.9.0", 77, NULL); /* no such prefix */
	put_route(&p, RTN_LOCAL, "93.184.216.34", 32, NULL);
	put_route(&p, RTN_LOCAL, "93.184.218.1", 32, NULL); /* of no interface */
	put_route(&p, RTN_LOCAL, "203.0.114.0", 24, NULL);
	put_route(&p, RTN_LOCAL, "10.7.0.1", 32, NULL);
	put_route(&p, RTN_LOCAL, "2a00:1:2:4::1", 128, NULL);
	put_route(&p, RTN_LOCAL, "0.0.0.0", 0, NULL); /* everything */
	put_route(&p, RTN_BROADCAST, "93.184.216.255", 32, NULL);
	assert_int_equal(locals_parse(&l, p.b, p.n), 0);
	add(&want, "192.168.1.5", 32, true);
	add(&want, "93.184.216.34", 32, true);
	add(&want, "2a00:1:2:3::99", 128, true);
	add(&want, "93.184.216.0", 24, false);
	add(&want, "2a00:1:2:3::", 64, false);
	add(&want, "93.184.218.1", 32, true);
	add(&want, "203.0.114.0", 24, true);
	add(&want, "10.7.0.1", 32, true);
	add(&want, "2a00:1:2:4::1", 128, true);
	assert_true(addr_locals_eq(&l, &want));
	/* Cut anywhere it is read as far as it goes. */
	for (size_t n = 0; n < p.n; n++)
		assert_int_equal(locals_parse(&l, p.b, n), 0);
	p.n = 0;
	h = room(&p, NLMSG_LENGTH(4));
	*h = (struct nlmsghdr){.nlmsg_len = NLMSG_LENGTH(4), .nlmsg_type = NLMSG_DONE};
	assert_int_equal(locals_parse(&l, p.b, p.n), 1);
	h->nlmsg_type = NLMSG_ERROR;
	assert_int_equal(locals_parse(&l, p.b, p.n), -EIO);
}

static void this_host_has_loopback(void **state)
{
	struct addr_locals l = {0};
	struct addr lo = addr("127.0.0.1");
	bool found = false;

	assert_int_equal(locals_read(&l), 0);
	for (size_t i = 0; i < l.n; i++)
		found = found || (l.list[i].is_own && addr_eq(&l.list[i].net.addr, &lo));
	assert_true(found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes_of_this_host_and_its_network),
		cmocka_unit_test(own_addresses_need_a_rule_that_names_them),
		cmocka_unit_test(the_local_network_needs_a_rule_for_it),
		cmocka_unit_test(a_full_list_keeps_what_it_has),
		cmocka_unit_test(the_kernels_lists_are_read),
		cmocka_unit_test(this_host_has_loopback),
	};

	return cmocka_run_group_tests_name("locals", tests, NULL, NULL);
}
