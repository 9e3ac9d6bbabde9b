/* SPDX-License-Identifier: Apache-2.0 */
/* --jail-selftest: see lib/os/jail/selftest.h. */
#include "ssh_agent.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/os/jail/selftest.h"

/* Denied by their number, whatever the arguments. */
static const struct jail_selftest_probe probes[] = {
	{"open", SYS_open, {0}},
	{"openat", SYS_openat, {0}},
	{"openat2", SYS_openat2, {0}},
	{"create a socket", SYS_socket, {0}},
	{"create a socket pair", SYS_socketpair, {0}},
	{"connect", SYS_connect, {0}},
	{"bind", SYS_bind, {0}},
	{"listen", SYS_listen, {0}},
	{"accept", SYS_accept4, {0}},
	{"set a socket option", SYS_setsockopt, {0}},
	{"execute a program", SYS_execve, {0}},
	{"execute an open file", SYS_execveat, {0}},
	{"fork", SYS_fork, {0}},
	{"clone", SYS_clone, {0}},
	{"ptrace", SYS_ptrace, {0}},
	{"read another process's memory", SYS_process_vm_readv, {0}},
	{"signal another process", SYS_kill, {0}},
	{"mount", SYS_mount, {0}},
	{"create a namespace", SYS_unshare, {0}},
	{"load bpf", SYS_bpf, {0}},
	{"set up io_uring", SYS_io_uring_setup, {0}},
	{"create anonymous memory", SYS_memfd_create, {0}},
	{"change the seccomp filter", SYS_seccomp, {0}},
	{0},
};

static struct loop loop;

static int prepare_selftest(void)
{
	return loop_init(&loop);
}

/* Ordinary operation: memory, the clock, data both ways. */
static long try_work(int fd)
{
	char byte = 'x', *p = malloc(1 << 20);
	bool good = p && clock_mono_ms() > 0;

	free(p);
	good = good && fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
	       send(fd, &byte, 1, MSG_NOSIGNAL) == 1 && recv(fd, &byte, 1, 0) == -1 &&
	       close(fd) == 0;
	return good ? 0 : -1;
}

int ssh_agent_selftest(void)
{
	const struct jail_selftest t = {.profile = JAIL_SSH_AGENT,
		.tables = {probes},
		.prepare = prepare_selftest,
		.work = try_work};

	return jail_selftest_run(&t);
}
