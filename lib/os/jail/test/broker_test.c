/* SPDX-License-Identifier: Apache-2.0 */
/* A broker as it is after jail_broker: tried from within, in a fork. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/os/jail/broker.h"
#include "lib/os/jail/jail_internal.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

static char dir[] = "/tmp/sbx-broker-XXXXXX";
static char own[64], read_only[64], other[64], socket_path[80];

static char *in(const char *folder, const char *name)
{
	return xasprintf("%s/%s", folder, name);
}

static bool opens(const char *folder, const char *name, int flags)
{
	AUTO_FREE char *path = in(folder, name);
	int fd = open(path, flags | O_CLOEXEC, 0600);
	bool ok = fd >= 0;

	fd_close(&fd);
	return ok;
}

/* Runs `work` in a fork that is sealed as `profile`: the number of its first line that failed, 0
 * when all is well. */
static int sealed_as(enum jail_profile profile, int (*work)(void))
{
	struct jail_root dirs[] = {{own, true}, {read_only, false}, {"/nowhere", true},
		{"/proc", false}, {"/dev/null", true}};
	struct err err = {0};
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (jail_broker(profile, dirs, ARRAY_LEN(dirs), &err) < 0) {
			fprintf(stderr, "%s\n", err.text);
			_exit(255);
		}
		_exit(work());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int sealed(int (*work)(void))
{
	return sealed_as(JAIL_KEEPER, work);
}

#define MUST(n, cond)             \
	do {                      \
		if (!(cond))      \
			return n; \
	} while (0)

static int try_files(void)
{
	AUTO_FREE char *from = in(own, "a"), *to = in(own, "sub/a"), *away = in(other, "a");

	MUST(1, opens(own, "a", O_RDWR | O_CREAT));
	MUST(2, rename(from, to) == 0); /* from one directory to another */
	MUST(3, opens(read_only, "file", O_RDONLY));
	MUST(4, !opens(read_only, "file", O_RDWR) && errno == EACCES);
	MUST(5, !opens(read_only, "new", O_RDWR | O_CREAT) && errno == EACCES);
	MUST(6, !opens(other, "file", O_RDONLY) && errno == EACCES);
	MUST(7, !opens(other, "new", O_RDWR | O_CREAT) && errno == EACCES);
	MUST(8, !opens(dir, "", O_RDONLY | O_DIRECTORY) && errno == EACCES);
	MUST(9, rename(to, away) < 0 && (errno == EXDEV || errno == EACCES));
	MUST(10, !opens("/etc", "passwd", O_RDONLY) && errno == EACCES);
	MUST(11, opens("/dev", "null", O_RDWR));
	MUST(12, opens("/proc", "self/status", O_RDONLY));
	MUST(13, !opens("/proc/self/root", "etc/passwd", O_RDONLY) && errno == EACCES);
	return 0;
}

static void files_outside_are_closed(void **state)
{
	if (landlock_abi() < 2)
		fail_msg("this kernel has no Landlock of version 2 or more: nothing was tried");
	assert_int_equal(sealed(try_files), 0);
}

/* Once more, with less: what went is gone. */
static int try_less(void)
{
	struct jail_root rest[] = {{read_only, false}};

	MUST(1, opens(own, "b", O_RDWR | O_CREAT));
	MUST(2, jail_broker_files(rest, 1, NULL) == 0);
	MUST(3, !opens(own, "b", O_RDONLY) && errno == EACCES);
	MUST(4, opens(read_only, "file", O_RDONLY));
	return 0;
}

static void a_second_time_takes_more_away(void **state)
{
	assert_int_equal(sealed(try_less), 0);
}

static bool status_says(const char *line)
{
	AUTO_CLOSE int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	char text[4096] = "";

	return read(fd, text, sizeof(text) - 1) > 0 && strstr(text, line);
}

static int try_calls(void)
{
	char *const argv[] = {(char *)"true", NULL};
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int pair[2], fd;

	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", socket_path);
	MUST(1, status_says("NoNewPrivs:\t1\n") && status_says("Seccomp:\t2\n"));
	MUST(2, execve("/bin/true", argv, argv + 1) < 0 && errno == EPERM);
	MUST(3, syscall(SYS_execveat, 0, "", argv, argv + 1, AT_EMPTY_PATH) < 0 && errno == EPERM);
	MUST(4, unshare(CLONE_NEWUSER) < 0 && errno == EPERM);
	MUST(5, syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0) < 0 && errno == EPERM);
	MUST(6, syscall(SYS_clone3, NULL, 0) < 0 && errno == ENOSYS);
	MUST(7, syscall(SYS_ptrace, 0, 0, 0, 0) < 0 && errno == EPERM);
	MUST(8, syscall(SYS_mount, "x", "/", "tmpfs", 0, NULL) < 0 && errno == EPERM);
	MUST(9, socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EPERM);
	MUST(10, socket(AF_INET, SOCK_DGRAM, 0) < 0 && errno == EPERM);
	MUST(11, socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0 && errno == EPERM);
	MUST(12, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	MUST(13, connect(pair[0], (struct sockaddr *)&sa, sizeof(sa)) < 0 && errno == EPERM);
	MUST(14, sendto(pair[0], "x", 1, 0, (struct sockaddr *)&sa, sizeof(sa)) < 0 &&
			 errno == EPERM);
	MUST(15, send(pair[0], "x", 1, 0) == 1);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* a published port */
	MUST(16, fd >= 0 && listen(fd, 1) == 0);
	MUST(17, sendto(fd, "x", 1, MSG_FASTOPEN, NULL, 0) < 0);
	MUST(18, syscall(SYS_io_uring_setup, 1, NULL) < 0 && errno == EPERM);
	MUST(19, syscall(SYS_bpf, 0, NULL, 0) < 0 && errno == EPERM);
	MUST(20, syscall(SYS_keyctl, 0, 0, 0, 0, 0) < 0 && errno == EPERM);
	return 0;
}

static void calls_that_are_not_listed_are_refused(void **state)
{
	assert_int_equal(sealed(try_calls), 0);
}

/* A socket that can only listen. */
static bool sends_nothing_over_tcp(void)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(9)};
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 && errno == EPERM &&
	       sendto(fd, "x", 1, MSG_FASTOPEN, (struct sockaddr *)&sa, sizeof(sa)) < 0 &&
	       errno == EPERM && sendto(fd, "x", 1, MSG_FASTOPEN, NULL, 0) < 0 &&
	       listen(fd, 1) == 0;
}

/* sbxd listens on Unix sockets and for suspended sandboxes, and connects to none. */
static int try_sbxd_calls(void)
{
	char *const argv[] = {(char *)"true", NULL};
	struct sockaddr_un sa = {.sun_family = AF_UNIX}, away = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/s", own);
	(void)snprintf(away.sun_path, sizeof(away.sun_path), "%s", socket_path);
	MUST(1, status_says("NoNewPrivs:\t1\n") && status_says("Seccomp:\t2\n"));
	MUST(2, execve("/bin/true", argv, argv + 1) < 0 && errno == EPERM);
	MUST(3, fd >= 0);
	if (landlock_abi() >= 2)
		MUST(4, bind(fd, (struct sockaddr *)&away, sizeof(away)) < 0 && errno == EACCES);
	MUST(5, bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 && listen(fd, 1) == 0);
	MUST(6, unlink(sa.sun_path) == 0);
	MUST(7, connect(fd, (struct sockaddr *)&away, sizeof(away)) < 0 && errno == EPERM);
	MUST(8, socket(AF_UNIX, SOCK_DGRAM, 0) < 0 && errno == EPERM);
	MUST(9, sends_nothing_over_tcp());
	MUST(10, socket(AF_INET6, SOCK_DGRAM, 0) < 0 && errno == EPERM);
	MUST(11, unshare(CLONE_NEWUSER) < 0 && errno == EPERM);
	MUST(12, syscall(SYS_ptrace, 0, 0, 0, 0) < 0 && errno == EPERM);
	MUST(13, nice(1) != -1 || errno == 0);
	return 0;
}

/* The helpers that hash and copy images are forks; they can be ended, others cannot. */
static int try_processes(void)
{
	int status, fd = pidfd_open(getppid(), 0);
	pid_t pid;

	if (landlock_abi() >= 6)
		MUST(1, pidfd_send_signal(fd, SIGCONT, NULL, 0) < 0 && errno == EPERM);
	pid = fork();
	if (pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
			_exit(1);
		for (;;)
			(void)poll(NULL, 0, 1000);
	}
	MUST(2, pid > 0);
	fd = pidfd_open(pid, 0);
	MUST(3, pidfd_send_signal(fd, SIGKILL, NULL, 0) == 0);
	MUST(4, waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	return 0;
}

static void only_own_forks_are_signalled(void **state)
{
	assert_int_equal(sealed(try_processes), 0);
}

static void sbxd_listens_and_connects_to_nothing(void **state)
{
	assert_int_equal(sealed_as(JAIL_SBXD, try_sbxd_calls), 0);
	assert_int_equal(sealed_as(JAIL_SBXD, try_files), 0);
	assert_int_equal(sealed_as(JAIL_SBXD, try_processes), 0);
}

static void make_file(const char *folder)
{
	AUTO_FREE char *path = in(folder, "file");
	AUTO_CLOSE int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
}

/* What another process of the user can do to one: bits. */
enum { READS_MEMORY = 1, OPENS_MEM = 2, LISTS_FILES = 4, TAKES_FILE = 8, ATTACHES = 16 };

static int try_looking_into(pid_t pid)
{
	static char word[16] = "a text";
	struct iovec here = {(char[16]){0}, sizeof(word)}, there = {word, sizeof(word)};
	AUTO_FREE char *mem = xasprintf("/proc/%d/mem", (int)pid);
	AUTO_FREE char *files = xasprintf("/proc/%d/fd/0", (int)pid);
	AUTO_CLOSE int pidfd = pidfd_open(pid, 0), fd = open(mem, O_RDONLY | O_CLOEXEC);
	AUTO_CLOSE int taken = pidfd_getfd(pidfd, 2, 0);
	struct stat st;
	int found = 0;

	found |= process_vm_readv(pid, &here, 1, &there, 1, 0) > 0 ? READS_MEMORY : 0;
	found |= fd >= 0 ? OPENS_MEM : 0;
	found |= lstat(files, &st) == 0 ? LISTS_FILES : 0;
	found |= taken >= 0 ? TAKES_FILE : 0;
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0) {
		found |= ATTACHES;
		(void)kill(pid, SIGKILL);
	}
	return found;
}

/* A fork that has closed itself, or not; what can be done to it. */
static int look_into_fork(bool closes)
{
	int ready[2], found, status;
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		byte = !closes || jail_broker_close(NULL) == 0;
		(void)!write(ready[1], &byte, 1);
		(void)pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(byte, 1);
	found = try_looking_into(pid);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	(void)close(ready[0]);
	(void)close(ready[1]);
	return found;
}

static void nobody_looks_into_a_closed_broker(void **state)
{
	if (geteuid() == 0)
		fail_msg("root can look into every process: run this as an ordinary user");
	assert_true(look_into_fork(false) & LISTS_FILES); /* the control */
	assert_true(look_into_fork(false) & READS_MEMORY);
	assert_int_equal(look_into_fork(true), 0);
}

static void a_traced_program_is_no_broker(void **state)
{
	struct err err = {0};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		_exit(jail_broker_close(&err) == -EPERM ? 7 : 8);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
}

static int set_up(void **state)
{
	AUTO_FREE char *sub = NULL;

	assert_non_null(mkdtemp(dir));
	(void)snprintf(own, sizeof(own), "%s/own", dir);
	(void)snprintf(read_only, sizeof(read_only), "%s/read-only", dir);
	(void)snprintf(other, sizeof(other), "%s/other", dir);
	(void)snprintf(socket_path, sizeof(socket_path), "%s/socket", other);
	sub = in(own, "sub");
	assert_int_equal(
		mkdir(own, 0700) | mkdir(sub, 0700) | mkdir(read_only, 0700) | mkdir(other, 0700),
		0);
	make_file(read_only);
	make_file(other);
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = {"own/sub/a", "own/sub", "own/a", "own/b", "own",
		"read-only/file", "read-only", "other/file", "other", NULL};

	for (const char *const *n = names; *n; n++) {
		AUTO_FREE char *path = in(dir, *n);

		(void)remove(path);
	}
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_outside_are_closed),
		cmocka_unit_test(a_second_time_takes_more_away),
		cmocka_unit_test(calls_that_are_not_listed_are_refused),
		cmocka_unit_test(only_own_forks_are_signalled),
		cmocka_unit_test(sbxd_listens_and_connects_to_nothing),
		cmocka_unit_test(nobody_looks_into_a_closed_broker),
		cmocka_unit_test(a_traced_program_is_no_broker),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
