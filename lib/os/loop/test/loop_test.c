/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"

static struct loop l;

static int start(void **state)
{
	return loop_init(&l);
}

static int finish(void **state)
{
	loop_done(&l);
	return 0;
}

static void expect_key(struct loop_key want, uint32_t events)
{
	struct loop_event ev;

	loop_next(&l, &ev);
	assert_int_equal(ev.key.kind, want.kind);
	assert_int_equal(ev.key.gen, want.gen);
	assert_int_equal(ev.key.idx, want.idx);
	assert_int_equal(ev.events, events);
}

static void keys_come_back_whole(void **state)
{
	static const struct loop_key keys[] = {
		{0, 0, 0}, {255, 0xffffffff, LOOP_MAX_IDX}, {1, 2, 3}, {7, 0x01000000, 5}};
	int p[2];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(write(p[1], "x", 1), 1);
	assert_int_equal(loop_add(&l, p[0], EPOLLIN, keys[0]), 0);
	expect_key(keys[0], EPOLLIN);
	for (size_t i = 1; i < ARRAY_LEN(keys); i++) {
		assert_int_equal(loop_mod(&l, p[0], EPOLLIN, keys[i]), 0);
		expect_key(keys[i], EPOLLIN);
	}
	assert_int_equal(loop_add(&l, p[0], EPOLLIN, keys[0]), -EEXIST);
	loop_del(&l, p[0]);
	assert_int_equal(loop_mod(&l, p[0], EPOLLIN, keys[0]), -ENOENT);
	fd_close(&p[0]);
	fd_close(&p[1]);
}

static void timers_fire_in_order_of_time(void **state)
{
	static const uint64_t at[] = {30, 10, 50, 20, 40, 10};
	static const uint32_t order[] = {3, 0, 4, 2};
	struct loop_timer t[ARRAY_LEN(at)] = {0};
	struct loop_event ev;

	for (uint32_t i = 0; i < ARRAY_LEN(at); i++)
		loop_timer_set(&l, &t[i], at[i], (struct loop_key){.kind = 1, .idx = i});
	for (int i = 0; i < 2; i++) {
		loop_next(&l, &ev);
		assert_true(ev.key.idx == 1 || ev.key.idx == 5);
		assert_int_equal(ev.events, 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		expect_key((struct loop_key){.kind = 1, .idx = order[i]}, 0);
	assert_int_equal(l.n_timers, 0);
}

static void a_timer_waits_its_time_and_fires_once(void **state)
{
	uint64_t begin = clock_mono_ms();
	struct loop_timer soon = {0}, later = {0};

	loop_timer_set(&l, &soon, begin + 30, (struct loop_key){.kind = 1});
	loop_timer_set(&l, &later, begin + 60, (struct loop_key){.kind = 2});
	expect_key((struct loop_key){.kind = 1}, 0);
	assert_true(clock_mono_ms() >= begin + 30);
	assert_int_equal(soon.pos, 0);
	expect_key((struct loop_key){.kind = 2}, 0);
	assert_true(clock_mono_ms() >= begin + 60);
}

static void setting_again_moves_it(void **state)
{
	struct loop_timer a = {0}, b = {0};

	loop_timer_set(&l, &a, 10, (struct loop_key){.kind = 1});
	loop_timer_set(&l, &b, 20, (struct loop_key){.kind = 2});
	loop_timer_set(&l, &a, 30, (struct loop_key){.kind = 3});
	assert_int_equal(l.n_timers, 2);
	expect_key((struct loop_key){.kind = 2}, 0);
	expect_key((struct loop_key){.kind = 3}, 0);
}

/* Random sets, moves and clears against a plain search for the smallest. */
static void the_heap_is_right_after_every_change(void **state)
{
	static struct loop_timer t[200];
	unsigned seed = 5;

	memset(t, 0, sizeof(t));
	for (int step = 0; step < 20000; step++) {
		size_t i = (size_t)rand_r(&seed) % ARRAY_LEN(t);
		uint64_t min = UINT64_MAX;

		if (rand_r(&seed) % 3 == 0)
			loop_timer_clear(&l, &t[i]);
		else
			loop_timer_set(&l, &t[i], (uint64_t)rand_r(&seed) % 1000,
				(struct loop_key){.idx = (uint32_t)i});
		for (size_t k = 0; k < ARRAY_LEN(t); k++)
			if (t[k].pos) {
				assert_ptr_equal(l.heap[t[k].pos - 1], &t[k]);
				min = MIN(min, t[k].at_ms);
			}
		if (l.n_timers)
			assert_int_equal(l.heap[0]->at_ms, min);
	}
	for (uint64_t last = 0; l.n_timers > 0;) {
		struct loop_event ev;

		loop_next(&l, &ev);
		assert_true(t[ev.key.idx].at_ms >= last);
		last = t[ev.key.idx].at_ms;
	}
}

static void clearing_twice_is_nothing(void **state)
{
	struct loop_timer a = {0}, b = {0};

	loop_timer_clear(&l, &a);
	loop_timer_set(&l, &a, 10, (struct loop_key){.kind = 1});
	loop_timer_set(&l, &b, 20, (struct loop_key){.kind = 2});
	loop_timer_clear(&l, &a);
	loop_timer_clear(&l, &a);
	assert_int_equal(l.n_timers, 1);
	expect_key((struct loop_key){.kind = 2}, 0);
}

/* A timer that is always due once kept every fd waiting. */
static void a_timer_always_due_does_not_starve_fds(void **state)
{
	struct loop_timer t = {0};
	bool fd_seen = false;
	int p[2];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(write(p[1], "x", 1), 1);
	assert_int_equal(loop_add(&l, p[0], EPOLLIN, (struct loop_key){.kind = 2}), 0);
	for (int i = 0; i < 8 && !fd_seen; i++) {
		struct loop_event ev;

		if (t.pos == 0)
			loop_timer_set(&l, &t, 1, (struct loop_key){.kind = 1});
		loop_next(&l, &ev);
		fd_seen = ev.key.kind == 2;
	}
	assert_true(fd_seen);
	fd_close(&p[0]);
	fd_close(&p[1]);
}

static void busy_fds_do_not_starve_timers(void **state)
{
	struct loop_timer t = {0};
	bool timer_seen = false;
	int p[2];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(write(p[1], "x", 1), 1);
	assert_int_equal(loop_add(&l, p[0], EPOLLIN, (struct loop_key){.kind = 2}), 0);
	loop_timer_set(&l, &t, 1, (struct loop_key){.kind = 1});
	for (int i = 0; i < 8 && !timer_seen; i++) {
		struct loop_event ev;

		loop_next(&l, &ev);
		timer_seen = ev.key.kind == 1;
	}
	assert_true(timer_seen);
	fd_close(&p[0]);
	fd_close(&p[1]);
}

static void signals_arrive_on_an_fd(void **state)
{
	static const int signals[] = {SIGUSR1, SIGUSR2};
	AUTO_CLOSE int fd = loop_signalfd(signals, ARRAY_LEN(signals));
	struct signalfd_siginfo info;

	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(loop_add(&l, fd, EPOLLIN, (struct loop_key){.kind = 9}), 0);
	assert_int_equal(raise(SIGUSR2), 0);
	expect_key((struct loop_key){.kind = 9}, EPOLLIN);
	assert_int_equal(read(fd, &info, sizeof(info)), sizeof(info));
	assert_int_equal(info.ssi_signo, SIGUSR2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(keys_come_back_whole, start, finish),
		cmocka_unit_test_setup_teardown(timers_fire_in_order_of_time, start, finish),
		cmocka_unit_test_setup_teardown(
			a_timer_waits_its_time_and_fires_once, start, finish),
		cmocka_unit_test_setup_teardown(setting_again_moves_it, start, finish),
		cmocka_unit_test_setup_teardown(
			the_heap_is_right_after_every_change, start, finish),
		cmocka_unit_test_setup_teardown(clearing_twice_is_nothing, start, finish),
		cmocka_unit_test_setup_teardown(
			a_timer_always_due_does_not_starve_fds, start, finish),
		cmocka_unit_test_setup_teardown(busy_fds_do_not_starve_timers, start, finish),
		cmocka_unit_test_setup_teardown(signals_arrive_on_an_fd, start, finish),
	};

	return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
