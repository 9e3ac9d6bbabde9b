/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that leave while their request waits for a person: the hold is withdrawn with the last
 * one, and nothing of it is sent. Pushes: clerk_test.c. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include "lib/base/str.h"
#include "src/keeper/test/net_rig.h"

#define ASKED "ask.example"
#define RACES 200

static struct hold_msg held;

static int up(void **state)
{
	int r = rig_up(state);

	rig_set_policy("allow network " ASKED ":80\nallow network good.example:80\n"
		       "ask http " ASKED "/**\n");
	rig_reload(2, "demo");
	rig_must_get(rig_sbxd, KEEPER_DONE);
	rig_bring_egress_up();
	holds_set_limits(&rig_k, HOLD_MOST_OPEN, HOLD_MOST_HOUR);
	return r;
}

static void ask_for(uint32_t id, const char *target)
{
	struct edge_ask a = {.kind = EDGE_ASK_HTTP, .port = 80};

	(void)!str_copy(a.host, sizeof(a.host), ASKED);
	(void)!str_copy(a.method, sizeof(a.method), "GET");
	(void)!str_copy(a.target, sizeof(a.target), target);
	assert_int_equal(edge_send_ask(rig_edge, id, &a), 0);
}

/* Others, and UNHELD, may come first. */
static void must_be_held(uint8_t state)
{
	do {
		ipc_msg_done(&rig_msg);
		assert_true(rig_run_until(rig_sbxd, 60000));
		assert_int_equal(ipc_recv(rig_sbxd, &rig_msg), 1);
	} while (hold_get_held(&rig_msg, &held) < 0 || held.state != state);
}

static void leave(uint32_t id, uint16_t how)
{
	assert_int_equal(chan_send_plain(rig_edge, how, id, -1), 0);
}

static void send_answer(void)
{
	struct hold_reply reply = {.choice = HOLD_CHOICE_ONCE, .where = "api"};

	memcpy(reply.id, held.id, sizeof(reply.id));
	memcpy(reply.digest, held.digest, sizeof(reply.digest));
	assert_int_equal(hold_send_reply(rig_sbxd, 77, &reply), 0);
}

/* HELD and UNHELD may come first. */
static int read_done(void)
{
	struct keeper_done done;

	do {
		ipc_msg_done(&rig_msg);
		assert_true(rig_run_until(rig_sbxd, 60000));
		assert_int_equal(ipc_recv(rig_sbxd, &rig_msg), 1);
	} while (rig_msg.type != KEEPER_DONE);
	assert_int_equal(keeper_get_done(&rig_msg, &done), 0);
	if (done.code == -ECANCELED)
		assert_string_equal(done.text, "the request was withdrawn: the client has left");
	return done.code;
}

static int answer(void)
{
	send_answer();
	return read_done();
}

static void must_pass(uint32_t id)
{
	rig_must_get(rig_egress, EGRESS_OPEN);
	assert_true(rig_must_answer(id));
	assert_true(rig_msg.fd >= 0);
}

static void must_be_refused(uint32_t id)
{
	assert_false(rig_must_answer(id));
	if (!strstr(rig_verdict.reason, "the client has left"))
		fail_msg("the reason is: %s", rig_verdict.reason);
}

static void the_hold_is_withdrawn_with_its_client(void **state)
{
	static const uint16_t ways[] = {EDGE_GONE, EDGE_ENDED};

	for (uint32_t i = 0; i < ARRAY_LEN(ways); i++) {
		char first[HOLD_ID];
		struct seen s;

		ask_for(10 * i, "/a");
		must_be_held(HOLD_OPEN);
		memcpy(first, held.id, sizeof(first));
		leave(10 * i, ways[i]);
		must_be_held(HOLD_WITHDRAWN);
		assert_string_equal(held.id, first);
		must_be_refused(10 * i);
		s = rig_last_record();
		assert_int_equal(s.kind, AUDIT_KIND_APPROVAL);
		assert_string_equal(s.action, "withdraw");
		assert_string_equal(s.hold, first);
		assert_int_equal(answer(), -ECANCELED);
		rig_must_be_quiet(rig_egress);
		/* An equal request is another one. */
		ask_for(10 * i + 1, "/a");
		must_be_held(HOLD_OPEN);
		assert_string_not_equal(held.id, first);
		assert_int_equal(answer(), 0);
		must_pass(10 * i + 1);
	}
}

static void the_last_of_equal_requests_withdraws_it(void **state)
{
	ask_for(1, "/a");
	must_be_held(HOLD_OPEN);
	ask_for(2, "/a");
	ask_for(3, "/a");
	rig_must_be_quiet(rig_edge);
	leave(1, EDGE_GONE);
	must_be_refused(1);
	leave(3, EDGE_ENDED);
	must_be_refused(3);
	rig_must_be_quiet(rig_sbxd);
	assert_int_equal(answer(), 0);
	must_pass(2);
	/* and when all have left */
	ask_for(4, "/a");
	must_be_held(HOLD_OPEN);
	ask_for(5, "/a");
	rig_must_be_quiet(rig_edge);
	leave(4, EDGE_GONE);
	must_be_refused(4);
	leave(5, EDGE_GONE);
	must_be_held(HOLD_WITHDRAWN);
	assert_int_equal(answer(), -ECANCELED);
	rig_must_be_quiet(rig_egress);
}

/* Its client got the id, and can send the request again. */
static void a_request_that_has_waited_long_enough_has_not_left(void **state)
{
	ask_for(1, "/a");
	must_be_held(HOLD_OPEN);
	rig_k.net->held[0].held_ms -= HOLD_INLINE_MS;
	holds_on_timer(&rig_k);
	assert_false(rig_must_answer(1));
	assert_string_equal(rig_verdict.approval, held.id);
	leave(1, EDGE_GONE);
	assert_int_equal(answer(), 0);
	ask_for(2, "/a");
	must_pass(2);
}

/* A program that has closed its direction cannot be told from one that has left. */
static void an_ended_client_does_not_prompt(void **state)
{
	rig_k.net->spent_us = UINT64_MAX / 2; /* it stays in the ring */
	ask_for(1, "/a");
	leave(1, EDGE_ENDED);
	(void)rig_run_until(-1, 30);
	rig_k.net->spent_us = 0;
	net_run(&rig_k);
	must_be_refused(1);
	assert_int_equal(rig_last_record().decision, AUDIT_DENY);
	rig_must_be_quiet(rig_sbxd);
}

static void an_ended_client_of_another_request_is_served(void **state)
{
	rig_k.net->spent_us = UINT64_MAX / 2;
	rig_ask(1, EDGE_ASK_HTTP, "good.example", 80);
	leave(1, EDGE_ENDED);
	(void)rig_run_until(-1, 30);
	rig_k.net->spent_us = 0;
	net_run(&rig_k);
	must_pass(1);
}

/* A VERDICT may be on its way. */
static void messages_about_no_ask_do_nothing(void **state)
{
	leave(99, EDGE_GONE);
	leave(99, EDGE_ENDED);
	rig_must_be_quiet(rig_edge);
	assert_true(rig_k.edge->worker.alive);
}

static void a_dead_edge_withdraws_all(void **state)
{
	struct hold_msg first;

	ask_for(1, "/a");
	must_be_held(HOLD_OPEN);
	first = held;
	ask_for(2, "/b");
	must_be_held(HOLD_OPEN);
	assert_int_equal(kill(rig_k.edge->worker.child.pid, SIGKILL), 0);
	RIG_UNTIL(!rig_k.edge->worker.alive);
	assert_int_equal(rig_k.net->n_held, 0);
	assert_int_equal(answer(), -ECANCELED);
	held = first;
	assert_int_equal(answer(), -ECANCELED);
	rig_put_edge(EDGE_PHASE_RUN);
	ask_for(1, "/a");
	must_be_held(HOLD_OPEN);
	rig_must_be_quiet(rig_egress);
}

/* The message of edge and the answer are both on their way. The answer counts, or the client. */
static void an_answer_races_with_the_end_of_the_client(void **state)
{
	uint64_t x = 18;
	unsigned n_sent = 0;

	for (uint32_t i = 0; i < RACES; i++) {
		char target[16];
		bool was_sent;

		x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		(void)snprintf(target, sizeof(target), "/%u", i);
		ask_for(2 * i, target);
		must_be_held(HOLD_OPEN);
		if (x >> 63)
			send_answer();
		if (x >> 61 & 1)
			(void)rig_run_until(-1, 1);
		leave(2 * i, x >> 62 & 1 ? EDGE_GONE : EDGE_ENDED);
		if (x >> 60 & 1)
			(void)rig_run_until(-1, 1);
		if (!(x >> 63))
			send_answer();
		was_sent = read_done() == 0;
		n_sent += was_sent;
		if (was_sent)
			must_pass(2 * i);
		else
			must_be_refused(2 * i);
		if (was_sent)
			exchanges_clear(rig_k.net);
		assert_false(rig_run_until(rig_egress, 1));
		if (i % (HOLD_MOST_HOUR / 2) == 0)
			rig_k.holds->table.n_opened = 0;
	}
	assert_in_range(n_sent, 1, RACES - 1);
}

#define LEAVE_TEST(f) cmocka_unit_test_setup_teardown(f, up, rig_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LEAVE_TEST(the_hold_is_withdrawn_with_its_client),
		LEAVE_TEST(the_last_of_equal_requests_withdraws_it),
		LEAVE_TEST(a_request_that_has_waited_long_enough_has_not_left),
		LEAVE_TEST(an_ended_client_does_not_prompt),
		LEAVE_TEST(an_ended_client_of_another_request_is_served),
		LEAVE_TEST(messages_about_no_ask_do_nothing),
		LEAVE_TEST(a_dead_edge_withdraws_all),
		LEAVE_TEST(an_answer_races_with_the_end_of_the_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
