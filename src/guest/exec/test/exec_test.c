/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "exec_rig.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

static int begin(void **state)
{
	rig_begin();
	return 0;
}

static int end(void **state)
{
	rig_end();
	return 0;
}

static uint8_t *random_bytes(size_t n)
{
	uint8_t *p = xmalloc(n);
	uint64_t v = 88172645463325252u;

	for (size_t i = 0; i < n; i++) {
		v ^= v << 13;
		v ^= v >> 7;
		v ^= v << 17;
		p[i] = (uint8_t)v;
	}
	return p;
}

static size_t n_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		(void)closedir(d);
	return n;
}

/* Sets the pending timer to expire after ms. */
static void due_in(struct exec *e, unsigned ms)
{
	assert_true(e->aside.pos > 0);
	loop_timer_set(&rig.loop, &e->aside, clock_mono_ms() + ms, e->aside.key);
}

static void due(struct exec *e)
{
	due_in(e, 0);
}

static void test_as_before(void **state)
{
	struct peer p = {0};

	peer_start(&p, NULL, true, "echo out; echo err >&2; exit 3");
	rig_wait(&p.exited);
	assert_true(p.started);
	assert_int_equal(p.status, 3);
	assert_int_equal(p.n_out, 8);
	rig_run(20);
	assert_int_equal(rig.x->n_used, 0);
	peer_done(&p);
}

static void test_plain_is_hung_up(void **state)
{
	for (int i = 0; i < 3; i++) {
		struct peer p = {0};
		pid_t pid;

		peer_start(&p, NULL, i == 0, "echo here; sleep 100");
		peer_wait_text(&p, "here");
		pid = rig.x->slots[0].pid;
		if (i < 2)
			peer_close(&p);
		else
			rig_cut();
		assert_int_equal(rig.x->slots[0].state, EXEC_ORPHAN);
		rig_run(EXEC_KILL_MS + 200);
		assert_int_equal(rig.x->n_used, 0);
		assert_int_equal(kill(pid, 0), -1);
		peer_done(&p);
	}
}

/* Megabytes through `cat`, detached repeatedly with data in transit in both directions. */
static void test_parked_bytes_are_exact(void **state)
{
	size_t n = 16u << 20;
	AUTO_FREE uint8_t *data = random_bytes(n);
	struct peer p = {.in = data, .n_in = n};
	int cuts = 0;

	srand(7);
	peer_start(&p, NULL, false, "cat; echo end >&2; exit 9");
	rig_wait(&p.started);
	while (!p.exited) {
		rig_run((unsigned)rand() % 4 + 1);
		if (p.exited)
			break;
		exec_park_all(rig.x);
		/* Half of the time the notice arrives, half of the time everything is lost with the
		 * wire. */
		if (cuts % 2)
			rig_wait(&p.over);
		rig_cut();
		rig_run((unsigned)rand() % 10);
		peer_attach(&p, NULL, true);
		exec_unpark(rig.x);
		assert_true(++cuts < 5000);
		while (!p.attached && !p.over)
			rig_run(1);
		assert_string_equal(p.error, "");
	}
	assert_true(cuts > 10);
	assert_int_equal(p.status, 9);
	assert_int_equal(p.n_out, n + 4);
	assert_memory_equal(p.out, data, n);
	peer_done(&p);
	rig_run(20);
	assert_int_equal(rig.x->n_used, 0);
}

/* Output and exit status of a parked program wait for its client, as far as there is room. */
static void test_parked_end_waits(void **state)
{
	struct peer p = {0};

	peer_start(&p, NULL, false, "sleep 0.2; echo late; exit 4");
	rig_wait(&p.started);
	exec_park_all(rig.x);
	rig_wait(&p.over);
	assert_int_equal(p.reason, EXEC_SUSPENDED);
	rig_cut();
	rig_run(500);
	peer_attach(&p, NULL, true);
	exec_unpark(rig.x);
	rig_wait(&p.exited);
	assert_int_equal(p.status, 4);
	assert_memory_equal(p.out, "late\n", 5);
	peer_done(&p);
}

static void test_unclaimed_is_hung_up(void **state)
{
	struct peer p = {0}, old = {0};

	peer_start(&p, NULL, false, "sleep 100");
	peer_start(&old, NULL, true, "sleep 100");
	rig_wait(&p.started);
	rig_wait(&old.started);
	exec_park_all(rig.x);
	rig_wait(&p.over);
	assert_false(old.over);
	rig_cut();
	/* A client that cannot reattach is not awaited. */
	assert_int_equal(rig.x->slots[0].state, EXEC_RUNNING);
	assert_int_equal(rig.x->slots[1].state, EXEC_ORPHAN);
	exec_unpark(rig.x);
	rig_run(50);
	assert_int_equal(rig.x->slots[0].state, EXEC_RUNNING);
	due(&rig.x->slots[0]);
	rig_run(50);
	assert_int_equal(rig.x->slots[0].state, EXEC_ORPHAN);
	peer_attach(&p, NULL, true);
	rig_wait(&p.over);
	assert_string_equal(p.error, "session not found");
	peer_done(&p);
	peer_done(&old);
}

#define ASK "echo ready; read x; echo \"got $x\"; read y; exit 7"

static void test_a_look_takes_nothing_over(void **state)
{
	struct peer p = {0}, q = {0};
	uint64_t end;

	peer_start(&p, "agent", false, ASK);
	peer_wait_text(&p, "ready");
	peer_look(&q, "agent");
	peer_wait_text(&q, "ready");
	assert_true(q.attached && q.how.replay == q.n_replay);
	assert_int_equal(q.how.flags, EXEC_AF_TTY);
	end = q.how.out_at;
	peer_done(&q);
	peer_type(&p, "blue\n");
	peer_wait_text(&p, "got blue");
	q.out_at = end;
	peer_look(&q, "agent");
	peer_wait_text(&q, "got blue");
	assert_null(memmem(q.replay, q.n_replay, "ready", 5));
	peer_done(&q);
	q.out_at = UINT64_MAX;
	peer_look(&q, "agent");
	rig_wait(&q.attached);
	assert_int_equal(q.how.replay, 0);
	peer_done(&q);
	assert_false(p.over); /* it stayed attached */
	rig_cut();
	peer_look(&q, "other");
	rig_wait(&q.over);
	assert_string_equal(q.error, "session not found");
	peer_done(&q);
	peer_done(&p);
}

static void test_kept_goes_on(void **state)
{
	struct peer p = {0}, q = {0};

	peer_start(&p, "agent", false, ASK);
	peer_wait_text(&p, "ready");
	rig_cut();
	rig_run(30);
	peer_attach(&q, "agent", false);
	peer_wait_text(&q, "ready");
	assert_true(q.attached);
	assert_int_equal(q.how.flags, EXEC_AF_TTY | EXEC_AF_REPLAY);
	assert_int_equal(q.n_replay, q.how.replay);
	peer_type(&q, "blue\n");
	peer_wait_text(&q, "got blue");
	peer_frame(&q, EXEC_DETACH, slice_of(NULL, 0));
	rig_wait(&q.over);
	assert_int_equal(q.reason, EXEC_ASKED);
	peer_done(&q);
	/* Continues at the same byte: no replay. */
	peer_attach(&q, "agent", false);
	rig_wait(&q.attached);
	rig_cut();
	rig_run(EXEC_NUDGE_MS + 50);
	peer_attach(&q, NULL, true);
	rig_wait(&q.attached);
	assert_int_equal(q.how.flags, EXEC_AF_TTY);
	peer_type(&q, "\n");
	rig_wait(&q.exited);
	assert_int_equal(q.status, 7);
	rig_run(20);
	assert_int_equal(rig.x->n_used, 0);
	peer_done(&p);
	peer_done(&q);
}

static void test_exit_is_kept(void **state)
{
	struct peer p = {0};

	peer_start(&p, "agent", false, "echo last words; read x; exit 42");
	peer_wait_text(&p, "last words");
	peer_type(&p, "\n");
	peer_close(&p);
	rig_run(300);
	assert_int_equal(rig.x->slots[0].state, EXEC_ENDED);
	peer_done(&p);
	peer_attach(&p, "agent", false);
	rig_wait(&p.exited);
	assert_int_equal(p.status, 42);
	assert_non_null(strstr(p.replay, "last words"));
	rig_run(20);
	peer_done(&p);
	peer_attach(&p, "agent", false);
	rig_wait(&p.over);
	assert_string_equal(p.error, "session not found");
	assert_int_equal(rig.x->n_used, 0);
	peer_done(&p);
}

/* An EXIT that was lost with the wire is sent again. */
static void test_lost_exit_is_said_again(void **state)
{
	struct peer p = {.lazy = true};
	uint8_t buf[4096];

	peer_start(&p, "agent", false, "exit 5");
	rig_run(300);
	while (exec_pull(rig.x, p.idx, buf, sizeof(buf)) > 0)
		;
	rig_cut();
	assert_int_equal(rig.x->n_used, 1);
	p.lazy = false;
	peer_attach(&p, "agent", false);
	rig_wait(&p.exited);
	assert_int_equal(p.status, 5);
	peer_done(&p);
}

static void test_taken_over(void **state)
{
	struct peer p = {0}, q = {0};

	peer_start(&p, "agent", false, ASK);
	peer_wait_text(&p, "ready");
	peer_attach(&q, "agent", false);
	rig_wait(&p.over);
	assert_int_equal(p.reason, EXEC_TAKEN_OVER);
	rig_wait(&q.attached);
	/* The previous client does not get it back by its token. */
	peer_attach(&p, NULL, true);
	rig_wait(&p.over);
	assert_string_equal(p.error, "session not found");
	peer_type(&q, "x\n\n");
	rig_wait(&q.exited);
	peer_done(&p);
	peer_done(&q);
}

static void test_one_of_a_name(void **state)
{
	struct peer p = {0}, q = {0};

	peer_start(&p, "agent", false, ASK);
	peer_wait_text(&p, "ready");
	peer_start(&q, "agent", false, ASK);
	rig_wait(&q.over);
	assert_string_equal(q.error, "a session with this name already exists");
	peer_type(&p, "\n\n");
	rig_wait(&p.exited);
	/* Right after its exit the name can be reused. */
	peer_start(&q, "agent", false, ASK);
	rig_wait(&q.started);
	peer_done(&p);
	peer_done(&q);
}

static void test_full_ring_stops_nobody(void **state)
{
	struct peer p = {0};

	peer_start(&p, "agent", false,
		"printf '\\033[?1049h'; read x; head -c 20000000 /dev/zero | tr '\\0' x; echo; "
		"echo done; read y");
	rig_wait(&p.started);
	peer_type(&p, "\n");
	peer_close(&p);
	for (int i = 0; i < 2000 && rig.x->slots[0].ring.end < 20000000; i++) {
		rig_run(10);
		assert_true(exec_ring_len(&rig.x->slots[0].ring) <= EXEC_KEPT_RING);
	}
	rig_run(100);
	peer_done(&p);
	peer_attach(&p, "agent", false);
	peer_wait_text(&p, "done");
	assert_true(p.how.dropped > 19000000);
	/* The alternate screen was entered in dropped output. */
	assert_non_null(strstr(p.replay, "\033[?1049h"));
	assert_true(p.n_replay <= EXEC_KEPT_RING + SCREEN_MAX_START);
	peer_done(&p);
}

/* While a client is attached but does not read, nothing is lost. */
static void test_attached_slow_client_stops_it(void **state)
{
	struct peer p = {0};

	peer_start(&p, "agent", false, "read x; head -c 3000000 /dev/zero | tr '\\0' x; read y");
	rig_wait(&p.started);
	p.lazy = true;
	peer_type(&p, "\n");
	rig_run(300);
	assert_int_equal(rig.x->slots[0].ring.base, 0);
	assert_true(rig.x->slots[0].ring.end <= EXEC_KEPT_RING);
	p.lazy = false;
	for (int i = 0; i < 500 && p.n_out < 3000000; i++)
		rig_run(10);
	assert_true(p.n_out >= 3000000);
	peer_done(&p);
}

static void test_nudged(void **state)
{
	struct peer p = {0};

	peer_start(&p, "agent", false,
		"trap 'echo size $(stty size)' WINCH; echo ready; while :; do sleep 0.01; done");
	peer_wait_text(&p, "ready");
	peer_close(&p);
	peer_done(&p);
	peer_attach(&p, "agent", false);
	rig_wait(&p.attached);
	due_in(&rig.x->slots[0], 60000); /* a shell on a busy machine checks late */
	peer_wait_text(&p, "size 23 80");
	due(&rig.x->slots[0]);
	peer_wait_text(&p, "size 24 80");
	peer_done(&p);
}

static void test_bounds(void **state)
{
	static struct peer peers[EXEC_MAX_KEPT + 1];
	struct peer p = {0};
	char name[16];
	unsigned n_dead = 0;

	for (size_t i = 0; i <= EXEC_MAX_KEPT; i++) {
		(void)snprintf(name, sizeof(name), "s%zu", i);
		peer_start(&peers[i], name, false, "read x");
		rig_run(10);
		if (i < EXEC_MAX_KEPT)
			rig_wait(&peers[i].started);
	}
	rig_wait(&peers[EXEC_MAX_KEPT].over);
	assert_string_equal(peers[EXEC_MAX_KEPT].error, "too many sessions");
	for (size_t i = 0; i < EXEC_MAX_KEPT; i++) {
		peer_type(&peers[i], "\n");
		peer_close(&peers[i]);
		rig_run(30);
	}
	rig_run(500);
	for (struct exec *e = rig.x->slots; e < rig.x->slots + EXEC_MAX; e++)
		n_dead += e->state == EXEC_ENDED;
	assert_int_equal(n_dead, EXEC_MAX_DEAD);
	assert_int_equal(rig.x->n_used, EXEC_MAX_DEAD);
	/* The newest stay. */
	peer_attach(&p, "s0", false);
	rig_wait(&p.over);
	assert_string_equal(p.error, "session not found");
	peer_attach(&p, name, false);
	rig_wait(&p.over);
	(void)snprintf(name, sizeof(name), "s%d", EXEC_MAX_KEPT - 1);
	peer_attach(&p, name, false);
	rig_wait(&p.exited);
	peer_done(&p);
	for (size_t i = 0; i <= EXEC_MAX_KEPT; i++)
		peer_done(&peers[i]);
}

static void test_thousand_times(void **state)
{
	struct peer p = {0};
	size_t fds;

	peer_start(&p, "agent", false, "while read x; do echo \"<$x>\"; done; exit 0");
	rig_wait(&p.started);
	fds = n_fds();
	for (int i = 0; i < 1000; i++) {
		char text[16];

		if (i % 3 == 0)
			rig_cut();
		else
			peer_close(&p);
		peer_done(&p);
		peer_attach(&p, "agent", false);
		rig_wait(&p.attached);
		if (i % 10 == 0) {
			(void)snprintf(text, sizeof(text), "%d\n", i);
			peer_type(&p, text);
			(void)snprintf(text, sizeof(text), "<%d>", i);
			peer_wait_text(&p, text);
		}
	}
	assert_int_equal(n_fds(), fds);
	assert_int_equal(rig.x->n_used, 1);
	peer_done(&p);
}

/* A violation of the host ends its stream and a plain program; a kept one keeps running. */
static void test_violations(void **state)
{
	static const struct {
		enum exec_type type;
		const char *payload;
		size_t n;
	} bad[] = {
		{EXEC_ACK, "\xff\xff\0\0\0\0\0\0", 8},
		{EXEC_SPEC, "0123456789abcdef", 16},
		{EXEC_STDOUT, "x", 1},
		{EXEC_DETACH, "", 0},
	};

	for (size_t kept = 0; kept < 2; kept++)
		for (size_t i = 0; i + kept < ARRAY_LEN(bad); i++) {
			struct peer p = {0};
			char name[] = {'s', (char)('a' + i), '\0'};

			peer_start(&p, kept ? name : NULL, false, "echo ready; sleep 100");
			peer_wait_text(&p, "ready");
			peer_frame(&p, bad[i].type, slice_of(bad[i].payload, bad[i].n));
			assert_true(p.gone);
			if (kept) {
				peer_attach(&p, name, false);
				rig_wait(&p.attached);
			}
			peer_done(&p);
		}
}

static void test_kept_needs_a_program(void **state)
{
	struct peer p = {0};

	peer_start(&p, "agent", false, "exec /no/such/program");
	rig_wait(&p.exited);
	assert_int_equal(p.status, 127);
	rig_run(20);
	assert_int_equal(rig.x->n_used, 0);
	peer_done(&p);
}

static void test_shown(void **state)
{
	struct peer p = {0}, q = {0};
	struct exec_shown s;

	peer_start(&p, "agent", false, ASK);
	peer_start(&q, "other", false, "read x; exit 3");
	rig_wait(&p.started);
	rig_wait(&q.started);
	peer_type(&q, "\n");
	peer_close(&q);
	for (size_t i = 0; i < 3000; i++) { /* 60 s at most */
		if (exec_kept(rig.x, 1, &s) && !s.attached && s.ended)
			break;
		rig_run(20);
	}
	assert_true(exec_kept(rig.x, 0, &s));
	assert_string_equal(s.name, "agent");
	assert_true(s.attached && !s.ended);
	assert_true(exec_kept(rig.x, 1, &s));
	assert_true(!s.attached && s.ended && s.value == 3);
	assert_false(exec_kept(rig.x, 2, &s));
	peer_done(&p);
	peer_done(&q);
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_as_before),
		T(test_plain_is_hung_up),
		T(test_parked_bytes_are_exact),
		T(test_parked_end_waits),
		T(test_unclaimed_is_hung_up),
		T(test_a_look_takes_nothing_over),
		T(test_kept_goes_on),
		T(test_exit_is_kept),
		T(test_lost_exit_is_said_again),
		T(test_taken_over),
		T(test_one_of_a_name),
		T(test_full_ring_stops_nobody),
		T(test_attached_slow_client_stops_it),
		T(test_nudged),
		T(test_bounds),
		T(test_thousand_times),
		T(test_violations),
		T(test_kept_needs_a_program),
		T(test_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
