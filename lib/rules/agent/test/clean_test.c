/* SPDX-License-Identifier: Apache-2.0 */
/* What goes into a sandbox and what does not. */
#include "lib/rules/agent/clean.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/secret/service/shape.h"

static char told[512];

static void tell(void *arg, const char *key)
{
	size_t n = strlen(told);

	(void)snprintf(told + n, sizeof(told) - n, "%s ", key);
}

static int run(const char *name, const char *text, char **ret, struct err *err)
{
	static const char *const drop[] = {"mcpServers", "mcp_servers", "hooks"};

	told[0] = '\0';
	return clean_settings(
		name, slice_from_str(text), drop, ARRAY_LEN(drop), tell, NULL, ret, err);
}

static void names(void **state)
{
	static const char *const bad[] = {".claude/.credentials.json", ".codex/auth.json", "x.PEM",
		"oauth_creds.json", ".env", ".env.local", "my-token.txt", ".ssh/id_ed25519",
		"Secrets/", ".npmrc", "a/b/PASSWORDS.md"};
	static const char *const good[] = {".claude/settings.json", "CLAUDE.md", "commands/",
		"config.toml", "keybindings.json", "environment.md"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_true(clean_is_secret_name(bad[i]));
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_false(clean_is_secret_name(good[i]));
}

static void shapes(void **state)
{
	static const char *const bad[] = {"x = sk-ant-api03-0123456789abcdef",
		"AIza0123456789abcdef0123456", "\"ghp_0123456789abcdef0123456\"",
		"Authorization: Bearer 0123456789abcdef", "-----BEGIN RSA PRIVATE KEY-----",
		"eyJhbGciOiJIUzI1NiJ9.e30.abc", "https://me:hunter2@example.com/",
		"key=AKIA0123456789ABCDEF"};
	static const char *const good[] = {"", "use sk- keys", "a bearer of news",
		"https://example.com/a:b@c", "https://example.com:443/x", "npm_config_registry",
		"model = gpt-5.2-codex-something-long-winded"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (!shape_has_secret(slice_from_str(bad[i])))
			fail_msg("not found: %s", bad[i]);
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (shape_has_secret(slice_from_str(good[i])))
			fail_msg("found: %s", good[i]);
}

static void json_loses_what_must_stay(void **state)
{
	AUTO_FREE char *out = NULL;
	struct err err = {0};

	assert_int_equal(
		run("a.json",
			"{\"model\": \"x\", \"env\": {\"A\": \"canary\"}, \"maxTokens\": 5,"
			" \"deep\": [{\"apiKey\": \"canary\", \"stay\": 1}, [{\"Api_Key\": "
			"\"canary\"}]],"
			" \"mcpServers\": {\"x\": {\"headers\": {\"h\": \"canary\"}}}}",
			&out, &err),
		0);
	assert_null(strstr(out, "canary"));
	assert_non_null(strstr(out, "\"model\": \"x\""));
	assert_non_null(strstr(out, "\"maxTokens\": 5"));
	assert_non_null(strstr(out, "\"stay\": 1"));
	assert_string_equal(told, "env mcpServers apiKey Api_Key ");
}

static void json_that_is_none_stays(void **state)
{
	char *out = NULL;
	struct err err = {0};

	assert_int_equal(run("a.json", "{\"a\": 1,}", &out, &err), -EINVAL);
	assert_int_equal(run("a.json", "{\"a\": 1, \"a\": 2}", &out, &err), -EINVAL);
	assert_int_equal(
		run("a.json", "{\"note\": \"sk-ant-api03-0123456789abcdef\"}", &out, &err), -EPERM);
	assert_null(out);
}

static void json_of_any_depth(void **state)
{
	char text[800] = "";
	AUTO_FREE char *out = NULL;
	struct err err = {0};

	for (int i = 0; i < 60; i++)
		(void)strcat(text, "{\"a\":");
	(void)strcat(text, "\"canary\"");
	for (int i = 0; i < 60; i++)
		(void)strcat(text, "}");
	assert_int_equal(run("a.json", text, &out, &err), 0);
	assert_null(strstr(out, "canary"));
}

static void toml_loses_what_must_stay(void **state)
{
	AUTO_FREE char *out = NULL;
	struct err err = {0};

	assert_int_equal(run("c.toml",
				 "model = \"x\" # comment\n"
				 "api_key = \"canary\"\n"
				 "max_tokens = 10\n"
				 "x.token = \"canary\"\n"
				 "inline = { env = { A = \"canary\" }, b = 1 }\n"
				 "\"apiKey\" = \"canary\"\n"
				 "env = [\n \"canary\",\n \"canary = 2\",\n]\n"
				 "long = \"\"\"\nenv = not a key\n[not.a.table]\n\"\"\"\n"
				 "list = [\n  \"a\",\n]\n"
				 "[mcp_servers.a]\ncommand = \"canary\"\n"
				 "[mcp_servers.a.env]\nA = \"canary\"\n"
				 "[profiles.\"my secret\"]\nx = \"canary\"\n"
				 "[tui]\ntheme = \"dark\"\n",
				 &out, &err),
		0);
	assert_null(strstr(out, "canary"));
	assert_string_equal(out, "model = \"x\" # comment\nmax_tokens = 10\n"
				 "long = \"\"\"\nenv = not a key\n[not.a.table]\n\"\"\"\n"
				 "list = [\n  \"a\",\n]\n[tui]\ntheme = \"dark\"\n");
	assert_string_equal(
		told, "api_key token env apiKey env mcp_servers mcp_servers my secret ");
}

static void toml_that_hides_it_is_refused(void **state)
{
	char *out = NULL;
	struct err err = {0};

	assert_int_equal(run("c.toml", "a = [\n { token = \"x\" },\n]\n", &out, &err), -EPERM);
	assert_int_equal(
		run("c.toml", "a = \"sk-ant-api03-0123456789abcdef\"\n", &out, &err), -EPERM);
	assert_null(out);
}

static void other_texts_are_copied_or_refused(void **state)
{
	AUTO_FREE char *out = NULL;
	struct err err = {0};

	assert_int_equal(run("CLAUDE.md", "Be kind.\nenv = x\n", &out, &err), 0);
	assert_string_equal(out, "Be kind.\nenv = x\n");
	assert_int_equal(
		clean_settings("x.md", slice_of("a\0b", 3), NULL, 0, tell, NULL, &out, &err),
		-EINVAL);
	assert_int_equal(run("x.md", "my key is ghp_0123456789abcdef0123456", &out, &err), -EPERM);
	assert_int_equal(clean_settings("x.md", slice_of("", CLEAN_MAX_BYTES + 1), NULL, 0, tell,
				 NULL, &out, &err),
		-E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(shapes),
		cmocka_unit_test(json_loses_what_must_stay),
		cmocka_unit_test(json_that_is_none_stays),
		cmocka_unit_test(json_of_any_depth),
		cmocka_unit_test(toml_loses_what_must_stay),
		cmocka_unit_test(toml_that_hides_it_is_refused),
		cmocka_unit_test(other_texts_are_copied_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
