/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/err.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void set_gives_the_code_back(void **state)
{
	struct err err = {0};

	assert_int_equal(err_set(&err, -ENOENT, "no sandbox named %s", "demo"), -ENOENT);
	assert_string_equal(err.text, "no sandbox named demo");
	assert_string_equal(err_text(&err, -ENOENT), "no sandbox named demo");
}

static void errno_text_is_added(void **state)
{
	struct err err = {0};

	assert_int_equal(err_errno(&err, -EACCES, "opening %s", "/x"), -EACCES);
	assert_string_equal(err.text, "opening /x: Permission denied");
}

static void wrap_puts_context_in_front(void **state)
{
	struct err err = {0};

	(void)err_set(&err, -EIO, "short read");
	assert_int_equal(err_wrap(&err, -EIO, "starting %s", "demo"), -EIO);
	assert_string_equal(err.text, "starting demo: short read");
}

/* It once ended in a colon and nothing. */
static void wrap_of_no_sentence_says_the_errno(void **state)
{
	struct err err = {0};

	assert_int_equal(err_wrap(&err, -EIO, "starting demo"), -EIO);
	assert_string_equal(err.text, "starting demo: Input/output error");
}

static void no_struct_is_fine(void **state)
{
	assert_int_equal(err_set(NULL, -EIO, "x"), -EIO);
	assert_int_equal(err_errno(NULL, -EIO, "x"), -EIO);
	assert_int_equal(err_wrap(NULL, -EIO, "x"), -EIO);
	assert_string_equal(err_text(NULL, -EIO), "Input/output error");
}

static void long_text_is_cut_and_terminated(void **state)
{
	struct err err = {0};
	char text[3 * ERR_MAX_TEXT];

	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	(void)err_set(&err, -EIO, "%s", text);
	assert_int_equal(strlen(err.text), ERR_MAX_TEXT - 1);
	(void)err_errno(&err, -EIO, "%s", text);
	assert_int_equal(strlen(err.text), ERR_MAX_TEXT - 1);
	(void)err_wrap(&err, -EIO, "%s", text);
	assert_int_equal(strlen(err.text), ERR_MAX_TEXT - 1);
	(void)err_wrap(&err, -EIO, "context");
	assert_int_equal(strlen(err.text), ERR_MAX_TEXT - 1);
	assert_memory_equal(err.text, "context: aaa", 12);
}

static void both_signs_name_the_same_errno(void **state)
{
	assert_string_equal(err_text(NULL, ENOENT), err_text(NULL, -ENOENT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_gives_the_code_back),
		cmocka_unit_test(errno_text_is_added),
		cmocka_unit_test(wrap_puts_context_in_front),
		cmocka_unit_test(wrap_of_no_sentence_says_the_errno),
		cmocka_unit_test(no_struct_is_fine),
		cmocka_unit_test(long_text_is_cut_and_terminated),
		cmocka_unit_test(both_signs_name_the_same_errno),
	};

	return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
