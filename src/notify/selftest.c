/* SPDX-License-Identifier: Apache-2.0 */
/* --jail-selftest: see lib/os/jail/selftest.h. */
#include "notify.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/os/jail/selftest.h"

static const struct jail_selftest_probe own[] = {
	{"create a socket pair", SYS_socketpair, {AF_UNIX, SOCK_STREAM}},
	{"set a socket option", SYS_setsockopt, {JAIL_SELFTEST_FD, SOL_SOCKET, SO_KEEPALIVE}},
	{"accept", SYS_accept4, {JAIL_SELFTEST_FD}},
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
	good = good && send(fd, &byte, 1, MSG_NOSIGNAL) == 1 &&
	       recv(fd, &byte, 1, MSG_DONTWAIT) == -1 && close(fd) == 0;
	return good ? 0 : -1;
}

int notify_selftest(void)
{
	const struct jail_selftest t = {.profile = JAIL_NOTIFY,
		.tables = {jail_selftest_files, jail_selftest_sockets, own, jail_selftest_any},
		.prepare = prepare_selftest,
		.work = try_work};

	return jail_selftest_run(&t);
}
