/* SPDX-License-Identifier: Apache-2.0 */
#include "selftest.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "sweep.h"

#define SURVIVED 10
#define CANNOT_SEAL 11

static long try_netlink(int fd)
{
	return syscall(SYS_socket, AF_NETLINK, SOCK_RAW, 0);
}

static long try_packet(int fd)
{
	return syscall(SYS_socket, AF_PACKET, SOCK_RAW, 0);
}

static long try_raw(int fd)
{
	return syscall(SYS_socket, AF_INET, SOCK_RAW, IPPROTO_ICMP);
}

static long try_vsock(int fd)
{
	return syscall(SYS_socket, AF_VSOCK, SOCK_STREAM, 0);
}

static long try_unix_socket(int fd)
{
	return syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0);
}

static long try_bind(int fd)
{
	const struct sockaddr_un at = {.sun_family = AF_UNIX};

	return syscall(SYS_bind, fd, &at, sizeof(at));
}

static long try_listen(int fd)
{
	return syscall(SYS_listen, fd, 1);
}

static long try_exec(int fd)
{
	char *const argv[] = {(char *)"true", NULL}, *const envp[] = {NULL};

	return syscall(SYS_execve, "/bin/true", argv, envp);
}

static long try_execveat(int fd)
{
	char *const argv[] = {(char *)"true", NULL}, *const envp[] = {NULL};

	return syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
}

static long try_fork(int fd)
{
	return syscall(SYS_fork);
}

static long try_clone(int fd)
{
	return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static long try_ptrace(int fd)
{
	return syscall(SYS_ptrace, PTRACE_ATTACH, 1, 0, 0);
}

static long try_read_memory(int fd)
{
	return syscall(SYS_process_vm_readv, 1, NULL, 0, NULL, 0, 0);
}

/* Signal 0 hurts nobody when the jail has a hole. */
static long try_kill(int fd)
{
	return syscall(SYS_kill, 1, 0);
}

static long try_mount(int fd)
{
	return syscall(SYS_mount, "none", "/", "tmpfs", 0, NULL);
}

static long try_unshare(int fd)
{
	return syscall(SYS_unshare, 0);
}

static long try_dumpable(int fd)
{
	return syscall(SYS_prctl, 4 /* PR_SET_DUMPABLE */, 1, 0, 0, 0);
}

static long try_bpf(int fd)
{
	return syscall(SYS_bpf, 0, NULL, 0);
}

static long try_io_uring(int fd)
{
	return syscall(SYS_io_uring_setup, 0, NULL);
}

static long try_memfd(int fd)
{
	return syscall(SYS_memfd_create, "jail", 0);
}

static long try_exec_memory(int fd)
{
	return syscall(SYS_mmap, NULL, 4096, 7, 0x22, -1, 0);
}

static long try_open(int fd)
{
	return syscall(SYS_open, "/etc/passwd", O_RDONLY);
}

static long try_openat(int fd)
{
	return syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY | O_DIRECTORY);
}

static long try_creat(int fd)
{
	return syscall(SYS_openat, AT_FDCWD, "/tmp/jail-was-here", O_WRONLY | O_CREAT, 0600);
}

static long try_socket(int fd)
{
	return syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
}

static long try_connect(int fd)
{
	const struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = "/run/nobody"};

	return syscall(SYS_connect, fd, &to, sizeof(to));
}

const struct jail_selftest_probe jail_selftest_any[] = {
	{"make a netlink socket", try_netlink},
	{"make a packet socket", try_packet},
	{"make a raw socket", try_raw},
	{"make a vsock socket", try_vsock},
	{"make a unix socket", try_unix_socket},
	{"bind a socket", try_bind},
	{"listen", try_listen},
	{"execute a program", try_exec},
	{"execute an open file", try_execveat},
	{"fork", try_fork},
	{"clone", try_clone},
	{"ptrace another process", try_ptrace},
	{"read another process's memory", try_read_memory},
	{"signal another process", try_kill},
	{"mount", try_mount},
	{"make a namespace", try_unshare},
	{"become dumpable", try_dumpable},
	{"load bpf", try_bpf},
	{"set up io_uring", try_io_uring},
	{"make a file in memory", try_memfd},
	{"make memory executable", try_exec_memory},
	{0},
};

const struct jail_selftest_probe jail_selftest_files[] = {
	{"open a file", try_open},
	{"open a folder", try_openat},
	{"create a file", try_creat},
	{0},
};

const struct jail_selftest_probe jail_selftest_sockets[] = {
	{"make a TCP socket", try_socket},
	{"connect a socket", try_connect},
	{0},
};

/* Never returns. Ends by SIGSYS when the attempt is a violation. */
static void probe_child(
	const struct jail_selftest *t, const struct jail_selftest_probe *p, bool must_live)
{
	struct err err;
	int fds[2];
	long r;

	if ((t->prepare && t->prepare() < 0) ||
		syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, fds) < 0 ||
		jail_seal(t->profile, &err) < 0)
		_exit(CANNOT_SEAL);
	r = p->attempt(fds[0]);
	_exit(must_live && r == 0 ? 0 : SURVIVED);
}

static bool probe_run(
	const struct jail_selftest *t, const struct jail_selftest_probe *p, bool must_live)
{
	long pid;
	bool good;
	int status;

	(void)fflush(stdout);
	pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		probe_child(t, p, must_live);
	if (pid < 0 || waitpid((pid_t)pid, &status, 0) < 0) {
		(void)printf("%s: cannot probe: %s\n", p->name, strerror(errno));
		return false;
	}
	if (must_live)
		good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	else
		good = WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
	(void)printf("%s: %s\n", p->name,
		good && must_live					  ? "allowed"
		: good							  ? "refused"
		: WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_SEAL ? "NOT SEALED"
		: must_live						  ? "KILLED"
									  : "NOT REFUSED");
	return good;
}

int jail_selftest_run(const struct jail_selftest *t)
{
	const struct jail_selftest_probe work = {"do its own work", t->work};
	bool good = true;

	for (size_t i = 0; i < ARRAY_LEN(t->tables) && t->tables[i]; i++) {
		for (const struct jail_selftest_probe *p = t->tables[i]; p->name; p++)
			good = probe_run(t, p, false) && good;
	}
	good = probe_run(t, &work, true) && good;
	good = jail_sweep(t->profile, SWEEP_SEAL) == 0 && good;
	(void)printf("jail self-test: %s\n", good ? "passed" : "failed");
	return good ? 0 : 1;
}
