/* SPDX-License-Identifier: Apache-2.0 */
/* What a person sees of a request: no character of a guest can change the terminal, look like our
 * own text or hide another one, and what is cut off is counted. */
#include "src/sbx/policy/hold_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static char *text;
static size_t size;

static const char *print_hold(const char *json)
{
	json_t *hold = json_loads(json, 0, NULL);
	FILE *f;

	assert_non_null(hold);
	free(text);
	f = open_memstream(&text, &size);
	hold_text_print(f, hold);
	(void)fclose(f);
	json_decref(hold);
	return text;
}

static const char *escape(const char *s)
{
	json_t *hold = json_pack("{s:[o]}", "effects", json_stringn_nocheck(s, strlen(s)));

	free(text);
	text = hold_text_line(hold);
	json_decref(hold);
	return text;
}

static void hostile_characters_are_codes(void **state)
{
	assert_string_equal(escape("a b ~ \xc3\xa9"), "a b ~ \xc3\xa9");
	assert_string_equal(escape("\x1b[2J\r\t\x7f"), "<1B>[2J<0D><09><7F>");
	assert_string_equal(escape("\xe2\x80\xae"
				   "a\xe2\x80\x8b"),
		"<U+202E>a<U+200B>");
	assert_string_equal(escape("\xe2\x81\xa6\xef\xbb\xbf"), "<U+2066><U+FEFF>");
	assert_string_equal(escape("\xff\xc3"), "<FF><C3>");
}

static void what_is_cut_off_is_counted(void **state)
{
	char line[HOLD_TEXT_LINE + 8];

	memset(line, 'a', sizeof(line));
	line[HOLD_TEXT_LINE] = '\0';
	assert_null(strstr(escape(line), "more"));
	line[HOLD_TEXT_LINE] = 'a';
	line[HOLD_TEXT_LINE + 7] = '\0';
	assert_non_null(strstr(escape(line), "aaa ... 7 more bytes"));
}

static void each_line_of_the_guest_is_quoted(void **state)
{
	const char *out = print_hold("{\"id\":\"K7QD\",\"sandbox\":\"demo\",\"state\":\"open\","
				     "\"expires_at\":0,\"digest\":\"ab\",\"rule\":\"ask http a\","
				     "\"effects\":[\"http:get a /\",\"http:put a /\"],"
				     "\"preview\":[\"one\",\"digest fake\"]}");

	assert_string_equal(out, "Request K7QD of sandbox demo: open, 0 s left\n\n"
				 "    http:get a /\n"
				 "    http:put a /\n\n"
				 "Text of the request:\n"
				 "| one\n"
				 "| digest fake\n\n"
				 "rule      ask http a\n"
				 "digest    ab\n");
}

static void the_time_left_may_have_no_end(void **state)
{
	assert_non_null(strstr(print_hold("{\"state\":\"approved\",\"expires_at\":null}"),
		": approved, no time limit\n"));
}

static void all_effects_and_a_part_of_the_preview_are_printed(void **state)
{
	json_t *hold = json_pack("{s:[],s:[]}", "effects", "preview");
	char *json;
	size_t n = 0;

	for (int i = 0; i < 1000; i++) {
		json_array_append_new(json_object_get(hold, "effects"), json_string("effect"));
		json_array_append_new(json_object_get(hold, "preview"), json_string("line"));
	}
	json = json_dumps(hold, 0);
	json_decref(hold);
	for (const char *p = print_hold(json); (p = strstr(p, "    effect\n")) != NULL; p++)
		n++;
	assert_int_equal(n, 1000);
	assert_non_null(strstr(text, "... 800 more lines\n"));
	free(json);
}

static void the_line_of_a_list_names_the_first_effect(void **state)
{
	json_t *hold = json_pack("{s:[s,s,s]}", "effects", "a\x1b", "b", "c");
	char *line = hold_text_line(hold);

	assert_string_equal(line, "a<1B> and 2 more");
	free(line);
	json_decref(hold);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile_characters_are_codes),
		cmocka_unit_test(what_is_cut_off_is_counted),
		cmocka_unit_test(each_line_of_the_guest_is_quoted),
		cmocka_unit_test(the_time_left_may_have_no_end),
		cmocka_unit_test(all_effects_and_a_part_of_the_preview_are_printed),
		cmocka_unit_test(the_line_of_a_list_names_the_first_effect),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	free(text);
	return r;
}
