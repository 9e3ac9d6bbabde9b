/* SPDX-License-Identifier: Apache-2.0 */
/* The text of an agent: what is read, and everything that is refused, with its line. */
#include "lib/rules/agent/agent.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"

#define A22 "aaaaaaaaaaaaaaaaaaaaaa"
#define DIGEST "sha512-" A22 A22 A22 "aaaaaaaaaaaaaaaaaaaa=="
#define HEAD "agent 1\nname demo\ntitle Demo\nabout x\ntemplate debian\ncommand demo\n"

static int parse(const char *text, struct agent *ret, struct err *err)
{
	return agent_parse(slice_from_str(text), "demo.conf", ret, err);
}

static void everything_is_read(void **state)
{
	AUTO_AGENT struct agent a = {0};
	struct err err = {0};
	int r = parse(
		"# a comment\n" HEAD "npm @x/demo 1.2.3\nnpm other 0.0.1-beta.2\nnode 22.1.0\n"
		"flags --yes  --now\nflags -q\nenv A_B two words # no comment\nservice one\n"
		"host api.example.com:443 the API\nsetup-host dl.example.com:443 its program\n"
		"history .demo/log\nimport .demo/a.json\nimport .demo/x/\n"
		"drop .demo/a.json mcp\nkey-seed .demo/k sentinel\nseed .demo/s {\"%w\": 1}\nseed "
		".demo/s  more\nend\n",
		&a, &err);

	assert_int_equal(r, 0);
	assert_string_equal(a.name, "demo");
	assert_int_equal(a.package.n, 2);
	assert_string_equal(a.package.v[0].a, "@x/demo");
	assert_string_equal(a.package.v[1].b, "0.0.1-beta.2");
	assert_string_equal(a.node, "22.1.0");
	assert_int_equal(a.flag.n, 3);
	assert_string_equal(a.flag.v[1].a, "--now");
	assert_string_equal(a.env.v[0].b, "two words # no comment");
	assert_string_equal(a.host.v[0].a, "api.example.com:443");
	assert_string_equal(a.host.v[0].b, "the API");
	assert_string_equal(a.setup_host.v[0].a, "dl.example.com:443");
	assert_string_equal(a.import.v[1].a, ".demo/x/");
	assert_string_equal(a.drop.v[0].b, "mcp");
	assert_int_equal(a.seed.n, 2);
	assert_string_equal(a.key_seed.v[0].b, "sentinel");
	assert_true(agent_is_built(&a));
	assert_string_equal(agent_template(&a), "demo");
}

static void without_packages_it_is_its_base(void **state)
{
	AUTO_AGENT struct agent a = {0};
	struct err err = {0};

	assert_int_equal(parse(HEAD "end\n", &a, &err), 0);
	assert_false(agent_is_built(&a));
	assert_string_equal(agent_template(&a), "debian");
}

static void what_is_wrong_is_said_with_its_line(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"", "'end' is missing"},
		{"agent 2\nend\n", "line 1: an agent must begin"},
		{HEAD, "may be truncated"},
		{HEAD "end\nnpm x 1.0.0\n", "after 'end'"},
		{HEAD "flavour x\nend\n", "line 7: unknown keyword 'flavour'"},
		{HEAD "name other\nend\n", "once"},
		{"agent 1\nname Demo\nend\n", "lowercase"},
		{"agent 1\nname debian\nend\n", "not debian"},
		{"agent 1\nname ../x\nend\n", "lowercase"},
		{"agent 1\nname demo\nend\n", "requires a name, a title"},
		{HEAD "npm x\nend\n", "exact version"},
		{HEAD "npm x latest\nend\n", "exact version"},
		{HEAD "npm x ^1.2.3\nend\n", "exact version"},
		{HEAD "npm x 1.2\nend\n", "exact version"},
		{HEAD "npm x 1.2.3;id\nend\n", "exact version"},
		{HEAD "npm --registry=http://evil 1.2.3\nend\n", "exact version"},
		{HEAD "npm @x 1.2.3\nend\n", "exact version"},
		{HEAD "npm ../x 1.2.3\nend\n", "exact version"},
		{HEAD "npm git+ssh://x/y 1.2.3\nend\n", "exact version"},
		{HEAD "npm x 1.2.3\nnpm x 1.2.4\nend\n", "duplicate"},
		{HEAD "node 22\nend\n", "exact version"},
		{HEAD "flags\nend\n", "at least one"},
		{HEAD "flags $(id)\nend\n", "without quotes"},
		{HEAD "env lower x\nend\n", "uppercase"},
		{HEAD "env A\nend\n", "uppercase"},
		{HEAD "env A 1\nenv A 2\nend\n", "duplicate"},
		{HEAD "env KEY sk-ant-api03-0123456789abcdef0123\nend\n",
			"looks like a credential"},
		{HEAD "host api.example.com why\nend\n", "one name with one port"},
		{HEAD "host *.example.com:443 why\nend\n", "one name with one port"},
		{HEAD "host **:443 why\nend\n", "one name with one port"},
		{HEAD "host 10.0.0.1:443 why\nend\n", "one name with one port"},
		{HEAD "host api.example.com:1-9 why\nend\n", "one name with one port"},
		{HEAD "host api.example.com:443\nend\n", "missing reason"},
		{HEAD "setup-host x.example:443 a\nsetup-host x.example:443 b\nend\n", "duplicate"},
		{HEAD "history /etc\nend\n", "below the home"},
		{HEAD "history ..\nend\n", "below the home"},
		{HEAD "history .x/../..\nend\n", "below the home"},
		{HEAD "history .x/\nend\n", "below the home"},
		{HEAD "history .\nend\n", "below the home"},
		{HEAD "history .x//y\nend\n", "below the home"},
		{HEAD "history .x\nhistory .x/y\nend\n", "overlaps another"},
		{HEAD "history .x\nimport .x/y\nend\n", "overlap"},
		{HEAD "history .x/y\nimport .x/\nend\n", "overlap"},
		{HEAD "history .x\nseed .x/y z\nend\n", "overlap"},
		{HEAD "history .x\nkey-seed .x/y z\nend\n", "overlap"},
		{HEAD "key-seed /x y\nend\n", "below the home"},
		{HEAD "import .x/.credentials.json\nend\n", "name of a credential"},
		{HEAD "import .x/auth.json\nend\n", "name of a credential"},
		{HEAD "import .x/oauth_creds.json\nend\n", "name of a credential"},
		{HEAD "import .ssh/id_rsa\nend\n", "name of a credential"},
		{HEAD "import .x/tokens/\nend\n", "name of a credential"},
		{HEAD "drop .x/a.json k\nend\n", "'import' above"},
		{HEAD "seed ../x y\nend\n", "below the home"},
		{HEAD "seed .x\nend\n", "below the home"},
		{HEAD "env A \x01\nend\n", "control character 0x01"},
		{"agent 1\nname demo\ntitle D\nabout x\ntemplate demo\ncommand demo\nend\n",
			"based on itself"},
		{"agent 1\nname demo\ntitle D\nabout x\ntemplate ../x\ncommand demo\nend\n",
			"invalid template name"},
		{"agent 1\nname demo\ntitle D\nabout x\ntemplate debian\ncommand a b\nend\n",
			"one program"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct agent a = {0};
		struct err err = {0};

		if (parse(rows[i].text, &a, &err) == 0 || !strstr(err.text, rows[i].says))
			fail_msg("row %zu: '%s' does not say '%s'", i, err.text, rows[i].says);
		assert_null(a.name);
		assert_non_null(strstr(err.text, "demo.conf: line"));
	}
}

static void pins_and_reasons_are_checked(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{HEAD "npm x 1.2.3\nintegrity x sha1-abc\nend\n", "sha512-DIGEST"},
		{HEAD "npm x 1.2.3\nintegrity x sha512-abc\nend\n", "sha512-DIGEST"},
		{HEAD "npm x 1.2.3\nintegrity x\nend\n", "sha512-DIGEST"},
		{HEAD "npm x 1.2.3\nintegrity x " DIGEST "\nintegrity x " DIGEST "\nend\n",
			"duplicate package"},
		{HEAD "integrity x " DIGEST "\nend\n", "without 'npm'"},
		{HEAD "unavailable why\nend\n", "nothing else"},
		{"agent 1\nname demo\nunavailable why\nend\n", "nothing else"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct agent a = {0};
		struct err err = {0};

		if (parse(rows[i].text, &a, &err) == 0 || !strstr(err.text, rows[i].says))
			fail_msg("row %zu: '%s' does not say '%s'", i, err.text, rows[i].says);
	}
}

static void lists_are_bounded(void **state)
{
	AUTO_FREE char *text = xstrdup(HEAD);
	struct agent a = {0};
	struct err err = {0};

	for (int i = 0; i <= AGENT_MAX_LIST; i++) {
		AUTO_FREE char *old = text;

		text = xasprintf("%sservice s%d\n", old, i);
	}
	assert_int_equal(parse(text, &a, &err), -E2BIG);
}

static void a_seed_has_the_workspace_quoted(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"[p.\"%w\"] %w", "[p.\"/a \\\"b\\\"\\\\\\u0001\"] /a \\\"b\\\"\\\\\\u0001"},
		{"k-%i00, %i%i", "k-423c00, 423c423c"},
		{"%i%w", "423c/a \\\"b\\\"\\\\\\u0001"},
		{"100%", "100%"},
		{"%% %x %", "%% %x %"},
		{"%%i", "%423c"},
		{"", ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *got = agent_fill_seed(rows[i].text, "/a \"b\"\\\x01", "423c");

		assert_string_equal(got, rows[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_read),
		cmocka_unit_test(without_packages_it_is_its_base),
		cmocka_unit_test(what_is_wrong_is_said_with_its_line),
		cmocka_unit_test(pins_and_reasons_are_checked),
		cmocka_unit_test(lists_are_bounded),
		cmocka_unit_test(a_seed_has_the_workspace_quoted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
