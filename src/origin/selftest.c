/* SPDX-License-Identifier: Apache-2.0 */
/* --jail-selftest: see lib/os/jail/selftest.h. */
#include "origin.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/os/jail/selftest.h"

static long try_socketpair(int fd)
{
	int fds[2];

	return syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, fds);
}

static long try_setsockopt(int fd)
{
	int on = 1;

	return syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

static long try_accept(int fd)
{
	return syscall(SYS_accept4, fd, NULL, NULL, 0);
}

/* The day's work: a value in its own memory, and the first flight of a handshake. */
static long try_work(int fd)
{
	AUTO_SECRET struct secret value = {0};
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl = ctx ? SSL_new(ctx) : NULL;
	long r = -1;

	if (secret_copy(&value, slice_of("x", 1), NULL) == 0 && ssl && SSL_set_fd(ssl, fd) &&
		fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && clock_mono_ms())
		r = SSL_get_error(ssl, SSL_connect(ssl)) == SSL_ERROR_WANT_READ ? 0 : -1;
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	return r;
}

static int prepare_selftest(void)
{
	return OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) == 1 ? 0 : -1;
}

int origin_selftest(void)
{
	static const struct jail_selftest_probe own[] = {
		{"create a socket pair", try_socketpair},
		{"set socket options", try_setsockopt},
		{"accept", try_accept},
		{0},
	};
	const struct jail_selftest t = {.profile = JAIL_ORIGIN,
		.tables = {jail_selftest_files, jail_selftest_sockets, own, jail_selftest_any},
		.prepare = prepare_selftest,
		.work = try_work};

	return jail_selftest_run(&t);
}
