/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --jail-selftest: each probe is a child that seals itself exactly as in normal operation and then
 * tries one system call. The final filter kills on violation, so a probe that is not killed by
 * SIGSYS has found a hole. The last probe does what the program does all day and must live.
 */
#include "ssh_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/os/jail/jail.h"
#include "lib/os/jail/sweep.h"

#define SURVIVED 10
#define CANNOT_SEAL 11

/* Refused by their number, whatever the arguments are; with these none of them does anything. */
static const struct probe {
	const char *name;
	long number;
} probes[] = {
	{"open", SYS_open},
	{"openat", SYS_openat},
	{"openat2", SYS_openat2},
	{"create a socket", SYS_socket},
	{"create a socket pair", SYS_socketpair},
	{"connect", SYS_connect},
	{"bind", SYS_bind},
	{"listen", SYS_listen},
	{"accept", SYS_accept4},
	{"set a socket option", SYS_setsockopt},
	{"execute a program", SYS_execve},
	{"execute an open file", SYS_execveat},
	{"fork", SYS_fork},
	{"clone", SYS_clone},
	{"ptrace", SYS_ptrace},
	{"read another process's memory", SYS_process_vm_readv},
	{"signal another process", SYS_kill},
	{"mount", SYS_mount},
	{"create a namespace", SYS_unshare},
	{"load bpf", SYS_bpf},
	{"set up io_uring", SYS_io_uring_setup},
	{"create anonymous memory", SYS_memfd_create},
	{"change the seccomp filter", SYS_seccomp},
	{"do its own work", -1},
};

static bool work_selftest(int a, int b)
{
	char byte = 'x', *p = malloc(1 << 20);
	bool good = p && clock_mono_ms() > 0;

	free(p);
	return good && fcntl(a, F_SETFL, O_NONBLOCK) == 0 && send(a, &byte, 1, MSG_NOSIGNAL) == 1 &&
	       recv(b, &byte, 1, 0) == 1 && close(a) == 0;
}

/* Never returns. */
static void probe_child(const struct probe *p)
{
	struct loop loop;
	struct err err;
	int fds[2];

	if (loop_init(&loop) < 0 || syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, fds) < 0 ||
		jail_seal(JAIL_SSH_AGENT, &err) < 0)
		_exit(CANNOT_SEAL);
	if (p->number < 0)
		_exit(work_selftest(fds[0], fds[1]) ? 0 : SURVIVED);
	(void)syscall(p->number, 0, 0, 0, 0, 0, 0);
	_exit(SURVIVED);
}

static bool probe_run(const struct probe *p)
{
	long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	bool good;
	int status;

	if (pid == 0)
		probe_child(p);
	if (pid < 0 || waitpid((pid_t)pid, &status, 0) < 0) {
		(void)printf("%s: cannot probe: %s\n", p->name, strerror(errno));
		return false;
	}
	if (p->number < 0)
		good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	else
		good = WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
	(void)printf("%s: %s\n", p->name, !good ? "WRONG" : p->number < 0 ? "allowed" : "refused");
	return good;
}

int ssh_agent_selftest(void)
{
	bool good = true;

	for (size_t i = 0; i < ARRAY_LEN(probes); i++)
		good = probe_run(&probes[i]) && good;
	good = jail_sweep(JAIL_SSH_AGENT, SWEEP_SEAL) == 0 && good;
	return good ? 0 : 1;
}
