/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "host.h"
#include "src/guest/probe/verb/verb.h"

#define PIECE (1U << 20)
#define MAX_BYTES (512ULL << 20) /* of one process */

/* Unmapped or unreadable pieces are skipped. Returns 0 if all were denied. */
static uint64_t copy_out(pid_t pid, uintptr_t from, uintptr_t to, bool *refused)
{
	static char piece[PIECE];
	uint64_t n = 0;

	for (uintptr_t at = from; at < to; at += PIECE) {
		size_t want = to - at < PIECE ? to - at : PIECE;
		struct iovec here = {piece, want}, there = {(void *)at, want};
		ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);

		if (got < 0 && errno == EPERM)
			*refused = true;
		if (got <= 0)
			break;
		(void)fwrite(piece, 1, (size_t)got, stdout);
		n += (uint64_t)got;
	}
	return n;
}

/* Selects private writable memory. Not a memfd: the memory of a VM is searched separately. */
static bool is_wanted(const char *line, const char *mode)
{
	return strcmp(mode, "rw-p") == 0 && !strstr(line, "/memfd:");
}

int probe_memory(int argc, char **argv)
{
	uint64_t n = 0;
	bool refused = false;
	char path[64], line[4352], mode[8];
	unsigned long from, to;
	FILE *maps;

	if (argc != 1)
		return PROBE_USAGE;
	(void)snprintf(path, sizeof(path), "/proc/%d/maps", atoi(argv[0]));
	maps = fopen(path, "re");
	if (!maps)
		return probe_refused(path);
	while (n < MAX_BYTES && !refused && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %7s", &from, &to, mode) == 3 && is_wanted(line, mode))
			n += copy_out(atoi(argv[0]), from, to, &refused);
	(void)fclose(maps);
	if (n == 0) {
		errno = refused ? EPERM : ESRCH;
		return probe_refused("memory");
	}
	return PROBE_POSSIBLE;
}
