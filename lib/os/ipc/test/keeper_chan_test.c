/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/os/ipc/keeper_chan.h"

static int pair[2];
static struct ipc_msg msg;

static int open_pair(void **state)
{
	msg.fd = -1;
	return ipc_pair(pair);
}

static int close_pair(void **state)
{
	ipc_msg_done(&msg);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	return 0;
}

static void must_get(uint16_t type, uint32_t id)
{
	assert_int_equal(ipc_recv(pair[1], &msg), 1);
	assert_int_equal(msg.type, type);
	assert_int_equal(msg.id, id);
}

/* Every shorter and one longer body of the message just received must be refused. */
#define CHECK_BOUNDS(get)                                  \
	do {                                               \
		size_t whole = msg.n;                      \
		for (msg.n = 0; msg.n < whole; msg.n++)    \
			assert_int_equal((get), -EBADMSG); \
		msg.body[whole] = 0;                       \
		msg.n = whole + 1;                         \
		assert_int_equal((get), -EBADMSG);         \
		msg.n = whole;                             \
		assert_int_equal((get), 0);                \
	} while (0)

static void hello(void **state)
{
	struct keeper_hello in = {.build = "1.0", .id = "0123456789ab", .pid = 77}, out;

	assert_int_equal(keeper_send_hello(pair[0], &in), 0);
	must_get(KEEPER_HELLO, 0);
	CHECK_BOUNDS(keeper_get_hello(&msg, &out));
	assert_string_equal(out.build, "1.0");
	assert_string_equal(out.id, "0123456789ab");
	assert_int_equal(out.pid, 77);
}

static void state_message(void **state)
{
	struct keeper_state in = {.phase = KEEPER_RUNNING,
				    .progress = 100,
				    .sessions = 3,
				    .boot_ms = 4200,
				    .qemu_pid = 9,
				    .stalled = true,
				    .accel = "kvm",
				    .text = "text",
				    .how = KEEPER_HOW_WARM,
				    .suspended = true,
				    .paused = true,
				    .cold_why = "why",
				    .net_up = UINT64_C(1) << 40,
				    .net_down = UINT64_MAX},
			    out;

	assert_int_equal(keeper_send_state(pair[0], 5, &in), 0);
	must_get(KEEPER_STATE, 5);
	CHECK_BOUNDS(keeper_get_state(&msg, &out));
	assert_int_equal(out.phase, KEEPER_RUNNING);
	assert_int_equal(out.sessions, 3);
	assert_int_equal(out.boot_ms, 4200);
	assert_int_equal(out.qemu_pid, 9);
	assert_true(out.stalled);
	assert_string_equal(out.accel, "kvm");
	assert_string_equal(out.text, "text");
	assert_int_equal(out.how, KEEPER_HOW_WARM);
	assert_true(out.suspended);
	assert_true(out.paused);
	assert_string_equal(out.cold_why, "why");
	assert_true(out.net_up == in.net_up && out.net_down == in.net_down);
	for (size_t at = msg.n - 24; at < msg.n - 21; at++) { /* how, suspended, paused */
		uint8_t was = msg.body[at];

		msg.body[at] = KEEPER_N_HOWS;
		assert_int_equal(keeper_get_state(&msg, &out), -EBADMSG);
		msg.body[at] = was;
	}
	msg.body[0] = KEEPER_N_PHASES;
	assert_int_equal(keeper_get_state(&msg, &out), -EBADMSG);
	msg.body[0] = KEEPER_RUNNING;
	msg.body[1] = 101;
	assert_int_equal(keeper_get_state(&msg, &out), -EBADMSG);
	msg.body[1] = 100;
	msg.body[14] = 2;
	assert_int_equal(keeper_get_state(&msg, &out), -EBADMSG);
	msg.body[14] = 0;
	msg.body[17] = '\0'; /* a NUL inside accel */
	assert_int_equal(keeper_get_state(&msg, &out), -EBADMSG);
}

/* The row of a message says which it is, and whether it has an id and a descriptor. */
static void a_message_that_its_row_does_not_permit_is_refused(void **state)
{
	struct keeper_hello in = {.build = "1.0", .id = "0123456789ab", .pid = 77}, out;

	assert_int_equal(keeper_send_hello(pair[0], &in), 0);
	must_get(KEEPER_HELLO, 0);
	msg.id = 1;
	assert_int_equal(keeper_get_hello(&msg, &out), -EBADMSG);
	msg.id = 0;
	msg.type = KEEPER_STATE;
	assert_int_equal(keeper_get_hello(&msg, &out), -EBADMSG);
	msg.type = KEEPER_HELLO;
	assert_int_equal(keeper_get_hello(&msg, &out), 0);
	msg.fd = dup(pair[0]);
	assert_int_equal(keeper_get_hello(&msg, &out), -EBADMSG);
}

static void done(void **state)
{
	struct keeper_done out;
	char text[2 * KEEPER_MAX_TEXT];

	assert_int_equal(keeper_send_done(pair[0], 8, -EIO, "why"), 0);
	must_get(KEEPER_DONE, 8);
	CHECK_BOUNDS(keeper_get_done(&msg, &out));
	assert_int_equal(out.code, -EIO);
	assert_string_equal(out.text, "why");
	memset(msg.body, 0, 4);
	msg.body[0] = 1; /* neither 0 nor a negative errno */
	assert_int_equal(keeper_get_done(&msg, &out), -EBADMSG);
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(keeper_send_done(pair[0], 8, 0, text), 0);
	must_get(KEEPER_DONE, 8);
	assert_int_equal(keeper_get_done(&msg, &out), 0);
	assert_int_equal(strlen(out.text), KEEPER_MAX_TEXT - 1);
}

static void stats(void **state)
{
	struct keeper_stats in = {1, 2, 3, 4, 5, 6, 7, UINT64_MAX, 9, 2,
				    {{"agent", KEEPER_SESSION_ATTACHED, 0},
					    {"a-2", KEEPER_SESSION_ENDED, 9}}},
			    out = {0};

	assert_int_equal(keeper_send_stats(pair[0], 2, &in), 0);
	must_get(KEEPER_STATS_IS, 2);
	CHECK_BOUNDS(keeper_get_stats(&msg, &out));
	assert_int_equal(out.uptime_ms, 1);
	assert_true(out.docker_free == UINT64_MAX);
	assert_int_equal(out.processes, 9);
}

static void questions(void **state)
{
	char path[KEEPER_MAX_PATH];
	uint32_t ms;

	assert_int_equal(chan_send_plain(pair[0], KEEPER_PING, 1, -1), 0);
	must_get(KEEPER_PING, 1);
	assert_int_equal(keeper_get_nothing(&msg), 0);
	msg.n = 1;
	assert_int_equal(keeper_get_nothing(&msg), -EBADMSG);
	assert_int_equal(chan_send_plain(pair[0], KEEPER_STATS, 2, -1), 0);
	must_get(KEEPER_STATS, 2);
	assert_int_equal(keeper_get_nothing(&msg), 0);
	assert_int_equal(keeper_ask_stop(pair[0], 3, 1500), 0);
	must_get(KEEPER_STOP, 3);
	CHECK_BOUNDS(keeper_get_stop(&msg, &ms));
	assert_int_equal(ms, 1500);
	assert_int_equal(keeper_ask_stream(pair[0], 4, "/exec", STDERR_FILENO), 0);
	must_get(KEEPER_STREAM, 4);
	CHECK_BOUNDS(keeper_get_stream(&msg, path));
	assert_string_equal(path, "/exec");
	ipc_msg_done(&msg);
	assert_int_equal(keeper_get_stream(&msg, path), -EBADMSG); /* no fd came with it */
}

static void reload(void **state)
{
	char name[KEEPER_MAX_NAME], longest[KEEPER_MAX_NAME + 1];

	assert_int_equal(keeper_ask_reload(pair[0], 6, "demo"), 0);
	must_get(KEEPER_RELOAD, 6);
	CHECK_BOUNDS(keeper_get_reload(&msg, name));
	assert_string_equal(name, "demo");
	msg.fd = 1000; /* one that nobody asked for */
	assert_int_equal(keeper_get_reload(&msg, name), -EBADMSG);
	msg.fd = -1;
	memset(longest, 'x', sizeof(longest));
	longest[KEEPER_MAX_NAME - 1] = '\0';
	assert_int_equal(keeper_ask_reload(pair[0], 7, longest), 0);
	must_get(KEEPER_RELOAD, 7);
	assert_int_equal(keeper_get_reload(&msg, name), 0);
	assert_string_equal(name, longest);
	longest[KEEPER_MAX_NAME - 1] = 'x';
	longest[KEEPER_MAX_NAME] = '\0';
	assert_int_equal(keeper_ask_reload(pair[0], 8, longest), 0);
	must_get(KEEPER_RELOAD, 8);
	assert_int_equal(keeper_get_reload(&msg, name), -EBADMSG);
}

static void policy(void **state)
{
	uint8_t part = 7;

	assert_int_equal(keeper_send_policy(pair[0], 6, 1, STDERR_FILENO), 0);
	must_get(KEEPER_POLICY, 6);
	assert_true(msg.fd > 2);
	CHECK_BOUNDS(keeper_get_policy(&msg, &part));
	assert_int_equal(part, 1);
	ipc_msg_done(&msg);
	assert_int_equal(keeper_get_policy(&msg, &part), -EBADMSG); /* no table came with it */
	assert_int_equal(keeper_send_policy(pair[0], 7, 2, STDERR_FILENO), 0);
	must_get(KEEPER_POLICY, 7);
	assert_int_equal(keeper_get_policy(&msg, &part), 0);
	assert_int_equal(part, 2);
	ipc_msg_done(&msg);
	assert_int_equal(keeper_send_policy(pair[0], 8, 3, STDERR_FILENO), 0);
	must_get(KEEPER_POLICY, 8);
	assert_int_equal(keeper_get_policy(&msg, &part), -EBADMSG); /* no such part */
}

static void frozen(void **state)
{
	struct keeper_frozen in = {.code = -EIO,
				     .layers = {3, 400},
				     .seq = 77,
				     .pause_ms = 9,
				     .label = "c1",
				     .text = "why"},
			     out;
	char label[KEEPER_MAX_LABEL];

	assert_int_equal(keeper_ask_freeze(pair[0], 5, "before-merge", false), 0);
	must_get(KEEPER_FREEZE, 5);
	CHECK_BOUNDS(keeper_get_freeze(&msg, label));
	assert_string_equal(label, "before-merge");
	assert_int_equal(keeper_ask_freeze(pair[0], 6, "with-memory", true), 0);
	must_get(KEEPER_MEMORY, 6);
	assert_int_equal(keeper_get_freeze(&msg, label), 0);
	assert_string_equal(label, "with-memory");
	assert_int_equal(keeper_send_frozen(pair[0], 5, &in), 0);
	must_get(KEEPER_FROZEN, 5);
	CHECK_BOUNDS(keeper_get_frozen(&msg, &out));
	assert_int_equal(out.code, -EIO);
	assert_int_equal(out.layers[1], 400);
	assert_int_equal(out.seq, 77);
	assert_int_equal(out.pause_ms, 9);
	assert_string_equal(out.label, "c1");
	assert_string_equal(out.text, "why");
	in.layers[1] = KEEPER_MAX_LAYER + 1;
	assert_int_equal(keeper_send_frozen(pair[0], 6, &in), 0);
	must_get(KEEPER_FROZEN, 6);
	assert_int_equal(keeper_get_frozen(&msg, &out), -EBADMSG);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_pair, close_pair)
	const struct CMUnitTest tests[] = {
		TEST(hello),
		TEST(a_message_that_its_row_does_not_permit_is_refused),
		TEST(state_message),
		TEST(done),
		TEST(stats),
		TEST(questions),
		TEST(policy),
		TEST(reload),
		TEST(frozen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
