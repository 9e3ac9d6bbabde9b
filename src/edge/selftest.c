/* SPDX-License-Identifier: Apache-2.0 */
/* --jail-selftest: see lib/os/jail/selftest.h. */
#include "edge.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/os/jail/selftest.h"

static bool try_memory(void)
{
	char *p = malloc(1 << 20);
	bool ok = p != NULL;

	if (p)
		memset(p, 1, 1 << 20);
	free(p);
	(void)malloc_trim(0);
	return ok;
}

/* Ordinary operation: memory, the loop, data both ways, the clock, a seed for the names. */
static long try_work(int fd)
{
	char byte = 'x';
	int nonblock = fcntl(fd, F_SETFL, O_NONBLOCK);
	struct iovec iov = {&byte, 1};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	uint8_t seed[16];

	if (!try_memory() || nonblock < 0 || write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != -1 ||
		errno != EAGAIN || clock_mono_ms() == 0)
		return -1;
	if (sendmsg(fd, &mh, MSG_NOSIGNAL) != 1 || shutdown(fd, SHUT_WR) < 0 ||
		getrandom(seed, sizeof(seed), 0) != sizeof(seed))
		return -1;
	return 0;
}

/* OpenSSL from its first call on: the CA, and what TLS interception needs.
 * src/edge/tls/test/open_test.c does the handshakes. */
static long try_tls(int fd)
{
	static const struct edge_config config = {.sandbox = "selftest"};
	struct opener *opener;
	struct err err;

	if (opener_new(&config, &opener, &err) < 0)
		return -1;
	opener_free(opener);
	return 0;
}

static long try_all(int fd)
{
	return try_work(fd) == 0 ? try_tls(fd) : -1;
}

static struct loop loop;

static int prepare_selftest(void)
{
	return loop_init(&loop);
}

int edge_selftest(void)
{
	static const struct jail_selftest_probe own[] = {
		{"create a socket pair", SYS_socketpair, {AF_UNIX, SOCK_STREAM}},
		{"set socket options", SYS_setsockopt,
			{JAIL_SELFTEST_FD, SOL_SOCKET, SO_KEEPALIVE}},
		{0},
	};
	const struct jail_selftest t = {.profile = JAIL_EDGE,
		.tables = {jail_selftest_files, jail_selftest_sockets, own, jail_selftest_any},
		.prepare = prepare_selftest,
		.work = try_all};

	return jail_selftest_run(&t);
}
