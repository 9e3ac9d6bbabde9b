/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "files.h"
#include "src/guest/probe/verb/verb.h"

static int write_by_memory(int fd)
{
	void *p = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return probe_refused("mmap");
	*(volatile char *)p = '!';
	if (msync(p, 1, MS_SYNC) < 0)
		return probe_refused("msync");
	printf("written through a mapping\n");
	return PROBE_POSSIBLE;
}

/* With a writable descriptor if requested, else with a read-only one. */
int probe_mmap(int argc, char **argv)
{
	int fd, r;

	if (argc != 1)
		return PROBE_USAGE;
	fd = open(argv[0], O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fd = open(argv[0], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return probe_refused(argv[0]);
	r = write_by_memory(fd);
	(void)close(fd);
	return r;
}
