/* SPDX-License-Identifier: Apache-2.0 */
/* listen: a listening socket on the host that counts connections; it runs in the background for a
 * time. HTTP is answered with 200, a TLS record with HelloRetryRequest. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net.h"
#include "src/guest/probe/verb/verb.h"

#define MAX_SECONDS 600
#define MAX_PEERS 16

struct listener {
	int fd, log;
	bool tcp;
	int peers[MAX_PEERS]; /* -1: free */
};

/* One line per connection: its peer, and its first data. */
static void note_listen(int log, const struct net_addr *peer, const void *said, size_t n)
{
	char host[INET6_ADDRSTRLEN] = "?", line[512];
	const uint8_t *b = said;
	int at;

	if (peer->sa.sa_family == AF_INET)
		(void)inet_ntop(AF_INET, &peer->v4.sin_addr, host, sizeof(host));
	else
		(void)inet_ntop(AF_INET6, &peer->v6.sin6_addr, host, sizeof(host));
	at = snprintf(line, sizeof(line), "%s %s ", host, said ? "said" : "came");
	for (size_t i = 0; said && i < n && i < 200; i++)
		line[at++] = b[i] >= 0x20 && b[i] < 0x7f ? (char)b[i] : '.';
	line[at++] = '\n';
	(void)!write(log, line, (size_t)at);
}

/* HelloRetryRequest: TLS 1.3, requests a P-256 key. */
static const uint8_t retry_request[] = {0x16, 3, 3, 0, 56, 2, 0, 0, 52, 3, 3, /* random: */
	0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8,
	0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8,
	0x33, 0x9c, 0, 0x13, 1, 0, 0, 12, 0, 43, 0, 2, 3, 4, 0, 51, 0, 2, 0, 23};

static void answer_listen(int fd, bool tls)
{
	static const char http[] = "HTTP/1.0 200 OK\r\nContent-Length: 8\r\n\r\nreached\n";

	if (tls)
		(void)!send(fd, retry_request, sizeof(retry_request), MSG_NOSIGNAL | MSG_DONTWAIT);
	else
		(void)!send(fd, http, sizeof(http) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void on_peer(struct listener *l, int *peer)
{
	struct net_addr from = {.n = sizeof(from.v6)};
	char buf[1024];
	ssize_t n = recv(*peer, buf, sizeof(buf), MSG_DONTWAIT);

	(void)getpeername(*peer, &from.sa, &from.n);
	if (n > 0) {
		note_listen(l->log, &from, buf, (size_t)n);
		answer_listen(*peer, buf[0] == 0x16);
		return;
	}
	(void)close(*peer);
	*peer = -1;
}

static void on_listener(struct listener *l)
{
	struct net_addr from = {.n = sizeof(from.v6)};
	char buf[1024];
	ssize_t n;
	int fd;

	if (!l->tcp) {
		n = recvfrom(l->fd, buf, sizeof(buf), MSG_DONTWAIT, &from.sa, &from.n);
		if (n >= 0)
			note_listen(l->log, &from, buf, (size_t)n);
		return;
	}
	fd = accept4(l->fd, &from.sa, &from.n, SOCK_CLOEXEC);
	if (fd < 0)
		return;
	note_listen(l->log, &from, NULL, 0);
	for (size_t i = 0; i < MAX_PEERS; i++)
		if (l->peers[i] < 0) {
			l->peers[i] = fd;
			return;
		}
	(void)close(fd);
}

static void serve_listen(struct listener *l, int seconds)
{
	int start = net_now(), left;

	while ((left = seconds * 1000 - (net_now() - start)) > 0) {
		struct pollfd p[MAX_PEERS + 1] = {{.fd = l->fd, .events = POLLIN}};

		for (size_t i = 0; i < MAX_PEERS; i++)
			p[i + 1] = (struct pollfd){.fd = l->peers[i], .events = POLLIN};
		if (poll(p, MAX_PEERS + 1, left) <= 0)
			continue;
		for (size_t i = 0; i < MAX_PEERS; i++)
			if (p[i + 1].revents)
				on_peer(l, &l->peers[i]);
		if (p[0].revents)
			on_listener(l);
	}
}

static int open_listener(struct listener *l, const char *addr)
{
	struct net_addr at;
	int r = net_parse(addr, "0", &at);

	if (r < 0)
		return r;
	l->fd = socket(at.sa.sa_family, (l->tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0);
	if (l->fd < 0 || bind(l->fd, &at.sa, at.n) < 0 || (l->tcp && listen(l->fd, 64) < 0))
		return -errno;
	at.n = sizeof(at.v6);
	if (getsockname(l->fd, &at.sa, &at.n) < 0)
		return -errno;
	return ntohs(at.v4.sin_port); /* at the same place in both */
}

/* The caller must not wait for the end of our output: closes the three standard descriptors. */
static int go_on(struct listener *l, int seconds)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < 3; fd++)
		(void)dup2(null, fd);
	serve_listen(l, seconds);
	return PROBE_POSSIBLE;
}

int probe_listen(int argc, char **argv)
{
	struct listener l = {.tcp = argc == 4 && strcmp(argv[0], "tcp") == 0};
	int seconds = argc == 4 ? atoi(argv[2]) : 0, port;
	pid_t pid;

	if (seconds <= 0 || seconds > MAX_SECONDS)
		return PROBE_USAGE;
	for (size_t i = 0; i < MAX_PEERS; i++)
		l.peers[i] = -1;
	l.log = open(argv[3], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	port = l.log < 0 ? -errno : open_listener(&l, argv[1]);
	if (port < 0) {
		errno = -port;
		return probe_refused("listening");
	}
	printf("%d\n", port);
	(void)fflush(stdout);
	pid = fork();
	if (pid < 0)
		return probe_refused("fork");
	return pid ? PROBE_POSSIBLE : go_on(&l, seconds);
}
