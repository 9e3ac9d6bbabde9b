/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "files.h"
#include "src/guest/probe/verb/verb.h"

#define MAX_SECONDS 120

/* A name that begins with @ is abstract. */
static socklen_t address_local(const char *name, struct sockaddr_un *sa)
{
	size_t n = strlen(name);

	*sa = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (n == 0 || n >= sizeof(sa->sun_path))
		return 0;
	memcpy(sa->sun_path, name, n);
	if (name[0] != '@')
		return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
	sa->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
}

static int listen_at(int fd, const struct sockaddr_un *sa, socklen_t len, int seconds)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (bind(fd, (const struct sockaddr *)sa, len) < 0 || listen(fd, 8) < 0)
		return probe_refused("listen");
	printf("listening\n");
	(void)fflush(stdout);
	if (poll(&p, 1, seconds * 1000) <= 0) {
		printf("no connection\n");
		return PROBE_REFUSED;
	}
	printf("a process connected\n");
	return PROBE_POSSIBLE;
}

/* The control of a probe: sockets work here. */
static int both_local(int fd, const struct sockaddr_un *sa, socklen_t len)
{
	int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (other < 0 || bind(fd, (const struct sockaddr *)sa, len) < 0 || listen(fd, 1) < 0 ||
		connect(other, (const struct sockaddr *)sa, len) < 0)
		return probe_refused("connect to itself");
	printf("connected to itself\n");
	return PROBE_POSSIBLE;
}

int probe_local(int argc, char **argv)
{
	int fd, seconds = argc == 3 ? atoi(argv[2]) : 30;
	struct sockaddr_un sa;
	socklen_t len = argc >= 2 ? address_local(argv[1], &sa) : 0;

	if (!len || argc > 3 || seconds < 1 || seconds > MAX_SECONDS)
		return PROBE_USAGE;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return probe_refused("socket");
	if (strcmp(argv[0], "listen") == 0)
		return listen_at(fd, &sa, len, seconds);
	if (strcmp(argv[0], "both") == 0)
		return both_local(fd, &sa, len);
	if (strcmp(argv[0], "connect") != 0)
		return PROBE_USAGE;
	if (connect(fd, (struct sockaddr *)&sa, len) < 0)
		return probe_refused("connect");
	printf("connected\n");
	return PROBE_POSSIBLE;
}
