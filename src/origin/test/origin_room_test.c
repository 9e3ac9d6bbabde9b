/* SPDX-License-Identifier: Apache-2.0 */
/* Content that waited because edge did not read continues when edge has room again, whichever part
 * found the room first (origin_play.h). Zeros may be the beginning of a value in UTF-32: the
 * scrubber holds the last ones, and a timer sends them. */
#include "origin_play.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"

#define N_FLOODS 13 /* fill the stream and the queue, and leave the server's window open */

#define N_MANY 5
#define N_WIDER 100
#define N_MORE 30

enum { H2, H1 };

struct text {
	uint8_t p[1024];
	size_t n;
};

static void add(struct text *t, uint8_t step, unsigned n_args, uint8_t which, uint8_t how)
{
	t->p[t->n++] = step;
	if (n_args > 0)
		t->p[t->n++] = which;
	if (n_args > 1)
		t->p[t->n++] = how;
}

/* A response arrives that edge does not read. */
static void fill(struct text *t, uint8_t protocol)
{
	add(t, PLAY_GET, 0, 0, 0);
	add(t, PLAY_SOCKET, 1, protocol, 0);
	add(t, PLAY_VALUE, 1, 0, 0);
	add(t, PLAY_HEAD, 2, 0, 0);
	add(t, PLAY_READ, 1, 0, 0);
	for (unsigned i = 0; i < N_FLOODS; i++)
		add(t, PLAY_DATA, 2, 0, PLAY_FLOOD);
}

/* Returns how often content waited. */
static uint64_t run(struct text *t, unsigned n_whole)
{
	struct play_stats stats = {0};

	for (unsigned i = 0; i < 8; i++)
		add(t, PLAY_TURN, 0, 0, 0);
	for (unsigned i = 0; i < n_whole; i++)
		add(t, PLAY_END, 2, 0, 0);
	play_run(slice_of(t->p, t->n), &stats);
	play_forget();
	assert_int_equal(stats.n_ended, n_whole);
	return stats.n_full;
}

static void idle_finds_room(uint8_t protocol)
{
	struct text t = {0};

	fill(&t, protocol);
	add(&t, PLAY_AND(PLAY_READ), 1, 0, 0);
	add(&t, PLAY_AND(PLAY_TIMER), 2, 0, 1);
	assert_true(run(&t, 1) > 0);
}

static void room_that_the_idle_timer_finds_resumes_http1(void **state)
{
	idle_finds_room(H1);
}

static void room_that_the_idle_timer_finds_resumes_http2(void **state)
{
	idle_finds_room(H2);
}

static void edge_finds_room(uint8_t protocol)
{
	struct text t = {0};

	fill(&t, protocol);
	add(&t, PLAY_TIMER, 2, 0, 1);
	add(&t, PLAY_READ, 1, 0, 0);
	assert_true(run(&t, 1) > 0);
}

static void room_that_edge_makes_resumes_http1(void **state)
{
	edge_finds_room(H1);
}

static void room_that_edge_makes_resumes_http2(void **state)
{
	edge_finds_room(H2);
}

/* Edge reads a part and stops again: the rest waits once more, and no new data arrives. */
static void what_is_left_after_a_resume_is_resumed_again(void **state)
{
	struct text t = {0};

	add(&t, PLAY_GET, 0, 0, 0);
	add(&t, PLAY_SOCKET, 1, H2, 0);
	add(&t, PLAY_VALUE, 1, 0, 0);
	add(&t, PLAY_HEAD, 2, 0, 0);
	for (unsigned i = 0; i < N_WIDER; i++) /* the window grows with a fast reader */
		add(&t, PLAY_DATA, 2, 0, PLAY_FLOOD);
	add(&t, PLAY_READ, 1, 0, 0);
	for (unsigned i = 0; i < N_MORE; i++)
		add(&t, PLAY_DATA, 2, 0, PLAY_FLOOD);
	add(&t, PLAY_AND(PLAY_READ), 1, 0, 0);
	add(&t, PLAY_READ, 1, 0, 0);
	add(&t, PLAY_TURN, 0, 0, 0);
	add(&t, PLAY_READ, 1, 0, 0);
	assert_true(run(&t, 1) > N_MORE / 2);
}

/* More than a turn of the line reads: the rest gets its own turn, and a request starts before
 * it. */
static void a_request_that_starts_does_not_stop_the_others(void **state)
{
	struct text t = {0};

	for (unsigned i = 0; i < N_MANY; i++)
		add(&t, PLAY_GET, 0, 0, 0);
	add(&t, PLAY_SOCKET, 1, H2, 0);
	add(&t, PLAY_VALUE, 1, 0, 0);
	for (uint8_t i = 0; i < N_MANY; i++)
		add(&t, PLAY_HEAD, 2, i, 0);
	for (uint8_t i = 0; i < N_MANY * 4; i++)
		add(&t, PLAY_AND(PLAY_DATA), 2, i, PLAY_FLOOD);
	add(&t, PLAY_GET, 0, 0, 0);
	(void)run(&t, N_MANY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(room_that_the_idle_timer_finds_resumes_http1),
		cmocka_unit_test(room_that_the_idle_timer_finds_resumes_http2),
		cmocka_unit_test(room_that_edge_makes_resumes_http1),
		cmocka_unit_test(room_that_edge_makes_resumes_http2),
		cmocka_unit_test(what_is_left_after_a_resume_is_resumed_again),
		cmocka_unit_test(a_request_that_starts_does_not_stop_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
