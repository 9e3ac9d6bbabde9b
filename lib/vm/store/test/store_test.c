/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/vm/store/store.h"

static char dir[] = "/tmp/store_test.XXXXXX";
static char path[64];

static int make_dir(void **state)
{
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/registry.db", dir);
	return 0;
}

static int remove_dir(void **state)
{
	AUTO_FREE char *rm = xasprintf("rm -rf %s", dir);

	return system(rm);
}

static struct store *must_open(void)
{
	struct store *s = NULL;
	struct err err = {0};

	if (store_open(path, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

static void make_spec(struct spec *spec, const char *id, const char *name)
{
	AUTO_FREE char *json =
		xasprintf("{\"id\":\"%s\",\"name\":\"%s\",\"generation\":1}", id, name);

	assert_int_equal(spec_decode(slice_from_str(json), spec, NULL), 0);
	spec_set_defaults(spec, 2, 1ull << 30);
}

static int add(struct store *s, const char *id, const char *name)
{
	AUTO_SPEC struct spec spec = {0};

	make_spec(&spec, id, name);
	return store_insert(s, &spec, 1000, NULL);
}

static void rows_are_found_by_id_and_name(void **state)
{
	struct store *s = must_open();
	AUTO_ROW struct store_row a = {0}, b = {0}, c = {0};
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(add(s, "00000000000a", "one"), 0);
	assert_int_equal(add(s, "00000000000a", "two"), -EEXIST);
	assert_int_equal(add(s, "00000000000b", "one"), -EEXIST);
	store_close(s);
	s = must_open();
	assert_int_equal(store_get(s, "one", &a, NULL), 0);
	assert_string_equal(a.spec.id, "00000000000a");
	assert_int_equal(a.created_at, 1000);
	assert_int_equal(store_get(s, "00000000000a", &b, NULL), 0);
	assert_string_equal(b.spec.name, "one");
	assert_int_equal(store_get(s, "One", &c, NULL), -ENOENT);
	store_close(s);
}

static void a_change_needs_the_generation(void **state)
{
	struct store *s = must_open();
	AUTO_ROW struct store_row row = {0}, now = {0};

	assert_int_equal(add(s, "00000000000a", "one"), 0);
	assert_int_equal(add(s, "00000000000b", "two"), 0);
	assert_int_equal(store_get(s, "one", &row, NULL), 0);
	row.spec.generation = 2;
	snprintf(row.spec.name, sizeof(row.spec.name), "uno");
	assert_int_equal(store_update(s, &row.spec, 7, NULL), -ESTALE);
	assert_int_equal(store_update(s, &row.spec, 1, NULL), 0);
	assert_int_equal(store_update(s, &row.spec, 1, NULL), -ESTALE);
	assert_int_equal(store_get(s, "uno", &now, NULL), 0);
	assert_int_equal(now.spec.generation, 2);
	snprintf(row.spec.name, sizeof(row.spec.name), "two");
	assert_int_equal(store_update(s, &row.spec, 2, NULL), -EEXIST);
	store_close(s);
}

static int count_id(void *arg, const char *id)
{
	(*(int *)arg)++;
	return 0;
}

static int count_row(void *arg, const struct store_row *row)
{
	(*(int *)arg)++;
	return 0;
}

static void times_say_what_runs(void **state)
{
	struct store *s = must_open();
	AUTO_ROW struct store_row row = {0};
	int n = 0;

	assert_int_equal(add(s, "00000000000a", "one"), 0);
	assert_int_equal(store_list_started(s, count_id, &n, NULL), 0);
	assert_int_equal(n, 0);
	assert_int_equal(store_stamp(s, "00000000000a", STORE_STARTED, 5000, "", NULL), 0);
	assert_int_equal(store_list_started(s, count_id, &n, NULL), 0);
	assert_int_equal(n, 1);
	/* The clock went back: a stopped one must not look started. */
	assert_int_equal(store_stamp(s, "00000000000a", STORE_STOPPED, 4000, "it fell", NULL), 0);
	assert_int_equal(store_list_started(s, count_id, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_int_equal(store_stamp(s, "00000000000a", STORE_STARTED, 3000, "", NULL), 0);
	assert_int_equal(store_list_started(s, count_id, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_int_equal(store_stamp(s, "00000000000a", STORE_STOPPED, 9000, "it fell", NULL), 0);
	assert_int_equal(store_stamp(s, "00000000000a", STORE_USED, 9500, NULL, NULL), 0);
	assert_int_equal(store_get(s, "one", &row, NULL), 0);
	assert_string_equal(row.last_error, "it fell");
	assert_int_equal(row.stopped_at, 9000);
	assert_int_equal(row.last_used_at, 9500);
	store_close(s);
}

static void a_removed_one_is_gone_until_forgotten(void **state)
{
	struct store *s = must_open();
	AUTO_ROW struct store_row row = {0};
	int n = 0, rows = 0;

	assert_int_equal(add(s, "00000000000a", "one"), 0);
	/* Not marked: not forgotten either. */
	assert_int_equal(store_forget(s, "00000000000a", NULL), 0);
	assert_int_equal(store_mark_removed(s, "00000000000a", NULL), 0);
	assert_int_equal(store_get(s, "one", &row, NULL), -ENOENT);
	assert_int_equal(store_get(s, "00000000000a", &row, NULL), -ENOENT);
	assert_int_equal(store_list(s, NULL, 0, count_row, &rows, NULL), 0);
	assert_int_equal(rows, 0);
	assert_int_equal(add(s, "00000000000a", "one"), -EEXIST);
	assert_int_equal(add(s, "00000000000b", "one"), 0);
	store_close(s);
	s = must_open();
	assert_int_equal(store_list_removed(s, count_id, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_int_equal(store_forget(s, "00000000000a", NULL), 0);
	assert_int_equal(store_list_removed(s, count_id, &n, NULL), 0);
	assert_int_equal(n, 1);
	store_close(s);
}

static void a_damaged_registry_is_refused_and_kept(void **state)
{
	struct store *s = must_open();
	AUTO_FREE char *text = NULL, *after = NULL;
	struct err err = {0};
	size_t n, k;

	assert_int_equal(add(s, "00000000000a", "one"), 0);
	store_close(s);
	assert_int_equal(file_load(path, 1 << 20, &text, &n, NULL), 0);
	memset(text + 4096, 0xa5, n - 4096);
	assert_int_equal(file_save(path, slice_of(text, n), NULL), 0);
	assert_int_equal(store_open(path, &s, &err), -EUCLEAN);
	assert_non_null(strstr(err.text, "corrupt"));
	assert_int_equal(file_load(path, 1 << 20, &after, &k, NULL), 0);
	assert_true(k == n && memcmp(text, after, n) == 0);
	assert_int_equal(file_save(path, slice_from_str("this is no database at all"), NULL), 0);
	assert_int_equal(store_open(path, &s, &err), -EUCLEAN);
	assert_non_null(strstr(err.text, path));
}

static void a_newer_registry_is_refused(void **state)
{
	AUTO_FREE char *text = NULL;
	struct store *s = must_open();
	struct err err = {0};
	size_t n;

	store_close(s);
	assert_int_equal(file_load(path, 1 << 20, &text, &n, NULL), 0);
	text[63] = 99; /* user_version, big-endian at offset 60 */
	assert_int_equal(file_save(path, slice_of(text, n), NULL), 0);
	assert_int_equal(store_open(path, &s, &err), -EPROTONOSUPPORT);
	assert_non_null(strstr(err.text, "newer"));
}

static void a_thousand_are_listed_quickly_and_by_pages(void **state)
{
	struct store *s = must_open();
	int rows = 0;
	clock_t t;

	for (int i = 0; i < 1000; i++) {
		char id[13], name[16];

		snprintf(id, sizeof(id), "%012x", (unsigned)i);
		snprintf(name, sizeof(name), "n%04d", i);
		assert_int_equal(add(s, id, name), 0);
	}
	t = clock(); /* of the processor: other programs run too */
	assert_int_equal(store_list(s, NULL, 0, count_row, &rows, NULL), 0);
	assert_int_equal(rows, 1000);
	assert_in_range(clock() - t, 0, CLOCKS_PER_SEC / 2);
	rows = 0;
	assert_int_equal(store_list(s, "n0989", 7, count_row, &rows, NULL), 0);
	assert_int_equal(rows, 7);
	assert_int_equal(store_list(s, "n0989", 0, count_row, &rows, NULL), 0);
	assert_int_equal(rows, 17);
	store_close(s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)
	const struct CMUnitTest tests[] = {
		TEST(rows_are_found_by_id_and_name),
		TEST(a_change_needs_the_generation),
		TEST(times_say_what_runs),
		TEST(a_removed_one_is_gone_until_forgotten),
		TEST(a_damaged_registry_is_refused_and_kept),
		TEST(a_newer_registry_is_refused),
		TEST(a_thousand_are_listed_quickly_and_by_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
