/* SPDX-License-Identifier: Apache-2.0 */
#include "src/vault/runner/run.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/os/program/run_places.h"

static struct run_table table;
static struct run run;
static struct vault_ref ref;
static char dir[] = "/tmp/run_test.XXXXXX";
static int ends[2];

/* Registers the program and starts it. */
static int start(uint32_t id)
{
	assert_int_equal(run_ref_save(run.serial, &ref, NULL), 0);
	return run_start(&table, id, &run, ends[1]);
}

static int make_dir(void **state)
{
	return mkdtemp(dir) && setenv("XDG_STATE_HOME", dir, 1) == 0 ? run_places_prepare(NULL)
								     : -1;
}

static int remove_dir(void **state)
{
	AUTO_FREE char *rm = xasprintf("rm -rf %s", dir);

	return system(rm);
}

static int setup(void **state)
{
	table = (struct run_table){0};
	run = (struct run){.kind = RUN_REF, .timeout_ms = 10000, .serial = 5};
	ref = (struct vault_ref){.kind = VAULT_REF_WHOLE, .program = "/bin/sh", .n_args = 2};
	(void)snprintf(ref.args[0], sizeof(ref.args[0]), "-c");
	return pipe2(ends, O_CLOEXEC);
}

static int teardown(void **state)
{
	run_kill_all(&table);
	(void)close(ends[0]);
	(void)close(ends[1]);
	return 0;
}

static int wait_end(uint32_t want_id)
{
	uint64_t end = clock_mono_ms() + 60000;
	uint32_t id;
	int how;

	while (clock_mono_ms() < end) {
		if (run_next_ended(&table, clock_mono_ms(), &id, &how)) {
			assert_int_equal(id, want_id);
			return how;
		}
		(void)usleep(5000);
	}
	fail_msg("it does not end");
	return 0;
}

static void test_ends(void **state)
{
	(void)snprintf(ref.args[1], sizeof(ref.args[1]), "exit 7");
	assert_int_equal(start(1), 0);
	assert_int_equal(wait_end(1), 7);
	(void)snprintf(ref.args[1], sizeof(ref.args[1]), "kill -9 $$");
	assert_int_equal(start(2), 0);
	assert_int_equal(wait_end(2), -EINTR);
	assert_int_equal(run_wait_ms(&table, clock_mono_ms()), -1);
	(void)snprintf(ref.program, sizeof(ref.program), "/nonexistent/program");
	assert_int_equal(start(3), -ENOENT);
}

/* A late program is killed with all its children, and the pipe is closed. */
static void test_late(void **state)
{
	uint64_t before = clock_mono_ms();
	char buf[16];

	run.timeout_ms = 300;
	(void)snprintf(ref.args[1], sizeof(ref.args[1]), "sleep 1000 & sleep 1000");
	assert_int_equal(start(4), 0);
	assert_true(run_wait_ms(&table, clock_mono_ms()) <= 300);
	assert_int_equal(wait_end(4), -ETIMEDOUT);
	assert_true(clock_mono_ms() - before < 10000);
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], buf, sizeof(buf)), 0);
	ends[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* A background process does not keep the pipe open. */
static void test_left_behind(void **state)
{
	char buf[16];

	(void)snprintf(ref.args[1], sizeof(ref.args[1]), "sleep 1000 & echo ok");
	assert_int_equal(start(5), 0);
	assert_int_equal(wait_end(5), 0);
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], buf, sizeof(buf)), 3);
	assert_int_equal(read(ends[0], buf, sizeof(buf)), 0);
	ends[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void test_full(void **state)
{
	(void)snprintf(ref.args[1], sizeof(ref.args[1]), "sleep 1000");
	for (uint32_t i = 0; i < RUN_MAX_RUNS; i++)
		assert_int_equal(start(i), 0);
	assert_int_equal(start(99), -EBUSY);
	run_kill_all(&table);
	assert_int_equal(run_wait_ms(&table, clock_mono_ms()), -1);
}

/* A vault replaced by a hostile program: its messages start no other program. */
static void test_only_what_is_registered(void **state)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "programs/5");
	char buf[16];

	(void)snprintf(ref.args[1], sizeof(ref.args[1]), "echo ok");
	assert_int_equal(start(1), 0);
	assert_int_equal(wait_end(1), 0);
	assert_int_equal(read(ends[0], buf, sizeof(buf)), 3);
	run.serial = 6;
	assert_int_equal(run_start(&table, 2, &run, ends[1]), -EPERM);
	/* a file of another serial, or an invalid one, is ignored */
	AUTO_FREE char *other = paths_get(PATHS_STATE, "programs/6");
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(run_start(&table, 3, &run, ends[1]), -EPERM);
	assert_int_equal(truncate(other, 8), 0);
	assert_int_equal(run_start(&table, 4, &run, ends[1]), -EPERM);
	assert_int_equal(run_wait_ms(&table, clock_mono_ms()), -1);
}

static void test_docker_is_docker(void **state)
{
	ref.kind = VAULT_REF_DOCKER;
	ref.n_args = 1;
	assert_int_equal(start(1), -EPERM);
}

static void test_one_that_others_can_change(void **state)
{
	(void)snprintf(ref.program, sizeof(ref.program), "%s/program", dir);
	assert_int_equal(file_save(ref.program, slice_from_str("#!/bin/sh\nexit 0\n"), NULL), 0);
	assert_int_equal(chmod(ref.program, 0700), 0);
	assert_int_equal(start(1), 0);
	assert_int_equal(wait_end(1), 0);
	assert_int_equal(chmod(ref.program, 0702), 0);
	assert_int_equal(start(2), -EPERM);
	assert_int_equal(chmod(ref.program, 0700), 0);
	assert_int_equal(chmod(dir, 0703), 0);
	assert_int_equal(start(3), -EPERM);
	assert_int_equal(chmod(dir, 0700), 0);
}

/* A sandbox may be newer than the registration, and its guest may have created the symlink. */
static void test_one_that_a_guest_can_replace(void **state)
{
	AUTO_FREE char *work = xasprintf("%s/work", dir);
	const char *const dirs[] = {work};

	(void)snprintf(ref.program, sizeof(ref.program), "%s/get", work);
	ref.n_args = 0;
	assert_int_equal(mkdir(work, 0700), 0);
	assert_int_equal(symlink("/bin/true", ref.program), 0);
	assert_int_equal(start(1), 0);
	assert_int_equal(wait_end(1), 0);
	assert_int_equal(run_places_save("0123456789ab", dirs, 1, NULL), 0);
	assert_int_equal(start(2), -EPERM);
	/* The guest clears and sets the x bit: the path is checked regardless of the bit. */
	assert_int_equal(unlink(ref.program), 0);
	assert_int_equal(file_save(ref.program, slice_from_str("#!/bin/sh\nexit 0\n"), NULL), 0);
	assert_int_equal(chmod(ref.program, 0600), 0);
	assert_int_equal(start(2), -EPERM);
	assert_int_equal(chmod(ref.program, 0700), 0);
	run_places_remove("0123456789ab");
	assert_int_equal(start(3), 0);
	assert_int_equal(wait_end(3), 0);
}

/* The interpreter belongs to the host; the guest can write the script. */
static void test_an_argument_that_a_guest_can_write(void **state)
{
	AUTO_FREE char *work = xasprintf("%s/scripts", dir), *link = xasprintf("%s/through", dir);
	const char *const dirs[] = {work};
	const struct {
		const char *front, *file;
		bool works;
	} rows[] = {{"", "scripts/get.sh", true}, {"", "through/get.sh", true},
		{"", "scripts/none", false}, {"--rcfile=", "scripts/get.sh", false}};

	(void)snprintf(ref.program, sizeof(ref.program), "/bin/sh");
	ref.n_args = 1;
	assert_int_equal(mkdir(work, 0700), 0);
	assert_int_equal(symlink("scripts", link), 0);
	(void)snprintf(ref.args[0], sizeof(ref.args[0]), "%s/get.sh", work);
	assert_int_equal(file_save(ref.args[0], slice_from_str("exit 0\n"), NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		(void)snprintf(ref.args[0], sizeof(ref.args[0]), "%s%s/%s", rows[i].front, dir,
			rows[i].file);
		assert_int_equal(start(1), 0);
		assert_int_equal(wait_end(1) == 0, rows[i].works);
		assert_int_equal(run_places_save("0123456789ab", dirs, 1, NULL), 0);
		assert_int_equal(start(2), -EPERM);
		run_places_remove("0123456789ab");
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_ends),
		TEST(test_late),
		TEST(test_left_behind),
		TEST(test_full),
		TEST(test_only_what_is_registered),
		TEST(test_docker_is_docker),
		TEST(test_one_that_others_can_change),
		TEST(test_one_that_a_guest_can_replace),
		TEST(test_an_argument_that_a_guest_can_write),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
