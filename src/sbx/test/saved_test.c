/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "src/sbx/stage/journal.h"
#include "src/sbx/stage/known.h"
#include "src/sbx/stage/merge/saved.h"

static char top[] = "/tmp/saved-test-XXXXXX";

static int make_top(void **state)
{
	return mkdtemp(top) ? 0 : -1;
}

static int remove_top(void **state)
{
	(void)unlinkat(AT_FDCWD, top, AT_REMOVEDIR);
	return 0;
}

static void write_byte(const char *file, off_t at, char c)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &c, 1, at), 1);
	(void)close(fd);
}

static void a_text_comes_back_with_its_mode(void **state)
{
	AUTO_FREE char *file = xasprintf("%s/x", top);
	AUTO_SAVED struct saved s = {0};

	assert_false(saved_get(file, &s));
	assert_int_equal(saved_put(file, slice_from_str("one\ntwo"), 0755, NULL), 0);
	assert_true(saved_get(file, &s));
	assert_int_equal(s.mode, 0755);
	assert_int_equal(s.n, 7);
	assert_string_equal(s.text, "one\ntwo");
	assert_true(saved_has(file, s.sha));
	s.sha[0] ^= 1;
	assert_false(saved_has(file, s.sha));
	saved_done(&s);
	assert_int_equal(saved_put(file, slice_of("", 0), 0600, NULL), 0);
	assert_true(saved_get(file, &s));
	assert_int_equal(s.n, 0);
	(void)unlink(file);
}

static void a_damaged_file_is_absent(void **state)
{
	AUTO_FREE char *file = xasprintf("%s/x", top);
	static const off_t places[] = {0, 63, 64, 65, 68, 69, 72};
	AUTO_SAVED struct saved s = {0};

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		assert_int_equal(saved_put(file, slice_from_str("text"), 0644, NULL), 0);
		write_byte(file, places[i], 'z');
		assert_false(saved_get(file, &s));
		assert_null(s.text);
	}
	for (off_t n = 0; n < 73; n++) {
		assert_int_equal(saved_put(file, slice_from_str("text"), 0644, NULL), 0);
		assert_int_equal(truncate(file, n), 0);
		assert_false(saved_get(file, &s));
	}
	(void)unlink(file);
}

static void a_result_belongs_to_both_versions(void **state)
{
	struct bundle_entry entry = {.path = (char *)"a"};
	struct plan_step s = {.path = (char *)"a", .entry = &entry};
	AUTO_FREE char *first = saved_path(top, &s), *same = saved_path(top, &s);
	AUTO_FREE char *ws = NULL, *path = NULL, *old = NULL, *new = NULL;

	assert_string_equal(first, same);
	s.ws = 1;
	ws = saved_path(top, &s);
	s.path = (char *)"b";
	path = saved_path(top, &s);
	s.old.sha[0] = 1;
	old = saved_path(top, &s);
	entry.sha[31] = 1;
	new = saved_path(top, &s);
	assert_string_not_equal(first, ws);
	assert_string_not_equal(ws, path);
	assert_string_not_equal(path, old);
	assert_string_not_equal(old, new);
}

static void a_journal_keeps_what_was_a_change_of_the_host(void **state)
{
	struct plan_step steps[] = {
		{.kind = PLAN_PUT, .path = (char *)"a\nb", .wanted = true, .host_changed = true},
		{.kind = PLAN_CHMOD, .path = (char *)"c", .wanted = true}};
	struct plan p = {.v = steps, .n = 2};
	AUTO_FREE char *file = xasprintf("%s/journal", top);
	AUTO_PLAN struct plan back = {0};

	assert_int_equal(journal_write(top, &p, NULL), 0);
	assert_int_equal(journal_read(top, &back, NULL), 0);
	assert_int_equal(back.n, 2);
	assert_int_equal(back.v[0].kind, PLAN_PUT);
	assert_true(back.v[0].host_changed);
	assert_string_equal(back.v[0].path, "a\nb");
	assert_int_equal(back.v[1].kind, PLAN_CHMOD);
	assert_false(back.v[1].host_changed);
	(void)unlink(file);
}

static void the_last_row_of_a_path_counts(void **state)
{
	AUTO_KNOWN struct known k = {0};
	uint8_t sha[SHA256_BYTES] = {7};

	assert_null(known_find(&k, 0, "a"));
	known_add(&k, 0, "a", sha);
	known_add(&k, 0, "a", KNOWN_MIXED);
	known_add(&k, 1, "a", KNOWN_ABSENT);
	known_sort(&k);
	assert_memory_equal(known_find(&k, 0, "a"), KNOWN_MIXED, SHA256_BYTES);
	assert_memory_equal(known_find(&k, 1, "a"), KNOWN_ABSENT, SHA256_BYTES);
	assert_false(known_has(&k, 0, "a", sha));
	assert_null(known_find(&k, 0, "b"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_comes_back_with_its_mode),
		cmocka_unit_test(a_damaged_file_is_absent),
		cmocka_unit_test(a_result_belongs_to_both_versions),
		cmocka_unit_test(a_journal_keeps_what_was_a_change_of_the_host),
		cmocka_unit_test(the_last_row_of_a_path_counts),
	};

	return cmocka_run_group_tests(tests, make_top, remove_top);
}
