/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of sbx-clerk-git and sbx-clerk at their limits, and what must not decode. */
#include "lib/rules/clerk/clerk_call.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
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

static void receive(int sent)
{
	assert_int_equal(sent, 0);
	ipc_msg_done(&msg);
	assert_int_equal(ipc_recv(sock[1], &msg), 1);
}

static void the_longest_texts_arrive(void **state)
{
	static struct clerk_judged in, out;
	static struct clerk_decided decided, got;
	struct clerk_open open = {.paths = true, .max_bytes = 7, .wants = "accept"}, opened = {0};
	char named[EDGE_MAX_NAMED], back[EDGE_MAX_NAMED];

	memset(in.preview, '\xff', CLERK_MAX_PREVIEW);
	memset(in.text, 't', sizeof(in.text) - 1);
	in.is_unknown = true;
	in.commands[3] = 9;
	receive(clerk_send_judged(sock[0], &in));
	assert_int_equal(clerk_get_judged(&msg, &out), 0);
	assert_memory_equal(&in, &out, sizeof(in));
	memset(decided.report, 'r', sizeof(decided.report) - 1);
	memset(decided.why, 'w', sizeof(decided.why) - 1);
	receive(clerk_answer_judged(sock[0], &decided, -1));
	assert_int_equal(clerk_get_decided(&msg, &got), 0);
	assert_memory_equal(&decided, &got, sizeof(got));
	receive(clerk_ask_open(sock[0], &open, sock[0]));
	assert_int_equal(clerk_get_open(&msg, &opened), 0);
	assert_memory_equal(&open, &opened, sizeof(open));
	memset(named, 'n', sizeof(named) - 1);
	named[sizeof(named) - 1] = '\0';
	receive(clerk_send_want(sock[0], named));
	assert_int_equal(clerk_get_want(&msg, back), 0);
	assert_string_equal(named, back);
}

static struct slice slice_filled(uint8_t *buf, size_t n)
{
	memset(buf, 'x', n);
	return slice_of(buf, n);
}

static void put(struct wr *wr, enum clerk_verb verb, size_t n_ref, size_t n_path)
{
	static uint8_t ref[CLERK_MAX_REF + 1], path[CLERK_MAX_PATH + 1];
	const struct clerk_effect e = {
		.verb = verb, .ref = slice_filled(ref, n_ref), .path = slice_filled(path, n_path)};

	clerk_put_effect(wr, &e);
	assert_false(wr->bad);
}

static void records_of_effects_arrive_in_their_order(void **state)
{
	uint8_t buf[IPC_MAX_BODY];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct clerk_effect e;
	struct slice records;
	size_t n;

	put(&wr, CLERK_TAG, CLERK_MAX_REF, CLERK_MAX_PATH);
	put(&wr, CLERK_PUSH, 1, 0);
	receive(clerk_send_effects(sock[0], slice_of(buf, wr.n)));
	assert_int_equal(clerk_get_effects(&msg, &records, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(clerk_next_effect(&records, &e), 1);
	assert_int_equal(e.verb, CLERK_TAG);
	assert_int_equal(e.path.n, CLERK_MAX_PATH);
	assert_int_equal(clerk_next_effect(&records, &e), 1);
	assert_int_equal(e.verb, CLERK_PUSH);
	assert_int_equal(e.path.n, 0);
	assert_int_equal(clerk_next_effect(&records, &e), 0);
}

static void must_not_decode(const uint8_t *p, size_t n)
{
	struct slice records;
	size_t n_records;

	receive(clerk_send_effects(sock[0], slice_of(p, n)));
	assert_int_equal(clerk_get_effects(&msg, &records, &n_records), -EBADMSG);
}

static void bad_records_do_not_decode(void **state)
{
	uint8_t buf[IPC_MAX_BODY] = {0};
	struct wr wr = wr_init(buf, sizeof(buf));

	must_not_decode(buf, 0);
	put(&wr, CLERK_PUSH, 4, 5);
	must_not_decode(buf, wr.n - 1);
	buf[wr.n] = 0;
	must_not_decode(buf, wr.n + 1);
	buf[0] = CLERK_N_VERBS;
	must_not_decode(buf, wr.n);
	buf[0] = CLERK_PUSH;
	buf[1] = 1; /* and there is a path */
	must_not_decode(buf, wr.n);
	buf[1] = 0;
	buf[4] = 0; /* in the ref */
	must_not_decode(buf, wr.n);
	wr = wr_init(buf, sizeof(buf));
	put(&wr, CLERK_PUSH, 0, 0);
	must_not_decode(buf, wr.n);
	wr = wr_init(buf, sizeof(buf));
	put(&wr, CLERK_PUSH, CLERK_MAX_REF + 1, 0);
	must_not_decode(buf, wr.n);
	wr = wr_init(buf, sizeof(buf));
	put(&wr, CLERK_PUSH, 1, CLERK_MAX_PATH + 1);
	must_not_decode(buf, wr.n);
}

static void a_socket_comes_only_with_a_yes(void **state)
{
	struct clerk_decided yes = {.allowed = true}, no = {.why = "no"}, got;
	struct clerk_line given = {.given = true}, line;

	receive(clerk_answer_judged(sock[0], &yes, sock[0]));
	assert_int_equal(clerk_get_decided(&msg, &got), 0);
	receive(clerk_answer_judged(sock[0], &yes, -1));
	assert_int_equal(clerk_get_decided(&msg, &got), -EBADMSG);
	receive(clerk_answer_judged(sock[0], &no, sock[0]));
	assert_int_equal(clerk_get_decided(&msg, &got), -EBADMSG);
	receive(clerk_answer_want(sock[0], &given, -1));
	assert_int_equal(clerk_get_line(&msg, &line), -EBADMSG);
}

static void an_unknown_push_has_a_reason(void **state)
{
	static struct clerk_judged in = {.is_unknown = true}, out;

	receive(clerk_send_judged(sock[0], &in));
	assert_int_equal(clerk_get_judged(&msg, &out), -EBADMSG);
}

static void the_order_of_messages_is_fixed(void **state)
{
	assert_true(chan_allows(&clerk_chan, CLERK_PHASE_READ, CHAN_FROM_WORKER, CLERK_WANT));
	assert_true(chan_allows(&clerk_chan, CLERK_PHASE_READ, CHAN_FROM_KEEPER, CLERK_DECIDED));
	assert_false(chan_allows(&clerk_chan, CLERK_PHASE_JUDGED, CHAN_FROM_WORKER, CLERK_WANT));
	assert_false(chan_allows(&clerk_chan, CLERK_PHASE_JUDGED, CHAN_FROM_WORKER, CLERK_EFFECTS));
	assert_false(chan_allows(&clerk_chan, CLERK_PHASE_JUDGED, CHAN_FROM_WORKER, CLERK_JUDGED));
	assert_false(chan_allows(&clerk_chan, CLERK_PHASE_SEND, CHAN_FROM_WORKER, CLERK_JUDGED));
	assert_false(chan_allows(&clerk_chan, CLERK_PHASE_SEND, CHAN_FROM_WORKER, CLERK_WANT));
	assert_false(chan_allows(&clerk_chan, CLERK_PHASE_END, CHAN_FROM_WORKER, CLERK_DONE));
	assert_int_equal(
		chan_after(&clerk_chan, CLERK_PHASE_READ, CLERK_JUDGED), CLERK_PHASE_JUDGED);
}

static void must_not_be_calls(const uint8_t *p, size_t n)
{
	struct slice records;
	size_t n_records;

	receive(clerk_send_effects(sock[0], slice_of(p, n)));
	assert_int_equal(clerk_get_calls(&msg, &records, &n_records), -EBADMSG);
}

static void put_call(struct wr *wr, enum clerk_call_type type, size_t field, size_t object)
{
	static char text[CLERK_MAX_OBJECT + 1];
	struct clerk_call call = {type, slice_of(text, field), slice_of(text, object)};

	memset(text, 'a', sizeof(text));
	clerk_put_call(wr, &call);
	assert_false(wr->bad);
}

static void calls_arrive_within_their_limits(void **state)
{
	static const struct {
		uint8_t type;
		size_t field, object;
	} bad[] = {{CLERK_QUERY, 0, 1}, {CLERK_QUERY, 1, 0}, {CLERK_UNKNOWN, 1, 0},
		{CLERK_UNKNOWN, 0, 1}, {CLERK_UNKNOWN + 1, 0, 0},
		{CLERK_MUTATION, CLERK_MAX_FIELD + 1, 1}, {CLERK_QUERY, 1, CLERK_MAX_OBJECT + 1}};
	uint8_t buf[4000];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct clerk_call call;
	struct slice records;
	size_t n;

	put_call(&wr, CLERK_MUTATION, CLERK_MAX_FIELD, CLERK_MAX_OBJECT);
	put_call(&wr, CLERK_UNKNOWN, 0, 0);
	receive(clerk_send_effects(sock[0], slice_of(buf, wr.n)));
	assert_int_equal(clerk_get_calls(&msg, &records, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(clerk_next_call(&records, &call), 1);
	assert_int_equal(call.object.n, CLERK_MAX_OBJECT);
	assert_int_equal(clerk_next_call(&records, &call), 1);
	assert_int_equal(call.type, CLERK_UNKNOWN);
	assert_int_equal(clerk_next_call(&records, &call), 0);
	must_not_be_calls(buf, wr.n - 1);
	must_not_be_calls(buf, 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		wr = wr_init(buf, sizeof(buf));
		put_call(&wr, bad[i].type, bad[i].field, bad[i].object);
		must_not_be_calls(buf, wr.n);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_longest_texts_arrive),
		TEST(records_of_effects_arrive_in_their_order),
		TEST(bad_records_do_not_decode),
		TEST(calls_arrive_within_their_limits),
		TEST(a_socket_comes_only_with_a_yes),
		TEST(an_unknown_push_has_a_reason),
		TEST(the_order_of_messages_is_fixed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
