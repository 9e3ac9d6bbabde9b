/* SPDX-License-Identifier: Apache-2.0 */
/* HELD and ANSWER at their limits, and what must not decode. */
#include "lib/rules/hold/hold_msg.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "lib/base/fs/fd.h"

static int sock[2];
static struct ipc_msg msg = {.fd = -1};

static int up(void **state)
{
	return ipc_pair(sock);
}

static int down(void **state)
{
	ipc_msg_done(&msg);
	fd_close(&sock[0]);
	fd_close(&sock[1]);
	return 0;
}

static void receive(void)
{
	ipc_msg_done(&msg);
	assert_int_equal(ipc_recv(sock[1], &msg), 1);
}

static void the_longest_texts_arrive(void **state)
{
	static struct hold_msg in = {.id = "K7QD", .state = HOLD_APPROVED, .age_ms = 7}, out;

	memset(in.effects, 'e', HOLD_MAX_EFFECTS);
	memset(in.rule, 'r', HOLD_MAX_RULE);
	memset(in.preview, '\xff', HOLD_MAX_PREVIEW);
	memset(in.digest, 9, sizeof(in.digest));
	in.left_ms = HOLD_NO_END;
	assert_int_equal(hold_send_held(sock[0], HOLD_MAX - 1, &in), 0);
	receive();
	assert_int_equal(hold_get_held(&msg, &out), 0);
	assert_memory_equal(&in, &out, sizeof(in));
	assert_int_equal(msg.id, HOLD_MAX - 1);
}

static void bad_ones_do_not_decode(void **state)
{
	static struct hold_msg held = {.id = "K7QD", .state = HOLD_OPEN}, out;
	struct hold_reply reply = {.id = "K7QD", .choice = HOLD_CHOICE_ONCE}, back;

	assert_int_equal(hold_send_held(sock[0], HOLD_MAX, &held), 0);
	receive();
	assert_int_equal(hold_get_held(&msg, &out), -EBADMSG);
	held.state = HOLD_FREE;
	assert_int_equal(hold_send_held(sock[0], 0, &held), 0);
	receive();
	assert_int_equal(hold_get_held(&msg, &out), -EBADMSG);
	assert_int_equal(chan_send_plain(sock[0], KEEPER_UNHELD, HOLD_MAX, -1), 0);
	receive();
	assert_int_equal(hold_get_unheld(&msg), -EBADMSG);
	assert_int_equal(hold_send_reply(sock[0], 3, &reply), 0);
	receive();
	assert_int_equal(hold_get_reply(&msg, &back), 0);
	assert_string_equal(back.id, reply.id);
	assert_memory_equal(back.digest, reply.digest, sizeof(back.digest));
	assert_int_equal(back.choice, HOLD_CHOICE_ONCE);
	(void)snprintf(reply.id, sizeof(reply.id), "k7qd");
	assert_int_equal(hold_send_reply(sock[0], 3, &reply), 0);
	receive();
	assert_int_equal(hold_get_reply(&msg, &back), -EBADMSG);
	(void)snprintf(reply.id, sizeof(reply.id), "K7QD");
	reply.seconds = 5; /* for HOLD_CHOICE_FOR only */
	assert_int_equal(hold_send_reply(sock[0], 3, &reply), 0);
	receive();
	assert_int_equal(hold_get_reply(&msg, &back), -EBADMSG);
	reply.seconds = 0;
	(void)snprintf(reply.reason, sizeof(reply.reason), "\x1b[2J");
	assert_int_equal(hold_send_reply(sock[0], 3, &reply), 0);
	receive();
	assert_int_equal(hold_get_reply(&msg, &back), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_longest_texts_arrive, up, down),
		cmocka_unit_test_setup_teardown(bad_ones_do_not_decode, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
