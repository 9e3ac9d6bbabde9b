/* SPDX-License-Identifier: Apache-2.0 */
/* Allowed targets: names, addresses, pins, and connections that a new policy ends. */
#include "egress_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/os/jail/unsealed.h"
#include "lib/rules/policy/host.h"
#include "src/egress/state/limits.h"

#define ALLOW_ALL "policy 1\nallow network **:1-65535\nend\n"

static int listener = -1;

static int setup(void **state)
{
	rig_dns_clear();
	(void)rig_dns_add("origin.example.com", RIG_PUBLIC);
	listener = rig_listen(443);
	return 0;
}

static int teardown(void **state)
{
	fd_close(&listener);
	return 0;
}

/* No connection was made. */
static void assert_quiet(void)
{
	assert_true(rig_accept(listener, 50) < 0);
}

static void test_an_allowed_name_is_reached(void **state)
{
	struct rig *r = rig_new();

	rig_up(r, "policy 1\nallow network origin.example.com\nend\n", NULL);
	assert_string_equal(r->loaded, "");
	rig_tunnel(r, listener, "origin.example.com", RIG_PUBLIC);
	assert_true(rig_dns->n_queries == 2); /* A and AAAA, no search list, no second try */
	fd_close(&r->keeper);
	assert_int_equal(rig_exit(r), 0);
	rig_free(r);
}

/* Whether egress and the test are in the same namespace. */
static bool shares(const struct rig *r, const char *ns)
{
	char path[64], ours[64] = "", its[64] = "";

	(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", ns);
	assert_true(readlink(path, ours, sizeof(ours) - 1) > 0);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)r->pid, ns);
	assert_true(readlink(path, its, sizeof(its) - 1) > 0);
	return strcmp(ours, its) == 0;
}

static void test_in_all_of_its_jail(void **state)
{
	struct rig *r = rig_new_jailed();

	assert_true(shares(r, "net"));
	assert_false(shares(r, "user") || shares(r, "mnt") || shares(r, "pid"));
	assert_false(shares(r, "ipc") || shares(r, "uts") || shares(r, "cgroup"));
	rig_up(r, ALLOW_ALL, NULL);
	(void)rig_dns_add("six.example.com", RIG_PUBLIC6);
	rig_dns_add("big.example.com", RIG_PUBLIC)->truncated = true;
	rig_tunnel(r, listener, "origin.example.com", RIG_PUBLIC);
	rig_tunnel(r, listener, "six.example.com", RIG_PUBLIC6);
	rig_tunnel(r, listener, "big.example.com", RIG_PUBLIC);
	assert_true(rig_dns->n_tcp > 0);
	rig_tunnel(r, listener, RIG_PUBLIC6, RIG_PUBLIC6);
	fd_close(&r->keeper);
	assert_int_equal(rig_exit(r), 0);
	rig_free(r);
}

static void test_a_denied_name_sends_no_packet(void **state)
{
	static const char *const policies[] = {
		"policy 1\nallow network other.example.com\nend\n",
		"policy 1\nallow network **\ndeny network origin.example.com\nend\n",
		"policy 1\nallow network origin.example.com:80\nend\n",
		"policy 1\nallow network origin.example.com for sandbox another\nend\n",
		"policy 1\nallow network origin.example.com until 2020-01-01T00:00:00Z\nend\n",
		"policy 1\nallow network **\n", /* cut off */
		"",
	};
	struct rig *r = rig_new();

	rig_up(r, "policy 1\nend\n", NULL);
	for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
		rig_policy(r, policies[i]);
		(void)rig_refused(
			r, rig_connect(r, "origin.example.com", 443), EGRESS_DENIED_POLICY, 403);
	}
	assert_int_equal(rig_dns->n_queries, 0);
	assert_quiet();
	rig_free(r);
}

static void test_without_a_policy_everything_is_denied(void **state)
{
	static const struct egress_config none;
	struct rig *r = rig_new();

	assert_int_equal(egress_ask_config(r->keeper, &none), 0);
	rig_resolver(r, "nameserver " RIG_DNS "\n");
	(void)rig_refused(r, rig_connect(r, "origin.example.com", 443), EGRESS_DENIED_POLICY, 403);
	assert_int_equal(rig_dns->n_queries, 0);
	assert_quiet();
	rig_free(r);
}

/* All answers of a resolver that are not on the Internet. */
static const char *const forbidden[] = {"10.0.0.1", "10.255.255.254", "172.16.0.1",
	"172.31.255.254", "192.168.0.1", "192.168.255.254", "127.0.0.1", "127.0.0.53", "127.1.2.3",
	"127.255.255.254", "169.254.0.1", "169.254.169.254", "169.254.170.2", "100.64.0.1",
	"100.100.100.200", "100.127.255.254", "192.0.0.192", "0.0.0.0", "0.1.2.3", "224.0.0.1",
	"239.255.255.250", "240.0.0.1", "255.255.255.255", "192.0.0.1", "192.0.2.1", "198.18.0.1",
	"198.19.255.254", "198.51.100.1", "203.0.113.1", "::", "::1", "::ffff:127.0.0.1",
	"::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0.0.0.0", "::127.0.0.1", "::10.0.0.1",
	"::ffff:0:10.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1",
	"64:ff9b::a9fe:a9fe", "64:ff9b:1::10.0.0.1", "64:ff9b:1::1",
	"2002:7f00:1::", "2002:a00:1::1",
	"2002:a9fe:a9fe::", "2001:0:4136:e378:8000:63bf:f5ff:fffe", "2001::1", "fe80::1",
	"fe80::5efe:10.0.0.1", "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:a9fe:a9fe",
	"febf::1", "fec0::1", "fc00::1", "fd00:ec2::254", "fd12:3456::1", "ff02::1", "ff05::2",
	"ff0e::1", "2001:db8::1", "3fff::1", "100::1", "5f00::1", "2001:2::1"};

static void test_names_that_lead_inside(void **state)
{
	struct rig *r = rig_new();

	rig_up(r, ALLOW_ALL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(forbidden); i++) {
		struct egress_result *result;

		rig_dns_clear();
		(void)rig_dns_add("inside.example.com", forbidden[i]);
		result = rig_refused(
			r, rig_connect(r, "inside.example.com", 443), EGRESS_DENIED_ADDRESS, 403);
		assert_true(result->addr[0]);
		assert_non_null(strstr(result->text, result->addr));
	}
	assert_quiet();
	rig_free(r);
}

/* The same in the guest's request, without a name. */
static void test_addresses_that_lie_inside(void **state)
{
	struct rig *r = rig_new();

	rig_up(r, ALLOW_ALL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(forbidden); i++) {
		struct host host;

		assert_int_equal(host_from_wire(slice_from_str(forbidden[i]), &host, NULL), 0);
		(void)rig_refused(r, rig_connect(r, host.name, 443), EGRESS_DENIED_POLICY, 403);
	}
	assert_int_equal(rig_dns->n_queries, 0);
	assert_quiet();
	rig_free(r);
}

static void test_one_forbidden_address_refuses_all(void **state)
{
	static const char *const answers[] = {
		RIG_PUBLIC " 10.0.0.1",
		"127.0.0.1 " RIG_PUBLIC,
		RIG_PUBLIC " ::1",
		RIG_PUBLIC6 " 169.254.169.254",
		RIG_PUBLIC " " RIG_PUBLIC6 " ::ffff:192.168.0.1",
		"1.1.1.1 1.0.0.1 8.8.8.8 8.8.4.4 9.9.9.9 149.112.112.112 208.67.222.222 10.1.1.1",
	};
	struct rig *r = rig_new();

	rig_up(r, ALLOW_ALL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		rig_dns_clear();
		(void)rig_dns_add("mixed.example.com", answers[i]);
		(void)rig_refused(
			r, rig_connect(r, "mixed.example.com", 443), EGRESS_DENIED_ADDRESS, 403);
	}
	assert_quiet();
	rig_free(r);
}

static void test_an_alias_is_checked_too(void **state)
{
	struct rig_name *name = rig_dns_add("alias.example.com", "10.0.0.1");
	struct rig *r = rig_new();

	(void)snprintf(name->cname, sizeof(name->cname), "inside.example.net");
	rig_up(r, ALLOW_ALL, NULL);
	(void)rig_refused(r, rig_connect(r, "alias.example.com", 443), EGRESS_DENIED_ADDRESS, 403);
	assert_quiet();
	rig_free(r);
}

/* The first, good answer is used; there is no second query for one exchange. */
static void test_rebinding(void **state)
{
	struct rig_name *name = rig_dns_add("rebind.example.com", RIG_PUBLIC);
	struct rig *r = rig_new();

	name->has_later = true;
	memcpy(name->later, (const uint8_t[]){127, 0, 0, 1}, 4);
	rig_up(r, ALLOW_ALL, NULL);
	rig_tunnel(r, listener, "rebind.example.com", RIG_PUBLIC);
	assert_int_equal(name->n_asked[0], 1);
	(void)rig_refused(r, rig_connect(r, "rebind.example.com", 443), EGRESS_DENIED_ADDRESS, 403);
	assert_int_equal(name->n_asked[0], 2);
	assert_quiet();
	rig_free(r);
}

static void test_a_rule_can_name_an_address_inside(void **state)
{
	struct rig *r = rig_new();

	(void)rig_dns_add("intranet.example.com", "10.0.0.7");
	rig_up(r,
		"policy 1\nallow network intranet.example.com\nallow network 10.0.0.0/8\n"
		"deny network 10.0.0.8\nend\n",
		NULL);
	rig_tunnel(r, listener, "intranet.example.com", "10.0.0.7");
	(void)rig_dns_add("intranet.example.com", "10.0.0.8");
	(void)rig_refused(
		r, rig_connect(r, "intranet.example.com", 443), EGRESS_DENIED_ADDRESS, 403);
	rig_free(r);
}

static void test_what_the_resolver_can_say(void **state)
{
	struct rig *r = rig_new();
	struct rig_name *name;
	uint64_t at;

	rig_up(r, ALLOW_ALL, NULL);
	(void)rig_refused(r, rig_connect(r, "nobody.example.com", 443), EGRESS_NO_NAME, 502);
	(void)rig_dns_add("empty.example.com", "");
	(void)rig_refused(r, rig_connect(r, "empty.example.com", 443), EGRESS_NO_NAME, 502);
	rig_dns_add("servfail.example.com", RIG_PUBLIC)->rcode = 2;
	(void)rig_refused(r, rig_connect(r, "servfail.example.com", 443), EGRESS_NO_RESOLVER, 504);
	rig_dns_add("loop.example.com", RIG_PUBLIC)->lie = RIG_LOOP;
	(void)rig_refused(r, rig_connect(r, "loop.example.com", 443), EGRESS_NO_RESOLVER, 504);
	name = rig_dns_add("lost.example.com", RIG_PUBLIC);
	name->silent_aaaa = true; /* one family that never answers does not take 6 s */
	at = clock_mono_ms();
	rig_tunnel(r, listener, "lost.example.com", RIG_PUBLIC);
	assert_true(clock_mono_ms() - at < 3000);
	rig_free(r);
}

/* Answers to another question are ignored. Each waits for its timeout, all at the same time. */
static void test_lies_of_the_resolver(void **state)
{
	static const char *const names[] = {
		"id.example.com", "name.example.com", "short.example.com", "none.example.com"};
	struct rig *r = rig_new();
	uint64_t at = clock_mono_ms();
	int fds[ARRAY_LEN(names)];

	rig_dns_add(names[0], RIG_PUBLIC)->lie = RIG_WRONG_ID;
	rig_dns_add(names[1], RIG_PUBLIC)->lie = RIG_WRONG_NAME;
	rig_dns_add(names[2], RIG_PUBLIC)->lie = RIG_SHORT;
	rig_dns_add(names[3], RIG_PUBLIC)->lie = RIG_EMPTY;
	rig_up(r, ALLOW_ALL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		fds[i] = rig_connect(r, names[i], 443);
	for (uint32_t i = 0; i < ARRAY_LEN(names); i++) {
		assert_int_equal(rig_result(r, i + 1)->outcome, EGRESS_NO_RESOLVER);
		(void)close(fds[i]);
	}
	assert_true(clock_mono_ms() - at < 12000);
	assert_quiet();
	rig_free(r);
}

static void test_no_resolver_and_a_new_one(void **state)
{
	struct rig *r = rig_new();
	int fd;

	rig_up(r, ALLOW_ALL, NULL);
	rig_resolver(r, "nameserver fe80::1%eth0\nsearch example.com\n");
	(void)rig_refused(r, rig_connect(r, "origin.example.com", 443), EGRESS_NO_RESOLVER, 504);
	rig_resolver(r, "nameserver\t" RIG_DNS "  # that one\r\noptions ndots:5");
	rig_tunnel(r, listener, "origin.example.com", RIG_PUBLIC);
	/* a change during a query */
	rig_dns_add("slow.example.com", RIG_PUBLIC)->silent_a = true;
	fd = rig_connect(r, "slow.example.com", 443);
	(void)usleep(100000);
	rig_resolver(r, "nameserver " RIG_DNS "\n");
	(void)rig_refused(r, fd, EGRESS_NO_RESOLVER, 504);
	rig_tunnel(r, listener, "origin.example.com", RIG_PUBLIC);
	rig_free(r);
}

static void test_pins(void **state)
{
	struct egress_config config = {.n_pins = 1,
		.pins = {{.host = "pinned.example.com",
			.port = 8443,
			.addr = "127.0.0.1",
			.addr_port = 443}}};
	struct rig *r = rig_new();
	struct rig_head head;
	int fd, upstream;

	rig_up(r, "policy 1\nallow network pinned.example.com:8443\nend\n", &config);
	fd = rig_connect(r, "pinned.example.com", 8443);
	rig_read_head(fd, &head);
	assert_int_equal(head.status, 200);
	upstream = rig_accept(listener, 60000);
	rig_passes(fd, upstream);
	assert_string_equal(rig_result(r, 1)->addr, "127.0.0.1");
	/* the pin selects the address, the policy still decides; a recheck ignores the address */
	rig_policy(r, "policy 1\nallow network pinned.example.com:1-9999\nend\n");
	rig_passes(fd, upstream);
	/* a changed or removed pin ends the connections of the old one */
	assert_int_equal(egress_ask_config(r->keeper, &config), 0);
	rig_policy(r, "policy 1\nallow network pinned.example.com:1-9999\nend\n");
	rig_passes(fd, upstream);
	assert_int_equal(egress_ask_config(r->keeper, &(struct egress_config){0}), 0);
	rig_policy(r, "policy 1\nallow network pinned.example.com:1-9999\nend\n");
	assert_true(r->seen[1].closed); /* before LOADED */
	assert_int_equal(egress_ask_config(r->keeper, &config), 0);
	(void)close(fd);
	(void)close(upstream);
	rig_policy(r, "policy 1\nallow network other.example.com:1-9999\nend\n");
	(void)rig_refused(r, rig_connect(r, "pinned.example.com", 8443), EGRESS_DENIED_POLICY, 403);
	assert_int_equal(rig_dns->n_queries, 0);
	assert_quiet();
	rig_free(r);
}

static void test_servers_that_are_not_there(void **state)
{
	struct rig *r = rig_new();
	uint64_t at;

	rig_up(r, ALLOW_ALL, NULL);
	(void)rig_refused(r, rig_connect(r, "origin.example.com", 4443), EGRESS_REFUSED, 502);
	/* on IPv6 only the listener's port is open: the next address is tried immediately */
	(void)rig_dns_add("both.example.com", RIG_PUBLIC6 " " RIG_PUBLIC);
	at = clock_mono_ms();
	rig_tunnel(r, listener, "both.example.com", RIG_PUBLIC6);
	assert_true(clock_mono_ms() - at < EGRESS_DIAL_MS - 500);
	rig_free(r);
}

/* A listener whose queue is full lets further connections hang without an answer. */
static int make_hanging(const char *addr, uint16_t port, int fill[8])
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	assert_int_equal(inet_pton(AF_INET6, addr, &at.sin6_addr), 1);
	assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 0), 0);
	for (unsigned i = 0; i < 8; i++) {
		fill[i] = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)connect(fill[i], (struct sockaddr *)&at, sizeof(at));
	}
	return fd;
}

static void test_a_silent_address_costs_little(void **state)
{
	struct rig *r = rig_new();
	int fill[8], hanging = -1, own, upstream, fd;
	struct rig_head head;
	uint64_t at;
	const struct sockaddr_in v4 = {.sin_family = AF_INET,
		.sin_port = htons(8444),
		.sin_addr.s_addr = inet_addr(RIG_PUBLIC)};

	/* the family's own listener, so that only IPv6 hangs */
	own = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(own, (const struct sockaddr *)&v4, sizeof(v4)), 0);
	assert_int_equal(listen(own, 8), 0);
	hanging = make_hanging(RIG_PUBLIC6, 8444, fill);
	(void)rig_dns_add("both.example.com", RIG_PUBLIC6 " " RIG_PUBLIC);
	(void)rig_dns_add("six.example.com", RIG_PUBLIC6);
	rig_up(r, ALLOW_ALL, NULL);
	at = clock_mono_ms();
	fd = rig_connect(r, "both.example.com", 8444);
	rig_read_head(fd, &head);
	assert_int_equal(head.status, 200);
	assert_true(clock_mono_ms() - at < EGRESS_DIAL_MS - 500);
	assert_string_equal(rig_result(r, 1)->addr, RIG_PUBLIC);
	upstream = rig_accept(own, 60000);
	rig_passes(fd, upstream);
	(void)close(fd);
	/* alone it is a timeout, after its 5 s */
	at = clock_mono_ms();
	(void)rig_refused(r, rig_connect(r, "six.example.com", 8444), EGRESS_TIMEOUT, 504);
	at = clock_mono_ms() - at;
	assert_true(at > 4000 && at < 9000);
	for (unsigned i = 0; i < 8; i++)
		(void)close(fill[i]);
	(void)close(hanging);
	(void)close(own);
	(void)close(upstream);
	rig_free(r);
}

static void test_a_new_policy_ends_what_it_forbids(void **state)
{
	struct rig *r = rig_new();
	int fd[2], upstream[2], waiting;
	struct rig_head head;

	(void)rig_dns_add("kept.example.com", "1.1.1.1");
	(void)rig_dns_add("ended.example.com", RIG_PUBLIC);
	rig_dns_add("slow.example.com", RIG_PUBLIC)->silent_a = true;
	rig_up(r, ALLOW_ALL, NULL);
	for (unsigned i = 0; i < 2; i++) {
		fd[i] = rig_connect(r, i ? "ended.example.com" : "kept.example.com", 443);
		rig_read_head(fd[i], &head);
		assert_int_equal(head.status, 200);
		upstream[i] = rig_accept(listener, 60000);
		rig_passes(fd[i], upstream[i]);
	}
	waiting = rig_connect(r, "slow.example.com", 443);
	(void)usleep(50000);
	rig_policy(r, "policy 1\nallow network kept.example.com\nend\n");
	assert_true(r->seen[2].closed); /* before LOADED */
	(void)rig_refused(r, waiting, EGRESS_DENIED_POLICY, 403);
	assert_true(rig_is_ended(fd[1], 1000) && rig_is_ended(upstream[1], 1000));
	rig_until(r, r->seen[2].closed);
	rig_passes(fd[0], upstream[0]);
	/* by address now */
	rig_policy(r, "policy 1\nallow network kept.example.com\ndeny network 1.1.1.0/24\nend\n");
	assert_true(rig_is_ended(fd[0], 1000) && rig_is_ended(upstream[0], 1000));
	rig_until(r, r->seen[1].closed);
	for (unsigned i = 0; i < 2; i++) {
		(void)close(fd[i]);
		(void)close(upstream[i]);
	}
	rig_free(r);
}

/* No new policy is sent when a rule expires. */
static void test_a_rule_that_runs_out_ends_its_tunnels(void **state)
{
	uint64_t until = clock_wall_ms() / 1000 + 7; /* after the first check */
	struct rig *r = rig_new();
	struct rig_head head;
	char text[256], stamp[64];
	time_t t = (time_t)until;
	struct tm tm;
	int fd, upstream;

	assert_non_null(gmtime_r(&t, &tm));
	(void)strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", &tm);
	(void)snprintf(text, sizeof(text),
		"policy 1\nallow network origin.example.com until %s\nend\n", stamp);
	rig_up(r, text, NULL);
	fd = rig_connect(r, "origin.example.com", 443);
	rig_read_head(fd, &head);
	assert_int_equal(head.status, 200);
	upstream = rig_accept(listener, 60000);
	rig_passes(fd, upstream);
	assert_true(rig_is_ended(fd, 15000));
	assert_true(rig_is_ended(upstream, 1000));
	(void)close(fd);
	(void)close(upstream);
	rig_free(r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_allowed_name_is_reached),
		TEST(test_a_denied_name_sends_no_packet),
		TEST(test_without_a_policy_everything_is_denied),
		TEST(test_names_that_lead_inside),
		TEST(test_addresses_that_lie_inside),
		TEST(test_one_forbidden_address_refuses_all),
		TEST(test_an_alias_is_checked_too),
		TEST(test_rebinding),
		TEST(test_a_rule_can_name_an_address_inside),
		TEST(test_what_the_resolver_can_say),
		TEST(test_lies_of_the_resolver),
		TEST(test_no_resolver_and_a_new_one),
		TEST(test_pins),
		TEST(test_servers_that_are_not_there),
		TEST(test_a_silent_address_costs_little),
		TEST(test_a_new_policy_ends_what_it_forbids),
		TEST(test_a_rule_that_runs_out_ends_its_tunnels),
	};
	/* effects of jail and seal, unless disabled: see lib/os/jail/unsealed.h */
	const struct CMUnitTest jail_tests[] = {
		TEST(test_in_all_of_its_jail),
	};
	int n_failed;

	rig_enter_world();
	n_failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (JAIL_SEALS)
		n_failed += cmocka_run_group_tests(jail_tests, NULL, NULL);
	return n_failed;
}
