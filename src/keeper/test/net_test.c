/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of edge, and attacks by a compromised edge or egress. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "net_rig.h"

static void an_allowed_one_joins_edge_and_egress(void **state)
{
	AUTO_CLOSE int a = -1, b = -1;
	char buf[8];

	rig_bring_egress_up();
	(void)rig_must_open(7, &a, &b);
	assert_int_equal(write(a, "there", 5), 5);
	assert_int_equal(read(b, buf, sizeof(buf)), 5);
	assert_int_equal(write(b, "back", 4), 4);
	assert_int_equal(read(a, buf, sizeof(buf)), 4);
	/* The keeper holds neither end: each side sees the other close. */
	fd_close(&a);
	assert_int_equal(read(b, buf, sizeof(buf)), 0);
}

static void a_denied_one_reaches_nobody(void **state)
{
	rig_bring_egress_up();
	rig_ask(1, EDGE_ASK_TUNNEL, "bad.example", 443);
	assert_false(rig_must_answer(1));
	assert_int_equal(rig_verdict.count, 1);
	assert_string_equal(rig_verdict.sandbox, "demo");
	rig_ask(2, EDGE_ASK_TUNNEL, "good.example", 22);
	assert_false(rig_must_answer(2));
	rig_ask(3, EDGE_ASK_HTTP, "bad.example", 80);
	assert_false(rig_must_answer(3));
	rig_ask(4, EDGE_ASK_DNS, "bad.example", 0);
	assert_false(rig_must_answer(4));
	rig_must_be_quiet(rig_egress);
}

static void dns_needs_no_egress(void **state)
{
	rig_ask(1, EDGE_ASK_DNS, "good.example", 0);
	assert_true(rig_must_answer(1));
	assert_int_equal(rig_msg.fd, -1);
	rig_ask(2, EDGE_ASK_DNS, "bad.example", 0);
	assert_false(rig_must_answer(2));
}

/* Edge would treat a socket here as a violation. */
static void whether_to_connect_needs_no_egress(void **state)
{
	rig_ask(1, EDGE_ASK_CONNECT, "good.example", 443);
	assert_true(rig_must_answer(1));
	assert_true(rig_msg.fd < 0);
	rig_ask(2, EDGE_ASK_CONNECT, "good.example", 22);
	assert_false(rig_must_answer(2));
}

static void asks_wait_for_egress_but_not_long(void **state)
{
	AUTO_CLOSE int a = -1;

	rig_k.egress->lost_ms = clock_mono_ms();
	rig_ask(1, EDGE_ASK_TUNNEL, "good.example", 443);
	rig_must_be_quiet(rig_edge);
	rig_bring_egress_up();
	rig_must_get(rig_egress, EGRESS_OPEN);
	assert_true(rig_must_answer(1));
	a = TAKE_FD(rig_msg.fd);
	egress_kill(&rig_k);
	rig_ask(2, EDGE_ASK_TUNNEL, "good.example", 443);
	rig_must_be_quiet(rig_edge);
	assert_false(rig_must_answer(2));
	assert_non_null(strstr(rig_verdict.reason, "sbx-egress is not running"));
	/* The grace period is over until an egress was up again. */
	rig_ask(3, EDGE_ASK_TUNNEL, "good.example", 443);
	assert_true(rig_run_until(rig_edge, 50));
	assert_false(rig_must_answer(3));
}

static void an_egress_that_dies_takes_its_exchanges_along(void **state)
{
	AUTO_CLOSE int a = -1, b = -1, c = -1, d = -1;
	uint32_t first, second;

	rig_bring_egress_up();
	first = rig_must_open(1, &a, &b);
	assert_int_equal(kill(rig_k.egress->worker.child.pid, SIGKILL), 0);
	(void)rig_run_until(-1, 100);
	assert_false(rig_k.egress->worker.alive);
	assert_int_equal(rig_k.egress->worker.violations, 0);
	assert_int_equal(rig_k.net->n_free, EGRESS_MAX_OPEN);
	rig_bring_egress_up();
	second = rig_must_open(2, &c, &d);
	assert_int_not_equal(first, second);
	/* A number of the dead egress is invalid. */
	assert_int_equal(egress_send_closed(rig_egress, first, 0, 0), 0);
	RIG_MUST_KILL_EGRESS(1);
}

static void egress_gets_a_ticket_for_the_request_of_the_ask(void **state)
{
	const struct edge_ask ask = {.kind = EDGE_ASK_HTTP,
		.host = "good.example",
		.port = 443,
		.method = "PUT",
		.target = "/a?b=c"};
	const struct ticket_request asked = {.method = slice_from_str("PUT"),
		.host = slice_from_str("good.example"),
		.port = 443,
		.path = slice_from_str("/a"),
		.query = slice_from_str("b=c"),
		.has_query = true};
	struct egress_open open;

	rig_bring_egress_up();
	assert_int_equal(edge_send_ask(rig_edge, 1, &ask), 0);
	rig_must_get(rig_egress, EGRESS_OPEN);
	assert_int_equal(egress_get_open(&rig_msg, &open), 0);
	assert_int_equal(open.kind, EGRESS_HTTP);
	assert_true(ticket_is_for(&open.ticket, &asked));
	assert_true(rig_must_answer(1));
}

static void results_are_in_the_log(void **state)
{
	AUTO_CLOSE int a = -1, b = -1;
	struct egress_result result = {EGRESS_REFUSED, "192.0.2.1", "connection refused"};
	uint32_t id;
	struct seen s;

	rig_bring_egress_up();
	id = rig_must_open(1, &a, &b);
	s = rig_last_record();
	assert_string_equal(s.rule, "r1");
	assert_int_equal(s.decision, AUDIT_ALLOW);
	assert_int_equal(egress_send_result(rig_egress, id, &result, -1), 0);
	(void)rig_run_until(-1, 30);
	s = rig_last_record();
	assert_string_equal(s.rule, "<dial failed>");
	assert_int_equal(s.n, 2);
	assert_int_equal(egress_send_closed(rig_egress, id, 1, 2), 0);
	(void)rig_run_until(-1, 30);
	assert_true(rig_k.egress->worker.alive);
	assert_int_equal(rig_k.net->n_free, EGRESS_MAX_OPEN);
}

static void a_lying_egress_is_killed_and_in_the_end_the_sandbox_stops(void **state)
{
	AUTO_CLOSE int a = -1, b = -1;
	struct egress_result result = {.outcome = EGRESS_CONNECTED};
	uint32_t id;

	rig_bring_egress_up();
	id = rig_must_open(1, &a, &b);
	assert_int_equal(egress_send_result(rig_egress, id, &result, -1), 0);
	assert_int_equal(egress_send_result(rig_egress, id, &result, -1), 0); /* twice */
	RIG_MUST_KILL_EGRESS(1);
	assert_int_equal(rig_last_record().kind, AUDIT_KIND_WORKER_VIOLATION);
	rig_bring_egress_up();
	assert_int_equal(egress_send_loaded(rig_egress, 77, ""), 0); /* never sent */
	RIG_MUST_KILL_EGRESS(2);
	rig_put_egress();
	assert_int_equal(egress_send_closed(rig_egress, 0, 0, 0), 0); /* before HELLO */
	RIG_MUST_KILL_EGRESS(3);
	assert_int_equal(rig_k.state.phase, KEEPER_STOPPED);
	assert_non_null(strstr(rig_k.why, "sbx-egress violated its protocol"));
}

static void an_id_in_use_is_a_violation(void **state)
{
	rig_k.egress->lost_ms = clock_mono_ms();
	rig_ask(5, EDGE_ASK_TUNNEL, "good.example", 443);
	rig_ask(6, EDGE_ASK_TUNNEL, "good.example", 443);
	rig_must_be_quiet(rig_edge);
	assert_true(rig_k.edge->worker.alive);
	rig_ask(5, EDGE_ASK_DNS, "good.example", 0);
	RIG_MUST_KILL_EDGE();
	assert_true(asks_is_empty(rig_k.net));
}

static void an_ask_with_a_descriptor_is_a_violation(void **state)
{
	assert_int_equal(ipc_send(rig_edge, EDGE_ASK, 1, slice_of("x", 1), 0), 0);
	RIG_MUST_KILL_EDGE();
}

static void an_ask_that_does_not_decode_is_a_violation(void **state)
{
	assert_int_equal(ipc_send(rig_edge, EDGE_ASK, 1, slice_of("x", 1), -1), 0);
	RIG_MUST_KILL_EDGE();
}

static void an_ask_before_its_time_is_a_violation(void **state)
{
	edge_kill(&rig_k);
	rig_put_edge(EDGE_PHASE_START);
	rig_ask(1, EDGE_ASK_DNS, "good.example", 0);
	RIG_MUST_KILL_EDGE();
}

static void verdicts_of_an_edge_are_not_for_the_keeper(void **state)
{
	assert_int_equal(edge_answer_ask(rig_edge, 1, &rig_verdict, -1), 0);
	RIG_MUST_KILL_EDGE();
}

/* Sends as many as the socket accepts, and reads nothing. */
static uint32_t flood(uint32_t from, uint32_t to)
{
	struct edge_ask a = {.kind = EDGE_ASK_DNS, .host = "bad.example"};

	while (from < to && rig_k.edge->worker.alive) {
		int r = edge_send_ask(rig_edge, from, &a);

		if (r == 0)
			from++;
		else
			assert_true(r == -EAGAIN || r == -EPIPE);
		(void)rig_run_until(-1, 0);
	}
	return from;
}

/* The keeper keeps reading while edge does not: otherwise both would wait forever. */
static void an_edge_that_does_not_read_loses_nothing(void **state)
{
	assert_int_equal(flood(0, EDGE_MAX_ASKS), EDGE_MAX_ASKS);
	(void)rig_run_until(-1, 50);
	assert_true(rig_k.edge->worker.alive);
	assert_true(rig_k.net->pending.used);
	for (uint32_t i = 0; i < EDGE_MAX_ASKS; i++) {
		assert_false(rig_must_answer(i));
		assert_int_equal(rig_verdict.count, i + 1);
	}
	rig_must_be_quiet(rig_edge);
}

static void an_edge_that_never_reads_is_ended(void **state)
{
	(void)flood(0, 8 * EDGE_MAX_ASKS);
	RIG_MUST_KILL_EDGE();
	assert_true(asks_is_empty(rig_k.net));
	assert_false(rig_k.net->pending.used);
}

/* A thousand at the same time, more than the sockets hold: they wait, none is denied. */
static void an_egress_that_is_slow_makes_asks_wait(void **state)
{
	const uint32_t n = 600;
	uint32_t opened = 0, answered = 0;

	rig_bring_egress_up();
	for (uint32_t i = 0; i < n; i++) {
		struct edge_ask a = {.port = 443, .host = "good.example"};

		while (edge_send_ask(rig_edge, i, &a) == -EAGAIN)
			(void)rig_run_until(-1, 1);
	}
	(void)rig_run_until(-1, 50);
	assert_true(rig_k.net->pending.used);
	while (answered < n || opened < n) {
		if (rig_run_until(rig_egress, 1) && ipc_recv(rig_egress, &rig_msg) == 1) {
			assert_int_equal(rig_msg.type, EGRESS_OPEN);
			ipc_msg_done(&rig_msg);
			opened++;
		}
		while (ipc_recv(rig_edge, &rig_msg) == 1) {
			assert_int_equal(edge_get_verdict(&rig_msg, &rig_verdict), 0);
			assert_true(rig_verdict.allowed);
			ipc_msg_done(&rig_msg);
			answered++;
		}
	}
	assert_int_equal(rig_k.net->n_free, EGRESS_MAX_OPEN - n);
}

static void at_most_so_many_are_open(void **state)
{
	rig_bring_egress_up();
	for (uint32_t i = 0; i <= EGRESS_MAX_OPEN; i++) {
		rig_ask(i, EDGE_ASK_TUNNEL, "good.example", 443);
		if (i < EGRESS_MAX_OPEN) {
			rig_must_get(rig_egress, EGRESS_OPEN);
			assert_true(rig_must_answer(i));
		} else {
			assert_false(rig_must_answer(i));
			assert_non_null(strstr(rig_verdict.reason, "too many connections"));
		}
	}
}

/* As if the guest had sent asks without a pause until now. */
static void spend_burst(void)
{
	rig_k.net->spent_us = clock_mono_us() + KEEPER_ASK_BURST * (1000000 / KEEPER_ASK_RATE);
}

static void a_flood_waits_in_its_order(void **state)
{
	const uint32_t n = 400;
	uint64_t began;

	spend_burst();
	began = clock_mono_ms();
	for (uint32_t i = 0; i < n; i++) {
		struct edge_ask a = {.kind = EDGE_ASK_DNS, .host = "bad.example"};

		while (edge_send_ask(rig_edge, i, &a) == -EAGAIN)
			(void)rig_run_until(-1, 1);
	}
	for (uint32_t i = 0; i < n; i++)
		assert_false(rig_must_answer(i));
	/* None was denied for the number, and the total rate was within the limit. */
	assert_true(clock_mono_ms() - began >= n * 1000 / KEEPER_ASK_RATE - KEEPER_ASK_PAUSE_MS);
	assert_true(rig_k.edge->worker.alive);
	assert_int_equal(rig_last_record().n, n);
}

static void a_new_edge_brings_no_new_burst(void **state)
{
	spend_burst();
	edge_kill(&rig_k);
	rig_put_edge(EDGE_PHASE_RUN);
	rig_k.net->spent_us += 200000;
	rig_ask(1, EDGE_ASK_DNS, "good.example", 0);
	rig_must_be_quiet(rig_edge);
	assert_true(rig_must_answer(1));
}

/* Stream ids have this many bits for it: more would not fit. */
static void the_generation_of_a_stream_has_24_bits(void **state)
{
	rig_k.streams[0].kind = &session_stream;
	rig_k.streams[0].gen = 0xffffff;
	edge_kill(&rig_k);
	assert_null(rig_k.streams[0].kind);
	assert_int_equal(rig_k.streams[0].gen, 0);
}

static void a_pause_gives_the_burst_back(void **state)
{
	spend_burst();
	rig_k.net->spent_us -= 1000000; /* a second later */
	for (uint32_t i = 0; i < KEEPER_ASK_RATE / 4; i++) {
		rig_ask(i, EDGE_ASK_DNS, "good.example", 0);
		assert_true(rig_must_answer(i));
	}
	/* None of them had to wait: most of that second is left. */
	assert_true(rig_k.net->spent_us + 500000 <
		    clock_mono_us() + KEEPER_ASK_BURST * (1000000 / KEEPER_ASK_RATE));
}

static size_t count_lines(FILE *f)
{
	size_t n = 0;
	int c;

	rewind(f);
	while ((c = fgetc(f)) != EOF)
		n += c == '\n';
	return n;
}

/* The audit log has a size limit. A line in keeper.log for each denial that does not fit would have
 * no limit. */
static void refusals_do_not_fill_the_log_of_the_keeper(void **state)
{
	FILE *log = tmpfile();
	int err = dup(2);
	size_t n;

	assert_non_null(log);
	record_set_max_bytes(&rig_k, 1);
	assert_int_equal(dup2(fileno(log), 2), 2);
	for (uint32_t i = 0; i < 3 * KEEPER_LOG_LINES; i++) {
		rig_ask(i, EDGE_ASK_AGENT, "", 0); /* this sandbox has no --ssh-agent */
		assert_false(rig_must_answer(i));
	}
	assert_int_equal(dup2(err, 2), 2);
	n = count_lines(log);
	assert_in_range(n, 1, KEEPER_LOG_LINES + KEEPER_LOG_PER_MINUTE);
	(void)fclose(log);
	(void)close(err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(an_allowed_one_joins_edge_and_egress),
		RIG_TEST(a_denied_one_reaches_nobody),
		RIG_TEST(dns_needs_no_egress),
		RIG_TEST(whether_to_connect_needs_no_egress),
		RIG_TEST(asks_wait_for_egress_but_not_long),
		RIG_TEST(an_egress_that_dies_takes_its_exchanges_along),
		RIG_TEST(egress_gets_a_ticket_for_the_request_of_the_ask),
		RIG_TEST(results_are_in_the_log),
		RIG_TEST(a_lying_egress_is_killed_and_in_the_end_the_sandbox_stops),
		RIG_TEST(an_id_in_use_is_a_violation),
		RIG_TEST(an_ask_with_a_descriptor_is_a_violation),
		RIG_TEST(an_ask_that_does_not_decode_is_a_violation),
		RIG_TEST(an_ask_before_its_time_is_a_violation),
		RIG_TEST(verdicts_of_an_edge_are_not_for_the_keeper),
		RIG_TEST(an_edge_that_does_not_read_loses_nothing),
		RIG_TEST(an_edge_that_never_reads_is_ended),
		RIG_TEST(an_egress_that_is_slow_makes_asks_wait),
		RIG_TEST(at_most_so_many_are_open),
		RIG_TEST(a_flood_waits_in_its_order),
		RIG_TEST(a_new_edge_brings_no_new_burst),
		RIG_TEST(the_generation_of_a_stream_has_24_bits),
		RIG_TEST(a_pause_gives_the_burst_back),
		RIG_TEST(refusals_do_not_fill_the_log_of_the_keeper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
