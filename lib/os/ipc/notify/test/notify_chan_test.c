/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/ipc/notify/notify_chan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static int pair[2];
static struct ipc_msg msg;
static struct notify_show show, got;

static int setup(void **state)
{
	msg.fd = -1;
	show = (struct notify_show){
		.sandbox = "demo", .hold = "K7QD", .effect = "http:GET a.test /", .more = 3};
	return ipc_pair(pair);
}

static int teardown(void **state)
{
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	ipc_msg_done(&msg);
	return 0;
}

static void receive(int r)
{
	assert_int_equal(r, 0);
	ipc_msg_done(&msg);
	assert_int_equal(ipc_recv(pair[1], &msg), 1);
}

static int there_and_back(uint32_t number)
{
	receive(notify_send_show(pair[0], number, &show));
	return notify_get_show(&msg, &got);
}

static void test_there_and_back(void **state)
{
	memset(show.effect, 'x', sizeof(show.effect) - 1);
	assert_int_equal(there_and_back(7), 0);
	assert_memory_equal(&got, &show, sizeof(got));
	assert_int_equal(msg.id, 7);
	receive(chan_send_plain(pair[0], NOTIFY_CLOSE, 7, -1));
	assert_int_equal(notify_get_plain(&msg, NOTIFY_CLOSE), 0);
	assert_int_equal(notify_get_plain(&msg, NOTIFY_REFUSE), -EBADMSG);
	receive(chan_send_plain(pair[0], NOTIFY_REFUSE, 7, -1));
	assert_int_equal(notify_get_plain(&msg, NOTIFY_REFUSE), 0);
}

static void test_refused(void **state)
{
	char *const texts[] = {show.sandbox, show.hold, show.effect};

	assert_int_equal(there_and_back(0), -EBADMSG); /* which? */
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		char was = texts[i][0];

		texts[i][0] = '\n';
		assert_int_equal(there_and_back(1), -EBADMSG);
		texts[i][0] = '\xe2';
		assert_int_equal(there_and_back(1), -EBADMSG);
		texts[i][0] = '\0';
		assert_int_equal(there_and_back(1), -EBADMSG);
		texts[i][0] = was;
		assert_int_equal(there_and_back(1), 0);
	}
	receive(chan_send_plain(pair[0], NOTIFY_REFUSE, 0, -1));
	assert_int_equal(notify_get_plain(&msg, NOTIFY_REFUSE), -EBADMSG);
	receive(chan_send_plain(pair[0], NOTIFY_REFUSE, 1, 0));
	assert_int_equal(notify_get_plain(&msg, NOTIFY_REFUSE), -EBADMSG);
	receive(ipc_send(pair[0], NOTIFY_REFUSE, 1, slice_of("\1", 1), -1));
	assert_int_equal(notify_get_plain(&msg, NOTIFY_REFUSE), -EBADMSG);
}

/* The notifier can say two things; neither is a yes. */
static void test_no_message_approves(void **state)
{
	for (unsigned type = 0; type < 1u << 16; type++)
		assert_int_equal(chan_allows(&notify_chan, NOTIFY_PHASE_RUN, NOTIFY_FROM_NOTIFY,
					 (uint16_t)type),
			type == NOTIFY_REFUSE);
	assert_true(
		chan_allows(&notify_chan, NOTIFY_PHASE_START, NOTIFY_FROM_NOTIFY, NOTIFY_HELLO));
	assert_false(
		chan_allows(&notify_chan, NOTIFY_PHASE_START, NOTIFY_FROM_NOTIFY, NOTIFY_REFUSE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_there_and_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test(test_no_message_approves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
