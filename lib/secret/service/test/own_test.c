/* SPDX-License-Identifier: Apache-2.0 */
/* The list of services for which a sandbox may use its own credentials. */
#include "lib/secret/service/own.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"

static char dir[] = "/tmp/own_test.XXXXXX";

static void whole_lines_count(void **state)
{
	assert_true(own_has("a\nopenai\n", "openai"));
	assert_true(own_has("openai", "openai"));
	assert_false(own_has("openai\n", "open"));
	assert_false(own_has("open\n", "openai"));
	assert_false(own_has("", "openai"));
	assert_false(own_has("\n\n", "openai"));
}

static void a_service_is_on_it_once_or_not_at_all(void **state)
{
	AUTO_FREE char *one = own_change("", "openai", true);
	AUTO_FREE char *same = own_change(one, "openai", true);
	AUTO_FREE char *two = own_change(same, "xai", true);
	AUTO_FREE char *less = own_change(two, "openai", false);
	AUTO_FREE char *none = own_change(less, "xai", false);

	assert_string_equal(one, "openai\n");
	assert_string_equal(same, "openai\n");
	assert_string_equal(two, "openai\nxai\n");
	assert_string_equal(less, "xai\n");
	assert_string_equal(none, "");
}

static void what_is_saved_is_loaded(void **state)
{
	AUTO_FREE char *text = NULL, *again = NULL;

	assert_int_equal(own_load(dir, &text, NULL), 0);
	assert_string_equal(text, ""); /* no file */
	assert_int_equal(own_save(dir, "openai\nxai\n", NULL), 0);
	assert_int_equal(own_load(dir, &again, NULL), 0);
	assert_string_equal(again, "openai\nxai\n");
}

/* A file that cannot be read permits nothing. */
static void a_bad_file_is_empty(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/" OWN_FILE, dir), *large = xmalloc(OWN_MAX_BYTES + 2);
	AUTO_FREE char *first = NULL, *second = NULL, *third = NULL;
	struct err err = {0};

	memset(large, 'a', OWN_MAX_BYTES + 1);
	large[OWN_MAX_BYTES + 1] = '\0';
	assert_int_equal(own_save(dir, large, &err), -E2BIG);
	assert_int_equal(file_save(path, slice_of(large, OWN_MAX_BYTES + 1), NULL), 0);
	assert_int_equal(own_load(dir, &first, &err), -EFBIG);
	assert_string_equal(first, "");
	assert_int_equal(file_save(path, slice_of("xai\n\0openai\n", 12), NULL), 0);
	assert_int_equal(own_load(dir, &second, &err), -EBADMSG);
	assert_string_equal(second, "");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_true(own_load(dir, &third, &err) < 0);
	assert_string_equal(third, "");
	assert_int_equal(unlink(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_lines_count),
		cmocka_unit_test(a_service_is_on_it_once_or_not_at_all),
		cmocka_unit_test(what_is_saved_is_loaded),
		cmocka_unit_test(a_bad_file_is_empty),
	};
	int r;

	assert_non_null(mkdtemp(dir));
	r = cmocka_run_group_tests(tests, NULL, NULL);
	(void)rmdir(dir);
	return r;
}
