/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "lib/base/mem.h"
#include "lib/vm/vmm/verdict.h"

static char dir[] = "/tmp/sbx-verdict-XXXXXX";
static char file[64];

static void kept_under_its_key(void **state)
{
	char text[VERDICT_MAX] = "";
	uint64_t age_s = 99;

	assert_false(verdict_load(file, "key", text, sizeof(text), &age_s));
	verdict_store(file, "key", "the verdict");
	assert_true(verdict_load(file, "key", text, sizeof(text), &age_s));
	assert_string_equal(text, "the verdict");
	assert_in_range(age_s, 0, 60);
	assert_false(verdict_load(file, "ke", text, sizeof(text), &age_s));
	assert_false(verdict_load(file, "keys", text, sizeof(text), &age_s));
	assert_false(verdict_load(file, "key", text, 11, &age_s)); /* it does not fit */
	verdict_store(file, "keys", "another");
	assert_false(verdict_load(file, "key", text, sizeof(text), &age_s));
	assert_true(verdict_load(file, "keys", text, sizeof(text), &age_s));
	assert_string_equal(text, "another");
}

static void its_age(void **state)
{
	struct timespec then[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - 1000}};
	char text[VERDICT_MAX];
	uint64_t age_s;

	verdict_store(file, "key", "old");
	assert_int_equal(utimensat(AT_FDCWD, file, then, 0), 0);
	assert_true(verdict_load(file, "key", text, sizeof(text), &age_s));
	assert_in_range(age_s, 999, 1060);
	then[1].tv_sec += 2000; /* the clock was put back since */
	assert_int_equal(utimensat(AT_FDCWD, file, then, 0), 0);
	assert_true(verdict_load(file, "key", text, sizeof(text), &age_s));
	assert_int_equal(age_s, 0);
}

/* What does not fit is not kept by half, and leaves nothing behind. */
static void too_long(void **state)
{
	AUTO_FREE char *count = xasprintf("test $(ls -A %s | wc -l) = 1", dir);
	char text[VERDICT_MAX], longest[VERDICT_MAX];
	uint64_t age_s;

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	verdict_store(file, "key", "short");
	verdict_store(file, "key", longest);
	assert_true(verdict_load(file, "key", text, sizeof(text), &age_s));
	assert_string_equal(text, "short");
	longest[VERDICT_MAX - sizeof("key\n")] = 0;
	verdict_store(file, "key", longest);
	assert_true(verdict_load(file, "key", text, sizeof(text), &age_s));
	assert_string_equal(text, longest);
	assert_int_equal(system(count), 0);
	verdict_store("/nowhere/verdict", "key", "short");
	assert_false(verdict_load("/nowhere/verdict", "key", text, sizeof(text), &age_s));
}

static void key_of(char *key, size_t size)
{
	struct wr w = wr_init(key, size - 1);

	assert_int_equal(verdict_add_file(&w, file), 0);
	assert_int_equal(wr_finish(&w), 0);
	key[w.n] = 0;
}

/* Written to, replaced by one that looks the same, gone. */
static void another_file_is_another_key(void **state)
{
	AUTO_FREE char *twin = xasprintf("%s.twin", file);
	AUTO_FREE char *copy = xasprintf("cp -p %s %s", file, twin);
	char key[128], again[128];
	struct wr w = wr_init(again, sizeof(again));

	verdict_store(file, "a", "b");
	key_of(key, sizeof(key));
	key_of(again, sizeof(again));
	assert_string_equal(key, again);
	assert_int_equal(system(copy), 0);
	assert_int_equal(rename(twin, file), 0);
	key_of(again, sizeof(again));
	assert_string_not_equal(key, again);
	assert_int_equal(truncate(file, 1), 0);
	key_of(key, sizeof(key));
	assert_string_not_equal(key, again);
	assert_int_equal(verdict_add_file(&w, "/nowhere/qemu"), -ENOENT);
}

static int make_dir(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	snprintf(file, sizeof(file), "%s/verdict", dir);
	return 0;
}

static int remove_dir(void **state)
{
	AUTO_FREE char *cmd = xasprintf("rm -rf %s", dir);

	return system(cmd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kept_under_its_key),
		cmocka_unit_test(its_age),
		cmocka_unit_test(too_long),
		cmocka_unit_test(another_file_is_another_key),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
