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

const struct jail_selftest_probe jail_selftest_any[] = {
	{"create a netlink socket", SYS_socket, {AF_NETLINK, SOCK_RAW}},
	{"create a packet socket", SYS_socket, {AF_PACKET, SOCK_RAW}},
	{"create a raw socket", SYS_socket, {AF_INET, SOCK_RAW, IPPROTO_ICMP}},
	{"create a vsock socket", SYS_socket, {AF_VSOCK, SOCK_STREAM}},
	{"create a unix socket", SYS_socket, {AF_UNIX, SOCK_STREAM}},
	{"bind a socket", SYS_bind, {JAIL_SELFTEST_FD}},
	{"listen", SYS_listen, {JAIL_SELFTEST_FD, 1}},
	{"execute a program", SYS_execve, {0}},
	{"execute an open file", SYS_execveat, {JAIL_SELFTEST_FD, 0, 0, 0, AT_EMPTY_PATH}},
	{"fork", SYS_fork, {0}},
	{"clone", SYS_clone, {SIGCHLD}},
	{"ptrace another process", SYS_ptrace, {PTRACE_ATTACH, 1}},
	{"read another process's memory", SYS_process_vm_readv, {1}},
	/* Signal 0 does no harm if the jail has a hole. */
	{"signal another process", SYS_kill, {1, 0}},
	{"mount", SYS_mount, {0}},
	{"create a namespace", SYS_unshare, {0}},
	{"become dumpable", SYS_prctl, {4 /* PR_SET_DUMPABLE */, 1}},
	{"load bpf", SYS_bpf, {0}},
	{"set up io_uring", SYS_io_uring_setup, {0}},
	{"create a file in memory", SYS_memfd_create, {0}},
	{"make memory executable", SYS_mmap, {0, 4096, 7, 0x22, -1}},
	{0},
};

const struct jail_selftest_probe jail_selftest_files[] = {
	{"open a file", SYS_open, {0}},
	{"open a directory", SYS_openat, {AT_FDCWD, 0, O_RDONLY | O_DIRECTORY}},
	{"create a file", SYS_openat, {AT_FDCWD, 0, O_WRONLY | O_CREAT, 0600}},
	{0},
};

const struct jail_selftest_probe jail_selftest_sockets[] = {
	{"create a TCP socket", SYS_socket, {AF_INET, SOCK_STREAM}},
	{"connect a socket", SYS_connect, {JAIL_SELFTEST_FD}},
	{0},
};

/* Never returns. Ends by SIGSYS when the attempt is a violation. */
static void probe_child(
	const struct jail_selftest *t, const struct jail_selftest_probe *p, bool must_live)
{
	long a[6];
	struct err err;
	int fds[2];

	if ((t->prepare && t->prepare() < 0) ||
		syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, fds) < 0 ||
		jail_seal(t->profile, &err) < 0)
		_exit(CANNOT_SEAL);
	if (must_live)
		_exit(t->work(fds[0]) == 0 ? 0 : SURVIVED);
	for (size_t i = 0; i < ARRAY_LEN(a); i++)
		a[i] = p->args[i] == JAIL_SELFTEST_FD ? fds[0] : p->args[i];
	(void)syscall(p->number, a[0], a[1], a[2], a[3], a[4], a[5]);
	_exit(SURVIVED);
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
	const struct jail_selftest_probe work = {.name = "do its own work"};
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
