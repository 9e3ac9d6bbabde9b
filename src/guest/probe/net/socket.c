/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/vm_sockets.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "net.h"
#include "src/guest/probe/verb/verb.h"

struct word {
	const char *name;
	int value;
};

static const struct word families[] = {{"inet", AF_INET}, {"inet6", AF_INET6},
	{"packet", AF_PACKET}, {"vsock", AF_VSOCK}, {"unix", AF_UNIX}, {NULL, 0}};
static const struct word types[] = {
	{"stream", SOCK_STREAM}, {"dgram", SOCK_DGRAM}, {"raw", SOCK_RAW}, {NULL, 0}};

static int value_of(const struct word *words, const char *text)
{
	for (; words->name; words++)
		if (strcmp(words->name, text) == 0)
			return words->value;
	return atoi(text);
}

int probe_socket(int argc, char **argv)
{
	int fd;

	if (argc < 2 || argc > 3)
		return PROBE_USAGE;
	fd = socket(value_of(families, argv[0]), value_of(types, argv[1]) | SOCK_CLOEXEC,
		argc == 3 ? atoi(argv[2]) : 0);
	if (fd < 0)
		return probe_refused("socket");
	printf("a socket %s %s\n", argv[0], argv[1]);
	return PROBE_POSSIBLE;
}
