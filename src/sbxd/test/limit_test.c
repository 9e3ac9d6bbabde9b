/* SPDX-License-Identifier: Apache-2.0 */
#include "src/sbxd/policy/limit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "lib/base/mem.h"

#define NOW 1000000

static struct rules read_rules(const char *lines)
{
	AUTO_FREE char *text = xasprintf("policy 2\n%send\n", lines);
	struct rules rules = {0};
	struct err err = {0};

	if (rules_decode(slice_from_str(text), "policy", &rules, &err) < 0)
		fail_msg("%s", err.text);
	return rules;
}

static int check(const char *managed, const char *new, struct err *err)
{
	AUTO_RULES struct rules rules = read_rules(new);
	AUTO_MANAGED struct managed m = {.exists = true, .rules = read_rules(managed)};

	*err = (struct err){0};
	return limit_check(&m, &rules, NOW, err);
}

#define CEILING                                 \
	"allow network **:1-65535\n"            \
	"deny network evil.example,*.bad.com\n" \
	"allow network 10.0.0.0/8:22\n"         \
	"deny http api.example/admin/**\n"

static void what_is_inside_is_accepted(void **state)
{
	static const char *const good[] = {"allow network a.example:22\n", "deny network **\n",
		"ask http api.example/admin/x\n", "allow network 10.1.2.3:22\n",
		"allow network **.example.com for sandbox demo\n",
		"allow http api.example/** method GET\n",
		"allow network evil.example until 1970-01-01T00:00:01Z\n",
		/* A preset is offered as it is. */
		"group balanced:hosts\nallow network evil.example\n"};
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (check(CEILING, good[i], &err) < 0)
			fail_msg("%s: %s", good[i], err.text);
}

static void what_is_outside_names_the_managed_rule(void **state)
{
	static const char *const bad[][2] = {
		{"allow network evil.example\n",
			"does not permit evil.example:80: /etc/sbx/policy:3 is 'deny network "
			"evil.example,*.bad.com'"},
		{"allow network evil.example:22\n", "evil.example:22"},
		{"allow network **.bad.com for sandbox demo\n", ".bad.com:80: /etc/sbx/policy:3"},
		{"allow network **\n", "/etc/sbx/policy:3"},
		{"allow network a.example\nallow network x.bad.com\n", "x.bad.com:80"},
		{"allow network 10.1.2.3\n",
			"no rule of /etc/sbx/policy allows it, and an address"},
		{"allow network 192.168.0.0/16:22\n", "an address that is not public"},
		{"allow http api.example/x,api.example/admin/x\n", "/etc/sbx/policy:5"},
		{"allow http api.example/admin/** method GET\n",
			"/etc/sbx/policy:5 is 'deny http api.example/admin/**'"},
	};
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(check(CEILING, bad[i][0], &err), -EPERM);
		if (!strstr(err.text, bad[i][1]))
			fail_msg("%s: %s", bad[i][0], err.text);
	}
}

static void a_short_list_is_a_ceiling_too(void **state)
{
	struct err err;

	assert_int_equal(
		check("allow network *.corp.example\n", "allow network a.corp.example\n", &err), 0);
	assert_int_equal(
		check("allow network *.corp.example\n", "allow network a.corp.example:22\n", &err),
		-EPERM);
	assert_non_null(strstr(err.text, "no rule of /etc/sbx/policy allows it"));
	assert_int_equal(check("allow network a.example until 1970-01-01T01:00:00Z\n",
				 "allow network a.example\n", &err),
		-EPERM);
}

static void without_a_usable_managed_policy(void **state)
{
	AUTO_RULES struct rules rules = read_rules("allow network a.example\n");
	struct managed m = {0};
	struct err err = {0};

	assert_int_equal(limit_check(&m, &rules, NOW, &err), 0);
	m.exists = true;
	(void)err_set(&m.fault, -EPERM, "it is broken");
	assert_int_equal(limit_check(&m, &rules, NOW, &err), -EPERM);
	assert_non_null(strstr(err.text, "it is broken"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_inside_is_accepted),
		cmocka_unit_test(what_is_outside_names_the_managed_rule),
		cmocka_unit_test(a_short_list_is_a_ceiling_too),
		cmocka_unit_test(without_a_usable_managed_policy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
