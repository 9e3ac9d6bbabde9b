/* SPDX-License-Identifier: Apache-2.0 */
/* Ids, texts, limits and the one use of an approval, case by case. */
#include "lib/rules/hold/hold.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct holds holds;
static struct hold *hold;
static bool is_new;

static int up(void **state)
{
	hold_init(&holds, 7);
	return 0;
}

static int down(void **state)
{
	hold_done(&holds);
	return 0;
}

static struct hold_text request(uint8_t number)
{
	struct hold_text t = {.effects = "http:delete api.example.com /v1/x\n",
		.rule = "ask http api.example.com/**",
		.preview = ""};

	memset(t.digest, number, sizeof(t.digest));
	return t;
}

static enum hold_result ask(uint8_t number, uint64_t now)
{
	struct hold_text t = request(number);

	return hold_ask(&holds, &t, now, &hold, &is_new);
}

static int answer(const char *id, uint8_t number, bool yes, uint64_t now)
{
	struct hold_text t = request(number);

	return hold_answer(&holds, id, t.digest,
		&(struct hold_decision){.yes = yes, .reason = "not today"}, now);
}

static enum hold_result again(uint8_t number, uint64_t since, uint64_t now)
{
	struct hold_text t = request(number);

	return hold_again(&holds, t.digest, since, now, &hold);
}

static void texts_are_copied(void **state)
{
	char effects[] = "http:get a /\n";
	struct hold_text t = request(1);

	t.effects = effects;
	t.preview = "a\x1b[2J";
	assert_int_equal(hold_ask(&holds, &t, 0, &hold, &is_new), HOLD_WAIT);
	assert_true(is_new);
	memset(effects, 'x', sizeof(effects) - 1);
	assert_string_equal(hold->text.effects, "http:get a /\n");
	assert_string_equal(hold->text.preview, "a\x1b[2J");
	assert_string_equal(hold->text.rule, t.rule);
	assert_ptr_equal(hold_find(&holds, hold->id, 1), hold);
}

static void what_cannot_be_shown_is_not_held(void **state)
{
	static char text[HOLD_MAX_PREVIEW + 2];
	struct hold_text t = request(1);

	memset(text, 'a', HOLD_MAX_EFFECTS + 1);
	t.effects = text;
	assert_int_equal(hold_ask(&holds, &t, 0, &hold, &is_new), HOLD_LONG);
	text[HOLD_MAX_EFFECTS] = '\0';
	assert_int_equal(hold_ask(&holds, &t, 0, &hold, &is_new), HOLD_WAIT);
	t = request(2);
	t.effects = "";
	assert_int_equal(hold_ask(&holds, &t, 0, &hold, &is_new), HOLD_LONG);
	t = request(3);
	memset(text, 'a', sizeof(text) - 1);
	t.preview = text;
	assert_int_equal(hold_ask(&holds, &t, 0, &hold, &is_new), HOLD_LONG);
	t = request(4);
	t.rule = text;
	assert_int_equal(hold_ask(&holds, &t, 0, &hold, &is_new), HOLD_LONG);
}

static void an_approval_is_for_one_request(void **state)
{
	char id[HOLD_ID];

	assert_int_equal(ask(1, 0), HOLD_WAIT);
	memcpy(id, hold->id, sizeof(id));
	assert_int_equal(ask(1, 5), HOLD_WAIT);
	assert_false(is_new);
	assert_string_equal(hold->id, id);
	assert_int_equal(answer(id, 2, true, 6), -ESTALE);
	assert_int_equal(answer("0000", 1, true, 6), -ENOENT);
	assert_int_equal(again(1, 0, 6), HOLD_WAIT);
	assert_int_equal(answer(id, 1, true, 6), 0);
	assert_int_equal(answer(id, 1, true, 6), -EALREADY);
	assert_int_equal(answer(id, 1, false, 6), -EALREADY);
	assert_int_equal(again(1, 0, 7), HOLD_PASS);
	hold_use(hold);
	assert_int_equal(again(1, 5, 7), HOLD_SPENT);
	assert_int_equal(answer(id, 1, true, 7), -ENOENT);
	assert_int_equal(ask(1, 8), HOLD_WAIT);
	assert_true(is_new);
}

static void an_approval_for_a_time_is_for_all_equal_requests(void **state)
{
	const struct hold_decision hour = {.yes = true, .for_ms = HOLD_HOUR_MS};
	struct hold_text t = request(1);

	assert_int_equal(ask(1, 0), HOLD_WAIT);
	assert_int_equal(hold_answer(&holds, hold->id, t.digest, &hour, 0), 0);
	for (uint64_t now = 0; now < 3; now++) {
		assert_int_equal(ask(1, now), HOLD_PASS);
		hold_use(hold);
	}
	assert_int_equal(again(1, 0, HOLD_HOUR_MS - 1), HOLD_PASS);
	assert_int_equal(ask(2, 5), HOLD_WAIT);
	assert_int_equal(ask(1, HOLD_HOUR_MS), HOLD_WAIT);
	assert_true(is_new);
	assert_int_equal(hold_answer(&holds, hold->id, t.digest, &hour, HOLD_HOUR_MS), 0);
	hold_on_policy(&holds);
	assert_int_equal(ask(1, HOLD_HOUR_MS + 1), HOLD_WAIT);
}

static void an_approval_without_end_lasts_until_a_new_policy(void **state)
{
	const struct hold_decision always = {.yes = true, .for_ms = HOLD_NO_END};
	const uint64_t late = UINT64_MAX - 1;
	struct hold_text t = request(1);

	assert_int_equal(ask(1, 5), HOLD_WAIT);
	assert_int_equal(hold_answer(&holds, hold->id, t.digest, &always, 5), 0);
	assert_int_equal(hold_next_ms(&holds), UINT64_MAX);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(ask(1, 5 + i), HOLD_PASS);
		hold_use(hold);
	}
	assert_false(hold_expire(&holds, late));
	assert_int_equal(again(1, 5, late), HOLD_PASS);
	assert_int_equal(ask(2, 6), HOLD_WAIT);
	hold_on_policy(&holds);
	assert_int_equal(ask(1, 7), HOLD_WAIT);
	assert_true(is_new);
}

static void approvals_without_end_fill_the_table(void **state)
{
	const struct hold_decision always = {.yes = true, .for_ms = HOLD_NO_END};

	hold_limits(&holds, HOLD_MOST_OPEN, HOLD_MOST_HOUR);
	for (uint8_t i = 0; i < HOLD_MAX; i++) {
		struct hold_text t = request(i);

		assert_int_equal(ask(i, 0), HOLD_WAIT);
		assert_int_equal(hold_answer(&holds, hold->id, t.digest, &always, 0), 0);
	}
	assert_int_equal(ask(HOLD_MAX, HOLD_HOUR_MS), HOLD_CROWDED);
	assert_int_equal(ask(0, HOLD_HOUR_MS), HOLD_PASS);
	hold_on_policy(&holds);
	assert_int_equal(ask(HOLD_MAX, HOLD_HOUR_MS), HOLD_WAIT);
}

static void a_request_waits_so_long_and_an_approval_no_longer_than_that(void **state)
{
	char id[HOLD_ID];

	assert_int_equal(ask(1, 0), HOLD_WAIT);
	memcpy(id, hold->id, sizeof(id));
	assert_int_equal(again(1, 0, HOLD_INLINE_MS - 1), HOLD_WAIT);
	assert_int_equal(again(1, 0, HOLD_INLINE_MS), HOLD_PENDING);
	assert_string_equal(hold->id, id);
	assert_int_equal(answer(id, 1, true, HOLD_OPEN_MS), -ENOENT);
	assert_int_equal(answer(id, 1, true, HOLD_OPEN_MS - 1), 0);
	assert_int_equal(ask(1, HOLD_OPEN_MS - 2 + HOLD_USE_MS), HOLD_PASS);
	assert_int_equal(hold_next_ms(&holds), HOLD_OPEN_MS - 1 + HOLD_USE_MS);
	assert_int_equal(ask(1, HOLD_OPEN_MS - 1 + HOLD_USE_MS), HOLD_WAIT);
	assert_true(is_new);
}

static void a_no_is_kept_and_a_policy_ends_both(void **state)
{
	char id[HOLD_ID];

	assert_int_equal(ask(1, 0), HOLD_WAIT);
	assert_int_equal(answer(hold->id, 1, false, 0), 0);
	assert_int_equal(ask(1, 1), HOLD_NO);
	assert_string_equal(hold->reason, "not today");
	assert_int_equal(ask(2, 1), HOLD_WAIT);
	assert_int_equal(answer(hold->id, 2, true, 1), 0);
	assert_int_equal(ask(3, 1), HOLD_WAIT);
	memcpy(id, hold->id, sizeof(id));
	hold_on_policy(&holds);
	assert_int_equal(again(1, 0, 2), HOLD_SPENT);
	assert_int_equal(again(2, 0, 2), HOLD_SPENT);
	assert_int_equal(again(3, 1, 2), HOLD_WAIT);
	assert_string_equal(hold->id, id);
}

static void so_many_and_no_more(void **state)
{
	for (uint8_t i = 0; i < HOLD_DEFAULT_OPEN; i++)
		assert_int_equal(ask(i, i), HOLD_WAIT);
	assert_int_equal(ask(100, 9), HOLD_CROWDED);
	assert_null(hold);
	assert_int_equal(ask(0, 9), HOLD_WAIT);
	hold_limits(&holds, 1000, 6);
	assert_int_equal(holds.max_open, HOLD_MOST_OPEN);
	assert_int_equal(ask(100, 9), HOLD_WAIT);
	assert_int_equal(ask(101, HOLD_HOUR_MS - 1), HOLD_OFTEN);
	assert_int_equal(ask(101, HOLD_HOUR_MS), HOLD_WAIT);
	assert_int_equal(ask(102, HOLD_HOUR_MS), HOLD_OFTEN);
	hold_limits(&holds, 5, 0);
	assert_int_equal(ask(102, HOLD_HOUR_MS * 9), HOLD_OFTEN);
}

static void ids_are_typed_in_any_case(void **state)
{
	char id[HOLD_ID];

	assert_int_equal(hold_id_parse("k7qd", id), 0);
	assert_string_equal(id, "K7QD");
	assert_int_equal(hold_id_parse("oOil", id), 0);
	assert_string_equal(id, "0011");
	assert_int_equal(hold_id_parse("", id), -EINVAL);
	assert_int_equal(hold_id_parse("K7Q", id), -EINVAL);
	assert_int_equal(hold_id_parse("K7QDX", id), -EINVAL);
	assert_int_equal(hold_id_parse("K7QU", id), -EINVAL);
	assert_int_equal(hold_id_parse("K7Q/", id), -EINVAL);
}

static void an_id_in_use_is_not_given_again(void **state)
{
	char id[HOLD_ID];

	assert_int_equal(ask(1, 0), HOLD_WAIT);
	memcpy(id, hold->id, sizeof(id));
	holds.seed = 7; /* the numbers begin again */
	assert_int_equal(ask(2, 0), HOLD_WAIT);
	assert_string_not_equal(hold->id, id);
}

static struct hold *withdraw(uint8_t number, uint64_t now)
{
	struct hold_text t = request(number);

	return hold_withdraw(&holds, t.digest, now);
}

static void a_withdrawn_one_is_explained_and_not_found(void **state)
{
	struct hold *first;
	char id[HOLD_ID];

	assert_null(withdraw(1, 0));
	assert_int_equal(ask(1, 0), HOLD_WAIT);
	first = hold;
	memcpy(id, hold->id, sizeof(id));
	assert_ptr_equal(withdraw(1, 5), first);
	assert_null(withdraw(1, 5));
	assert_int_equal(answer(id, 2, true, 6), -ESTALE);
	assert_int_equal(answer(id, 1, true, 6), -ECANCELED);
	assert_int_equal(answer(id, 1, false, 6), -ECANCELED);
	assert_int_equal(again(1, 0, 6), HOLD_SPENT);
	assert_int_equal(ask(1, 7), HOLD_WAIT);
	assert_true(is_new);
	assert_string_not_equal(hold->id, id);
	assert_int_equal(answer(hold->id, 1, true, 8), 0);
	assert_null(withdraw(1, 9)); /* an approval is not withdrawn */
	assert_int_equal(answer(id, 1, true, 5 + HOLD_USE_MS), -ENOENT);
}

static void withdrawn_ones_make_room(void **state)
{
	char id[HOLD_ID];

	hold_limits(&holds, HOLD_MOST_OPEN, HOLD_MOST_HOUR);
	for (uint8_t i = 0; i < HOLD_MAX; i++) {
		assert_int_equal(ask(i, i), HOLD_WAIT);
		if (i == 1)
			memcpy(id, hold->id, sizeof(id));
		if (i == 1 || i >= HOLD_MOST_OPEN)
			assert_non_null(withdraw(i, i));
		else
			assert_int_equal(answer(hold->id, i, true, i), 0);
	}
	assert_int_equal(ask(200, HOLD_MAX), HOLD_WAIT);
	assert_null(hold_find(&holds, id, HOLD_MAX)); /* the oldest one */
	assert_int_equal(ask(0, HOLD_MAX), HOLD_PASS);
}

static void ids_do_not_repeat_soon(void **state)
{
	static char seen[1000][HOLD_ID];
	char parsed[HOLD_ID];

	for (size_t i = 0; i < 1000; i++) {
		assert_int_equal(ask(1, i * HOLD_HOUR_MS), HOLD_WAIT);
		assert_int_equal(hold_id_parse(hold->id, parsed), 0);
		assert_string_equal(parsed, hold->id);
		memcpy(seen[i], hold->id, HOLD_ID);
		for (size_t j = i > 20 ? i - 20 : 0; j < i; j++)
			assert_string_not_equal(seen[j], seen[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(texts_are_copied, up, down),
		cmocka_unit_test_setup_teardown(what_cannot_be_shown_is_not_held, up, down),
		cmocka_unit_test_setup_teardown(an_approval_is_for_one_request, up, down),
		cmocka_unit_test_setup_teardown(
			an_approval_for_a_time_is_for_all_equal_requests, up, down),
		cmocka_unit_test_setup_teardown(
			an_approval_without_end_lasts_until_a_new_policy, up, down),
		cmocka_unit_test_setup_teardown(approvals_without_end_fill_the_table, up, down),
		cmocka_unit_test_setup_teardown(
			a_request_waits_so_long_and_an_approval_no_longer_than_that, up, down),
		cmocka_unit_test_setup_teardown(a_no_is_kept_and_a_policy_ends_both, up, down),
		cmocka_unit_test_setup_teardown(so_many_and_no_more, up, down),
		cmocka_unit_test_setup_teardown(ids_are_typed_in_any_case, up, down),
		cmocka_unit_test_setup_teardown(an_id_in_use_is_not_given_again, up, down),
		cmocka_unit_test_setup_teardown(
			a_withdrawn_one_is_explained_and_not_found, up, down),
		cmocka_unit_test_setup_teardown(withdrawn_ones_make_room, up, down),
		cmocka_unit_test_setup_teardown(ids_do_not_repeat_soon, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
