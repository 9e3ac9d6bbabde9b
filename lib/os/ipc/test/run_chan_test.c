/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/ipc/run_chan.h"

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
	run = (struct run){.kind = RUN_REF, .timeout_ms = 1000, .serial = 7};
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
}

static void test_refused(void **state)
{
	run.timeout_ms = 0;
	assert_int_equal(there_and_back(0), -EBADMSG);
	run.timeout_ms = RUN_MAX_MS + 1;
	assert_int_equal(there_and_back(0), -EBADMSG);
	run.timeout_ms = 1;
	run.serial = 0; /* of which credential? */
	assert_int_equal(there_and_back(0), -EBADMSG);
	run.serial = 7;
	for (unsigned k = 0; k < RUN_N_KINDS; k++) { /* the others have none */
		run.kind = (enum run_kind)k;
		assert_int_equal(there_and_back(0), k == RUN_REF ? 0 : -EBADMSG);
	}
	run.serial = 0;
	run.kind = RUN_DECRYPT;
	assert_int_equal(there_and_back(0), 0);
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
