/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/program/run_ref.h"

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
#include "lib/base/fs/paths.h"

static char dir[] = "/tmp/run_ref_test.XXXXXX";
static const struct vault_ref ref = {.kind = VAULT_REF_FIRST_LINE,
	.program = "/usr/bin/op",
	.n_args = 2,
	.args = {"read", "op://a b/c"},
	.refresh_s = 60};

static int setup(void **state)
{
	return mkdtemp(dir) ? setenv("XDG_STATE_HOME", dir, 1) : -1;
}

static int teardown(void **state)
{
	AUTO_FREE char *rm = xasprintf("rm -rf %s", dir);

	return system(rm);
}

static void test_there_and_back(void **state)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "programs/7");
	static struct vault_ref got;
	struct stat st;

	assert_int_equal(run_ref_load(7, &got, NULL), -ENOENT);
	assert_int_equal(run_ref_save(7, &ref, NULL), 0);
	assert_int_equal(run_ref_load(7, &got, NULL), 0);
	assert_memory_equal(&got, &ref, sizeof(ref));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

/* Every cut of the file, and every changed byte of its head, counts as missing. */
static void test_damaged(void **state)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "programs/7");
	AUTO_FREE char *text = NULL;
	static struct vault_ref got;
	size_t n;

	assert_int_equal(run_ref_save(7, &ref, NULL), 0);
	assert_int_equal(file_load(path, 1 << 16, &text, &n, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(file_save(path, slice_of(text, i), NULL), 0);
		assert_true(run_ref_load(7, &got, NULL) < 0);
	}
	for (size_t i = 0; i < 12; i++) {
		text[i] ^= 1;
		assert_int_equal(file_save(path, slice_of(text, n), NULL), 0);
		assert_int_equal(run_ref_load(7, &got, NULL), -ENOENT);
		text[i] ^= 1;
	}
}

static void test_keep(void **state)
{
	static const uint64_t kept[] = {1, 30};
	static struct vault_ref got;

	for (uint64_t i = 1; i <= 30; i++)
		assert_int_equal(run_ref_save(i, &ref, NULL), 0);
	run_ref_keep(kept, ARRAY_LEN(kept));
	for (uint64_t i = 1; i <= 30; i++)
		assert_int_equal(run_ref_load(i, &got, NULL), i == 1 || i == 30 ? 0 : -ENOENT);
	run_ref_keep(NULL, 0);
	AUTO_FREE char *programs = paths_get(PATHS_STATE, "programs");

	assert_int_equal(access(programs, F_OK), -1);
	assert_int_equal(run_ref_save(1, &ref, NULL), 0);
	assert_int_equal(run_ref_load(1, &got, NULL), 0);
}

static int check(enum vault_ref_kind kind, const char *program)
{
	AUTO_SEEN struct run_ref_seen seen = {0};
	struct vault_ref r = {.kind = kind};

	(void)snprintf(r.program, sizeof(r.program), "%s", program);
	return run_ref_check(&r, &seen, NULL);
}

static void test_check(void **state)
{
	AUTO_FREE char *helper = xasprintf("%s/docker-credential-x", dir);
	AUTO_FREE char *link = xasprintf("%s/docker-credential-y", dir);

	assert_int_equal(check(VAULT_REF_WHOLE, "/bin/sh"), 0);
	assert_int_equal(check(VAULT_REF_DOCKER, "/bin/sh"), -EINVAL);
	assert_int_equal(check(VAULT_REF_WHOLE, "/nonexistent/x"), -ENOENT);
	assert_int_equal(check(VAULT_REF_WHOLE, "/tmp"), -EINVAL);
	assert_int_equal(file_save(helper, slice_from_str("#!/bin/sh\n"), NULL), 0);
	assert_int_equal(check(VAULT_REF_DOCKER, helper), -EINVAL); /* not executable */
	assert_int_equal(chmod(helper, 0755), 0);
	assert_int_equal(check(VAULT_REF_DOCKER, helper), 0);
	assert_int_equal(symlink(helper, link), 0);
	assert_int_equal(check(VAULT_REF_DOCKER, link), 0);
	assert_int_equal(chmod(helper, 0757), 0);
	assert_int_equal(check(VAULT_REF_DOCKER, link), -EPERM); /* what it leads to counts */
}

/* A link decides what is executed: who can replace it has no need to change the program. */
static void test_a_link_that_another_user_can_replace(void **state)
{
	AUTO_FREE char *open = xasprintf("%s/open", dir), *link = xasprintf("%s/get", open);
	AUTO_FREE char *typed = xasprintf("%s/first", dir), *up = xasprintf("%s/../first", open);

	assert_int_equal(mkdir(open, 0700), 0);
	assert_int_equal(symlink("/bin/sh", link), 0);
	assert_int_equal(symlink("open/get", typed), 0);
	assert_int_equal(check(VAULT_REF_WHOLE, typed), 0);
	assert_int_equal(chmod(open, 0777), 0);
	assert_int_equal(check(VAULT_REF_WHOLE, link), -EPERM);
	assert_int_equal(check(VAULT_REF_WHOLE, typed), -EPERM);
	assert_int_equal(
		check(VAULT_REF_WHOLE, up), -EPERM); /* a directory that ".." leaves again */
	assert_int_equal(chmod(open, 01777), 0);
	assert_int_equal(check(VAULT_REF_WHOLE, link), 0); /* like /tmp: our link stays ours */
}

static bool is_seen(const struct run_ref_seen *seen, const char *path)
{
	for (size_t i = 0; i < seen->n; i++)
		if (strcmp(seen->path[i], path) == 0)
			return true;
	return false;
}

static void test_everything_on_the_way_is_seen(void **state)
{
	AUTO_FREE char *link = xasprintf("%s/one", dir), *next = xasprintf("%s/two", dir);
	AUTO_FREE char *real = realpath("/bin/sh", NULL);
	AUTO_SEEN struct run_ref_seen seen = {0};
	struct vault_ref r = {.kind = VAULT_REF_WHOLE};

	(void)snprintf(r.program, sizeof(r.program), "%s", link);
	assert_int_equal(symlink(next, link), 0);
	assert_int_equal(symlink(real, next), 0);
	assert_int_equal(run_ref_check(&r, &seen, NULL), 0);
	assert_true(is_seen(&seen, dir));
	assert_true(is_seen(&seen, link));
	assert_true(is_seen(&seen, next));
	assert_true(is_seen(&seen, real));
}

static void test_the_paths_of_arguments_are_seen(void **state)
{
	AUTO_FREE char *script = xasprintf("%s/script", dir), *link = xasprintf("%s/three", dir);
	AUTO_FREE char *none = xasprintf("%s/none/x", dir), *below = xasprintf("%s/none", dir);
	AUTO_SEEN struct run_ref_seen seen = {0};
	struct vault_ref r = {.kind = VAULT_REF_FIRST_LINE, .program = "/bin/sh", .n_args = 4};

	assert_int_equal(file_save(script, slice_from_str("exit 0\n"), NULL), 0);
	assert_int_equal(symlink("script", link), 0);
	(void)snprintf(r.args[0], sizeof(r.args[0]), "--set=file=%s", link);
	(void)snprintf(r.args[1], sizeof(r.args[1]), "%s", none);
	(void)snprintf(r.args[2], sizeof(r.args[2]), "echo a");
	assert_int_equal(run_ref_check(&r, &seen, NULL), 0);
	assert_true(is_seen(&seen, link));
	assert_true(is_seen(&seen, script));
	assert_true(is_seen(&seen, dir));
	assert_false(is_seen(&seen, below));
	/* A helper of Docker gets the address of a server. */
	(void)snprintf(r.program, sizeof(r.program), "%s/docker-credential-z", dir);
	assert_int_equal(file_save(r.program, slice_from_str("#!/bin/sh\n"), NULL), 0);
	assert_int_equal(chmod(r.program, 0700), 0);
	r.kind = VAULT_REF_DOCKER;
	run_ref_seen_done(&seen);
	assert_int_equal(run_ref_check(&r, &seen, NULL), 0);
	assert_false(is_seen(&seen, script));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_keep),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_a_link_that_another_user_can_replace),
		cmocka_unit_test(test_everything_on_the_way_is_seen),
		cmocka_unit_test(test_the_paths_of_arguments_are_seen),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
