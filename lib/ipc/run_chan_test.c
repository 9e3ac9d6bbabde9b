#include "run_chan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static int pair[2];
static struct ipc_msg msg;
static struct run run, got;

static int setup(void **state)
{
	msg.fd = -1;
	run = (struct run){.kind = RUN_COMMAND,
		.timeout_ms = 1000,
		.program = "/usr/bin/op",
		.n_args = 2,
		.args = {"read", "op://a b/c"}};
	return ipc_pair(pair);
}

static int teardown(void **state)
{
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	ipc_msg_done(&msg);
	return 0;
}

static int there_and_back(int fd)
{
	ipc_msg_done(&msg);
	assert_int_equal(run_send_run(pair[0], 9, &run, fd), 0);
	assert_int_equal(ipc_recv(pair[1], &msg), 1);
	assert_int_equal(msg.id, 9);
	return run_get_run(&msg, &got);
}

static void test_run(void **state)
{
	assert_int_equal(there_and_back(0), 0);
	assert_memory_equal(&got, &run, sizeof(run));
	assert_true(msg.fd > 2);
	assert_int_equal(there_and_back(-1), -EBADMSG);
	run.n_args = RUN_MAX_ARGS;
	for (size_t i = 0; i < RUN_MAX_ARGS; i++)
		memset(run.args[i], 'x', RUN_MAX_ARG - 1);
	assert_int_equal(there_and_back(0), 0);
	assert_memory_equal(&got, &run, sizeof(run));
}

static void test_refused(void **state)
{
	run.timeout_ms = 0;
	assert_int_equal(there_and_back(0), -EBADMSG);
	run.timeout_ms = RUN_MAX_MS + 1;
	assert_int_equal(there_and_back(0), -EBADMSG);
	run.timeout_ms = 1;
	memcpy(run.program, "usr/bin/op", 11); /* not absolute */
	assert_int_equal(there_and_back(0), -EBADMSG);
	run.kind = RUN_KEYRING; /* whose program is not the vault's to choose */
	assert_int_equal(there_and_back(0), -EBADMSG);
	run.program[0] = '\0';
	assert_int_equal(there_and_back(0), 0);
	memcpy(run.program, "/usr/bin/op", 12);
	run.kind = RUN_DOCKER; /* with more than the URL */
	assert_int_equal(there_and_back(0), -EBADMSG);
	run.kind = RUN_N_KINDS;
	assert_int_equal(there_and_back(0), -EBADMSG);
}

static void test_ended(void **state)
{
	static const struct {
		int32_t how;
		int want;
	} rows[] = {{0, 0}, {255, 0}, {-ETIMEDOUT, 0}, {256, -EBADMSG}, {-5000, -EBADMSG}};
	int32_t how;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(run_send_ended(pair[0], 3, rows[i].how), 0);
		assert_int_equal(ipc_recv(pair[1], &msg), 1);
		assert_int_equal(run_get_ended(&msg, &how), rows[i].want);
		assert_int_equal(run_get_run(&msg, &got), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_run, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ended, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
