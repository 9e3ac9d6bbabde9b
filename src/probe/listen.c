/* listen: a socket of the host's that counts who comes; it goes on in the background for a time. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net.h"
#include "probe.h"

#define MAX_SECONDS 600
#define MAX_PEERS 16

struct listener {
	int fd, log;
	bool tcp;
	int peers[MAX_PEERS]; /* -1: free */
};

/* One line for each: who, and what he said. */
static void note(int log, const struct net_addr *peer, const void *said, size_t n)
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

static void on_peer(struct listener *l, int *peer)
{
	static const char answer[] = "HTTP/1.0 200 OK\r\nContent-Length: 8\r\n\r\nreached\n";
	struct net_addr from = {.n = sizeof(from.v6)};
	char buf[1024];
	ssize_t n = recv(*peer, buf, sizeof(buf), MSG_DONTWAIT);

	(void)getpeername(*peer, &from.sa, &from.n);
	if (n > 0) {
		note(l->log, &from, buf, (size_t)n);
		(void)!send(*peer, answer, sizeof(answer) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
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
			note(l->log, &from, buf, (size_t)n);
		return;
	}
	fd = accept4(l->fd, &from.sa, &from.n, SOCK_CLOEXEC);
	if (fd < 0)
		return;
	note(l->log, &from, NULL, 0);
	for (size_t i = 0; i < MAX_PEERS; i++)
		if (l->peers[i] < 0) {
			l->peers[i] = fd;
			return;
		}
	(void)close(fd);
}

static void serve(struct listener *l, int seconds)
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

/* Nobody waits for a reader of ours: the standard three are gone. */
static int go_on(struct listener *l, int seconds)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < 3; fd++)
		(void)dup2(null, fd);
	serve(l, seconds);
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
