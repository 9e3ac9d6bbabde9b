/* SPDX-License-Identifier: Apache-2.0 */
/* A process in the real filter uses names; the test answers for them as the supervisor does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/os/jail/filter.h"
#include "lib/vm/share/hide.h"
#include "lib/vm/share/room.h"

#define N_PAGES 3

static const char *const globs[] = {".env*"};
static const struct hide_ask ask = {.globs = globs, .n = 1, .room = {.sock = -1}};
static char dir[] = "/tmp/sbx-hide-XXXXXX";

/* What an attempt gives: an errno, or 0. Runs in the filtered process. */
typedef int attempt_fn(int at, const char *name);

static int try_open(int at, const char *name)
{
	int fd = (int)syscall(SYS_openat, at, name, O_RDONLY | O_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	(void)close(fd);
	return 0;
}

static int try_rename_to(int at, const char *name)
{
	return syscall(SYS_renameat, at, "plain", at, name) < 0 ? errno : 0;
}

static int try_rename2_from(int at, const char *name)
{
	return syscall(SYS_renameat2, at, name, at, "plain2", 0) < 0 ? errno : 0;
}

static int try_link_to(int at, const char *name)
{
	return syscall(SYS_linkat, at, "plain", at, name, 0) < 0 ? errno : 0;
}

/* A process in the filter; it makes its attempt once for each byte from `go`. */
struct child {
	pid_t pid;
	int said, go, listener;
};

static void __attribute__((noreturn))
filtered(int said, int go, int at, attempt_fn *attempt, const char *name)
{
	struct filter f = {0};
	char byte;
	int fd;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (filter_make_notify(&(struct filter_notify){.paths = true}, &f, NULL) < 0)
		_exit(1);
	fd = filter_install(&f, true);
	if (fd < 0 || write(said, &fd, sizeof(fd)) != sizeof(fd))
		_exit(1);
	/* The first byte says that the parent has the listener. */
	if (read(go, &byte, 1) != 1 || close(fd) < 0)
		_exit(1);
	while (read(go, &byte, 1) == 1) {
		int result = attempt(at, name);

		if (write(said, &result, sizeof(result)) != sizeof(result))
			_exit(1);
	}
	_exit(0);
}

static void start_child(struct child *c, attempt_fn *attempt, const char *name)
{
	AUTO_CLOSE int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC), pidfd = -1;
	int said[2], go[2], theirs;

	assert_int_equal(pipe2(said, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	c->pid = fork();
	if (c->pid == 0) {
		(void)close(go[1]);
		filtered(said[1], go[0], at, attempt, name);
	}
	(void)close(said[1]);
	(void)close(go[0]);
	c->said = said[0];
	c->go = go[1];
	assert_int_equal(read(c->said, &theirs, sizeof(theirs)), sizeof(theirs));
	pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	c->listener = (int)syscall(SYS_pidfd_getfd, pidfd, theirs, 0);
	assert_true(c->listener >= 0);
	assert_int_equal(write(c->go, "x", 1), 1);
}

static void begin_attempt(struct child *c)
{
	assert_int_equal(write(c->go, "x", 1), 1);
}

static int hear_result(struct child *c)
{
	int result;

	assert_int_equal(read(c->said, &result, sizeof(result)), sizeof(result));
	return result;
}

static void end_child(struct child *c)
{
	int status;

	fd_close(&c->go);
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	assert_int_equal(status, 0);
	fd_close(&c->said);
	fd_close(&c->listener);
}

/* The errno of one attempt of a filtered process for which hide_answer decides. */
static int result_of(attempt_fn *attempt, const char *name)
{
	struct child c;
	int result, r;

	start_child(&c, attempt, name);
	begin_attempt(&c);
	fd_close(&c.go);
	do {
		r = hide_answer(c.listener, &ask);
	} while (r == 0);
	assert_int_equal(r, 1);
	result = hear_result(&c);
	end_child(&c);
	return result;
}

static void hidden_names_are_refused_and_others_are_not(void **state)
{
	assert_int_equal(result_of(try_open, "plain"), 0);
	assert_int_equal(result_of(try_open, "missing"), ENOENT);
	assert_int_equal(result_of(try_open, ".env"), EACCES);
	assert_int_equal(result_of(try_open, ".env.missing"), EACCES);
}

/* The second name counts as well as the first. */
static void no_name_becomes_hidden_or_stops_being_hidden(void **state)
{
	assert_int_equal(result_of(try_rename2_from, ".env"), EACCES);
	assert_int_equal(result_of(try_rename_to, ".env.new"), EACCES);
	assert_int_equal(result_of(try_link_to, ".env.new"), EACCES);
	assert_int_equal(result_of(try_link_to, "plain.new"), 0);
	assert_int_equal(result_of(try_rename_to, "plain.moved"), 0);
	assert_int_equal(result_of(try_rename2_from, "plain.moved"), 0);
}

/* The kernel would say EFAULT or ENAMETOOLONG; the supervisor has to say no before it. */
static void a_name_that_cannot_be_read_is_refused(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(
		NULL, N_PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	memset(p, 'x', N_PAGES * page);
	assert_int_equal(result_of(try_open, p), EACCES); /* longer than PATH_MAX */
	assert_int_equal(munmap(p + page, page), 0);
	assert_int_equal(result_of(try_open, p + page - 3), EACCES); /* goes on where nothing is */
	assert_int_equal(result_of(try_open, p + page), EACCES);
	assert_int_equal(result_of(try_rename_to, p + page), EACCES);
	/* A name that ends at the border can be read. */
	p[page - 1] = '\0';
	assert_int_equal(result_of(try_open, p + page - 3), ENOENT);
	assert_int_equal(munmap(p, page), 0);
	assert_int_equal(munmap(p + 2 * page, page), 0);
}

/* Each call that takes names, with the numbers of the arguments that are a folder and a name.
 * The arguments that are not named here are 0: a refusal comes before the kernel looks at them. */
static const struct named_call {
	long nr;
	int at, name, other_at, other_name; /* the other name; -1: none */
} named_calls[] = {
	{SYS_openat, 0, 1, -1, -1},
	{SYS_openat2, 0, 1, -1, -1},
	{SYS_newfstatat, 0, 1, -1, -1},
	{SYS_statx, 0, 1, -1, -1},
	{SYS_faccessat, 0, 1, -1, -1},
	{SYS_faccessat2, 0, 1, -1, -1},
	{SYS_readlinkat, 0, 1, -1, -1},
	{SYS_name_to_handle_at, 0, 1, -1, -1},
	{SYS_mkdirat, 0, 1, -1, -1},
	{SYS_mknodat, 0, 1, -1, -1},
	{SYS_unlinkat, 0, 1, -1, -1},
	{SYS_fchmodat, 0, 1, -1, -1},
	{452 /* fchmodat2 */, 0, 1, -1, -1},
	{SYS_fchownat, 0, 1, -1, -1},
	{SYS_utimensat, 0, 1, -1, -1},
	{SYS_symlinkat, 1, 2, -1, -1},
	{SYS_linkat, 0, 1, 2, 3},
	{SYS_linkat, 2, 3, 0, 1},
	{SYS_renameat, 0, 1, 2, 3},
	{SYS_renameat, 2, 3, 0, 1},
	{SYS_renameat2, 0, 1, 2, 3},
	{SYS_renameat2, 2, 3, 0, 1},
};

static const struct named_call *call; /* that try_call makes */

static int try_call(int at, const char *name)
{
	long a[5] = {0};

	a[call->at] = at;
	a[call->name] = (long)name;
	if (call->other_name >= 0) {
		a[call->other_at] = at;
		a[call->other_name] = (long)"none/other";
	}
	return syscall(call->nr, a[0], a[1], a[2], a[3], a[4]) < 0 ? errno : 0;
}

static void every_call_with_a_name_is_decided_by_that_name(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(named_calls); i++) {
		int hidden, plain;

		call = &named_calls[i];
		hidden = result_of(try_call, "none/.env");
		plain = result_of(try_call, "none/plain");
		if (hidden != EACCES || plain == EACCES)
			fail_msg("call %ld, name in argument %d: %d when hidden, %d when not",
				call->nr, call->name, hidden, plain);
	}
}

/* Without a folder's descriptor a name is virtiofsd's own. */
static int try_from_cwd(int at, const char *name)
{
	return try_open(AT_FDCWD, name);
}

static void names_of_virtiofsd_itself_are_not_hidden(void **state)
{
	assert_int_equal(result_of(try_from_cwd, ".env"), 0);
}

static void the_supervisor_decides_and_nothing_is_open_without_it(void **state)
{
	struct jail_child supervisor;
	struct child hidden, plain;
	struct err err = {0};

	start_child(&hidden, try_open, ".env");
	assert_int_equal(hide_start(&hidden.listener, &ask, &supervisor, &err), 0);
	assert_int_equal(hidden.listener, -1);
	begin_attempt(&hidden);
	assert_int_equal(hear_result(&hidden), EACCES);
	begin_attempt(&hidden);
	assert_int_equal(hear_result(&hidden), EACCES);
	end_child(&hidden);
	jail_child_kill(&supervisor);

	start_child(&plain, try_open, "kept");
	assert_int_equal(hide_start(&plain.listener, &ask, &supervisor, &err), 0);
	begin_attempt(&plain);
	assert_int_equal(hear_result(&plain), 0);
	jail_child_kill(&supervisor);
	begin_attempt(&plain);
	assert_int_equal(hear_result(&plain), ENOSYS);
	end_child(&plain);
}

/* It ends by itself when nobody is left in the filter. */
static void the_supervisor_ends_with_its_process(void **state)
{
	struct jail_child supervisor;
	struct err err = {0};
	struct child c;
	int status;

	start_child(&c, try_open, "kept");
	assert_int_equal(hide_start(&c.listener, &ask, &supervisor, &err), 0);
	end_child(&c);
	assert_int_equal(waitpid(supervisor.pid, &status, 0), supervisor.pid);
	assert_int_equal(status, 0);
	fd_close(&supervisor.pidfd);
}

static int make_dir(void **state)
{
	static const char *const names[] = {"plain", "kept", ".env"};

	if (!mkdtemp(dir) || chdir(dir) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		int fd = open(names[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

		if (fd < 0)
			return -1;
		(void)close(fd);
	}
	return 0;
}

static int remove_dir(void **state)
{
	static const char *const names[] = {
		"plain", "kept", "plain2", "plain.new", "plain.moved", ".env", ".env.new"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		(void)unlink(names[i]);
	return chdir("/") == 0 ? rmdir(dir) : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hidden_names_are_refused_and_others_are_not),
		cmocka_unit_test(no_name_becomes_hidden_or_stops_being_hidden),
		cmocka_unit_test(a_name_that_cannot_be_read_is_refused),
		cmocka_unit_test(every_call_with_a_name_is_decided_by_that_name),
		cmocka_unit_test(names_of_virtiofsd_itself_are_not_hidden),
		cmocka_unit_test(the_supervisor_decides_and_nothing_is_open_without_it),
		cmocka_unit_test(the_supervisor_ends_with_its_process),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
