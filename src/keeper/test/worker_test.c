/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker that was started but cannot be watched is not left running. Test program: the spawn
 * creates a process that only sleeps, and loop_add fails on request.
 */
#include "net_rig.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

static int adds_until_failure; /* 0: none fails */
static pid_t spawned;
static unsigned n_spawned, n_stops;

int __real_loop_add(struct loop *l, int fd, uint32_t events, struct loop_key key);
int __wrap_loop_add(struct loop *l, int fd, uint32_t events, struct loop_key key);
int __wrap_loop_add(struct loop *l, int fd, uint32_t events, struct loop_key key)
{
	if (adds_until_failure && --adds_until_failure == 0)
		return -ENOSPC;
	return __real_loop_add(l, fd, events, key);
}

int __wrap_worker_spawn(const struct jail_plan *plan, struct jail_child *ret, struct err *err);
int __wrap_worker_spawn(const struct jail_plan *plan, struct jail_child *ret, struct err *err)
{
	*ret = rig_false_child();
	spawned = ret->pid;
	n_spawned++;
	return 0;
}

static int worker_up(void **state)
{
	int r = rig_up(state);

	edge_kill(&rig_k);
	n_spawned = 0;
	return r;
}

#define WORKER_TEST(f) cmocka_unit_test_setup_teardown(f, worker_up, rig_down)

static void an_edge_that_cannot_be_watched_is_killed(void **state)
{
	/* 1: its socket, 2: its process. */
	for (int nth = 1; nth <= 2; nth++) {
		struct err err = {0};

		adds_until_failure = nth;
		assert_int_equal(edge_start(&rig_k, &err), -ENOSPC);
		assert_false(rig_k.edge->worker.alive);
		assert_int_equal(kill(spawned, 0), -1); /* reaped */
	}
}

static void the_timer_starts_another_edge_after_one_that_could_not_be_watched(void **state)
{
	struct err err = {0};

	adds_until_failure = 2;
	assert_int_equal(edge_start(&rig_k, &err), -ENOSPC);
	edge_on_timer(&rig_k);
	assert_int_equal(n_spawned, 2);
	assert_true(rig_k.edge->worker.alive);
}

static void count_stop(struct keeper *k, uint32_t timeout_ms, const char *why)
{
	n_stops++;
}

static void an_edge_that_is_lost_during_a_stop_leaves_the_stop_as_it_is(void **state)
{
	static const struct life_ops ops = {.stop = count_stop};
	const struct life_ops *life = rig_k.life;
	enum keeper_phase phase = rig_k.state.phase;

	rig_k.life = &ops;
	rig_k.vmm = (struct vmm *)&rig_k; /* only tested for NULL */
	for (int i = 0; i < 2; i++) {
		struct err err = {0};

		rig_k.state.phase = i ? KEEPER_STOPPING : KEEPER_RUNNING;
		assert_int_equal(edge_start(&rig_k, &err), 0);
		rig_k.edge->worker.tries = KEEPER_EDGE_TRIES;
		assert_int_equal(kill(spawned, SIGKILL), 0);
		edge_on_exit(&rig_k);
		assert_int_equal(n_stops, 1);
	}
	rig_k.vmm = NULL;
	rig_k.life = life;
	rig_k.state.phase = phase;
}

static void an_egress_that_cannot_be_watched_is_killed_and_tried_again(void **state)
{
	adds_until_failure = 1;
	egress_start(&rig_k);
	assert_false(rig_k.egress->worker.alive);
	assert_int_equal(kill(spawned, 0), -1);
	assert_true(rig_k.egress->worker.timer.pos);
	egress_start(&rig_k);
	assert_true(rig_k.egress->worker.alive);
}

static void an_ssh_agent_that_cannot_be_watched_is_killed_and_its_client_refused(void **state)
{
	struct edge_verdict verdict;

	rig_k.spec.ssh.socket = (char *)"/nowhere";
	adds_until_failure = 2;
	assert_int_equal(ssh_agent_open(&rig_k, &verdict), -1);
	assert_false(verdict.allowed);
	assert_false(rig_k.ssh_agent->worker.alive);
	assert_int_equal(kill(spawned, 0), -1);
}

/* Each try doubles the pause, up to a limit. */
static void an_egress_that_fails_again_and_again_is_started_with_longer_pauses(void **state)
{
	uint64_t gap = 0;

	for (int i = 0; i < 8; i++) {
		uint64_t before = gap;

		adds_until_failure = 1;
		egress_start(&rig_k);
		gap = rig_k.egress->worker.timer.at_ms - rig_k.egress->worker.started_ms;
		assert_true(gap <= KEEPER_EGRESS_MAX_GAP_MS + 200);
		assert_true(gap > before || before >= KEEPER_EGRESS_MAX_GAP_MS);
	}
	assert_true(gap >= KEEPER_EGRESS_MAX_GAP_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORKER_TEST(an_edge_that_cannot_be_watched_is_killed),
		WORKER_TEST(the_timer_starts_another_edge_after_one_that_could_not_be_watched),
		WORKER_TEST(an_edge_that_is_lost_during_a_stop_leaves_the_stop_as_it_is),
		WORKER_TEST(an_egress_that_cannot_be_watched_is_killed_and_tried_again),
		WORKER_TEST(an_ssh_agent_that_cannot_be_watched_is_killed_and_its_client_refused),
		WORKER_TEST(an_egress_that_fails_again_and_again_is_started_with_longer_pauses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
