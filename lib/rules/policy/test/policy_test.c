/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/rules/policy/policy.h"
#include "lib/rules/policy/test/policy_text.h"

/* The linker sends the allocations of this program through here: a decision must make none. */
static size_t n_allocations;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n)
{
	n_allocations++;
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	n_allocations++;
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	n_allocations++;
	return __real_realloc(p, n);
}

static struct policy *load(const char *rules, const char *sandbox)
{
	AUTO_FREE char *text = xasprintf("policy 1\n%s\nend\n", rules);

	return policy_load(slice_from_str(text), "test", sandbox);
}

static struct policy_decision decide(
	const struct policy *p, const char *target, uint64_t now_ms, char *explain)
{
	struct policy_op op = {.kind = RULE_NETWORK, .now_ms = now_ms};
	struct policy_decision d;
	struct slice host;
	struct host h;

	assert_int_equal(host_split(slice_from_str(target), &host, &op.port, NULL), 0);
	assert_int_equal(host_from_text(host, &h, NULL), 0);
	op.host = &h;
	policy_decide(p, &op, &d);
	if (explain)
		policy_explain(&op, &d, explain, POLICY_MAX_EXPLAIN);
	return d;
}

/* `yes` and `no` are targets with blanks between them. */
static void check(const char *rules, const char *yes, const char *no)
{
	struct policy *p = load(rules, "demo");
	const char *lists[] = {no, yes};

	if (policy_fault(p))
		fail_msg("%s", policy_fault(p));
	for (size_t want = 0; want < 2; want++) {
		AUTO_FREE char *copy = xstrdup(lists[want]);
		char *rest = copy, *target;

		while ((target = strsep(&rest, " ")))
			if (*target && decide(p, target, 1, NULL).allowed != want)
				fail_msg("%s: %s %s", rules, target,
					want ? "is denied" : "is allowed");
	}
	policy_free(p);
}

static void each_form_matches_what_it_says(void **state)
{
	check("allow network example.com:443", "example.com:443 EXAMPLE.com.:443",
		"a.example.com:443 xexample.com:443 example.com:80 com:443 example.com.x:443");
	check("allow network *.example.com:443", "a.example.com:443 b.example.com:443",
		"example.com:443 a.b.example.com:443 aexample.com:443");
	check("allow network **.example.com:443", "a.example.com:443 a.b.c.example.com:443",
		"example.com:443 aexample.com:443");
	check("allow network crl*.digicert.com:80,api[12].x.com:80,n?.x.com:80",
		"crl.digicert.com:80 crl3.digicert.com:80 api2.x.com:80 n7.x.com:80",
		"ocsp.digicert.com:80 a.crl3.digicert.com:80 api3.x.com:80 n77.x.com:80 "
		"n.x.com:80");
	check("allow network **.a*.x.com:80,b.*.x.com:80",
		"q.ab.x.com:80 r.q.a.x.com:80 b.q.x.com:80",
		"ab.x.com:80 b.x.com:80 a.b.q.x.com:80");
	check("allow network **:443", "a.com:443 8.8.8.8:443 [2606::1]:443 localhost:443",
		"a.com:80");
	check("allow network 8.8.8.0/24:53,[2606::/16]:53", "8.8.8.8:53 [2606::1]:53 0x08080801:53",
		"8.8.9.1:53 [2607::1]:53 8.8.8.8.example:53");
}

static void without_a_port_an_allow_means_80_and_443_and_a_deny_all(void **state)
{
	check("allow network a.com", "a.com:80 a.com:443",
		"a.com:22 a.com:8080 a.com:9999 a.com:81");
	check("allow network **", "a.com:80 a.com:443", "a.com:22");
	check("allow network a.com:8000-9000", "a.com:8000 a.com:8500 a.com:9000",
		"a.com:7999 a.com:9001 a.com:443");
	check("allow network **:1-65535\ndeny network a.com", "b.com:22 b.com:65535",
		"a.com:80 a.com:22 a.com:8080 a.com:1 a.com:65535");
	check("allow network **:1-65535\ndeny network 8.8.8.8,[2606::/16],**.x.com",
		"8.8.8.9:1 [2607::1]:65535 x.com:1",
		"8.8.8.8:1 8.8.8.8:443 8.8.8.8:65535 [2606::1]:1 [2606::1]:65535 a.x.com:1 "
		"a.x.com:65535");
	check("allow network **:1-65535\ndeny network a.com:443", "a.com:80 a.com:444",
		"a.com:443");
}

static void this_host_needs_a_rule_with_its_name_and_a_port(void **state)
{
	check("allow network host.docker.internal:5432",
		"host.docker.internal:5432 HOST.docker.internal.:5432",
		"host.docker.internal:5433 gateway.docker.internal:5432 "
		"a.host.docker.internal:5432");
	check("allow network gateway.docker.internal:1-65535", "gateway.docker.internal:22",
		"host.docker.internal:22");
	check("allow network host.docker.internal", "",
		"host.docker.internal:80 host.docker.internal:443");
	check("allow network **:1-65535,*.docker.internal:80,**.internal:80,h*.docker.internal:80",
		"x.docker.internal:80",
		"host.docker.internal:80 gateway.docker.internal:80 host.docker.internal:5432");
	check("allow network host.docker.internal:80\ndeny network *.docker.internal", "",
		"host.docker.internal:80");
}

static bool passes_address(const char *rules, const char *name, const char *text)
{
	struct policy *p = load(rules, NULL);
	struct policy_op op = {.kind = RULE_NETWORK, .port = 5432};
	struct policy_decision d;
	struct host h = {0};
	struct addr a;

	op.host = &h;
	assert_int_equal(host_from_wire(slice_from_str(name), &h, NULL), 0);
	assert_int_equal(addr_parse(slice_from_str(text), &a), 0);
	policy_decide_address(p, &op, &a, &d);
	policy_free(p);
	return d.allowed;
}

static void the_name_of_this_host_leads_to_its_loopback_only(void **state)
{
	static const char here[] = "host.docker.internal",
			  rule[] = "allow network host.docker.internal:5432,8.8.8.8:5432";

	assert_true(passes_address(rule, here, "127.0.0.1"));
	assert_true(passes_address(rule, here, "::1"));
	assert_false(passes_address(rule, here, "8.8.8.8"));
	assert_false(passes_address(rule, here, "192.168.1.1"));
	assert_false(passes_address(rule, "a.com", "127.0.0.1"));
	assert_false(passes_address("allow network 127.0.0.1:5432", here, "127.0.0.1"));
	assert_false(passes_address("allow network host.docker.internal:5432\n"
				    "deny network 127.0.0.1",
		here, "127.0.0.1"));
}

static void any_deny_wins_in_any_order(void **state)
{
	check("allow network a.x.com\ndeny network **.x.com", "", "a.x.com:443");
	check("deny network **.x.com\nallow network a.x.com", "", "a.x.com:443");
	check("deny network a*.x.com\nallow network **.x.com", "b.x.com:443",
		"a.x.com:443 ab.x.com:443");
	check("deny network **\nallow network a.com:22 for sandbox demo", "", "a.com:22 a.com:443");
	check("deny network 8.8.0.0/16\nallow network 8.8.8.8", "", "8.8.8.8:443");
	check("deny network 8.8.8.8\nallow network 8.0.0.0/8", "8.8.8.9:443", "8.8.8.8:443");
}

static void rules_of_another_sandbox_do_not_count(void **state)
{
	check("allow network a.com for sandbox demo\nallow network b.com for sandbox other\n"
	      "allow network c.com\ndeny network c.com for sandbox other",
		"a.com:443 c.com:443", "b.com:443");
}

static void an_expired_rule_is_not_there(void **state)
{
	struct policy *p = load("allow network a.com until 2026-01-01T00:00:00Z id aa\n"
				"allow network a.com until 2027-01-01T00:00:00Z id bb\n"
				"allow network b.com\n"
				"deny network b.com until 2026-01-01T00:00:00Z",
		NULL);
	uint64_t first = 1767225600000ull, second = 1798761600000ull;
	struct policy_decision d = decide(p, "a.com:443", first, NULL);

	assert_true(d.allowed);
	assert_true(slice_eq_str(d.rule.id, "bb"));
	assert_true(decide(p, "a.com:443", second - 1, NULL).allowed);
	assert_false(decide(p, "a.com:443", second, NULL).allowed);
	assert_false(decide(p, "b.com:443", first - 1, NULL).allowed);
	assert_true(decide(p, "b.com:443", first, NULL).allowed);
	policy_free(p);
}

/* ssrfcheck CVE-2026-43929: `**` does not name an address that is not public, in whatever spelling.
 */
static void special_addresses_need_a_rule_that_names_them(void **state)
{
	static const char special[] =
		"169.254.169.254:80 127.0.0.1:80 0x7f.1:80 2852039166:80 10.0.0.1:80 "
		"192.168.1.1:80 "
		"100.64.0.1:80 224.0.0.1:80 0.0.0.0:80 [::1]:80 [::ffff:a9fe:a9fe]:80 "
		"[::a9fe:a9fe]:80 "
		"[64:ff9b::a9fe:a9fe]:80 [2002:a9fe:a9fe::]:80 [fd00:ec2::254]:80 [fe80::1]:80 "
		"[2606::5efe:a9fe:a9fe]:80 [2001:0:a9fe:a9fe::1]:80 168.63.129.16:80";

	check("allow network **:1-65535", "8.8.8.8:80 [64:ff9b::808:808]:80", special);
	check("allow network 0.0.0.0/0:1-65535,[::/0]:1-65535", "8.8.8.8:80", special);
	check("allow network 10.0.0.0/8", "10.0.0.1:80", "127.0.0.1:80 [64:ff9b::a00:1]:80");
	check("allow network 8.0.0.0/6", "8.8.8.8:80", "10.0.0.1:80");
	/* One bit wider than the private network: it does not name it. */
	check("allow network 10.0.0.0/7", "11.1.2.3:80", "10.1.2.3:80");
	check("allow network 168.0.0.0/7,[fc00::/6]", "168.1.2.3:80",
		"169.254.1.1:80 [fd00::1]:80");
	check("allow network 169.254.0.0/16", "169.254.1.1:80", "169.254.169.254:80");
	check("allow network 169.254.169.254", "169.254.169.254:80 [::ffff:a9fe:a9fe]:80",
		"169.254.169.254:22 [64:ff9b::a9fe:a9fe]:80");
	check("allow network [64:ff9b::/96]", "[64:ff9b::808:808]:80", "[64:ff9b::a00:1]:80");
	check("allow network [64:ff9b::a00:1]", "[64:ff9b::a00:1]:80", "10.0.0.1:80");
}

static void a_denied_address_is_denied_inside_others(void **state)
{
	check("allow network **\ndeny network 8.8.8.0/24", "9.9.9.9:443 [64:ff9b::909:909]:443",
		"8.8.8.8:443 [64:ff9b::808:808]:443");
}

static struct policy_decision connected(const struct policy *p, const char *addr, uint16_t port)
{
	struct policy_op op = {.kind = RULE_NETWORK, .port = port};
	struct policy_decision d;
	struct addr a;
	struct host h;

	assert_int_equal(host_from_wire(slice_from_str("name.example"), &h, NULL), 0);
	assert_int_equal(addr_parse(slice_from_str(addr), &a), 0);
	op.host = &h;
	policy_decide_address(p, &op, &a, &d);
	return d;
}

static void networks_inside_and_beside_each_other(void **state)
{
	check("allow network 20.0.0.0/8:22\nallow network 20.1.0.0/16:80,20.1.2.0/24:80\n"
	      "allow network 20.2.0.0/16:80,20.2.3.4:443\nallow network 20.3.0.1:443",
		"20.1.2.3:22 20.1.2.3:80 20.2.3.4:22 20.2.3.4:80 20.2.3.4:443 20.3.0.1:22 "
		"20.3.0.2:22 "
		"20.255.255.255:22",
		"21.0.0.0:22 19.255.255.255:22 20.3.0.1:80 20.2.3.5:443 20.1.2.3:443");
}

static void the_connected_address_is_decided_again(void **state)
{
	struct policy *p = load("allow network name.example:1-65535\nallow network 10.1.0.0/16:22\n"
				"deny network 8.8.8.8",
		NULL);

	assert_true(connected(p, "9.9.9.9", 443).allowed);
	assert_int_equal(connected(p, "8.8.8.8", 443).why, POLICY_RULE);
	assert_false(connected(p, "8.8.8.8", 443).allowed);
	assert_false(connected(p, "64:ff9b::808:808", 443).allowed);
	assert_int_equal(connected(p, "127.0.0.1", 443).why, POLICY_SPECIAL);
	assert_int_equal(connected(p, "169.254.169.254", 80).addr_class, ADDR_METADATA);
	assert_false(connected(p, "10.1.2.3", 443).allowed);
	assert_true(connected(p, "10.1.2.3", 22).allowed);
	assert_false(connected(p, "10.2.2.3", 22).allowed);
	assert_false(connected(NULL, "9.9.9.9", 443).allowed);
	policy_free(p);
}

/* A rule for every host does not name the private addresses that a name resolves to. */
static void allow_all_does_not_open_special_addresses_at_connect(void **state)
{
	static const char *const special[] = {
		"10.1.2.3", "127.0.0.1", "169.254.169.254", "192.168.1.1", "::1", "fd00:ec2::254"};
	struct policy *p = load("allow network **:1-65535", NULL);
	struct policy *wide = load("allow network 10.0.0.0/7:1-65535", NULL);

	assert_true(connected(p, "9.9.9.9", 443).allowed);
	for (size_t i = 0; i < ARRAY_LEN(special); i++) {
		assert_false(connected(p, special[i], 443).allowed);
		assert_int_equal(connected(p, special[i], 443).why, POLICY_SPECIAL);
	}
	assert_false(connected(wide, "10.1.2.3", 443).allowed);
	policy_free(p);
	policy_free(wide);
}

static void missing_empty_or_broken_denies_everything(void **state)
{
	struct policy *empty = load("", "demo");
	struct policy *broken = load("allow network **\nallow network *", "demo");
	struct policy *nothing = policy_load(slice_of(NULL, 0), "p", "demo");
	char text[POLICY_MAX_EXPLAIN];

	assert_int_equal(decide(NULL, "a.com:443", 1, text).why, POLICY_NO_POLICY);
	assert_false(decide(NULL, "a.com:443", 1, NULL).allowed);
	assert_false(decide(empty, "a.com:443", 1, NULL).allowed);
	assert_null(policy_fault(empty));
	assert_non_null(strstr(policy_fault(broken), "test: line 3"));
	assert_false(decide(broken, "a.com:443", 1, text).allowed);
	assert_non_null(strstr(text, "test: line 3"));
	assert_non_null(policy_fault(nothing));
	assert_false(decide(nothing, "a.com:443", 1, NULL).allowed);
	policy_free(empty);
	policy_free(broken);
	policy_free(nothing);
	policy_free(NULL);
}

static void the_decision_is_explained(void **state)
{
	struct policy *p =
		load("allow network a.com:443 id 0123456789ab\ndeny network b.com id x", NULL);
	char text[POLICY_MAX_EXPLAIN];

	decide(p, "c.com:443", 1, text);
	assert_string_equal(text, "no applicable policies for op(action=net:connect:tcp, "
				  "resource=net:domain:c.com:443)");
	decide(p, "A.com:443", 1, text);
	assert_string_equal(text,
		"allowed: rule \"0123456789ab\" (allow network a.com:443) matched "
		"op(action=net:connect:tcp, resource=net:domain:a.com:443)");
	decide(p, "b.com:22", 1, text);
	assert_string_equal(text, "denied: rule \"x\" (deny network b.com) matched "
				  "op(action=net:connect:tcp, resource=net:domain:b.com:22)");
	decide(p, "[2606::1]:80", 1, text);
	assert_non_null(strstr(text, "resource=net:domain:[2606::1]:80)"));
	decide(p, "0xa9fea9fe:80", 1, text);
	assert_string_equal(text,
		"169.254.169.254 is a cloud metadata address, which only a rule for "
		"this address or its network can allow: no applicable policies for "
		"op(action=net:connect:tcp, resource=net:domain:169.254.169.254:80)");
	policy_free(p);
}

static bool has_port(const char *rules, const char *name)
{
	struct policy *p = load(rules, "demo");
	struct policy_op op = {.kind = RULE_NETWORK};
	struct host h;
	bool yes;

	assert_int_equal(host_from_wire(slice_from_str(name), &h, NULL), 0);
	op.host = &h;
	yes = policy_has_port(p, &op);
	policy_free(p);
	return yes;
}

static void a_name_resolves_when_any_port_is_open(void **state)
{
	assert_true(has_port("allow network a.com:22", "a.com"));
	assert_false(has_port("allow network a.com:22", "b.com"));
	assert_false(has_port("allow network a.com:22\ndeny network *.com,a.com:1-100", "a.com"));
	assert_true(has_port("allow network a.com:10-20\ndeny network a.com:1-19", "a.com"));
	assert_true(has_port("allow network a.com:65535\ndeny network a.com:1-65534", "a.com"));
	assert_false(has_port("allow network **\ndeny network **", "a.com"));
	assert_false(has_port("allow network **", "10.0.0.1"));
	assert_true(has_port("allow network 10.0.0.1:99", "10.0.0.1"));
}

static void many_ports_and_rules_for_one_host(void **state)
{
	AUTO_RULES struct rules rules = {0};
	struct policy *p;

	for (unsigned port = 2; port <= 65534; port += 2) {
		char text[64];
		struct rule rule = {0};

		(void)snprintf(text, sizeof(text), "a.com:%u", port);
		assert_int_equal(
			rule_make(RULE_ALLOW, RULE_NETWORK, slice_from_str(text), &rule, NULL), 0);
		assert_int_equal(rules_add(&rules, &rule, NULL), 0);
	}
	p = policy_new(&rules, NULL);
	assert_null(policy_fault(p));
	for (unsigned port = 1; port <= 65535; port++) {
		char target[64];

		(void)snprintf(target, sizeof(target), "a.com:%u", port);
		assert_int_equal(decide(p, target, 1, NULL).allowed, port % 2 == 0);
	}
	policy_free(p);
}

static void too_many_patterns_in_one_place_are_refused(void **state)
{
	AUTO_RULES struct rules rules = {0};
	struct policy *p;

	for (int i = 0; i <= POLICY_MAX_GLOBS; i++) {
		char text[64];
		struct rule rule = {0};

		(void)snprintf(text, sizeof(text), "a%d*.x.com", i);
		assert_int_equal(
			rule_make(RULE_ALLOW, RULE_NETWORK, slice_from_str(text), &rule, NULL), 0);
		rule.line = (unsigned)i + 1;
		assert_int_equal(rules_add(&rules, &rule, NULL), 0);
	}
	p = policy_new(&rules, NULL);
	assert_non_null(strstr(policy_fault(p), "more than 128 patterns in front of 'x.com'"));
	assert_false(decide(p, "a1.x.com:443", 1, NULL).allowed);
	policy_free(p);
}

static void a_decision_allocates_nothing(void **state)
{
	struct policy *p = load("allow network a.com,*.b.com,**.c.com,d*.e.com,10.0.0.0/8\n"
				"deny network f.com until 2030-01-01T00:00:00Z",
		NULL);
	static const char *const targets[] = {"a.com", "x.b.com", "x.y.c.com", "dd.e.com",
		"10.1.1.1", "f.com", "nothing.example", "64:ff9b::a00:1"};

	for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
		struct policy_op op = {.kind = RULE_NETWORK, .port = 443};
		struct policy_decision d;
		struct host h;
		size_t before;

		assert_int_equal(host_from_wire(slice_from_str(targets[i]), &h, NULL), 0);
		op.host = &h;
		before = n_allocations;
		assert_true(before > 0);
		policy_decide(p, &op, &d);
		(void)policy_has_port(p, &op);
		assert_int_equal(n_allocations, before);
	}
	policy_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_form_matches_what_it_says),
		cmocka_unit_test(without_a_port_an_allow_means_80_and_443_and_a_deny_all),
		cmocka_unit_test(this_host_needs_a_rule_with_its_name_and_a_port),
		cmocka_unit_test(the_name_of_this_host_leads_to_its_loopback_only),
		cmocka_unit_test(any_deny_wins_in_any_order),
		cmocka_unit_test(rules_of_another_sandbox_do_not_count),
		cmocka_unit_test(an_expired_rule_is_not_there),
		cmocka_unit_test(special_addresses_need_a_rule_that_names_them),
		cmocka_unit_test(a_denied_address_is_denied_inside_others),
		cmocka_unit_test(networks_inside_and_beside_each_other),
		cmocka_unit_test(the_connected_address_is_decided_again),
		cmocka_unit_test(allow_all_does_not_open_special_addresses_at_connect),
		cmocka_unit_test(missing_empty_or_broken_denies_everything),
		cmocka_unit_test(the_decision_is_explained),
		cmocka_unit_test(a_name_resolves_when_any_port_is_open),
		cmocka_unit_test(many_ports_and_rules_for_one_host),
		cmocka_unit_test(too_many_patterns_in_one_place_are_refused),
		cmocka_unit_test(a_decision_allocates_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
