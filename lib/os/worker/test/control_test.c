/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's side of its channel, with the keeper played on the other end of fd 3. */
#include "lib/os/worker/control.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"

enum { EV_CONTROL, EV_AGAIN };
enum { HELLO = CHAN_HELLO, ASK, REPORT, LATER, N_MSGS };

static const struct chan_row rows[N_MSGS] = {
	[HELLO] = {"HELLO", CHAN_FROM_WORKER, 1 << 0, 1, 0},
	[ASK] = {"ASK", CHAN_FROM_KEEPER, 1 << 1, 0, CHAN_MAY_FD | CHAN_ID},
	[REPORT] = {"REPORT", CHAN_FROM_WORKER, 1 << 1, 0, CHAN_ID},
	[LATER] = {"LATER", CHAN_FROM_KEEPER, 1 << 2, 0, 0},
};
static const struct chan chan = {
	.sides = {"keeper", "test"}, .rows = rows, .n_rows = N_MSGS, .n_phases = 3};

static struct loop loop;
static struct control c;
static int keeper = -1;
static unsigned n_taken, n_rooms, n_reports, n_sent;
static int answer;

static bool send_report(void)
{
	return ipc_send(CONTROL_FD, REPORT, 1, slice_of(NULL, 0), -1) == 0;
}

static int on_message(void *ctx, struct ipc_msg *msg)
{
	assert_ptr_equal(ctx, &c);
	assert_int_equal(msg->type, ASK);
	n_taken++;
	return answer;
}

static void on_room(void *ctx)
{
	n_rooms++;
	while (n_sent < n_reports &&
		control_sent(&c, ipc_send(CONTROL_FD, REPORT, 1, slice_of(NULL, 0), -1)))
		n_sent++;
}

static const struct control_ops ops = {
	.chan = &chan, .ev = EV_CONTROL, .burst = 2, .on_message = on_message, .on_room = on_room};
static const struct control_ops passing = {.chan = &chan,
	.ev = EV_CONTROL,
	.burst = 1,
	.ev_again = EV_AGAIN,
	.passed = "a thing",
	.on_message = on_message,
	.on_room = on_room};

static int set_up(void **state)
{
	int pair[2];

	assert_int_equal(ipc_pair(pair), 0);
	keeper = fcntl(pair[0], F_DUPFD_CLOEXEC, 10);
	assert_int_equal(dup2(pair[1], CONTROL_FD), CONTROL_FD);
	for (int i = 0; i < 2; i++)
		if (pair[i] != CONTROL_FD)
			(void)close(pair[i]);
	n_taken = n_rooms = n_reports = n_sent = 0;
	answer = 0;
	control_open(&c, &ops, &loop, &c);
	control_hello(&c);
	return 0;
}

static int tear_down(void **state)
{
	loop_timer_clear(&loop, &c.again);
	loop_done(&loop);
	(void)close(CONTROL_FD);
	fd_close(&keeper);
	return 0;
}

/* What the keeper has received. */
static unsigned drain(void)
{
	static struct ipc_msg msg;
	unsigned n = 0;

	while (ipc_recv(keeper, &msg) == 1)
		n++;
	return n;
}

static void ask(void)
{
	assert_int_equal(ipc_send(keeper, ASK, 1, slice_of(NULL, 0), -1), 0);
}

static void next_event(uint8_t kind)
{
	struct loop_event ev;

	loop_next(&loop, &ev);
	assert_int_equal(ev.key.kind, kind);
	if (kind == EV_CONTROL)
		control_on_event(&c, ev.events);
	else
		control_flush(&c);
}

/* As many reports as the keeper's socket takes, and one more, which is due. */
static void fill(void)
{
	while (send_report())
		n_sent++;
	n_reports = n_sent + 1;
}

static void test_hello_is_the_first_message(void **state)
{
	static struct ipc_msg msg;
	char build[CHAN_MAX_BUILD];

	assert_int_equal(ipc_recv(keeper, &msg), 1);
	assert_int_equal(chan_get_hello(&msg, build), 0);
	assert_string_equal(build, SBX_BUILD);
	assert_int_equal(c.phase, 1);
	ask();
	next_event(EV_CONTROL);
	assert_int_equal(n_taken, 1);
	assert_false(c.done);
}

static void test_a_message_out_of_phase_ends_the_worker(void **state)
{
	assert_int_equal(ipc_send(keeper, LATER, 0, slice_of(NULL, 0), -1), 0);
	ask();
	next_event(EV_CONTROL);
	assert_true(c.done);
	assert_int_equal(c.status, CONTROL_EXIT_KEEPER);
	assert_int_equal(n_taken, 0); /* what follows is not taken either */
}

static void test_a_message_of_the_worker_ends_it(void **state)
{
	assert_int_equal(ipc_send(keeper, REPORT, 0, slice_of(NULL, 0), -1), 0);
	next_event(EV_CONTROL);
	assert_true(c.done && c.status == CONTROL_EXIT_KEEPER);
}

static void test_a_packet_that_is_no_message_ends_the_worker(void **state)
{
	assert_int_equal(write(keeper, "x", 1), 1);
	next_event(EV_CONTROL);
	assert_true(c.done && c.status == CONTROL_EXIT_KEEPER);
}

static void test_a_refused_message_ends_the_worker_and_its_descriptor_is_closed(void **state)
{
	int fds[2];
	char byte;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	answer = -EBADMSG;
	assert_int_equal(ipc_send(keeper, ASK, 1, slice_of(NULL, 0), fds[1]), 0);
	(void)close(fds[1]);
	next_event(EV_CONTROL);
	assert_true(c.done && c.status == CONTROL_EXIT_KEEPER);
	assert_int_equal(read(fds[0], &byte, 1), 0);
	(void)close(fds[0]);
}

static void test_the_end_of_the_channel_is_a_clean_exit(void **state)
{
	fd_close(&keeper);
	next_event(EV_CONTROL);
	assert_true(c.done && c.status == CONTROL_EXIT_OK);
	control_quit(&c, 5); /* the first status counts */
	assert_int_equal(c.status, CONTROL_EXIT_OK);
}

static void test_nothing_is_received_while_a_message_is_due(void **state)
{
	fill();
	assert_false(control_sent(&c, -EAGAIN));
	ask();
	control_on_event(&c, EPOLLIN);
	assert_int_equal(n_taken, 0);
	(void)drain();
	next_event(EV_CONTROL);
	assert_int_equal(n_rooms, 1);
	assert_int_equal(drain(), 1); /* the one that was due */
	assert_false(c.is_due);
	while (n_taken == 0)
		next_event(EV_CONTROL);
	assert_int_equal(n_rooms, 1);
}

static void test_messages_are_received_while_room_is_wanted(void **state)
{
	fill();
	control_want_room(&c);
	ask();
	next_event(EV_CONTROL);
	assert_int_equal(n_taken, 1);
	assert_int_equal(n_rooms, 0);
	(void)drain();
	next_event(EV_CONTROL);
	assert_int_equal(n_rooms, 1);
	assert_int_equal(drain(), 1);
	assert_false(c.wants_room);
}

static void test_an_event_takes_a_burst_of_messages(void **state)
{
	for (unsigned i = 0; i < 3; i++)
		ask();
	next_event(EV_CONTROL);
	assert_int_equal(n_taken, 2);
	next_event(EV_CONTROL);
	assert_int_equal(n_taken, 3);
}

static void test_a_keeper_that_is_gone_is_a_clean_exit(void **state)
{
	assert_false(control_sent(&c, -EPIPE));
	assert_true(c.done && c.status == CONTROL_EXIT_OK);
}

static void test_a_descriptor_that_cannot_be_passed_is_tried_again(void **state)
{
	uint64_t at = clock_mono_ms();

	c.ops = &passing;
	n_reports = 1;
	assert_false(control_sent(&c, -ETOOMANYREFS));
	assert_false(c.done || c.is_due);
	next_event(EV_AGAIN);
	assert_true(clock_mono_ms() - at >= CONTROL_AGAIN_MS);
	assert_int_equal(drain(), 2); /* HELLO, and what was due */
	/* A worker that passes no descriptors cannot have that error. */
	c.ops = &ops;
	assert_false(control_sent(&c, -ETOOMANYREFS));
	assert_true(c.done);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_hello_is_the_first_message),
		TEST(test_a_message_out_of_phase_ends_the_worker),
		TEST(test_a_message_of_the_worker_ends_it),
		TEST(test_a_packet_that_is_no_message_ends_the_worker),
		TEST(test_a_refused_message_ends_the_worker_and_its_descriptor_is_closed),
		TEST(test_the_end_of_the_channel_is_a_clean_exit),
		TEST(test_nothing_is_received_while_a_message_is_due),
		TEST(test_messages_are_received_while_room_is_wanted),
		TEST(test_an_event_takes_a_burst_of_messages),
		TEST(test_a_keeper_that_is_gone_is_a_clean_exit),
		TEST(test_a_descriptor_that_cannot_be_passed_is_tried_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
