/* SPDX-License-Identifier: Apache-2.0 */
#include "audit_fixture.h"

#include "lib/rules/audit/audit_chain.h"

static struct fixture f;
static char *text, *kept;
static size_t n_text, n_kept;

static int up(void **state)
{
	AUTO_FREE char *path = NULL, *kept_path = NULL;
	struct audit *a;

	fixture_up(&f);
	a = fixture_open(&f, FIXTURE_ID);
	fixture_fill(a, 25);
	assert_int_equal(audit_close(a, NULL), 0);
	path = fixture_segment(&f, FIXTURE_ID, 1);
	kept_path = xasprintf("%s/heads/" FIXTURE_ID, f.dir);
	assert_int_equal(file_load(path, 1 << 20, &text, &n_text, NULL), 0);
	assert_int_equal(file_load(kept_path, 1 << 20, &kept, &n_kept, NULL), 0);
	return 0;
}

static int down(void **state)
{
	free(text);
	free(kept);
	fixture_down(&f);
	return 0;
}

static struct audit_expect expect_own(void)
{
	return (struct audit_expect){.pub = audit_key_pub(f.key),
		.sandbox = FIXTURE_ID,
		.kept_head = slice_of(kept, n_kept)};
}

static int eat_in_pieces(struct audit_chain *c, size_t piece)
{
	int r = audit_chain_segment(c, 1);

	for (size_t at = 0; at < n_text && r == 0; at += piece)
		r = audit_chain_eat(c, slice_of(text + at, MIN(piece, n_text - at)));
	return r == 0 ? audit_chain_end(c) : r;
}

static void pieces_of_any_size_say_the_same(void **state)
{
	static const size_t pieces[] = {1, 2, 7, 100, 333, 4096, 1 << 20};

	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		AUTO_CHAIN struct audit_chain c;
		struct audit_expect e = expect_own();

		audit_chain_init(&c, &e);
		assert_int_equal(eat_in_pieces(&c, pieces[i]), 0);
		assert_int_equal(c.report.n_records, 30);
		assert_int_equal(c.report.seq, 30);
		assert_int_equal(c.offset, n_text);
	}
}

static void the_first_bad_record_is_named_with_its_place(void **state)
{
	for (size_t piece = 1; piece < 3000; piece += 2000) {
		AUTO_CHAIN struct audit_chain c;
		struct audit_expect e = expect_own();
		char *second = (char *)memchr(text, '\n', n_text) + 1;

		second[10] ^= 1;
		audit_chain_init(&c, &e);
		assert_int_equal(eat_in_pieces(&c, piece), -EBADMSG);
		assert_int_equal(c.report.seq, 2);
		assert_int_equal(c.report.segment, 1);
		assert_int_equal(c.report.offset, second - text);
		assert_int_equal(c.report.n_records, 1);
		/* It stays so, whatever comes. */
		assert_int_equal(audit_chain_eat(&c, slice_of(text, n_text)), -EBADMSG);
		assert_int_equal(audit_chain_segment(&c, 2), -EBADMSG);
		assert_int_equal(audit_chain_end(&c), -EBADMSG);
		assert_int_equal(c.report.seq, 2);
		second[10] ^= 1;
	}
}

static int verify_with(struct audit_expect e, struct audit_report *rep)
{
	AUTO_CHAIN struct audit_chain c;
	int r;

	audit_chain_init(&c, &e);
	r = audit_chain_segment(&c, audit_chain_first(&c));
	if (r >= 0)
		r = audit_chain_eat(&c, slice_of(text, n_text));
	if (r >= 0)
		r = audit_chain_end(&c);
	*rep = c.report;
	return r;
}

static void the_kept_head_must_be_there_and_good(void **state)
{
	struct audit_expect e = expect_own();
	struct audit_report rep;

	e.kept_head = (struct slice){0};
	assert_int_equal(verify_with(e, &rep), -EBADMSG);
	assert_int_equal(rep.bad, AUDIT_BAD_KEPT_HEAD);
	e.kept_head = slice_of(text, (size_t)((char *)memchr(text, '\n', n_text) - text) + 1);
	assert_int_equal(verify_with(e, &rep), -EBADMSG);
	assert_int_equal(rep.bad, AUDIT_BAD_KEPT_HEAD);
	e = expect_own();
	kept[8] ^= 1;
	assert_int_equal(verify_with(e, &rep), -EBADMSG);
	assert_int_equal(rep.bad, AUDIT_BAD_KEPT_HEAD);
	e.flags = AUDIT_CHAIN_ALONE;
	assert_int_equal(verify_with(e, &rep), 0);
}

static void another_sandbox_is_foreign(void **state)
{
	struct audit_expect e = expect_own();
	struct audit_report rep;

	e.sandbox = "ffffffffffff";
	assert_int_equal(verify_with(e, &rep), -EBADMSG);
	assert_int_equal(rep.bad, AUDIT_FOREIGN);
	assert_int_equal(rep.seq, 1);
	e.sandbox = NULL;
	assert_int_equal(verify_with(e, &rep), 0);
}

static int stop_at_5(void *arg, const struct audit_record *rec, struct slice line)
{
	assert_int_equal(line.p[line.n - 1], '\n');
	*(uint64_t *)arg = rec->seq;
	return rec->seq == 5 ? -ECANCELED : 0;
}

static void the_callback_may_end_it(void **state)
{
	struct audit_expect e = expect_own();
	struct audit_report rep;
	uint64_t seen = 0;

	e.fn = stop_at_5;
	e.arg = &seen;
	assert_int_equal(verify_with(e, &rep), -ECANCELED);
	assert_int_equal(seen, 5);
	assert_int_equal(rep.bad, AUDIT_OK);
}

static void plain_reading_judges_the_form_only(void **state)
{
	struct audit_expect e = {.flags = AUDIT_CHAIN_PLAIN};
	struct audit_report rep;
	char *at = strstr(text, "h7.example");

	at[1] = '8';
	assert_int_equal(verify_with(e, &rep), 0);
	assert_int_equal(rep.n_records, 30);
	at[1] = '\n';
	assert_int_equal(verify_with(e, &rep), -EBADMSG);
	assert_int_equal(rep.bad, AUDIT_BAD_FORM);
}

static void a_line_without_an_end_stops(void **state)
{
	AUTO_CHAIN struct audit_chain c;
	struct audit_expect e = expect_own();
	static uint8_t endless[AUDIT_MAX_RECORD + 1];

	audit_chain_init(&c, &e);
	assert_int_equal(audit_chain_segment(&c, 1), 0);
	assert_int_equal(audit_chain_eat(&c, slice_of(endless, sizeof(endless))), -EBADMSG);
	assert_int_equal(c.report.bad, AUDIT_BAD_FORM);
}

static void segments_come_in_order(void **state)
{
	AUTO_CHAIN struct audit_chain c;
	struct audit_expect e = expect_own();

	audit_chain_init(&c, &e);
	assert_int_equal(audit_chain_segment(&c, 2), -EBADMSG);
	assert_int_equal(c.report.bad, AUDIT_NO_SEGMENT);
	assert_int_equal(c.report.segment, 1);
	assert_int_equal(c.report.seq, 1);
}

static void every_fault_has_words(void **state)
{
	for (int i = 1; i < AUDIT_N_BAD; i++) {
		assert_true(strlen(audit_bad_text((enum audit_bad)i)) > 10);
		assert_true(strlen(audit_bad_name((enum audit_bad)i)) > 2);
	}
	assert_string_equal(audit_bad_text(AUDIT_N_BAD), "");
	assert_string_equal(audit_bad_name(AUDIT_N_BAD), "");
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, up, down)
	const struct CMUnitTest tests[] = {
		TEST(pieces_of_any_size_say_the_same),
		TEST(the_first_bad_record_is_named_with_its_place),
		TEST(the_kept_head_must_be_there_and_good),
		TEST(another_sandbox_is_foreign),
		TEST(the_callback_may_end_it),
		TEST(plain_reading_judges_the_form_only),
		TEST(a_line_without_an_end_stops),
		TEST(segments_come_in_order),
		cmocka_unit_test(every_fault_has_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
