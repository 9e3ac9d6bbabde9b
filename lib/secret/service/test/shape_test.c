/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/secret/service/shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "lib/base/attr.h"

static void what_looks_like_a_credential(void **state)
{
	static const struct {
		const char *text, *secret; /* of a request; NULL: none */
		bool in_file;
	} rows[] = {
		{"sk-ant-api03-0123456789", "sk-ant-api03-0123456789", true},
		{"a, b=ghp_0123456789abcdefghij; c", "ghp_0123456789abcdefghij", true},
		{"realtime, openai-insecure-api-key.k", "openai-insecure-api-key.k", true},
		{"AKIA0123456789ABCDEF/20260101/x", "AKIA0123456789ABCDEF", true},
		{"sk-short", NULL, false},
		{"task-0123456789abcdefghijkl", NULL, false},
		{"npm-package-with-a-long-name", NULL, false},
		{"eyJhIjoxfQ.eyJiIjoyfQ.c2ln", "eyJhIjoxfQ.eyJiIjoyfQ.c2ln", true},
		{"eyJpZCI6MTIzNDU2Nzg5MDEyfQ", NULL, true}, /* a cursor */
		{"Bearer 0123456789abcdef", "Bearer 0123456789abcdef", true},
		{"https://u:p@h.example/", "://u:p@h.example/", true},
		{"https://h.example/u:p@x", NULL, false},
		{"-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----", true},
		{"", NULL, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct slice text = slice_from_str(rows[i].text), found = slice_of(NULL, 0);

		if (shape_has_secret(text) != rows[i].in_file)
			fail_msg("in a file: %s", rows[i].text);
		if (shape_next_secret(&text, &found) != (rows[i].secret != NULL) ||
			(rows[i].secret && !slice_eq_str(found, rows[i].secret)))
			fail_msg("in a request: %s", rows[i].text);
	}
}

static void each_one_is_found(void **state)
{
	struct slice text = slice_from_str("ghp_0123456789abcdefghij,hf_0123456789abcdefghij,x"),
		     found;

	assert_true(shape_next_secret(&text, &found));
	assert_true(slice_eq_str(found, "ghp_0123456789abcdefghij"));
	assert_true(shape_next_secret(&text, &found));
	assert_true(slice_eq_str(found, "hf_0123456789abcdefghij"));
	assert_false(shape_next_secret(&text, &found));
}

/* The sanitizers see a byte that is read behind the word. */
static void a_word_shorter_than_a_prefix_is_not_read_past_its_end(void **state)
{
	static const char word[] = "openai-insecure-api-ke";
	size_t n = sizeof(word) - 1;
	char *copy = malloc(n);
	struct slice text = slice_of(copy, n), found;

	assert_non_null(copy);
	memcpy(copy, word, n);
	assert_false(shape_next_secret(&text, &found));
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_looks_like_a_credential),
		cmocka_unit_test(each_one_is_found),
		cmocka_unit_test(a_word_shorter_than_a_prefix_is_not_read_past_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
