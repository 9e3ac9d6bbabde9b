/* SPDX-License-Identifier: Apache-2.0 */
#include "audit_fixture.h"
#include "lib/rules/audit/audit_cut.h"

static struct fixture f;

static int up(void **state)
{
	fixture_up(&f);
	return 0;
}

static int down(void **state)
{
	fixture_down(&f);
	return 0;
}

/* A head of the log, which anybody can copy, is not a cut. */
static void a_head_is_not_taken_for_a_cut(void **state)
{
	static const char text[] = "{\"seq\":1";
	uint8_t sig[AUDIT_SIG_LEN];

	assert_int_equal(audit_sign(f.key, slice_from_str(text), sig), 0);
	assert_int_equal(audit_check(audit_key_pub(f.key), slice_from_str(text), sig), 0);
	assert_int_equal(
		audit_check_cut(audit_key_pub(f.key), slice_from_str(text), sig), -EBADMSG);
	assert_int_equal(audit_sign_cut(f.key, slice_from_str(text), sig), 0);
	assert_int_equal(audit_check(audit_key_pub(f.key), slice_from_str(text), sig), -EBADMSG);
}

static void the_lines_of_a_cut_have_one_form(void **state)
{
	static const char *const bad[] = {"", "x", "{}", AUDIT_CUT_BEGIN, AUDIT_CUT_BEGIN "}\n"};
	struct audit_cut cut = {
		.sandbox = FIXTURE_ID, .segment = 2, .seq = 7, .until_ms = 5, .time_ms = 6};
	struct audit_cut again;
	uint8_t buf[AUDIT_MAX_CUT], twice[AUDIT_MAX_CUT];
	struct wr wr = wr_init(buf, sizeof(buf)), other = wr_init(twice, sizeof(twice));
	AUTO_FREE char *text = NULL, *longer = NULL;
	ptrdiff_t at;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(audit_cut_decode(slice_from_str(bad[i]), &again), -EBADMSG);
	assert_int_equal(audit_cut_encode(&wr, &cut, f.key), 0);
	assert_int_equal(audit_cut_check(slice_of(buf, wr.n), audit_key_pub(f.key), &again), 0);
	assert_string_equal(again.sandbox, FIXTURE_ID);
	assert_true(again.segment == 2 && again.seq == 7 && again.until_ms == 5);
	assert_int_equal(again.time_ms, 6);
	assert_int_equal(audit_cut_encode(&other, &again, f.key), 0);
	assert_true(slice_eq(slice_of(buf, wr.n), slice_of(twice, other.n)));
	for (size_t i = 0; i < wr.n; i++)
		assert_int_equal(audit_cut_decode(slice_of(buf, i), &again), -EBADMSG);
	/* A number with a zero in front is another form of it. */
	text = xstrndup((const char *)buf, wr.n);
	at = strstr(text, "\"seq\":7") - text + 6;
	longer = xasprintf("%.*s0%s", (int)at, text, text + at);
	assert_int_equal(audit_cut_decode(slice_from_str(longer), &again), -EBADMSG);
}

/* A log that begins with its first segment was not pruned. */
static void a_cut_leaves_out_a_segment_and_a_record(void **state)
{
	struct audit_cut cut = {
		.sandbox = FIXTURE_ID, .segment = 1, .seq = 7, .until_ms = 5, .time_ms = 6};
	struct audit_cut again;
	uint8_t buf[AUDIT_MAX_CUT];
	struct wr wr = wr_init(buf, sizeof(buf));

	assert_int_equal(audit_cut_encode(&wr, &cut, f.key), 0);
	assert_int_equal(audit_cut_decode(slice_of(buf, wr.n), &again), -EBADMSG);
	cut.segment = 2;
	cut.seq = 0;
	wr = wr_init(buf, sizeof(buf));
	assert_int_equal(audit_cut_encode(&wr, &cut, f.key), 0);
	assert_int_equal(audit_cut_decode(slice_of(buf, wr.n), &again), -EBADMSG);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, up, down)
	const struct CMUnitTest tests[] = {
		TEST(a_head_is_not_taken_for_a_cut),
		TEST(the_lines_of_a_cut_have_one_form),
		TEST(a_cut_leaves_out_a_segment_and_a_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
