#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"

static struct run_table table;
static struct run run;
static int ends[2];

static int setup(void **state)
{
	table = (struct run_table){0};
	run = (struct run){
		.kind = RUN_COMMAND, .timeout_ms = 10000, .program = "/bin/sh", .n_args = 2};
	(void)snprintf(run.args[0], sizeof(run.args[0]), "-c");
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
	uint64_t end = clock_mono_ms() + 20000;
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
	(void)snprintf(run.args[1], sizeof(run.args[1]), "exit 7");
	assert_int_equal(run_start(&table, 1, &run, ends[1]), 0);
	assert_int_equal(wait_end(1), 7);
	(void)snprintf(run.args[1], sizeof(run.args[1]), "kill -9 $$");
	assert_int_equal(run_start(&table, 2, &run, ends[1]), 0);
	assert_int_equal(wait_end(2), -EINTR);
	assert_int_equal(run_wait_ms(&table, clock_mono_ms()), -1);
	(void)snprintf(run.program, sizeof(run.program), "/nonexistent/program");
	assert_int_equal(run_start(&table, 3, &run, ends[1]), -ENOENT);
}

/* What is late is killed with everything it started, and the pipe is nobody's any more. */
static void test_late(void **state)
{
	uint64_t before = clock_mono_ms();
	char buf[16];

	run.timeout_ms = 300;
	(void)snprintf(run.args[1], sizeof(run.args[1]), "sleep 1000 & sleep 1000");
	assert_int_equal(run_start(&table, 4, &run, ends[1]), 0);
	assert_true(run_wait_ms(&table, clock_mono_ms()) <= 300);
	assert_int_equal(wait_end(4), -ETIMEDOUT);
	assert_true(clock_mono_ms() - before < 10000);
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], buf, sizeof(buf)), 0);
	ends[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Who leaves somebody behind does not keep the pipe open. */
static void test_left_behind(void **state)
{
	char buf[16];

	(void)snprintf(run.args[1], sizeof(run.args[1]), "sleep 1000 & echo ok");
	assert_int_equal(run_start(&table, 5, &run, ends[1]), 0);
	assert_int_equal(wait_end(5), 0);
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], buf, sizeof(buf)), 3);
	assert_int_equal(read(ends[0], buf, sizeof(buf)), 0);
	ends[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void test_full(void **state)
{
	(void)snprintf(run.args[1], sizeof(run.args[1]), "sleep 1000");
	for (uint32_t i = 0; i < RUN_MAX_RUNS; i++)
		assert_int_equal(run_start(&table, i, &run, ends[1]), 0);
	assert_int_equal(run_start(&table, 99, &run, ends[1]), -EBUSY);
	run_kill_all(&table);
	assert_int_equal(run_wait_ms(&table, clock_mono_ms()), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_ends),
		TEST(test_late),
		TEST(test_left_behind),
		TEST(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
