/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "src/guest/probe/verb/verb.h"

#define MAX_FILES 500
#define MAX_BYTES (256 * 1024)
#define MAX_FDS 16

static int n_files;

/* FNV-1a: distinguishes files, protects nothing. */
static uint64_t sum_of(int fd)
{
	uint64_t h = 0xcbf29ce484222325ULL;
	unsigned char buf[4096];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		for (ssize_t i = 0; i < n; i++)
			h = (h ^ buf[i]) * 0x100000001b3ULL;
	return h;
}

static int visit_sum(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	int fd;

	if (type != FTW_F || !S_ISREG(st->st_mode) || st->st_size == 0 || st->st_size > MAX_BYTES)
		return 0;
	if (n_files++ >= MAX_FILES)
		return 1;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return 0;
	printf("%016llx-%lld %s\n", (unsigned long long)sum_of(fd), (long long)st->st_size, path);
	(void)close(fd);
	return 0;
}

/* Missing files are skipped: the names are guesses. */
int probe_sum(int argc, char **argv)
{
	if (argc < 1)
		return PROBE_USAGE;
	for (int i = 0; i < argc; i++)
		(void)nftw(argv[i], visit_sum, MAX_FDS, FTW_PHYS);
	return n_files ? PROBE_POSSIBLE : PROBE_REFUSED;
}
