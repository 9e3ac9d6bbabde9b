/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "net.h"
#include "src/guest/probe/verb/verb.h"

#define MAX_MS 300000

static int address_unix(const char *path, struct sockaddr_un *ret_a)
{
	*ret_a = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(ret_a->sun_path))
		return -1;
	memcpy(ret_a->sun_path, path, strlen(path) + 1);
	return 0;
}

/* A path may be longer than an address: it is used relative to its directory. */
static const char *go_to(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash)
		return path;
	*slash = '\0';
	return chdir(*path ? path : "/") < 0 ? NULL : slash + 1;
}

int probe_unix_listen(int argc, char **argv)
{
	struct sockaddr_un a;
	struct pollfd p = {.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), .events = POLLIN};
	const char *name = argc == 2 ? go_to(argv[0]) : NULL;

	if (argc != 2)
		return PROBE_USAGE;
	if (!name || address_unix(name, &a) < 0 || p.fd < 0 ||
		bind(p.fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(p.fd, 4) < 0)
		return probe_refused("listen");
	printf("listening\n");
	(void)fflush(stdout);
	if (poll(&p, 1, (int)MIN(atol(argv[1]), MAX_MS)) <= 0)
		return PROBE_REFUSED;
	printf("a process connected\n");
	return PROBE_POSSIBLE;
}

int probe_unix_connect(int argc, char **argv)
{
	struct sockaddr_un a;
	char self[64];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int at = argc == 1 ? open(argv[0], O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1;

	if (argc != 1)
		return PROBE_USAGE;
	/* On the host the path is in a workspace: a symlink of the guest is not followed. */
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", at);
	if (at < 0 || address_unix(self, &a) < 0 || fd < 0 ||
		connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return probe_refused("connect");
	printf("connected\n");
	return PROBE_POSSIBLE;
}
