/* SPDX-License-Identifier: Apache-2.0 */
#include "audit_fixture.h"

#include <glob.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "lib/rules/audit/audit.h"

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

static void must_close(struct audit *a)
{
	assert_int_equal(audit_close(a, NULL), 0);
}

static size_t count_files(const char *pattern)
{
	AUTO_FREE char *path = xasprintf("%s/" FIXTURE_ID "/%s", f.dir, pattern);
	glob_t g = {0};
	size_t n = glob(path, 0, NULL, &g) == 0 ? g.gl_pathc : 0;

	globfree(&g);
	return n;
}

static void numbers_follow_and_the_log_is_good(void **state)
{
	struct audit *a = fixture_open(&f, FIXTURE_ID);
	struct audit_report rep;
	uint64_t seq;

	assert_int_equal(fixture_append(a, 1, &seq), 0);
	assert_int_equal(seq, 3); /* behind the opening and its head */
	fixture_fill(a, 25);
	must_close(a);
	rep = fixture_verify(&f, FIXTURE_ID);
	assert_int_equal(rep.bad, AUDIT_OK);
	assert_int_equal(rep.n_records, 2 + 26 + 2 + 1);
	assert_int_equal(rep.n_heads, 4);
	assert_int_equal(rep.n_unsigned, 0);
	assert_int_equal(rep.n_recovered, 0);
}

static void a_closed_log_goes_on_where_it_was(void **state)
{
	struct audit_report rep;

	for (int i = 0; i < 3; i++) {
		struct audit *a = fixture_open(&f, FIXTURE_ID);

		fixture_fill(a, 4);
		must_close(a);
	}
	rep = fixture_verify(&f, FIXTURE_ID);
	assert_int_equal(rep.bad, AUDIT_OK);
	assert_int_equal(rep.n_records, 2 + 3 * 5);
	assert_int_equal(rep.n_recovered, 0);
}

static void a_head_comes_by_time_too(void **state)
{
	struct audit *a;
	int due;

	f.head_ms = 60;
	a = fixture_open(&f, FIXTURE_ID);
	assert_int_equal(audit_due_ms(a), -1);
	fixture_fill(a, 1);
	due = audit_due_ms(a);
	assert_true(due >= 0 && due <= 60);
	usleep(70000);
	assert_int_equal(audit_due_ms(a), 0);
	fixture_fill(a, 1);
	assert_int_equal(a->tip.n_unsigned, 0);
	assert_int_equal(audit_sync(a, NULL), 0);
	assert_int_equal(audit_due_ms(a), -1);
	must_close(a);
	assert_int_equal(fixture_verify(&f, FIXTURE_ID).n_heads, 2);
}

static void a_log_has_one_writer(void **state)
{
	struct audit *a = fixture_open(&f, FIXTURE_ID), *b = NULL;

	assert_int_equal(fixture_try(&f, FIXTURE_ID, &b, NULL), -EBUSY);
	must_close(a);
	must_close(fixture_open(&f, FIXTURE_ID));
}

static void a_bad_id_is_no_path(void **state)
{
	static const char *const bad[] = {
		"", "..", "a/b", "heads", "key", "A", "a.b", "0123456789012345678901234567890123"};
	struct audit *a = NULL;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(fixture_try(&f, bad[i], &a, NULL), -EINVAL);
}

static void segments_follow_each_other(void **state)
{
	AUTO_FREE char *second = fixture_segment(&f, FIXTURE_ID, 2);
	struct audit_report rep;
	struct audit *a;

	f.segment_bytes = 4096;
	a = fixture_open(&f, FIXTURE_ID);
	fixture_fill(a, 100);
	must_close(a);
	assert_true(count_files("*.jsonl") > 5);
	rep = fixture_verify(&f, FIXTURE_ID);
	assert_int_equal(rep.bad, AUDIT_OK);
	must_close(fixture_open(&f, FIXTURE_ID));
	assert_int_equal(unlink(second), 0);
	rep = fixture_verify(&f, FIXTURE_ID);
	assert_int_equal(rep.bad, AUDIT_NO_SEGMENT);
	assert_int_equal(rep.segment, 2);
}

static void a_missing_last_segment_is_a_rollback(void **state)
{
	AUTO_FREE char *last = NULL;
	struct audit_report rep;
	struct audit *a;

	f.segment_bytes = 4096;
	a = fixture_open(&f, FIXTURE_ID);
	fixture_fill(a, 100);
	must_close(a);
	last = fixture_segment(&f, FIXTURE_ID, (unsigned)count_files("*.jsonl"));
	assert_int_equal(unlink(last), 0);
	rep = fixture_verify(&f, FIXTURE_ID);
	assert_int_equal(rep.bad, AUDIT_ROLLBACK);
	assert_int_equal(fixture_try(&f, FIXTURE_ID, &a, NULL), -EBADMSG);
}

static void a_crash_between_heads_is_told(void **state)
{
	struct audit *a = fixture_open(&f, FIXTURE_ID);
	struct audit_report rep;

	fixture_fill(a, 5);
	audit_free(a);
	rep = fixture_verify(&f, FIXTURE_ID);
	assert_int_equal(rep.bad, AUDIT_OK);
	assert_int_equal(rep.n_unsigned, 5);
	must_close(fixture_open(&f, FIXTURE_ID));
	rep = fixture_verify(&f, FIXTURE_ID);
	assert_int_equal(rep.bad, AUDIT_OK);
	assert_int_equal(rep.n_unsigned, 0);
	assert_int_equal(rep.n_recovered, 1);
}

static void a_torn_tail_is_cut_kept_and_told(void **state)
{
	static const char zeros[5000];
	struct {
		const char *bytes;
		size_t n;
	} tails[] = {{"{\"seq\":", 7}, {"\n", 1}, {zeros, 300}, {zeros, sizeof(zeros)},
		{"x\n{\"seq\":1}\n", 12}};

	for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
		struct audit *a = fixture_open(&f, FIXTURE_ID);
		struct audit_report rep;
		uint64_t seq;

		fixture_fill(a, 3);
		seq = a->tip.next_seq;
		audit_free(a);
		fixture_soil(&f, 1, tails[i].bytes, tails[i].n);
		rep = fixture_verify(&f, FIXTURE_ID);
		assert_int_not_equal(rep.bad, AUDIT_OK);
		assert_int_equal(rep.seq, seq);
		if (i == 0)
			assert_int_equal(rep.bad, AUDIT_TORN_TAIL);
		must_close(fixture_open(&f, FIXTURE_ID));
		rep = fixture_verify(&f, FIXTURE_ID);
		assert_int_equal(rep.bad, AUDIT_OK);
		assert_int_equal(rep.n_recovered, i + 1);
		assert_int_equal(count_files("cut-*"), i + 1);
	}
}

/* Nobody can have crashed into what was synced: going on would bury the evidence. */
static void damage_before_the_kept_head_is_not_repaired(void **state)
{
	AUTO_FREE char *path = fixture_segment(&f, FIXTURE_ID, 1);
	struct audit *a = fixture_open(&f, FIXTURE_ID);
	struct err err = {0};
	int fd;

	fixture_fill(a, 30);
	must_close(a);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "X", 1, 3000), 1);
	fd_close(&fd);
	assert_int_equal(fixture_try(&f, FIXTURE_ID, &a, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "sbx audit verify"));
	assert_int_equal(count_files("cut-*"), 0);
}

static void a_log_without_its_kept_head_is_refused(void **state)
{
	AUTO_FREE char *kept = xasprintf("%s/heads/" FIXTURE_ID, f.dir);
	struct audit *a = fixture_open(&f, FIXTURE_ID);

	fixture_fill(a, 3);
	must_close(a);
	assert_int_equal(unlink(kept), 0);
	assert_int_equal(fixture_verify(&f, FIXTURE_ID).bad, AUDIT_BAD_KEPT_HEAD);
	assert_int_equal(fixture_try(&f, FIXTURE_ID, &a, NULL), -EBADMSG);
}

static void a_kept_head_without_its_log_is_a_rollback(void **state)
{
	AUTO_FREE char *rm = xasprintf("rm -r %s/" FIXTURE_ID, f.dir);
	struct audit *a = fixture_open(&f, FIXTURE_ID);
	struct audit_report rep;

	must_close(a);
	assert_int_equal(system(rm), 0);
	rep = fixture_verify(&f, FIXTURE_ID);
	assert_int_equal(rep.bad, AUDIT_ROLLBACK);
	assert_int_equal(rep.seq, 1);
	assert_int_equal(fixture_try(&f, FIXTURE_ID, &a, NULL), -EBADMSG);
}

static void another_key_may_not_go_on(void **state)
{
	struct audit *a = fixture_open(&f, FIXTURE_ID);
	struct audit_key *own = f.key;
	struct fixture other;

	fixture_fill(a, 3);
	must_close(a);
	fixture_up(&other);
	f.key = other.key;
	assert_int_equal(fixture_try(&f, FIXTURE_ID, &a, NULL), -EBADMSG);
	assert_int_equal(fixture_verify(&f, FIXTURE_ID).bad, AUDIT_OTHER_KEY);
	f.key = own;
	fixture_down(&other);
}

static void a_crash_while_a_segment_begins_is_repaired(void **state)
{
	for (int i = 0; i < 2; i++) {
		unsigned number;
		struct audit *a;

		f.segment_bytes = 4096;
		a = fixture_open(&f, FIXTURE_ID);
		do
			fixture_fill(a, 1);
		while (a->size < 4096);
		number = (unsigned)a->segment + 1;
		must_close(a);
		fixture_soil(&f, number, "{\"seq", i ? 5 : 0);
		a = fixture_open(&f, FIXTURE_ID);
		assert_int_equal(a->segment, number);
		fixture_fill(a, 3);
		must_close(a);
		fixture_must_verify(&f, FIXTURE_ID);
	}
	assert_int_equal(fixture_verify(&f, FIXTURE_ID).n_recovered, 1);
}

static void a_crash_while_a_log_begins_is_repaired(void **state)
{
	AUTO_FREE char *mkdir_it = xasprintf("mkdir %s/" FIXTURE_ID, f.dir);

	assert_int_equal(system(mkdir_it), 0);
	fixture_soil(&f, 1, "{\"seq", 5);
	must_close(fixture_open(&f, FIXTURE_ID));
	fixture_must_verify(&f, FIXTURE_ID);
	assert_int_equal(count_files("cut-*"), 1);
}

/* A real short write: the limit stands in the middle of the record. */
static void a_record_that_does_not_fit_leaves_nothing(void **state)
{
	struct audit *a = fixture_open(&f, FIXTURE_ID);
	struct rlimit old, low;
	uint64_t seq, size;

	fixture_fill(a, 3);
	size = a->size;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	low = old;
	low.rlim_cur = size + 100;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	for (int i = 0; i < 3; i++) {
		struct stat st;

		assert_int_equal(fixture_append(a, 9, NULL), -ENOSPC);
		assert_int_equal(fstat(a->fd, &st), 0);
		assert_int_equal(st.st_size, size);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(fixture_append(a, 9, &seq), 0);
	assert_int_equal(seq, 6);
	must_close(a);
	fixture_must_verify(&f, FIXTURE_ID);
}

static void fill_disk(const char *path)
{
	static const char block[4096];
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	while (write(fd, block, sizeof(block)) > 0)
		;
}

static int write_proc(const char *name, const char *text)
{
	AUTO_FREE char *path = xasprintf("/proc/self/%s", name);
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

static int enter_namespace(void)
{
	AUTO_FREE char *uid = xasprintf("0 %u 1", geteuid());
	AUTO_FREE char *gid = xasprintf("0 %u 1", getegid());

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return -errno;
	return write_proc("uid_map", uid) | write_proc("setgroups", "deny") |
	       write_proc("gid_map", gid);
}

/* Runs in a mount namespace of its own: a file system of 256 KiB really gets full. */
static int on_full_disk(void)
{
	AUTO_FREE char *filler = xasprintf("%s/filler", f.dir);
	struct audit_report rep;
	uint64_t before, seq = 0;
	struct audit *a;
	int r, n_refused = 0;

	if (mount("audit", f.dir, "tmpfs", 0, "size=256k,mode=700") < 0)
		return 2;
	f.segment_bytes = 20000;
	a = fixture_open(&f, FIXTURE_ID);
	fixture_fill(a, 50);
	fill_disk(filler);
	while ((r = fixture_append(a, 1, NULL)) == 0)
		;
	before = a->tip.next_seq;
	for (int i = 0; i < 20; i++)
		n_refused += fixture_append(a, 1, NULL) == -ENOSPC;
	if (r != -ENOSPC || n_refused != 20 || audit_sync(a, NULL) == 0)
		return 3;
	if (audit_due_ms(a) < 100) /* the caller's loop does not spin */
		return 4;
	(void)unlink(filler);
	if (fixture_append(a, 1, &seq) < 0 || seq < before)
		return 5;
	fixture_fill(a, 60);
	if (audit_close(a, NULL) < 0)
		return 6;
	rep = fixture_verify(&f, FIXTURE_ID);
	return rep.bad == AUDIT_OK && rep.n_recovered == 0 ? 0 : 7;
}

static void a_full_disk_refuses_and_then_goes_on_without_a_gap(void **state)
{
	int status;

	if (fork() == 0) {
		if (enter_namespace() < 0)
			_exit(1);
		_exit(on_full_disk());
	}
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
}

static void what_cannot_be_kept_stops_the_next_record(void **state)
{
	AUTO_FREE char *kept = xasprintf("%s/heads/" FIXTURE_ID, f.dir);
	struct audit *a = fixture_open(&f, FIXTURE_ID);
	uint64_t seq;

	assert_int_equal(unlink(kept), 0);
	assert_int_equal(mkdir(kept, 0700), 0);
	usleep((AUDIT_SYNC_MS + 10) * 1000);
	fixture_fill(a, 10); /* the tenth makes a head due, which cannot be kept */
	for (int i = 0; i < 3; i++)
		assert_int_equal(fixture_append(a, 1, NULL), -EISDIR);
	assert_int_equal(rmdir(kept), 0);
	assert_int_equal(fixture_append(a, 1, &seq), 0);
	assert_int_equal(seq, 2 + 10 + 1 + 1);
	must_close(a);
	fixture_must_verify(&f, FIXTURE_ID);
}

static int see_last(void *arg, const struct audit_record *rec, struct slice line)
{
	if (rec->ev.kind == AUDIT_KIND_DECISION) {
		*(struct audit_record *)arg = *rec;
		assert_true(rec->ev.host.n == AUDIT_MAX_HOST);
		assert_true(slice_eq_str(rec->name, "other"));
	}
	return 0;
}

static void a_long_host_is_cut_and_the_decision_is_there(void **state)
{
	struct audit *a = fixture_open(&f, FIXTURE_ID);
	static uint8_t host[5000];
	struct audit_event ev = {.kind = AUDIT_KIND_DECISION,
		.decision = AUDIT_DENY,
		.host = slice_of(host, sizeof(host))};
	struct audit_record rec = {0};
	struct audit_expect expect = {.flags = AUDIT_CHAIN_PLAIN, .fn = see_last, .arg = &rec};
	struct audit_reader *rd = NULL;

	memset(host, 0x1b, sizeof(host));
	assert_int_equal(audit_set_name(a, "other"), 0);
	assert_int_equal(audit_append(a, &ev, NULL, NULL), 0);
	must_close(a);
	assert_int_equal(audit_reader_open(f.dir, FIXTURE_ID, &expect, &rd, NULL), 0);
	assert_int_equal(audit_reader_pump(rd, NULL), 0);
	audit_reader_close(rd);
	assert_int_equal(rec.cut, sizeof(host) - AUDIT_MAX_HOST);
}

static void files_are_for_their_owner_only(void **state)
{
	AUTO_FREE char *path = fixture_segment(&f, FIXTURE_ID, 1);
	AUTO_FREE char *kept = xasprintf("%s/heads/" FIXTURE_ID, f.dir);
	struct stat st;

	must_close(fixture_open(&f, FIXTURE_ID));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(stat(kept, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static int append_kind(struct audit *a, enum audit_kind kind, struct err *err)
{
	struct audit_event ev = {
		.kind = kind, .decision = AUDIT_DENY, .action = slice_from_str("start")};

	return audit_append(a, &ev, NULL, err);
}

static uint64_t bytes_of_log(void)
{
	AUTO_FREE char *dir = xasprintf("%s/" FIXTURE_ID, f.dir);
	uint64_t n = 0;

	assert_int_equal(audit_count_bytes(dir, &n, NULL), 0);
	return n;
}

/* Appends until it is refused; gives how many were taken. */
static unsigned fill_up(struct audit *a, struct err *err)
{
	unsigned n = 0;

	while (append_kind(a, AUDIT_KIND_DECISION, err) == 0) {
		n++;
		assert_true(n < 100000);
	}
	return n;
}

static void a_full_log_takes_no_decision_but_what_the_host_does(void **state)
{
	static const enum audit_kind of_guest[] = {AUDIT_KIND_DECISION, AUDIT_KIND_CREDENTIAL_USE,
		AUDIT_KIND_APPROVAL, AUDIT_KIND_SIGNATURE};
	static const enum audit_kind of_host[] = {
		AUDIT_KIND_POLICY_CHANGE, AUDIT_KIND_LIFECYCLE, AUDIT_KIND_WORKER_VIOLATION};
	struct err err = {0};
	struct audit *a;
	uint64_t was;

	f.max_bytes = 100000;
	f.segment_bytes = 30000;
	a = fixture_open(&f, FIXTURE_ID);
	assert_true(fill_up(a, &err) > 100);
	assert_true(audit_is_full(a));
	assert_non_null(strstr(err.text, "audit.max-size (97.7 KiB)"));
	assert_non_null(strstr(err.text, "sbx settings set audit.max-size 1m"));
	assert_true(count_files("0*.jsonl") > 2);
	was = bytes_of_log();
	assert_int_equal(was, a->used);
	assert_true(was >= 100000 && was < 100000 + 3 * 1024);
	for (int i = 0; i < 1000; i++)
		for (size_t k = 0; k < ARRAY_LEN(of_guest); k++)
			assert_int_equal(append_kind(a, of_guest[k], NULL), -EDQUOT);
	assert_int_equal(bytes_of_log(), was);
	for (size_t k = 0; k < ARRAY_LEN(of_host); k++)
		assert_int_equal(append_kind(a, of_host[k], NULL), 0);
	must_close(a);
	fixture_must_verify(&f, FIXTURE_ID);
}

static int count_full(void *arg, const struct audit_record *rec, struct slice line)
{
	unsigned *n = arg;

	*n += slice_eq_str(rec->ev.action, "log-full");
	return 0;
}

static unsigned n_full_said(void)
{
	unsigned n = 0;
	struct audit_expect expect = {
		.pub = audit_key_pub(f.key), .sandbox = FIXTURE_ID, .fn = count_full, .arg = &n};
	struct audit_reader *rd = NULL;

	assert_int_equal(audit_reader_open(f.dir, FIXTURE_ID, &expect, &rd, NULL), 0);
	assert_true(audit_reader_pump(rd, NULL) >= 0);
	audit_reader_close(rd);
	return n;
}

static void a_log_that_has_room_again_goes_on(void **state)
{
	struct err err = {0};
	struct audit *a;

	f.max_bytes = 20000;
	a = fixture_open(&f, FIXTURE_ID);
	(void)fill_up(a, &err);
	assert_int_equal(n_full_said(), 1);
	audit_set_max_bytes(a, 40000);
	assert_false(audit_is_full(a));
	assert_true(fill_up(a, &err) > 20);
	assert_int_equal(n_full_said(), 2);
	audit_set_max_bytes(a, 10000); /* less than there is */
	assert_int_equal(append_kind(a, AUDIT_KIND_DECISION, &err), -EDQUOT);
	assert_int_equal(n_full_said(), 2);
	must_close(a);
	/* What is there counts for the next writer too. */
	a = fixture_open(&f, FIXTURE_ID);
	assert_true(audit_is_full(a));
	assert_int_equal(fill_up(a, &err), 0);
	audit_set_max_bytes(a, 0);
	fixture_fill(a, 200);
	must_close(a);
	fixture_must_verify(&f, FIXTURE_ID);
}

static void the_command_names_a_size_that_is_enough(void **state)
{
	struct err err = {0};
	struct audit *a;

	f.max_bytes = 1ull << 30;
	a = fixture_open(&f, FIXTURE_ID);
	a->used = f.max_bytes;
	assert_int_equal(append_kind(a, AUDIT_KIND_DECISION, &err), -EDQUOT);
	assert_non_null(strstr(err.text, "(1 GiB)"));
	assert_non_null(strstr(err.text, "audit.max-size 2g"));
	a->used = 5 * f.max_bytes / 2;
	assert_int_equal(append_kind(a, AUDIT_KIND_DECISION, &err), -EDQUOT);
	assert_non_null(strstr(err.text, "audit.max-size 4g"));
	must_close(a);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, up, down)
	const struct CMUnitTest tests[] = {
		TEST(numbers_follow_and_the_log_is_good),
		TEST(a_closed_log_goes_on_where_it_was),
		TEST(a_head_comes_by_time_too),
		TEST(a_log_has_one_writer),
		TEST(a_bad_id_is_no_path),
		TEST(segments_follow_each_other),
		TEST(a_missing_last_segment_is_a_rollback),
		TEST(a_crash_between_heads_is_told),
		TEST(a_torn_tail_is_cut_kept_and_told),
		TEST(damage_before_the_kept_head_is_not_repaired),
		TEST(a_log_without_its_kept_head_is_refused),
		TEST(a_kept_head_without_its_log_is_a_rollback),
		TEST(another_key_may_not_go_on),
		TEST(a_crash_while_a_segment_begins_is_repaired),
		TEST(a_crash_while_a_log_begins_is_repaired),
		TEST(a_record_that_does_not_fit_leaves_nothing),
		TEST(a_full_disk_refuses_and_then_goes_on_without_a_gap),
		TEST(what_cannot_be_kept_stops_the_next_record),
		TEST(a_long_host_is_cut_and_the_decision_is_there),
		TEST(files_are_for_their_owner_only),
		TEST(a_full_log_takes_no_decision_but_what_the_host_does),
		TEST(a_log_that_has_room_again_goes_on),
		TEST(the_command_names_a_size_that_is_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
