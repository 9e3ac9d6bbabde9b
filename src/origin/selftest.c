/* SPDX-License-Identifier: Apache-2.0 */
/* --jail-selftest: see lib/os/jail/selftest.h. */
#include "origin.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/os/jail/selftest.h"

/* Ordinary operation: a value in its own memory, and the first flight of a handshake. */
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
		{"create a socket pair", SYS_socketpair, {AF_UNIX, SOCK_STREAM}},
		{"set socket options", SYS_setsockopt,
			{JAIL_SELFTEST_FD, SOL_SOCKET, SO_KEEPALIVE}},
		{"accept", SYS_accept4, {JAIL_SELFTEST_FD}},
		{0},
	};
	const struct jail_selftest t = {.profile = JAIL_ORIGIN,
		.tables = {jail_selftest_files, jail_selftest_sockets, own, jail_selftest_any},
		.prepare = prepare_selftest,
		.work = try_work};

	return jail_selftest_run(&t);
}
