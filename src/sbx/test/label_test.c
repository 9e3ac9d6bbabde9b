/* SPDX-License-Identifier: Apache-2.0 */
#include "src/sbx/label/label.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "lib/base/mem.h"

static struct opt_list list_of(const char **v, size_t n)
{
	return (struct opt_list){.v = v, .n = n};
}

static void a_later_label_replaces_an_earlier_one(void **state)
{
	const char *labels[] = {"team=web", "a/b.c-d_e=", "team=x y=z"};
	struct opt_list l = list_of(labels, ARRAY_LEN(labels));
	json_auto_t *s = json_pack("{s:{}}", "labels");
	struct err err = {0};
	AUTO_FREE char *text = NULL;

	assert_int_equal(label_set(&l, json_object_get(s, "labels"), &err), 0);
	text = label_text(s);
	assert_string_equal(text, "team=x y=z, a/b.c-d_e=");
}

static void text_that_is_no_label_is_refused(void **state)
{
	char key[80] = "", value[200] = "k=";
	const char *bad[] = {"team", "=x", ".team=x", "te am=x", "t\303\244=x", "team=\303\244",
		"team=a\nb", "team=\033[0m", key, value};

	memset(key, 'k', 64);
	(void)strcat(key, "=x");
	memset(value + 2, 'v', 128);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct opt_list l = list_of(&bad[i], 1);
		json_auto_t *o = json_object();
		struct err err = {0};

		assert_int_equal(label_set(&l, o, &err), -EINVAL);
		assert_non_null(strstr(err.text, "label"));
		assert_int_equal(json_object_size(o), 0);
	}
}

static void a_sandbox_has_at_most_32(void **state)
{
	json_auto_t *o = json_object();
	struct err err = {0};

	for (int i = 0; i < 33; i++) {
		AUTO_FREE char *label = xasprintf("k%d=v", i);
		const char *v[] = {label};
		struct opt_list l = list_of(v, 1);

		assert_int_equal(label_set(&l, o, &err), i < 32 ? 0 : -E2BIG);
	}
}

static void filters_match_together(void **state)
{
	json_auto_t *s = json_pack("{s:s, s:s, s:{s:s, s:s}}", "agent", "shell", "status",
		"running", "labels", "team", "web", "empty", "");
	static const struct {
		const char *a, *b;
		bool want;
	} rows[] = {
		{"label=team", "label=empty", true},
		{"label=team=web", "state=running", true},
		{"label=team=we", "state=running", false},
		{"label=empty=", "agent=shell", true},
		{"label=other", "agent=shell", false},
		{"label=team", "agent=claude", false},
		{"label=team", "state=stopped", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *v[] = {rows[i].a, rows[i].b};
		struct opt_list l = list_of(v, 2);
		struct err err = {0};

		assert_int_equal(label_filter_check(&l, &err), 0);
		assert_int_equal(label_filter_matches(&l, s), rows[i].want);
	}
}

static void filters_that_match_nothing_ever_are_refused(void **state)
{
	static const char *const bad[] = {
		"", "team=web", "label", "label=", "agent=", "state=", "state=runing", "name=x"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const char *v[] = {"label=team", bad[i]};
		struct opt_list l = list_of(v, 2);
		struct err err = {0};

		assert_int_equal(label_filter_check(&l, &err), -EINVAL);
		assert_non_null(strstr(err.text, "invalid --filter"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_later_label_replaces_an_earlier_one),
		cmocka_unit_test(text_that_is_no_label_is_refused),
		cmocka_unit_test(a_sandbox_has_at_most_32),
		cmocka_unit_test(filters_match_together),
		cmocka_unit_test(filters_that_match_nothing_ever_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
