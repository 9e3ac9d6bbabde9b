/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "src/guest/probe/verb/verb.h"

#define MAX_NODES 65536

/* FUSE's own format: the node's number in two halves, then its generation. */
#define FUSE_HANDLE 0x81

struct handle {
	struct file_handle head;
	uint32_t words[8];
};

static int try_open(int mount_fd, uint64_t node, uint32_t generation, struct stat *ret_st)
{
	struct handle h = {.head = {.handle_bytes = 12, .handle_type = FUSE_HANDLE}};
	int fd, r;

	h.words[0] = (uint32_t)(node >> 32);
	h.words[1] = (uint32_t)node;
	h.words[2] = generation;
	fd = open_by_handle_at(mount_fd, &h.head, O_PATH);
	if (fd < 0)
		return -1;
	r = fstat(fd, ret_st);
	(void)close(fd);
	return r;
}

/* Tries every number from 1: prints the inode of those that open, which is the host's. */
int probe_handles(int argc, char **argv)
{
	uint64_t last, n = 0;
	int fd;

	if (argc != 2)
		return PROBE_USAGE;
	last = MIN(strtoull(argv[1], NULL, 10), MAX_NODES);
	fd = open(argv[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return probe_refused(argv[0]);
	for (uint64_t node = 1; node <= last; node++)
		for (uint32_t generation = 0; generation < 2; generation++) {
			struct stat st;

			if (try_open(fd, node, generation, &st) < 0)
				continue;
			printf("node %llu inode %llu\n", (unsigned long long)node,
				(unsigned long long)st.st_ino);
			n++;
		}
	(void)close(fd);
	printf("%llu of %llu numbers open\n", (unsigned long long)n, (unsigned long long)last);
	return n ? PROBE_POSSIBLE : PROBE_REFUSED;
}
