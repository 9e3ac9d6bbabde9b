/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer that says which records were acknowledged is killed at a random moment, again and again;
 * none of them may be missing. Usage: audit_kill_test [ROUNDS [SEED]]
 */
#include "audit_fixture.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include "lib/rules/audit/audit.h"

/* Most die while they write, every fourth may live to its first sync. */
#define MAX_WRITER_US 20000
#define MAX_SYNC_US (2 * AUDIT_SYNC_MS * 1000)

static unsigned long n_rounds = 60;
static struct fixture f;

/* Writes for ever; each number goes into the pipe after audit_append said yes. */
static void write_until_killed(int out, unsigned seed)
{
	struct audit *a = NULL;
	uint64_t seq;

	if (fixture_try(&f, FIXTURE_ID, &a, NULL) < 0)
		_exit(2);
	for (unsigned i = seed;; i++)
		if (fixture_append(a, i, &seq) < 0 || write(out, &seq, sizeof(seq)) != sizeof(seq))
			_exit(3);
}

/* The last number that was acknowledged, 0 for none. */
static uint64_t kill_one(unsigned round)
{
	uint64_t seq, last = 0;
	int fds[2], status;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		(void)close(fds[0]);
		write_until_killed(fds[1], round * 1000);
	}
	(void)close(fds[1]);
	/* Some while it opens the log, most while it writes. */
	if (round % 8)
		assert_int_equal(read(fds[0], &seq, sizeof(seq)), sizeof(seq));
	usleep((useconds_t)(rand() % (round % 4 ? MAX_WRITER_US : MAX_SYNC_US)));
	assert_int_equal(kill(pid, SIGKILL), 0);
	while (read(fds[0], &seq, sizeof(seq)) == sizeof(seq))
		last = seq;
	(void)close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	return last;
}

/*
 * On a busy disk most writers die in fsync, behind a head that was just written: nothing to
 * recover. Rounds go on until enough of them died with records that no head had signed.
 */
static bool is_more_wanted(const struct audit_report *rep, unsigned long round)
{
	return rep->n_recovered <= n_rounds / 3 && round < 4 * n_rounds;
}

static void kill9_loses_no_acknowledged_record(void **state)
{
	uint64_t acknowledged = 0, records = 0;
	struct audit_report rep = {0};
	unsigned long i;

	for (i = 0; i < n_rounds || is_more_wanted(&rep, i); i++) {
		uint64_t last = kill_one((unsigned)i);
		struct audit *a;

		acknowledged = MAX(acknowledged, last);
		a = fixture_open(&f, FIXTURE_ID);
		/* Between what was acknowledged and this there is only what was never told. */
		assert_true(a->tip.next_seq > acknowledged);
		assert_int_equal(audit_close(a, NULL), 0);
		if (i % 40 && i + 1 < n_rounds)
			continue;
		rep = fixture_verify(&f, FIXTURE_ID);
		if (rep.bad != AUDIT_OK)
			fail_msg("round %lu: record %" PRIu64 ": %s", i, rep.seq,
				audit_bad_text(rep.bad));
		assert_true(rep.seq > acknowledged);
		records = rep.n_records;
	}
	print_message("%lu kills, %" PRIu64 " records, %" PRIu64 " recoveries, none missing\n", i,
		records, rep.n_recovered);
	assert_true(rep.n_recovered > n_rounds / 3); /* else too few were killed in their work */
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(kill9_loses_no_acknowledged_record)};
	unsigned seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : (unsigned)time(NULL);
	int r;

	if (argc > 1)
		n_rounds = strtoul(argv[1], NULL, 10);
	print_message("seed %u\n", seed);
	srand(seed);
	fixture_up(&f);
	f.head_records = 100;
	f.segment_bytes = 2000000;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	fixture_down(&f);
	return r;
}
