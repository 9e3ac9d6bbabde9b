/* SPDX-License-Identifier: Apache-2.0 */
/* --jail-selftest: see lib/os/jail/selftest.h. */
#include "egress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/os/jail/selftest.h"

/* Ordinary operation: memory, sockets, a connection (to a closed port), data through a pipe. */
static long try_work(int fd)
{
	const struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
	char byte = 'x', *p = malloc(1 << 20);
	int tcp = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int udp = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int pipes[2], on = 1;

	if (!p || tcp < 0 || (udp < 0 && errno != EAFNOSUPPORT) || clock_mono_ms() == 0)
		return -1;
	memset(p, 1, 1 << 20);
	free(p);
	if (setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
		setsockopt(tcp, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) < 0)
		return -1;
	(void)connect(tcp, (const struct sockaddr *)&to, sizeof(to));
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || pipe2(pipes, O_NONBLOCK | O_CLOEXEC) < 0 ||
		write(pipes[1], &byte, 1) != 1)
		return -1;
	return splice(pipes[0], NULL, fd, NULL, 1, SPLICE_F_NONBLOCK) == 1 ? 0 : -1;
}

static struct loop loop;

static int prepare_selftest(void)
{
	return loop_init(&loop);
}

int egress_selftest(void)
{
	static const struct jail_selftest_probe own[] = {
		/* Ping needs no privilege on many hosts. */
		{"create a ping socket", SYS_socket, {AF_INET, SOCK_DGRAM, IPPROTO_ICMP}},
		{"create a socket of another protocol", SYS_socket,
			{AF_INET, SOCK_STREAM, IPPROTO_SCTP}},
		{"accept", SYS_accept4, {JAIL_SELFTEST_FD}},
		{"set another socket option", SYS_setsockopt,
			{JAIL_SELFTEST_FD, SOL_SOCKET, SO_MARK}},
		{0},
	};
	const struct jail_selftest t = {.profile = JAIL_EGRESS,
		.tables = {jail_selftest_files, own, jail_selftest_any},
		.prepare = prepare_selftest,
		.work = try_work};

	return jail_selftest_run(&t);
}
