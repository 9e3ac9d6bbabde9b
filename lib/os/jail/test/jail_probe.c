/* SPDX-License-Identifier: Apache-2.0 */
/* Runs inside a jail for jail_test.c: tries what it must not, says what came of it. Static. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/attr.h"
#include "lib/os/jail/jail.h"

static char *const no_args[] = {NULL};

static long try_open(void)
{
	return open("/etc/passwd", O_RDONLY);
}

static long try_create(void)
{
	return open("/new", O_WRONLY | O_CREAT, 0600);
}

static long try_mkdir(void)
{
	return mkdir("/new-dir", 0700);
}

static long try_socket(void)
{
	return socket(AF_INET, SOCK_STREAM, 0);
}

static long try_unix(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0);
}

static long try_connect(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return connect(3, (struct sockaddr *)&to, sizeof(to));
}

static long try_exec(void)
{
	return execve("/probe", no_args, no_args);
}

/* The very form the jail itself used, with every fd number there could be. */
static long try_execveat(void)
{
	long r = syscall(SYS_execveat, 3, "", no_args, no_args, AT_EMPTY_PATH);
	struct rlimit lim = {0};

	(void)prlimit(0, RLIMIT_NOFILE, NULL, &lim);
	if (r < 0 && errno == EPERM)
		r = syscall(SYS_execveat, (int)lim.rlim_cur, "", no_args, no_args, AT_EMPTY_PATH);
	return r;
}

/* The number that may be executed must not be one that a descriptor can get. */
static long try_exec_number(void)
{
	struct rlimit lim = {0};

	if (prlimit(0, RLIMIT_NOFILE, NULL, &lim) < 0)
		return -1;
	return dup2(0, (int)lim.rlim_cur);
}

static long try_ptrace(void)
{
	return ptrace(PTRACE_TRACEME, 0, 0, 0);
}

static long try_mount(void)
{
	return mount("none", "/", "tmpfs", 0, NULL);
}

static long try_fork(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	return pid;
}

static long try_userns(void)
{
	return unshare(CLONE_NEWUSER);
}

static long try_setns(void)
{
	return setns(0, 0);
}

static long try_kill(void)
{
	return kill(-1, 0);
}

static long try_keyctl(void)
{
	return syscall(SYS_keyctl, 0, -3, 0);
}

static long try_bpf(void)
{
	return syscall(SYS_bpf, 0, NULL, 0);
}

static long try_perf(void)
{
	return syscall(SYS_perf_event_open, NULL, 0, 0, 0, 0);
}

static long try_uffd(void)
{
	return syscall(SYS_userfaultfd, 0);
}

static long try_vm_read(void)
{
	return syscall(SYS_process_vm_readv, 1, NULL, 0, NULL, 0, 0);
}

static long try_uring(void)
{
	return syscall(SYS_io_uring_setup, 1, NULL);
}

static long try_clone3(void)
{
	return syscall(SYS_clone3, NULL, 0);
}

static long try_setuid(void)
{
	return setresuid(12345, 12345, 12345) < 0 ? -1 : (long)getuid();
}

static long try_module(void)
{
	return syscall(SYS_init_module, NULL, 0, "");
}

static long try_exec_memory(void)
{
	return syscall(SYS_mmap, NULL, 4096, 7 /* rwx */, 0x22 /* private anonymous */, -1, 0) > 0
		       ? 1
		       : -1;
}

static long try_outlive(void)
{
	return prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
}

static long try_tiocsti(void)
{
	return ioctl(0, TIOCSTI, "x");
}

static long try_raise_limit(void)
{
	struct rlimit lim = {1 << 20, 1 << 20};

	return prlimit(0, RLIMIT_NOFILE, &lim, NULL);
}

static long try_write_socket(void)
{
	return write(3, "x", 1);
}

static const struct attempt {
	const char *name;
	long (*fn)(void);
} attempts[] = {
	{"open", try_open},
	{"create", try_create},
	{"mkdir", try_mkdir},
	{"socket", try_socket},
	{"unix", try_unix},
	{"connect", try_connect},
	{"exec", try_exec},
	{"execveat", try_execveat},
	{"exec_number", try_exec_number},
	{"ptrace", try_ptrace},
	{"mount", try_mount},
	{"fork", try_fork},
	{"userns", try_userns},
	{"setns", try_setns},
	{"kill", try_kill},
	{"keyctl", try_keyctl},
	{"bpf", try_bpf},
	{"perf", try_perf},
	{"uffd", try_uffd},
	{"vm_read", try_vm_read},
	{"uring", try_uring},
	{"clone3", try_clone3},
	{"setuid", try_setuid},
	{"module", try_module},
	{"exec_memory", try_exec_memory},
	{"outlive", try_outlive},
	{"tiocsti", try_tiocsti},
	{"raise_limit", try_raise_limit},
	{"write", try_write_socket},
};

static void say(const char *name, long r)
{
	int e = errno;
	char line[128];
	int n = snprintf(line, sizeof(line), "%s=%s\n", name, r < 0 ? strerrorname_np(e) : "ok");

	(void)!write(1, line, (size_t)n);
}

/* Every open fd as one line, so that a leak is seen from inside. */
static void say_fds(void)
{
	char line[64];

	for (int fd = 0; fd < 5000; fd++)
		if (fcntl(fd, F_GETFD) >= 0) {
			int n = snprintf(line, sizeof(line), "fd=%d\n", fd);

			(void)!write(1, line, (size_t)n);
		}
}

/* probe report | probe wait | probe stay | probe read PATH | probe write PATH | probe sealed
 * ATTEMPT */
int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "report";
	bool report = strcmp(mode, "report") == 0, sealed = strcmp(mode, "sealed") == 0;
	char c;

	if (strcmp(mode, "read") == 0)
		say("read", open(argv[2], O_RDONLY));
	if (strcmp(mode, "write") == 0)
		say("write", open(argv[2], O_WRONLY | O_CREAT, 0600));
	if (strcmp(mode, "args") == 0)
		say(getenv("SBX_TEST") ? getenv("SBX_TEST") : "none", 0);
	if (strcmp(mode, "fds") == 0)
		say_fds();
	if (sealed && jail_seal(JAIL_EDGE, NULL) < 0)
		return 3;
	for (size_t i = 0; i < ARRAY_LEN(attempts); i++)
		if (report || (sealed && strcmp(argv[2], attempts[i].name) == 0))
			say(attempts[i].name, attempts[i].fn());
	say("done", 0);
	/* stays whatever becomes of the tester, a minute at most */
	for (int i = 0; strcmp(mode, "stay") == 0 && i < 60; i++)
		(void)poll(NULL, 0, 1000);
	/* stays until the tester lets go of the other end */
	while (strcmp(mode, "wait") == 0 && read(3, &c, 1) > 0)
		;
	return 0;
}
