/* SPDX-License-Identifier: Apache-2.0 */
#include "audit_fixture.h"

#include "lib/rules/audit/audit_read.h"

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

static int count(void *arg, const struct audit_record *rec, struct slice line)
{
	uint64_t *n = arg;

	assert_int_equal(rec->seq, *n + 1);
	*n = rec->seq;
	return 0;
}

static struct audit_reader *must_open(uint64_t *n, unsigned flags)
{
	struct audit_expect e = {
		.pub = audit_key_pub(f.key), .flags = flags, .fn = count, .arg = n};
	struct audit_reader *rd = NULL;

	assert_int_equal(audit_reader_open(f.dir, FIXTURE_ID, &e, &rd, NULL), 0);
	return rd;
}

/* Over segments that begin while it reads, each record once and in order. */
static void a_follower_sees_every_record_once(void **state)
{
	struct audit *a;
	struct audit_reader *rd;
	uint64_t n = 0;

	f.segment_bytes = 3000;
	a = fixture_open(&f, FIXTURE_ID);
	rd = must_open(&n, 0);
	assert_int_equal(audit_reader_pump(rd, NULL), 0);
	assert_int_equal(n, 2);
	for (int i = 0; i < 60; i++) {
		fixture_fill(a, 1 + (unsigned)i % 3);
		assert_int_equal(audit_reader_pump(rd, NULL), 0);
		assert_int_equal(n, a->tip.next_seq - 1);
	}
	assert_true(a->segment > 3);
	assert_int_equal(audit_close(a, NULL), 0);
	assert_int_equal(audit_reader_pump(rd, NULL), 0);
	assert_int_equal(audit_reader_report(rd)->n_unsigned, 0);
	audit_reader_close(rd);
}

static void half_a_record_waits_for_the_other(void **state)
{
	struct audit *a = fixture_open(&f, FIXTURE_ID);
	struct audit_reader *rd;
	AUTO_FREE char *path = fixture_segment(&f, FIXTURE_ID, 1), *text = NULL;
	uint64_t n = 0;
	size_t len = 0;

	fixture_fill(a, 1);
	assert_int_equal(audit_close(a, NULL), 0);
	assert_int_equal(file_load(path, 1 << 20, &text, &len, NULL), 0);
	assert_int_equal(truncate(path, (off_t)len - 5), 0);
	rd = must_open(&n, AUDIT_CHAIN_PLAIN);
	assert_int_equal(audit_reader_pump(rd, NULL), 0);
	assert_int_equal(n, 3);
	fixture_soil(&f, 1, text + len - 5, 5);
	assert_int_equal(audit_reader_pump(rd, NULL), 0);
	assert_int_equal(n, 4);
	audit_reader_close(rd);
}

static int refuse(void *arg, const struct audit_record *rec, struct slice line)
{
	return -ECANCELED;
}

static void a_reader_that_was_ended_stays_so(void **state)
{
	struct audit_expect e = {.flags = AUDIT_CHAIN_PLAIN, .fn = refuse};
	struct audit_reader *rd = NULL;

	assert_int_equal(audit_close(fixture_open(&f, FIXTURE_ID), NULL), 0);
	assert_int_equal(audit_reader_open(f.dir, FIXTURE_ID, &e, &rd, NULL), 0);
	assert_int_equal(audit_reader_pump(rd, NULL), -ECANCELED);
	assert_int_equal(audit_reader_pump(rd, NULL), -ESHUTDOWN);
	audit_reader_close(rd);
}

static void a_log_that_never_was_is_not_a_bad_one(void **state)
{
	struct audit_report rep;
	struct err err = {0};

	assert_int_equal(
		audit_verify(f.dir, "ffffffffffff", audit_key_pub(f.key), NULL, &rep, &err),
		-ENOENT);
	assert_non_null(strstr(err.text, "the audit log of ffffffffffff does not exist"));
	assert_int_equal(
		audit_verify(f.dir, "../x", audit_key_pub(f.key), NULL, &rep, &err), -ENOENT);
}

static void a_log_is_verified_while_it_is_written(void **state)
{
	struct audit *a = fixture_open(&f, FIXTURE_ID);

	for (int i = 0; i < 30; i++) {
		fixture_fill(a, 7);
		fixture_must_verify(&f, FIXTURE_ID);
	}
	assert_int_equal(audit_close(a, NULL), 0);
}

static void a_link_or_a_folder_is_no_segment(void **state)
{
	AUTO_FREE char *path = fixture_segment(&f, FIXTURE_ID, 1);
	struct audit_report rep;

	assert_int_equal(audit_close(fixture_open(&f, FIXTURE_ID), NULL), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/dev/zero", path), 0);
	assert_int_equal(
		audit_verify(f.dir, FIXTURE_ID, audit_key_pub(f.key), NULL, &rep, NULL), -ELOOP);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, up, down)
	const struct CMUnitTest tests[] = {
		TEST(a_follower_sees_every_record_once),
		TEST(half_a_record_waits_for_the_other),
		TEST(a_reader_that_was_ended_stays_so),
		TEST(a_log_that_never_was_is_not_a_bad_one),
		TEST(a_log_is_verified_while_it_is_written),
		TEST(a_link_or_a_folder_is_no_segment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
