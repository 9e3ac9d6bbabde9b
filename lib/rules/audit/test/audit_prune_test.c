/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs that are pruned: what is left verifies, and what was done to it is found.
 * Usage: audit_prune_test [STEPS [SEED]]
 */
#include "audit_fixture.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include "lib/rules/audit/audit_list.h"
#include "lib/rules/audit/audit_prune.h"
#include "lib/base/clock.h"

static struct fixture f;
static unsigned long n_steps = 400;
static uint64_t random_state;

static size_t below(size_t n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (size_t)((random_state >> 33) % n);
}

static int up(void **state)
{
	fixture_up(&f);
	f.segment_bytes = 8192;
	return 0;
}

static int down(void **state)
{
	fixture_down(&f);
	return 0;
}

static void write_log(unsigned n)
{
	struct audit *a = fixture_open(&f, FIXTURE_ID);

	fixture_fill(a, n);
	assert_int_equal(audit_close(a, NULL), 0);
}

static struct audit_prune_options by_size(uint64_t keep_bytes)
{
	return (struct audit_prune_options){
		.dir = f.dir, .sandbox = FIXTURE_ID, .key = f.key, .keep_bytes = keep_bytes};
}

/* The log of the last pruning. */
static uint8_t pruned_log[AUDIT_LOG_LEN];

static struct audit_pruned must_prune(struct audit_prune_options o)
{
	struct audit_pruned got = {0};
	struct err err = {0};

	if (audit_prune(&o, &got, &err) < 0)
		fail_msg("%s", err.text);
	if (got.segments)
		memcpy(pruned_log, got.log, sizeof(pruned_log));
	return got;
}

static char *path_of(const char *what)
{
	return xasprintf("%s/%s/" FIXTURE_ID, f.dir, what);
}

static struct audit_report verify_since(uint64_t seq)
{
	struct audit_mark known = {.seq = seq};
	struct audit_report rep = {0};

	memcpy(known.log, pruned_log, sizeof(known.log));
	(void)!audit_verify(f.dir, FIXTURE_ID, audit_key_pub(f.key), &known, &rep, NULL);
	return rep;
}

static unsigned n_segments(void)
{
	unsigned n = 0;

	for (unsigned i = 1; i < 1000; i++) {
		AUTO_FREE char *path = fixture_segment(&f, FIXTURE_ID, i);

		n += access(path, F_OK) == 0;
	}
	return n;
}

static void the_rest_of_a_pruned_log_verifies_and_goes_on(void **state)
{
	struct audit_report was, rep;
	struct audit_pruned got;

	write_log(200);
	was = fixture_verify(&f, FIXTURE_ID);
	assert_true(was.segment > 6);
	got = must_prune(by_size(20000));
	assert_true(got.segments >= 3 && got.records > 50 && got.bytes > 30000 && !got.is_written);
	assert_int_equal(n_segments(), was.segment - got.segments);
	rep = fixture_verify(&f, FIXTURE_ID);
	assert_int_equal(rep.bad, AUDIT_OK);
	assert_int_equal(rep.cut_seq, got.seq);
	assert_int_equal(rep.cut_segment, got.segments + 1);
	assert_int_equal(rep.n_records + got.records, was.n_records);
	assert_int_equal(rep.seq, was.seq);
	assert_int_equal(verify_since(got.seq).bad, AUDIT_OK);
	write_log(50);
	fixture_must_verify(&f, FIXTURE_ID);
	/* Once more: the records of the first time are not counted again. */
	got = must_prune(by_size(10000));
	rep = fixture_verify(&f, FIXTURE_ID);
	assert_true(rep.bad == AUDIT_OK && rep.cut_seq == got.seq && got.records < got.seq);
	assert_int_equal(must_prune(by_size(10000)).segments, 0);
}

static void an_idle_log_can_go_but_for_its_beginning(void **state)
{
	struct audit_prune_options o = by_size(0);
	struct audit_pruned got;
	struct audit_report rep;

	write_log(5);
	o.before_ms = clock_wall_ms() - 60000;
	assert_int_equal(must_prune(o).segments, 0);
	o.before_ms = clock_wall_ms() + 60000;
	got = must_prune(o);
	assert_int_equal(got.segments, 1);
	assert_int_equal(got.records, 8); /* open, head, five, head */
	rep = fixture_verify(&f, FIXTURE_ID);
	assert_true(rep.bad == AUDIT_OK && rep.n_records == 2 && rep.cut_segment == 2);
	/* There is nothing left to remove. */
	assert_int_equal(must_prune(o).segments, 0);
	assert_int_equal(must_prune(by_size(0)).segments, 0);
	write_log(1);
	fixture_must_verify(&f, FIXTURE_ID);
	assert_int_equal(must_prune(by_size(0)).segments, 1);
	fixture_must_verify(&f, FIXTURE_ID);
}

static void a_log_that_is_written_keeps_its_last_segment(void **state)
{
	struct audit *a = fixture_open(&f, FIXTURE_ID);
	struct audit_prune_options o = by_size(0);
	struct audit_pruned got;

	fixture_fill(a, 100);
	o.is_dry = true;
	assert_true(must_prune(o).is_written);
	o.is_dry = false;
	got = must_prune(o);
	assert_true(got.is_written && got.segments == a->segment - 1);
	assert_int_equal(n_segments(), 1);
	fixture_fill(a, 100);
	fixture_must_verify(&f, FIXTURE_ID);
	assert_int_equal(audit_close(a, NULL), 0);
	fixture_must_verify(&f, FIXTURE_ID);
}

static void a_dry_run_removes_nothing(void **state)
{
	struct audit_prune_options o = by_size(0);
	struct audit_pruned got;

	write_log(100);
	o.is_dry = true;
	got = must_prune(o);
	assert_int_equal(got.segments, n_segments());
	assert_int_equal(fixture_verify(&f, FIXTURE_ID).cut_seq, 0);
	o.is_dry = false;
	assert_int_equal(must_prune(o).records, got.records);
}

static int refuse_it(void *arg, const struct audit_cut *cut, struct err *err)
{
	*(uint64_t *)arg = cut->seq;
	return err_set(err, -ENOSPC, "not recorded");
}

static void what_cannot_be_recorded_is_not_removed(void **state)
{
	struct audit_prune_options o = by_size(0);
	struct audit_pruned got;
	uint64_t seq = 0;
	unsigned n;

	write_log(100);
	n = n_segments();
	o.record = refuse_it;
	o.arg = &seq;
	assert_int_equal(audit_prune(&o, &got, NULL), -ENOSPC);
	assert_true(seq > 100);
	assert_true(n_segments() >= n);
	assert_int_equal(fixture_verify(&f, FIXTURE_ID).cut_seq, 0);
	fixture_must_verify(&f, FIXTURE_ID);
}

static void a_full_log_has_room_again_when_it_was_pruned(void **state)
{
	struct audit *a;
	unsigned i = 0;

	f.max_bytes = 60000;
	a = fixture_open(&f, FIXTURE_ID);
	while (fixture_append(a, i, NULL) == 0)
		i++;
	assert_int_equal(fixture_append(a, i, NULL), -EDQUOT);
	(void)must_prune(by_size(30000));
	a->counted_ms = 0;
	assert_int_equal(fixture_append(a, i, NULL), 0);
	assert_false(audit_is_full(a));
	assert_int_equal(audit_close(a, NULL), 0);
	fixture_must_verify(&f, FIXTURE_ID);
}

static void a_damaged_log_is_not_pruned(void **state)
{
	AUTO_FREE char *path = NULL, *dir = NULL, *text = NULL;
	struct audit_prune_options o = by_size(0);
	struct audit_pruned got;
	size_t n;

	write_log(100);
	/* The head at the end of a segment is not one that the key signed. */
	path = fixture_segment(&f, FIXTURE_ID, 1);
	assert_int_equal(file_load(path, 1 << 20, &text, &n, NULL), 0);
	text[n - 100] ^= 1;
	assert_int_equal(file_save(path, slice_of(text, n), NULL), 0);
	o.keep_bytes = 1 << 20;
	assert_int_equal(must_prune(o).segments, 0);
	dir = xasprintf("%s/" FIXTURE_ID, f.dir);
	assert_int_equal(audit_count_bytes(dir, &o.keep_bytes, NULL), 0);
	o.keep_bytes -= 8000;
	assert_int_equal(audit_prune(&o, &got, NULL), -EBADMSG);
	assert_int_equal(access(path, F_OK), 0);
	o.sandbox = "ffffffffffff";
	assert_int_equal(audit_prune(&o, &got, NULL), -ENOENT);
	o.sandbox = "../x";
	assert_int_equal(audit_prune(&o, &got, NULL), -ENOENT);
}

/* Replaces one line of a segment by the same record with another signature or previous hash. */
static void forge(unsigned number, bool is_last, struct audit_record *rec)
{
	AUTO_FREE char *path = fixture_segment(&f, FIXTURE_ID, number), *text = NULL;
	uint8_t buf[AUDIT_MAX_RECORD], prev[AUDIT_HASH_LEN];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct audit_hash h = {0};
	size_t n, from = 0, to;

	memcpy(prev, rec->hash, sizeof(prev));
	assert_int_equal(file_load(path, 1 << 20, &text, &n, NULL), 0);
	if (is_last)
		from = (size_t)((char *)memrchr(text, '\n', n - 1) + 1 - text);
	to = (size_t)((char *)memchr(text + from, '\n', n - from) + 1 - text);
	assert_int_equal(audit_record_decode(slice_of(text + from, to - from), rec), 0);
	if (is_last)
		rec->sig[0] ^= 1;
	else
		memcpy(rec->prev, prev, sizeof(prev));
	assert_int_equal(audit_record_encode(&wr, rec), 0);
	assert_int_equal(audit_record_encode_sig(&wr, rec), 0);
	audit_hash_init(&h);
	audit_hash_of(&h, slice_of(buf, wr.n), rec->hash);
	audit_hash_done(&h);
	assert_int_equal(audit_record_encode_hash(&wr, rec), 0);
	assert_int_equal(wr.n, to - from);
	memcpy(text + from, buf, wr.n);
	assert_int_equal(file_save(path, slice_of(text, n), NULL), 0);
}

/* Both sides of the cut fit each other, but the key did not sign the head. */
static void a_forged_end_of_a_segment_is_not_cut_behind(void **state)
{
	AUTO_FREE struct audit_record *rec = xcalloc(1, sizeof(*rec));
	AUTO_FREE char *dir = xasprintf("%s/" FIXTURE_ID, f.dir);
	struct audit_prune_options o = by_size(0);
	struct audit_pruned got;
	struct err err = {0};

	write_log(100);
	forge(1, true, rec);
	forge(2, false, rec);
	assert_int_equal(audit_count_bytes(dir, &o.keep_bytes, NULL), 0);
	o.keep_bytes--;
	assert_int_equal(audit_prune(&o, &got, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "try: sbx audit verify"));
}

/* The cut was saved and the files were not removed: they do not count, and go the next time. */
static void what_a_killed_pruner_left_is_removed(void **state)
{
	unsigned first, n;

	write_log(100);
	first = (unsigned)must_prune(by_size(20000)).segments + 1;
	n = n_segments();
	fixture_soil(&f, first - 1, "old\n", 4);
	fixture_soil(&f, first - 2, "old\n", 4);
	fixture_must_verify(&f, FIXTURE_ID);
	assert_int_equal(n_segments(), n + 2);
	assert_int_equal(must_prune(by_size(1 << 20)).segments, 0);
	assert_int_equal(n_segments(), n);
	fixture_must_verify(&f, FIXTURE_ID);
}

/* A writer that finds the disk full when it begins a segment leaves an empty file. */
static void an_empty_last_file_is_not_what_a_log_begins_with(void **state)
{
	struct audit *a = fixture_open(&f, FIXTURE_ID);
	unsigned last;

	fixture_fill(a, 100);
	last = (unsigned)a->segment;
	fixture_soil(&f, last + 1, "", 0);
	assert_int_equal(must_prune(by_size(0)).segments, last - 1);
	fixture_must_verify(&f, FIXTURE_ID);
	fixture_fill(a, 100);
	assert_true(a->segment > last + 1);
	assert_int_equal(audit_close(a, NULL), 0);
	fixture_must_verify(&f, FIXTURE_ID);
}

/* ---- what somebody without the key can do to the cut ---- */

static void rename_cut(const char *from, const char *to)
{
	AUTO_FREE char *a = xasprintf("%s/%s", f.dir, from), *b = xasprintf("%s/%s", f.dir, to);

	assert_int_equal(rename(a, b), 0);
}

static void copy_file(const char *from, const char *to)
{
	AUTO_FREE char *text = NULL;
	size_t n;

	assert_int_equal(file_load(from, 1 << 20, &text, &n, NULL), 0);
	assert_int_equal(file_save(to, slice_of(text, n), NULL), 0);
}

static void a_missing_cut_is_found(void **state)
{
	struct audit_report rep;

	write_log(100);
	(void)must_prune(by_size(20000));
	rename_cut("cuts/" FIXTURE_ID, "away");
	rep = fixture_verify(&f, FIXTURE_ID);
	assert_true(rep.bad == AUDIT_NO_SEGMENT && rep.segment == 1);
	rename_cut("away", "cuts/" FIXTURE_ID);
	fixture_must_verify(&f, FIXTURE_ID);
}

static void every_changed_byte_of_a_cut_is_found(void **state)
{
	AUTO_FREE char *path = path_of("cuts"), *text = NULL;
	size_t n;

	write_log(60);
	(void)must_prune(by_size(10000));
	assert_int_equal(file_load(path, AUDIT_MAX_CUT, &text, &n, NULL), 0);
	for (size_t i = 0; i <= n; i++) {
		char was = text[i % n];

		text[i % n] ^= (char)(1 << below(8));
		assert_int_equal(file_save(path, slice_of(text, i < n ? n : n - 1), NULL), 0);
		assert_int_equal(fixture_verify(&f, FIXTURE_ID).bad, AUDIT_BAD_CUT);
		text[i % n] = was;
	}
	assert_int_equal(file_save(path, slice_of("", 0), NULL), 0);
	assert_int_equal(fixture_verify(&f, FIXTURE_ID).bad, AUDIT_BAD_CUT);
	assert_int_equal(file_save(path, slice_of(text, n), NULL), 0);
	fixture_must_verify(&f, FIXTURE_ID);
}

/* A cut of the same key for another log, and one that does not fit the record that follows. */
static void the_cut_of_another_log_or_place_is_found(void **state)
{
	AUTO_FREE char *path = path_of("cuts"), *other = xasprintf("%s/cuts/other", f.dir);
	AUTO_FREE char *line = NULL, *first = NULL;
	struct audit_prune_options o = by_size(10000);
	struct audit_expect plain = {.flags = AUDIT_CHAIN_PLAIN};
	struct audit_reader *rd = NULL;
	uint8_t buf[AUDIT_MAX_CUT];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct audit_cut cut;
	struct audit *a;
	size_t n;

	write_log(100);
	a = fixture_open(&f, "other");
	fixture_fill(a, 100);
	assert_int_equal(audit_close(a, NULL), 0);
	o.sandbox = "other";
	(void)must_prune(o);
	(void)must_prune(by_size(20000));
	assert_int_equal(audit_cut_load(f.dir, FIXTURE_ID, &line, &n, NULL), 0);
	copy_file(other, path);
	assert_int_equal(fixture_verify(&f, FIXTURE_ID).bad, AUDIT_BAD_CUT);
	assert_int_equal(audit_reader_open(f.dir, FIXTURE_ID, &plain, &rd, NULL), 0);
	assert_int_equal(audit_reader_pump(rd, NULL), -EBADMSG);
	audit_reader_close(rd);
	/* Signed, but with another hash: only the owner of the key could, and it does not fit. */
	assert_int_equal(audit_cut_decode(slice_of(line, n), &cut), 0);
	cut.hash[3] ^= 1;
	assert_int_equal(audit_cut_encode(&wr, &cut, f.key), 0);
	assert_int_equal(file_save(path, slice_of(buf, wr.n), NULL), 0);
	assert_int_equal(fixture_verify(&f, FIXTURE_ID).bad, AUDIT_BAD_CHAIN);
	first = fixture_segment(&f, FIXTURE_ID, (unsigned)cut.segment);
	assert_int_equal(file_save(path, slice_of(line, n), NULL), 0);
	fixture_must_verify(&f, FIXTURE_ID);
	assert_int_equal(unlink(first), 0);
	assert_int_equal(fixture_verify(&f, FIXTURE_ID).bad, AUDIT_NO_SEGMENT);
}

/* An earlier cut with the segments that were there then is good by itself; who knows of the later
 * one finds it. */
static void an_earlier_cut_is_found_by_who_knows_the_later_one(void **state)
{
	AUTO_FREE char *was = xasprintf("%s.was", f.dir), *cp = NULL, *back = NULL, *rm = NULL;
	struct audit_pruned first, second;

	write_log(200);
	first = must_prune(by_size(40000));
	cp = xasprintf("cp -a %s %s", f.dir, was);
	assert_int_equal(system(cp), 0);
	second = must_prune(by_size(20000));
	assert_true(second.segments > 0);
	back = xasprintf("cp -a %s/. %s/", was, f.dir);
	assert_int_equal(system(back), 0);
	rm = xasprintf("rm -r %s", was);
	assert_int_equal(system(rm), 0);
	assert_int_equal(verify_since(first.seq).bad, AUDIT_OK);
	assert_int_equal(verify_since(second.seq).bad, AUDIT_OLD_CUT);
}

static void a_log_of_which_only_the_cut_is_left_is_listed_and_bad(void **state)
{
	AUTO_AUDIT_LIST struct audit_list l = {0};
	AUTO_FREE char *rm = NULL;

	write_log(60);
	(void)must_prune(by_size(10000));
	rm = xasprintf("rm -r %s/" FIXTURE_ID " %s/heads/" FIXTURE_ID, f.dir, f.dir);
	assert_int_equal(system(rm), 0);
	assert_int_equal(audit_list(f.dir, &l, NULL), 0);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.id[0], FIXTURE_ID);
	assert_int_equal(fixture_verify(&f, FIXTURE_ID).bad, AUDIT_BAD_KEPT_HEAD);
}

/* A log that was moved away, as the sentence of audit_open tells the user: the next one is new. */
static void a_new_log_in_place_of_a_pruned_one_is_good(void **state)
{
	struct audit_pruned got;
	AUTO_FREE char *rm = NULL;

	write_log(60);
	got = must_prune(by_size(10000));
	rm = xasprintf(
		"cd %s && rm -r " FIXTURE_ID " heads/" FIXTURE_ID " cuts/" FIXTURE_ID, f.dir);
	assert_int_equal(system(rm), 0);
	write_log(5);
	assert_int_equal(verify_since(got.seq).bad, AUDIT_OK);
}

/* ---- a reader beside the pruner ---- */

struct beside {
	unsigned n;
	bool is_pruned;
};

static int prune_at_the_third(void *arg, const struct audit_record *rec, struct slice line)
{
	struct beside *b = arg;

	if (++b->n == 3) {
		(void)must_prune(by_size(10000));
		b->is_pruned = true;
	}
	return 0;
}

static void a_view_goes_on_behind_what_was_pruned_under_it(void **state)
{
	struct beside b = {0};
	struct audit_expect expect = {
		.flags = AUDIT_CHAIN_PLAIN, .fn = prune_at_the_third, .arg = &b};
	struct audit_reader *rd = NULL;

	write_log(200);
	assert_int_equal(audit_reader_open(f.dir, FIXTURE_ID, &expect, &rd, NULL), 0);
	assert_int_equal(audit_reader_pump(rd, NULL), 0);
	assert_true(b.is_pruned);
	assert_int_equal(audit_reader_report(rd)->bad, AUDIT_OK);
	assert_int_equal(audit_reader_report(rd)->seq, fixture_verify(&f, FIXTURE_ID).seq);
	audit_reader_close(rd);
}

static void a_check_of_what_is_pruned_under_it_begins_again(void **state)
{
	struct beside b = {0};
	struct audit_expect expect = {
		.pub = audit_key_pub(f.key), .fn = prune_at_the_third, .arg = &b};
	struct audit_reader *rd = NULL;

	write_log(200);
	assert_int_equal(audit_reader_open(f.dir, FIXTURE_ID, &expect, &rd, NULL), 0);
	assert_int_equal(audit_reader_pump(rd, NULL), -ESTALE);
	audit_reader_close(rd);
	fixture_must_verify(&f, FIXTURE_ID);
}

/* ---- the model: appends, prunes, crashes, kills and changes in any order ---- */

struct model {
	uint64_t seq;	 /* the last acknowledged record */
	uint64_t pruned; /* records up to this are gone */
	struct audit *a; /* NULL: nobody writes */
	unsigned n_prunes, n_changes, n_kills;
};

static void step_append(struct model *m)
{
	if (!m->a)
		m->a = fixture_open(&f, FIXTURE_ID);
	memcpy(pruned_log, m->a->log, sizeof(pruned_log));
	for (size_t i = below(30) + 1; i; i--)
		assert_int_equal(fixture_append(m->a, (unsigned)below(1000), &m->seq), 0);
}

static void step_close(struct model *m)
{
	if (below(2))
		assert_int_equal(audit_close(m->a, NULL), 0);
	else
		audit_free(m->a); /* a crash */
	m->a = NULL;
}

static void step_prune(struct model *m)
{
	struct audit_prune_options o = by_size(below(60000));
	struct audit_pruned got;

	if (!m->seq)
		return;
	if (below(4) == 0)
		o.before_ms = clock_wall_ms() + (below(2) ? 1000 : 0) - (below(2) ? 10 : 0);
	got = must_prune(o);
	assert_int_equal(got.is_written, m->a != NULL);
	if (got.segments) {
		assert_int_equal(got.records, got.seq - m->pruned);
		m->pruned = got.seq;
		m->n_prunes++;
	}
}

/* A pruner that is killed has pruned, or not. */
static void step_kill(struct model *m)
{
	struct audit_prune_options o = by_size(below(30000));
	struct audit_pruned got;
	struct audit_report rep;
	int status;
	pid_t pid;

	if (!m->seq)
		return;
	pid = fork();
	if (pid == 0)
		_exit(audit_prune(&o, &got, NULL) < 0);
	usleep((useconds_t)below(4000));
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	rep = fixture_verify(&f, FIXTURE_ID);
	assert_true(rep.cut_seq >= m->pruned);
	m->pruned = rep.cut_seq;
	m->n_kills += WIFSIGNALED(status);
}

/* One byte of the cut or of a segment, then back. Behind the last head nothing is found yet. */
static void step_change(struct model *m)
{
	struct audit_report was = {0}, rep;
	AUTO_FREE char *path = NULL, *text = NULL, *good = NULL;
	size_t n;

	if (m->seq)
		was = fixture_verify(&f, FIXTURE_ID);
	if (!m->seq || was.n_unsigned)
		return;
	path = was.cut_seq && below(2) ? path_of("cuts")
				       : fixture_segment(&f, FIXTURE_ID,
						 (unsigned)MAX(was.cut_segment, (uint64_t)1));
	assert_int_equal(file_load(path, 1 << 20, &text, &n, NULL), 0);
	good = xmalloc(n);
	memcpy(good, text, n);
	text[below(n)] ^= (char)(1 << below(8));
	assert_int_equal(file_save(path, slice_of(text, n), NULL), 0);
	rep = fixture_verify(&f, FIXTURE_ID);
	assert_int_equal(file_save(path, slice_of(good, n), NULL), 0);
	assert_int_not_equal(rep.bad, AUDIT_OK);
	m->n_changes++;
}

static void check_model(const struct model *m)
{
	struct audit_report rep = m->seq ? verify_since(m->pruned) : (struct audit_report){0};

	if (rep.bad != AUDIT_OK)
		fail_msg("record %" PRIu64 ": %s", rep.seq, audit_bad_text(rep.bad));
	if (!m->seq)
		return;
	assert_int_equal(rep.cut_seq, m->pruned);
	assert_true(rep.seq >= m->seq || m->pruned >= m->seq);
	assert_int_equal(rep.cut_seq + rep.n_records, rep.seq);
	if (m->pruned)
		assert_int_equal(verify_since(m->pruned + 1).bad, AUDIT_OLD_CUT);
}

static void any_order_of_appends_and_prunes_verifies(void **state)
{
	struct model m = {0};

	for (unsigned long i = 0; i < n_steps; i++) {
		size_t what = below(10);

		if (what < 4)
			step_append(&m);
		else if (what < 6 && m.a)
			step_close(&m);
		else if (what < 8)
			step_prune(&m);
		else if (what == 8 && !m.a)
			step_kill(&m);
		else if (!m.a)
			step_change(&m);
		check_model(&m);
	}
	if (m.a)
		audit_free(m.a);
	print_message("%lu steps: %u prunes, %u killed, %u changes found, %" PRIu64 " records\n",
		n_steps, m.n_prunes, m.n_kills, m.n_changes, m.seq);
	assert_true(m.n_prunes > n_steps / 40 && m.n_kills > 0 && m.n_changes > 0);
}

int main(int argc, char **argv)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, up, down)
	const struct CMUnitTest tests[] = {
		TEST(the_rest_of_a_pruned_log_verifies_and_goes_on),
		TEST(an_idle_log_can_go_but_for_its_beginning),
		TEST(a_log_that_is_written_keeps_its_last_segment),
		TEST(a_dry_run_removes_nothing),
		TEST(what_cannot_be_recorded_is_not_removed),
		TEST(a_full_log_has_room_again_when_it_was_pruned),
		TEST(a_damaged_log_is_not_pruned),
		TEST(a_forged_end_of_a_segment_is_not_cut_behind),
		TEST(an_empty_last_file_is_not_what_a_log_begins_with),
		TEST(what_a_killed_pruner_left_is_removed),
		TEST(a_missing_cut_is_found),
		TEST(every_changed_byte_of_a_cut_is_found),
		TEST(the_cut_of_another_log_or_place_is_found),
		TEST(an_earlier_cut_is_found_by_who_knows_the_later_one),
		TEST(a_log_of_which_only_the_cut_is_left_is_listed_and_bad),
		TEST(a_new_log_in_place_of_a_pruned_one_is_good),
		TEST(a_view_goes_on_behind_what_was_pruned_under_it),
		TEST(a_check_of_what_is_pruned_under_it_begins_again),
		TEST(any_order_of_appends_and_prunes_verifies),
	};

	if (argc > 1)
		n_steps = strtoul(argv[1], NULL, 10);
	random_state = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
	print_message("seed %" PRIu64 "\n", random_state);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
