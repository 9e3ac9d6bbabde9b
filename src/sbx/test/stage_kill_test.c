/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_kill_test - apply and undo are killed at any system call that changes something: each path
 * then has its old or its new version, and both continue and undo reach their end.
 */
#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "stage_rig.h"

/* Calls until the kill; 0: never. */
static unsigned kill_in, n_calls;
static bool kill_before;

static void count_call(bool before)
{
	if (before)
		n_calls++;
	if (kill_in > 0 && n_calls == kill_in && before == kill_before)
		(void)raise(SIGKILL);
}

#define WRAPPED(type, name, params, args)    \
	type __real_##name params;           \
	type __wrap_##name params;           \
	type __wrap_##name params            \
	{                                    \
		type result;                 \
                                             \
		count_call(true);            \
		result = __real_##name args; \
		count_call(false);           \
		return result;               \
	}

WRAPPED(int, renameat2, (int a, const char *b, int c, const char *d, unsigned e), (a, b, c, d, e))
WRAPPED(int, renameat, (int a, const char *b, int c, const char *d), (a, b, c, d))
WRAPPED(int, rename, (const char *a, const char *b), (a, b))
WRAPPED(int, unlinkat, (int a, const char *b, int c), (a, b, c))
WRAPPED(int, mkdirat, (int a, const char *b, mode_t c), (a, b, c))
WRAPPED(int, symlinkat, (const char *a, int b, const char *c), (a, b, c))
WRAPPED(int, fchmodat, (int a, const char *b, mode_t c, int d), (a, b, c, d))
WRAPPED(int, fchmod, (int a, mode_t b), (a, b))
WRAPPED(ssize_t, write, (int a, const void *b, size_t c), (a, b, c))

/* A kill loses nothing that was written: the disk is not the subject here. */
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
	count_call(true);
	count_call(false);
	return 0;
}

int __wrap_syncfs(int fd);
int __wrap_syncfs(int fd)
{
	return __wrap_fsync(fd);
}

typedef int action_fn(struct rig *r);

/* Runs an action in a child that is killed at a call. True: it came to its end without a skip. */
static bool run_killed(struct rig *r, action_fn *fn, unsigned at)
{
	int status;
	pid_t pid;

	(void)fflush(NULL);
	pid = fork();
	if (pid == 0) {
		n_calls = 0;
		kill_before = at & 1;
		kill_in = (at + 1) / 2;
		_exit(fn(r) == 0 ? 0 : 1);
	}
	assert(waitpid(pid, &status, 0) == pid);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return false;
	assert(status == 0);
	return true;
}

static bool same_line(const char *a, const char *b)
{
	size_t n = strcspn(a, "\n");

	return n == strcspn(b, "\n") && strncmp(a, b, n) == 0;
}

/* Every line of `now` is in one of the two, or is a directory whose mode is not set yet. */
static bool is_old_or_new(const struct rig *r, const char *now)
{
	for (const char *p = now; *p; p += strcspn(p, "\n") + 1) {
		size_t n = strcspn(p, "\n");
		bool found = n > 6 && strncmp(p + n - 6, " d 700", 6) == 0;

		for (int k = 0; !found && k < 2; k++) {
			const char *all = k ? r->view : r->before;

			for (const char *q = all; *q && !found; q += strcspn(q, "\n") + 1)
				found = same_line(p, q);
		}
		if (!found) {
			printf("neither old nor new: %.*s\n", (int)n, p);
			return false;
		}
	}
	return true;
}

/* What both snapshots have with the same line is never touched. */
static bool has_untouched(const struct rig *r, const char *now)
{
	for (const char *p = r->before; *p; p += strcspn(p, "\n") + 1) {
		const char *after = NULL, *have = NULL;

		for (const char *q = r->view; *q && !after; q += strcspn(q, "\n") + 1)
			after = same_line(p, q) ? q : NULL;
		for (const char *q = now; *q && !have; q += strcspn(q, "\n") + 1)
			have = same_line(p, q) ? q : NULL;
		if (after && !have) {
			printf("lost: %.*s\n", (int)strcspn(p, "\n"), p);
			return false;
		}
	}
	return true;
}

static unsigned count_calls(uint64_t seed)
{
	struct rig r;
	unsigned n;

	rig_open(&r, seed);
	rig_guest(&r, 20);
	rig_plan(&r);
	n_calls = 0;
	assert(rig_apply(&r) == 0);
	n = n_calls;
	rig_close(&r);
	return n;
}

/* `second`: the call at which what follows is killed, too. */
static int run_round(uint64_t seed, unsigned at, unsigned second, bool undo)
{
	AUTO_FREE char *now = NULL, *end = NULL;
	action_fn *fn = undo ? rig_undo : rig_continue;
	struct rig r;
	int bad = 0;

	rig_open(&r, seed);
	rig_guest(&r, 20);
	rig_plan(&r);
	if (run_killed(&r, rig_apply, at)) {
		rig_close(&r);
		return 0;
	}
	now = rig_host_snapshot(&r, false);
	bad = !is_old_or_new(&r, now) || !has_untouched(&r, now);
	{
		AUTO_FREE char *journal = rig_path(&r, "undo/journal");

		if (!bad && access(journal, F_OK) < 0) {
			bad = strcmp(now, r.before) != 0; /* nothing was begun */
			rig_close(&r);
			return bad;
		}
	}
	if (!bad)
		(void)!run_killed(&r, fn, second);
	if (!bad && !run_killed(&r, fn, 0))
		bad = 1;
	end = rig_host_snapshot(&r, true);
	if (!bad && strcmp(end, undo ? r.before : r.view) != 0) {
		printf("after %s:\n%s---- expected\n%s", undo ? "undo" : "continue", end,
			undo ? r.before : r.view);
		bad = 1;
	}
	rig_close(&r);
	return bad;
}

int main(void)
{
	const char *text = getenv("SBX_STAGE_ROUNDS");
	uint64_t n = text ? strtoull(text, NULL, 10) : 30;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t seed = 100 + i % 7;
		unsigned calls = count_calls(seed);
		struct rig any = {.seed = i * 7919 + 12345};
		unsigned at = 1 + (unsigned)rig_random(&any, calls * 2);
		unsigned second = (unsigned)rig_random(&any, calls * 2);
		bool undo = rig_random(&any, 2);

		if (run_round(seed, at, second, undo)) {
			printf("round %llu: seed %llu, killed at %u and %u of %u, %s\n",
				(unsigned long long)i, (unsigned long long)seed, at, second,
				calls * 2, undo ? "undo" : "continue");
			return 1;
		}
	}
	printf("%llu rounds\n", (unsigned long long)n);
	return 0;
}
