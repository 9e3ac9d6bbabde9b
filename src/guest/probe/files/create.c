/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "src/guest/probe/verb/verb.h"

/* With the mode in the request itself, not by a chmod afterwards. */
int probe_create(int argc, char **argv)
{
	mode_t mode;
	int fd;

	if (argc < 2 || argc > 3)
		return PROBE_USAGE;
	mode = (mode_t)strtoul(argv[1], NULL, 8);
	if (argc == 3) {
		if (mknod(argv[0], S_IFREG | mode, 0) < 0)
			return probe_refused("mknod");
	} else {
		fd = open(argv[0], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (fd < 0)
			return probe_refused("open");
		(void)close(fd);
	}
	printf("made\n");
	return PROBE_POSSIBLE;
}
