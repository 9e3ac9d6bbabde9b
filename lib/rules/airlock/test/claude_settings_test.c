/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/mem.h"
#include "lib/rules/airlock/claude_settings.h"

static struct err last_err;

static int check_texts(const char *old, const char *new, char **ret)
{
	size_t n = 0;
	int r;

	*ret = NULL;
	last_err.text[0] = '\0';
	r = claude_settings_check(old, strlen(old), new, strlen(new), ret, &n, &last_err);
	assert_true(r < 0 ? *ret == NULL : strlen(*ret) == n);
	return r;
}

static void expect_text(const char *old, const char *new, const char *expected)
{
	AUTO_FREE char *text = NULL;

	if (check_texts(old, new, &text) < 0)
		fail_msg("%s: %s", new, last_err.text);
	assert_string_equal(text, expected);
}

static void expect_accepted(const char *old, const char *new)
{
	AUTO_FREE char *text = NULL;

	if (check_texts(old, new, &text) < 0)
		fail_msg("%s: %s", new, last_err.text);
}

static void expect_refused(const char *old, const char *new, const char *member)
{
	AUTO_FREE char *text = NULL;
	int r = check_texts(old, new, &text);

	if (r != -EACCES)
		fail_msg("%d for %s", r, new);
	if (strncmp(last_err.text, member, strlen(member)) != 0 ||
		last_err.text[strlen(member)] != ':')
		fail_msg("%s instead of %s", last_err.text, member);
}

#define RULES                                                                             \
	"{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(npm test:*)\"\n    ],\n" \
	"    \"deny\": []\n  }\n}\n"

static void permissions_are_written_in_our_own_form(void **state)
{
	(void)state;
	expect_text("", RULES, RULES);
	expect_text(RULES, RULES, RULES);
	expect_text("",
		" {\"permissions\":\r\n{ \"\\u0061llow\" : [\"B\\u0061sh(npm test:*)\"],"
		"\"deny\":[ ]}}\t\n",
		RULES);
	expect_text("", "{}", "{}\n");
	expect_text("{\"a\":[{},[],1.5e3,true,null,\"\\u0001\\\"\\/\"]}",
		"{\"a\":[{},[],1.5e3,true,null,\"\\u0001\\\"/\"]}",
		"{\n  \"a\": [\n    {},\n    [],\n    1.5e3,\n    true,\n    null,\n"
		"    \"\\u0001\\\"/\"\n  ]\n}\n");
}

static void every_other_member_is_refused(void **state)
{
	(void)state;
	expect_refused("", "{\"hooks\":{}}", "hooks");
	expect_refused("", "{\"\\u0068ooks\":{}}", "hooks");
	expect_refused("", "{\"env\":{\"A\":\"b\"}}", "env");
	expect_refused("", "{\"apiKeyHelper\":\"x\"}", "apiKeyHelper");
	expect_refused("", "{\"statusLine\":{}}", "statusLine");
	expect_refused("", "{\"enableAllProjectMcpServers\":true}", "enableAllProjectMcpServers");
	expect_refused("", "{\"Permissions\":{}}", "Permissions");
	expect_refused("", "{\"permissions\":{\"defaultMode\":\"bypassPermissions\"}}",
		"permissions.defaultMode");
	expect_refused("", "{\"permissions\":{\"additionalDirectories\":[\"/\"]}}",
		"permissions.additionalDirectories");
	expect_refused("", "{\"\\u001b[2J\":1}", "\\u001b[2J");
}

static void members_of_the_user_stay_as_they_are(void **state)
{
	static const char old[] =
		"{\"hooks\":{\"a\":[1]},\"env\":{},\"permissions\":{\"defaultMode\":"
		"\"plan\",\"deny\":[\"Read(.env)\"],\"ask\":[\"Bash\"]}}";

	(void)state;
	expect_accepted(old, old);
	expect_accepted(old, "{\"env\":{},\"hooks\":{\"a\":[1]},\"permissions\":{\"deny\":[\"x\","
			     "\"Read(.env)\"],\"ask\":[\"Bash\"],\"defaultMode\":\"plan\"}}");
	expect_refused(old, "{\"env\":{}}", "hooks");
	expect_refused(old, "{\"hooks\":{\"a\":[2]},\"env\":{}}", "hooks");
	expect_refused(old, "{\"hooks\":{\"a\":[1]},\"env\":{}}", "permissions.defaultMode");
	expect_refused(old,
		"{\"hooks\":{\"a\":[1]},\"env\":{},\"permissions\":{\"defaultMode\":"
		"\"plan\",\"ask\":[\"Bash\"]}}",
		"permissions.deny");
	expect_refused(old,
		"{\"hooks\":{\"a\":[1]},\"env\":{},\"permissions\":{\"defaultMode\":"
		"\"plan\",\"deny\":[\"Read(.env)\"],\"ask\":[]}}",
		"permissions.ask");
	expect_refused(old,
		"{\"hooks\":{\"a\":[1]},\"env\":{},\"permissions\":{\"defaultMode\":"
		"\"acceptEdits\",\"deny\":[\"Read(.env)\"],\"ask\":[\"Bash\"]}}",
		"permissions.defaultMode");
	expect_accepted("{\"permissions\":{\"allow\":[\"a\"]}}", "{}");
}

/* A parser that takes the first or the last of two members must read the same. */
static void duplicate_members_are_refused(void **state)
{
	(void)state;
	expect_refused("{\"env\":1}", "{\"env\":1,\"env\":1}", "env");
	expect_refused("", "{\"permissions\":{},\"permissions\":{}}", "permissions");
	expect_refused("", "{\"permissions\":{\"allow\":[],\"\\u0061llow\":[]}}", "allow");
}

static void rules_are_plain_strings_within_bounds(void **state)
{
	AUTO_FREE char *text = xmalloc(CLAUDE_SETTINGS_MAX_BYTES + 64), *ret = NULL;
	size_t n = (size_t)sprintf(text, "{\"permissions\":{\"allow\":[\"a\"");

	(void)state;
	expect_refused("", "{\"permissions\":[]}", "permissions");
	expect_refused("", "{\"permissions\":{\"allow\":{}}}", "permissions.allow");
	expect_refused("", "{\"permissions\":{\"allow\":[1]}}", "permissions.allow");
	expect_refused("", "{\"permissions\":{\"allow\":[[\"a\"]]}}", "permissions.allow");
	expect_refused("", "{\"permissions\":{\"allow\":[\"\\u202ea\"]}}", "permissions.allow");
	for (size_t i = 0; i < CLAUDE_SETTINGS_MAX_RULES; i++)
		n += (size_t)sprintf(text + n, ",\"a\"");
	(void)sprintf(text + n, "]}}");
	expect_refused("", text, "permissions.allow");
	n = (size_t)sprintf(text, "{\"permissions\":{\"ask\":[\"");
	memset(text + n, 'a', CLAUDE_SETTINGS_MAX_RULE);
	(void)sprintf(text + n + CLAUDE_SETTINGS_MAX_RULE, "\"]}}");
	expect_refused("", text, "permissions.ask");
	memset(text, ' ', CLAUDE_SETTINGS_MAX_BYTES + 1);
	text[CLAUDE_SETTINGS_MAX_BYTES + 1] = '\0';
	assert_int_equal(check_texts("", text, &ret), -E2BIG);
}

static void texts_that_are_not_json_are_rejected(void **state)
{
	static const char *const texts[] = {"", " ", "[]", "1", "{", "{}x", "{}{}", "{a:1}",
		"{\"a\"}", "{\"permissions\":{},}", "{\"permissions\":{\"allow\":[\"a\",]}}",
		"// x\n{}", "{\"a\":\"\\ud800\"}", "{\"a\":\"\xff\"}", "\xef\xbb\xbf{}",
		"{\"a\":\"\n\"}"};
	char *ret;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (check_texts("", texts[i], &ret) != -EBADMSG)
			fail_msg("%s: %s", texts[i], last_err.text);
	assert_int_equal(check_texts("{", "{}", &ret), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(permissions_are_written_in_our_own_form),
		cmocka_unit_test(every_other_member_is_refused),
		cmocka_unit_test(members_of_the_user_stay_as_they_are),
		cmocka_unit_test(duplicate_members_are_refused),
		cmocka_unit_test(rules_are_plain_strings_within_bounds),
		cmocka_unit_test(texts_that_are_not_json_are_rejected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
