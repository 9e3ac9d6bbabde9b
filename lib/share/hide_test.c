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
#include "lib/base/fd.h"
#include "lib/jail/filter.h"
#include "hide.h"
#include "room.h"

#define N_PAGES 3

static const char *const globs[] = {".env*"};
static const struct room_ask no_room = {.sock = -1};
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

static void __attribute__((noreturn))
filtered(int said, int go, int at, attempt_fn *attempt, const char *name)
{
	struct filter f = {0};
	int fd, result;
	char byte;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (filter_make_notify(true, 0, &f, NULL) < 0)
		_exit(1);
	fd = filter_install(&f, true);
	if (fd < 0 || write(said, &fd, sizeof(fd)) != sizeof(fd) || read(go, &byte, 1) != 1)
		_exit(1);
	result = attempt(at, name);
	_exit(write(said, &result, sizeof(result)) == sizeof(result) ? 0 : 1);
}

/* The errno of one attempt of a filtered process for which hide_answer decides. */
static int result_of(attempt_fn *attempt, const char *name)
{
	AUTO_CLOSE int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int listener = -1, pidfd = -1;
	int said[2], go[2], theirs, result, status, r;
	pid_t pid;

	assert_int_equal(pipe2(said, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0)
		filtered(said[1], go[0], at, attempt, name);
	assert_int_equal(read(said[0], &theirs, sizeof(theirs)), sizeof(theirs));
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	listener = (int)syscall(SYS_pidfd_getfd, pidfd, theirs, 0);
	assert_true(listener >= 0);
	assert_int_equal(write(go[1], "x", 1), 1);
	do {
		r = hide_answer(listener, globs, ARRAY_LEN(globs), &no_room);
	} while (r == 0);
	assert_int_equal(r, 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(said[0], &result, sizeof(result)), sizeof(result));
	for (int i = 0; i < 2; i++) {
		(void)close(said[i]);
		(void)close(go[i]);
	}
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

static int make_dir(void **state)
{
	static const char *const names[] = {"plain", ".env"};

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
		"plain", "plain2", "plain.new", "plain.moved", ".env", ".env.new"};

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
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
