/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/secret/secret/extract.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void test_values(void **state)
{
	static const struct {
		enum vault_ref_kind kind;
		const char *output;
		const char *value; /* NULL: refused */
		const char *user;
	} rows[] = {
		{VAULT_REF_FIRST_LINE, "value\nrest\n", "value", ""},
		{VAULT_REF_FIRST_LINE, "value\r\n", "value", ""},
		{VAULT_REF_FIRST_LINE, "value", "value", ""},
		{VAULT_REF_FIRST_LINE, "\nvalue", NULL, ""},
		{VAULT_REF_FIRST_LINE, "", NULL, ""},
		{VAULT_REF_WHOLE, "a\nb\n", "a\nb", ""},
		{VAULT_REF_WHOLE, "a\r\n", "a", ""},
		{VAULT_REF_WHOLE, "\n", NULL, ""},
		{VAULT_REF_DOCKER, "{\"ServerURL\":\"u\",\"Username\":\"me\",\"Secret\":\"s3\"}",
			"s3", "me"},
		{VAULT_REF_DOCKER, " { \"Secret\" : \"s\" , \"Username\" : \"<token>\" } \n", "s",
			""},
		{VAULT_REF_DOCKER, "{\"Secret\":\"a\\\"\\\\\\/\\n\\u0041\\u00e9\\ud83d\\ude00\"}",
			"a\"\\/\nA\xc3\xa9\xf0\x9f\x98\x80", ""},
		{VAULT_REF_DOCKER, "{\"Secret\":\"s\"} x", NULL, ""},
		{VAULT_REF_DOCKER, "{\"Secret\":\"s\",}", NULL, ""},
		{VAULT_REF_DOCKER, "{\"Secret\":\"s\",\"Secret\":\"t\"}", NULL, ""},
		{VAULT_REF_DOCKER, "{\"Secret\":7}", NULL, ""},
		{VAULT_REF_DOCKER, "{\"Secret\":\"s", NULL, ""},
		{VAULT_REF_DOCKER, "{\"Secret\":\"s\\", NULL, ""},
		{VAULT_REF_DOCKER, "{\"Secret\":\"\\ud800\"}", NULL, ""},
		{VAULT_REF_DOCKER, "{\"Secret\":\"\\u12", NULL, ""},
		{VAULT_REF_DOCKER, "{\"Secret\":\"\"}", NULL, ""},
		{VAULT_REF_DOCKER, "{\"Username\":\"me\"}", NULL, ""},
		{VAULT_REF_DOCKER, "{}", NULL, ""},
		{VAULT_REF_DOCKER, "credentials not found in native keychain", NULL, ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_SECRET struct secret s = {0};
		char user[VAULT_MAX_USER];
		struct err err = {0};
		int r;

		assert_int_equal(secret_copy(&s, slice_from_str(rows[i].output), NULL), 0);
		r = extract_value(&s, rows[i].kind, user, &err);
		if (!rows[i].value) {
			assert_true(r < 0 && err.text[0]);
			continue;
		}
		assert_int_equal(r, 0);
		assert_true(slice_eq_str(secret_slice(&s), rows[i].value));
		assert_string_equal(user, rows[i].user);
		/* and nothing else is left in the memory */
		for (size_t k = s.n; k < s.size; k++)
			assert_int_equal(s.p[k], 0);
	}
}

static void test_too_long(void **state)
{
	AUTO_SECRET struct secret s = {0};
	char user[VAULT_MAX_USER];

	assert_int_equal(secret_init(&s, VAULT_MAX_VALUE + 1, NULL), 0);
	memset(s.p, 'x', s.size);
	s.n = s.size;
	assert_int_equal(extract_value(&s, VAULT_REF_WHOLE, user, NULL), -EMSGSIZE);
	s.n--;
	assert_int_equal(extract_value(&s, VAULT_REF_WHOLE, user, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
