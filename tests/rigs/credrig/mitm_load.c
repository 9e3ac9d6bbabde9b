/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mitm_load - the load of bench/mitm: keep-alive requests of HTTP/1.1 inside TLS, as fast as they
 * are answered.
 *
 * How      `mitm_load PORT HOST CA connect|direct CONNS N` opens CONNS connections to PORT of
 *          loopback (with `connect` each begins with a CONNECT to HOST:443), verifies the
 *          certificate for HOST with CA, asks CONNS times to warm up and then N times over all of
 *          them. One line of JSON: seconds, p50 and p99 of a request in us.
 * Trust    Test program.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "lib/base/attr.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define MAX_CONNS 256
#define MAX_ANSWER 16384
#define WAIT_MS 30000

struct conn {
	SSL *ssl;
	int fd;
	uint64_t began_ns;
	char buf[MAX_ANSWER];
	size_t n, want; /* want: of the whole answer, 0 while its head is not there */
};

static struct conn conns[MAX_CONNS];
static char request[512];
static uint32_t *times_us;
static size_t n_times;

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int dial(uint16_t port, const char *host, bool with_connect)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	char head[1024];
	size_t n = 0;

	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		die("connecting to port %u: %s", port, strerror(errno));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (!with_connect)
		return fd;
	(void)snprintf(
		head, sizeof(head), "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n", host, host);
	if (fd_write_all(fd, head, strlen(head)) < 0)
		die("asking for a tunnel");
	while (n < sizeof(head) - 1 && !(n >= 4 && memcmp(head + n - 4, "\r\n\r\n", 4) == 0)) {
		if (read(fd, head + n, 1) != 1)
			die("no tunnel");
		n++;
	}
	head[n] = '\0';
	if (!strstr(head, " 200"))
		die("no tunnel: %s", head);
	return fd;
}

static void open_conn(struct conn *c, SSL_CTX *ctx, uint16_t port, const char *host, bool connect)
{
	c->fd = dial(port, host, connect);
	c->ssl = SSL_new(ctx);
	if (!c->ssl || SSL_set_fd(c->ssl, c->fd) != 1 ||
		SSL_set_tlsext_host_name(c->ssl, host) != 1 || SSL_set1_host(c->ssl, host) != 1 ||
		SSL_connect(c->ssl) != 1)
		die("no TLS with %s at port %u: %s", host, port,
			X509_verify_cert_error_string(SSL_get_verify_result(c->ssl)));
	if (fd_set_nonblock(c->fd, true) < 0)
		die("a socket that waits");
}

static void ask(struct conn *c)
{
	c->n = c->want = 0;
	c->began_ns = now_ns();
	if (SSL_write(c->ssl, request, (int)strlen(request)) <= 0)
		die("a request cannot be sent");
}

/* A head with a length; others are no answers of this bench. */
static void find_end(struct conn *c)
{
	const char *end, *length;

	c->buf[c->n] = '\0';
	end = strstr(c->buf, "\r\n\r\n");
	if (!end)
		return;
	length = strcasestr(c->buf, "\r\ncontent-length:");
	if (!length || length > end || strncmp(c->buf + 8, " 200", 4) != 0)
		die("not the answer: %.200s", c->buf);
	c->want = (size_t)(end - c->buf) + 4 + strtoul(length + 17, NULL, 10);
}

/* True when the answer is whole. */
static bool take(struct conn *c)
{
	while (c->want == 0 || c->n < c->want) {
		int n = SSL_read(c->ssl, c->buf + c->n, (int)(sizeof(c->buf) - 1 - c->n));

		if (n <= 0 && SSL_get_error(c->ssl, n) == SSL_ERROR_WANT_READ)
			return false;
		if (n <= 0)
			die("the connection ended");
		c->n += (size_t)n;
		if (c->want == 0)
			find_end(c);
	}
	return true;
}

static void run(int epfd, size_t n_conns, size_t n)
{
	size_t asked = 0, done = 0;

	for (; asked < n_conns && asked < n; asked++)
		ask(&conns[asked]);
	while (done < n) {
		struct epoll_event ev[64];
		int k = epoll_wait(epfd, ev, 64, WAIT_MS);

		if (k <= 0)
			die("no answer for %d ms", WAIT_MS);
		for (int i = 0; i < k; i++) {
			struct conn *c = ev[i].data.ptr;

			if (!take(c))
				continue;
			times_us[n_times++] = (uint32_t)((now_ns() - c->began_ns) / 1000);
			done++;
			if (asked++ < n)
				ask(c);
		}
	}
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	size_t n_conns = argc == 7 ? strtoul(argv[5], NULL, 10) : 0;
	size_t n = argc == 7 ? strtoul(argv[6], NULL, 10) : 0;
	int epfd = epoll_create1(EPOLL_CLOEXEC);
	uint64_t began;

	log_init("mitm_load");
	if (!ctx || n_conns == 0 || n_conns > MAX_CONNS || n < n_conns)
		die("usage: mitm_load PORT HOST CA connect|direct CONNS N");
	if (SSL_CTX_load_verify_locations(ctx, argv[3], NULL) != 1)
		die("no certificates in %s", argv[3]);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	(void)snprintf(request, sizeof(request),
		"GET /1k HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n",
		argv[2]);
	times_us = xcalloc(n + n_conns, sizeof(*times_us));
	for (size_t i = 0; i < n_conns; i++) {
		struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &conns[i]};

		open_conn(&conns[i], ctx, (uint16_t)atoi(argv[1]), argv[2],
			strcmp(argv[4], "connect") == 0);
		if (epoll_ctl(epfd, EPOLL_CTL_ADD, conns[i].fd, &ev) < 0)
			die("watching a socket");
	}
	run(epfd, n_conns, n_conns);
	n_times = 0;
	began = now_ns();
	run(epfd, n_conns, n);
	began = now_ns() - began;
	qsort(times_us, n_times, sizeof(*times_us), by_size);
	(void)printf("{\"seconds\": %.6f, \"p50_us\": %u, \"p99_us\": %u}\n", (double)began / 1e9,
		times_us[n_times / 2], times_us[n_times * 99 / 100]);
	return 0;
}
