/* SPDX-License-Identifier: Apache-2.0 */
/* When the guest gets /forget, how long lookups wait, and what happens if it does not comply. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>
#include "src/keeper/keeper.h"
#include "lib/base/clock.h"

#define LIMIT 1000
#define HIGH 800
#define LAST 900

static struct keeper k;
static struct crowd crowd;
static struct room_ask supervisor;
static int asked, refuse;
static const struct ask_kind *last_ask;

/* Replaces ask.c. */
int ask_guest(struct keeper *keeper, const struct ask_kind *kind, struct slice body,
	uint32_t timeout_ms, int link, uint32_t link_msg)
{
	assert_string_equal(kind->path, GUEST_PATH_FORGET);
	assert_int_equal(body.n, 0);
	asked++;
	last_ask = kind;
	return refuse;
}

static int set_up(void **state)
{
	crowd = (struct crowd){0};
	k = (struct keeper){.crowd = &crowd, .state.phase = KEEPER_RUNNING, .share = SHARE_EMPTY};
	asked = refuse = 0;
	assert_int_equal(room_pair(&k.share.room, &supervisor, NULL), 0);
	k.share.room.nofile = LIMIT;
	return loop_init(&k.loop);
}

static int tear_down(void **state)
{
	fd_close(&supervisor.sock);
	fd_close(&k.share.room.fd);
	loop_done(&k.loop);
	return 0;
}

static void lookup(uint32_t number)
{
	assert_int_equal(write(supervisor.sock, &number, sizeof(number)), sizeof(number));
	crowd_on_lookup(&k);
}

/* Returns the number of lookups that were continued since the last call. */
static int went_on(void)
{
	char byte;
	int n = 0;

	while (recv(supervisor.sock, &byte, 1, MSG_DONTWAIT) == 1)
		n++;
	return n;
}

static void a_lookup_waits_for_the_guest(void **state)
{
	lookup(HIGH);
	assert_int_equal(asked, 1);
	assert_int_equal(went_on(), 0);
	lookup(HIGH + 1);
	assert_int_equal(asked, 1);
	assert_int_equal(went_on(), 0);
	last_ask->on_over(&k);
	assert_int_equal(went_on(), 2);
}

static void it_does_not_wait_for_ever(void **state)
{
	struct loop_event ev;

	lookup(HIGH);
	assert_int_equal(went_on(), 0);
	loop_next(&k.loop, &ev);
	assert_int_equal(ev.key.kind, EV_TIMER_CROWD);
	crowd_on_timer(&k);
	assert_int_equal(went_on(), 1);
	/* the guest still works on it: no second request, and the next lookup waits too */
	lookup(HIGH);
	assert_int_equal(asked, 1);
	assert_int_equal(went_on(), 0);
	last_ask->on_over(&k);
	assert_int_equal(went_on(), 1);
}

static void files_that_stay_do_not_slow_all_lookups(void **state)
{
	lookup(HIGH);
	last_ask->on_over(&k);
	assert_int_equal(went_on(), 1);
	lookup(HIGH);
	assert_int_equal(asked, 1);
	assert_int_equal(went_on(), 1);
	k.crowd->asked_ms = clock_mono_ms() - CROWD_PAUSE_MS;
	lookup(HIGH);
	assert_int_equal(asked, 2);
}

static void near_the_end_there_is_no_pause(void **state)
{
	lookup(HIGH);
	last_ask->on_over(&k);
	(void)went_on();
	lookup(LAST);
	assert_int_equal(asked, 2);
	assert_int_equal(went_on(), 0);
}

static void who_cannot_be_asked_is_not_waited_for(void **state)
{
	refuse = -ENOTCONN;
	lookup(LAST);
	assert_int_equal(went_on(), 1);
	refuse = 0;
	k.state.phase = KEEPER_STARTING;
	lookup(LAST);
	assert_int_equal(asked, 1);
	assert_int_equal(went_on(), 1);
}

static void more_than_it_can_hold_go_on(void **state)
{
	for (int i = 0; i < CROWD_MAX; i++)
		lookup(HIGH);
	assert_int_equal(went_on(), 0);
	lookup(HIGH);
	assert_int_equal(went_on(), 1);
	last_ask->on_over(&k);
	assert_int_equal(went_on(), CROWD_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_lookup_waits_for_the_guest, set_up, tear_down),
		cmocka_unit_test_setup_teardown(it_does_not_wait_for_ever, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			files_that_stay_do_not_slow_all_lookups, set_up, tear_down),
		cmocka_unit_test_setup_teardown(near_the_end_there_is_no_pause, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			who_cannot_be_asked_is_not_waited_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(more_than_it_can_hold_go_on, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
