/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of format 1, which older versions of sbx wrote, and their change to format 2. */
#include "audit_fixture.h"

#include <sys/stat.h>
#include "lib/base/hex.h"
#include "lib/rules/audit/audit_prune.h"

#define SEED "01a19f495526a09cd539ea456420f1f29b9e3be53e864ed7957fe3c8eb3112b9"
#define OLD_RECORDS 39

static const char *old_dir;
static struct fixture f;

static void copy_old(const char *name, const char *to)
{
	AUTO_FREE char *from = xasprintf("%s/%s", old_dir, name);
	AUTO_FREE char *text = NULL;
	size_t n = 0;

	assert_int_equal(file_load(from, 1 << 20, &text, &n, NULL), 0);
	assert_int_equal(file_save(to, slice_of(text, n), NULL), 0);
}

static int up(void **state)
{
	AUTO_FREE char *log = NULL, *heads = NULL, *head = NULL, *key = NULL;
	uint8_t seed[AUDIT_KEY_LEN];

	f = (struct fixture){.dir = "/tmp/audit_test.XXXXXX", .head_records = 10};
	assert_non_null(mkdtemp(f.dir));
	f.segment_bytes = 4096;
	log = xasprintf("%s/" FIXTURE_ID, f.dir);
	heads = xasprintf("%s/heads", f.dir);
	head = xasprintf("%s/heads/" FIXTURE_ID, f.dir);
	key = xasprintf("%s/key", f.dir);
	assert_int_equal(mkdir(log, 0700), 0);
	assert_int_equal(mkdir(heads, 0700), 0);
	copy_old("head", head);
	for (unsigned i = 1; i <= 3; i++) {
		AUTO_FREE char *to = fixture_segment(&f, FIXTURE_ID, i);

		copy_old(strrchr(to, '/') + 1, to);
	}
	assert_int_equal(hex_decode(slice_from_str(SEED), seed), 0);
	assert_int_equal(file_save(key, slice_of(seed, sizeof(seed)), NULL), 0);
	assert_int_equal(audit_key_load(f.dir, &f.key, NULL), 0);
	return 0;
}

static int down(void **state)
{
	fixture_down(&f);
	return 0;
}

static struct audit_event with_effects(void)
{
	struct audit_event ev = {.kind = AUDIT_KIND_DECISION,
		.decision = AUDIT_DENY,
		.effects = slice_from_str("http:DELETE api.example.com /v1/x"),
		.hold = slice_from_str("K7QD"),
		.from = slice_from_str("policy 3")};

	memset(ev.digest, 0xee, sizeof(ev.digest));
	return ev;
}

static struct slice last_segment(char **text)
{
	AUTO_FREE char *path = NULL;
	AUTO_FREE char *dir = xasprintf("%s/" FIXTURE_ID, f.dir);
	uint64_t last = 0;
	size_t n = 0;

	assert_int_equal(audit_last_segment(dir, &last, NULL), 0);
	path = audit_segment_path(dir, last);
	assert_int_equal(file_load(path, 1 << 20, text, &n, NULL), 0);
	return slice_of(*text, n);
}

static void an_old_log_verifies_and_is_not_changed_by_opening_it(void **state)
{
	AUTO_FREE char *before = NULL, *after = NULL;
	struct slice x = last_segment(&before), y;

	assert_int_equal(fixture_verify(&f, FIXTURE_ID).n_records, OLD_RECORDS);
	assert_int_equal(audit_close(fixture_open(&f, FIXTURE_ID), NULL), 0);
	y = last_segment(&after);
	assert_true(slice_eq(x, y));
	fixture_must_verify(&f, FIXTURE_ID);
}

static void the_next_event_changes_it_to_format_2(void **state)
{
	struct audit_event ev = with_effects();
	AUTO_FREE char *text = NULL;
	struct audit *a;
	uint64_t seq = 0;

	f.segment_bytes = 1 << 20;
	a = fixture_open(&f, FIXTURE_ID);
	assert_int_equal(audit_append(a, &ev, &seq, NULL), 0);
	assert_int_equal(seq, OLD_RECORDS + 2); /* behind the change */
	assert_int_equal(audit_append(a, &ev, &seq, NULL), 0);
	assert_int_equal(seq, OLD_RECORDS + 3); /* it changes once */
	assert_int_equal(audit_close(a, NULL), 0);
	a = fixture_open(&f, FIXTURE_ID);
	assert_int_equal(audit_append(a, &ev, &seq, NULL), 0);
	assert_int_equal(seq, OLD_RECORDS + 5);
	assert_int_equal(audit_close(a, NULL), 0);
	fixture_must_verify(&f, FIXTURE_ID);
	(void)last_segment(&text);
	assert_non_null(strstr(text, "\"kind\":\"format\",\"sandbox\":\"" FIXTURE_ID
				     "\",\"name\":\"demo\",\"version\":2,"));
	assert_non_null(strstr(text, "\"effects\":\"http:DELETE api.example.com /v1/x\",\"digest\":"
				     "\"eeee"));
	assert_non_null(strstr(text, "\"hold\":\"K7QD\",\"from\":\"policy 3\","));
}

static void a_new_segment_names_the_format(void **state)
{
	struct audit *a = fixture_open(&f, FIXTURE_ID); /* its last segment is full */
	struct audit_event ev = with_effects();
	AUTO_FREE char *text = NULL;

	for (int i = 0; i < 20; i++)
		assert_int_equal(audit_append(a, &ev, NULL, NULL), 0);
	assert_int_equal(audit_close(a, NULL), 0);
	fixture_must_verify(&f, FIXTURE_ID);
	(void)last_segment(&text);
	assert_null(strstr(text, "\"kind\":\"format\""));
	assert_non_null(strstr(text, "\"version\":2,\"segment\":"));
	/* Opened again in a later segment, it still is in format 2. */
	a = fixture_open(&f, FIXTURE_ID);
	assert_int_equal(a->format, 2);
	assert_int_equal(audit_append(a, &ev, NULL, NULL), 0);
	assert_int_equal(audit_close(a, NULL), 0);
	fixture_must_verify(&f, FIXTURE_ID);
}

static void a_pruned_log_keeps_its_format(void **state)
{
	struct audit_prune_options o = {
		.dir = f.dir, .sandbox = FIXTURE_ID, .key = f.key, .keep_bytes = 5000};
	struct audit_event ev = with_effects();
	struct audit *a = fixture_open(&f, FIXTURE_ID);
	struct audit_pruned pruned;

	assert_int_equal(audit_append(a, &ev, NULL, NULL), 0);
	assert_int_equal(audit_close(a, NULL), 0);
	assert_int_equal(audit_prune(&o, &pruned, NULL), 0);
	assert_true(pruned.segments > 0);
	fixture_must_verify(&f, FIXTURE_ID);
	a = fixture_open(&f, FIXTURE_ID);
	assert_int_equal(audit_append(a, &ev, NULL, NULL), 0);
	assert_int_equal(audit_close(a, NULL), 0);
	fixture_must_verify(&f, FIXTURE_ID);
}

static void fields_of_format_2_need_the_change_before_them(void **state)
{
	struct audit_event ev = with_effects();
	struct audit *a;

	f.segment_bytes = 1 << 20;
	a = fixture_open(&f, FIXTURE_ID);
	a->format = AUDIT_FORMAT; /* the holder of the key leaves the change out */
	assert_int_equal(audit_append(a, &ev, NULL, NULL), 0);
	assert_int_equal(audit_close(a, NULL), 0);
	assert_int_equal(fixture_verify(&f, FIXTURE_ID).bad, AUDIT_BAD_FORMAT);
}

static void a_log_never_goes_back(void **state)
{
	struct audit_event ev = with_effects();
	struct audit *a;

	f.segment_bytes = 1 << 20;
	a = fixture_open(&f, FIXTURE_ID);
	assert_int_equal(audit_append(a, &ev, NULL, NULL), 0);
	a->format = 1; /* it changes a second time */
	assert_int_equal(audit_append(a, &ev, NULL, NULL), 0);
	assert_int_equal(audit_close(a, NULL), 0);
	assert_int_equal(fixture_verify(&f, FIXTURE_ID).bad, AUDIT_BAD_FORMAT);
}

static void put_segment(struct audit *a, uint64_t version)
{
	uint8_t buf[AUDIT_MAX_RECORD];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct audit_record rec = {
		.ev.kind = AUDIT_KIND_SEGMENT, .segment = a->segment, .version = version};
	struct audit_tip tip = a->tip;

	assert_int_equal(ftruncate(a->fd, 0), 0);
	tip.next_seq--; /* in place of the first record of this segment */
	memcpy(tip.last, rec.prev, sizeof(tip.last));
	assert_int_equal(audit_seal(a, &rec, &tip, &wr), 0);
	assert_int_equal(write(a->fd, buf, wr.n), wr.n);
}

static void a_segment_of_an_earlier_format_is_bad(void **state)
{
	AUTO_CHAIN struct audit_chain c;
	struct audit_expect e = {.pub = audit_key_pub(f.key),
		.sandbox = FIXTURE_ID,
		.flags = AUDIT_CHAIN_ALONE | AUDIT_CHAIN_MIDDLE};
	struct audit_event ev = with_effects();
	struct audit *a = fixture_open(&f, FIXTURE_ID);
	AUTO_FREE char *text = NULL;

	assert_int_equal(audit_append(a, &ev, NULL, NULL), 0);
	put_segment(a, 0);
	audit_chain_init(&c, &e);
	c.format = AUDIT_FORMAT; /* as after the segments before it */
	assert_int_equal(audit_chain_segment(&c, a->segment), 0);
	assert_int_equal(audit_chain_eat(&c, last_segment(&text)), -EBADMSG);
	assert_int_equal(c.report.bad, AUDIT_BAD_FORMAT);
	audit_free(a);
}

int main(int argc, char **argv)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, up, down)
	const struct CMUnitTest tests[] = {
		TEST(an_old_log_verifies_and_is_not_changed_by_opening_it),
		TEST(the_next_event_changes_it_to_format_2),
		TEST(a_new_segment_names_the_format),
		TEST(a_pruned_log_keeps_its_format),
		TEST(fields_of_format_2_need_the_change_before_them),
		TEST(a_log_never_goes_back),
		TEST(a_segment_of_an_earlier_format_is_bad),
	};

	assert_int_equal(argc, 2);
	old_dir = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
