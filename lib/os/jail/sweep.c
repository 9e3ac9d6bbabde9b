/* SPDX-License-Identifier: Apache-2.0 */
#include "sweep.h"

#include <errno.h>
#include <inttypes.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "filter.h"

#define X32_BIT 0x40000000
#define NO_EXEC_FD 4000
/* uretprobe and uprobe: since 6.13 no filter sees them, and the kernel kills (or answers ENXIO to)
 * a process that calls them outside of a probe that a privileged process has set. */
#define FIRST_UNSEEN 335
#define LAST_UNSEEN 336

/* The result of a number in the row; except for ALLOWED and SOMETIMES also how a child exits. */
enum fate { ALLOWED, SOMETIMES, KILLED, GOT_EPERM, GOT_ENOSYS, FAKED, LET_THROUGH, UNSEEN, BROKEN };

static int number_of(const char *call, size_t n)
{
	char name[48];

	if (n >= sizeof(name))
		return -1;
	memcpy(name, call, n);
	name[n] = '\0';
	/* younger than the oldest libseccomp we build with */
	return strcmp(name, "fchmodat2") == 0 ? 452 : seccomp_syscall_resolve_name(name);
}

/* ALLOWED, SOMETIMES, or LET_THROUGH when the groups do not name it. */
static enum fate named_in(const struct jail_group *g, int nr)
{
	enum fate found = LET_THROUGH;

	for (; g && g->why; g++)
		for (const char *p = g->calls; *p; p += strspn(p, " ")) {
			size_t n = strcspn(p, " "), bare = strcspn(p, " /");

			if (number_of(p, bare) == nr)
				found = bare == n ? ALLOWED : SOMETIMES;
			if (found == ALLOWED)
				return found;
			p += n;
		}
	return found;
}

static enum fate declared_sweep(const struct jail_row *row, enum sweep_list list, int nr)
{
	enum fate f = named_in(list == SWEEP_SEAL ? row->seal : row->start, nr);

	if (f != LET_THROUGH)
		return f;
	if (list == SWEEP_SEAL || nr & X32_BIT)
		return KILLED;
	if (nr == SYS_execveat) /* the one program; jail_test.c */
		return SOMETIMES;
	if (named_in(row->faked, nr) == ALLOWED)
		return FAKED;
	return named_in(row->absent, nr) == ALLOWED ? GOT_ENOSYS : GOT_EPERM;
}

static void child_sweep(const struct filter *f, int nr) __attribute__((noreturn));
static void child_sweep(const struct filter *f, int nr)
{
	long r;

	(void)signal(SIGILL, SIG_DFL);
	(void)signal(SIGALRM, SIG_DFL);
	(void)alarm(SWEEP_SECONDS);
	if (f && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || filter_install(f, false) < 0))
		_exit(BROKEN);
	errno = 0;
	r = syscall(nr, 0, 0, 0, 0, 0, 0);
	if (r == -1 && errno == EPERM)
		_exit(GOT_EPERM);
	if (r == -1 && errno == ENOSYS)
		_exit(GOT_ENOSYS);
	if (r == -1 && errno == ENXIO)
		_exit(UNSEEN);
	_exit(r == 0 ? FAKED : LET_THROUGH);
}

static enum fate attempt_sweep(const struct filter *f, int nr)
{
	long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	int status;

	if (pid == 0)
		child_sweep(f, nr);
	if (pid < 0 || waitpid((pid_t)pid, &status, 0) < 0)
		return BROKEN;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGILL)
		return UNSEEN;
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGSYS ? KILLED : LET_THROUGH;
	if (WIFSTOPPED(status)) {
		(void)syscall(SYS_kill, pid, SIGKILL);
		(void)waitpid((pid_t)pid, &status, 0);
		return LET_THROUGH;
	}
	return (enum fate)WEXITSTATUS(status);
}

static void print_call(const char *before, int nr, const char *after)
{
	char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr & ~X32_BIT);

	printf("%s%s%s(%d)%s", before, nr & X32_BIT ? "x32 " : "", name ? name : "", nr & ~X32_BIT,
		after);
	free(name);
}

static void print_all(
	const struct jail_row *row, enum sweep_list list, enum fate which, const char *words)
{
	printf("%s", words);
	for (int nr = 0; nr < SWEEP_CALLS; nr++)
		if (declared_sweep(row, list, nr) == which)
			print_call(" ", nr, "");
	printf("\n");
}

static bool try_one(
	const struct jail_row *row, enum sweep_list list, const struct filter *f, int nr)
{
	enum fate want = declared_sweep(row, list, nr);
	enum fate got = attempt_sweep(f, nr);

	if (got == want || (got == UNSEEN && nr >= FIRST_UNSEEN && nr <= LAST_UNSEEN))
		return true;
	print_call("NOT REFUSED ", nr, got == BROKEN ? ": the call could not be tried\n" : "\n");
	return false;
}

static bool try_all(const struct jail_row *row, enum sweep_list list, const struct filter *f)
{
	unsigned tried = 0, wrong = 0;

	for (int nr = 0; nr < SWEEP_CALLS; nr++) {
		enum fate want = declared_sweep(row, list, nr);

		if (want == ALLOWED || want == SOMETIMES)
			continue;
		wrong += !try_one(row, list, f, nr);
		tried++;
	}
	wrong += !try_one(row, list, f, SYS_getpid | X32_BIT);
	printf("refused: %u of %u\n", tried + 1 - wrong, tried + 1);
	return wrong == 0 && tried > 0;
}

int jail_sweep(enum jail_profile profile, enum sweep_list list)
{
	const struct jail_row *row = jail_row(profile);
	CLEANUP(filter_done) struct filter f = {0};
	struct err err = {0};
	bool good;
	int r;

	if (!(list == SWEEP_SEAL ? row->seal : row->start))
		r = err_set(&err, -ENOENT, "the program has no such list");
	else
		r = list == SWEEP_SEAL ? filter_make_seal(row, &f, &err)
				       : filter_make_start(row, false, NO_EXEC_FD, &f, &err);
	if (r < 0) {
		printf("%s: no list: %s\n", row->name, err_text(&err, r));
		return 1;
	}
	printf("%s, %s\n", row->name,
		list == SWEEP_SEAL ? "sealed: other calls kill the process"
				   : "from exec on: other calls fail");
	print_all(row, list, ALLOWED, "allowed:");
	print_all(row, list, SOMETIMES, "allowed with certain arguments:");
	(void)fflush(stdout);
	/* The control: where no list is, a call is seen to pass. */
	good = attempt_sweep(NULL, SYS_getpid) == LET_THROUGH;
	if (!good)
		printf("NOT REFUSED: the control call failed\n");
	good = try_all(row, list, &f) && good;
	return good ? 0 : 1;
}

static void print_limit(const char *what, rlim_t value)
{
	if (value == RLIM_INFINITY)
		printf("limit %s unlimited\n", what);
	else
		printf("limit %s %" PRIu64 "\n", what, (uint64_t)value);
}

static void print_row(const struct jail_row *row)
{
	printf("capabilities %016" PRIx64 "\n", row->caps);
	printf("network %s\n", row->host_net ? "host" : "none");
	print_limit("core", row->limit.core);
	print_limit("fsize", row->limit.fsize);
	print_limit("nproc", row->limit.nproc);
	print_limit("nofile", row->limit.nofile);
	print_limit("memlock", row->limit.memlock);
}

int jail_sweep_named(const char *name)
{
	for (int i = 0; i < JAIL_N_PROFILES; i++) {
		const struct jail_row *row = jail_row((enum jail_profile)i);
		int bad = 0;

		if (strcmp(row->name, name) != 0)
			continue;
		print_row(row);
		if (row->start)
			bad |= jail_sweep((enum jail_profile)i, SWEEP_START);
		if (row->seal)
			bad |= jail_sweep((enum jail_profile)i, SWEEP_SEAL);
		return bad;
	}
	(void)fprintf(stderr, "sbx-keeper: no jail for a program of this name\n");
	return 2;
}
