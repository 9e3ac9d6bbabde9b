/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "files.h"
#include "src/guest/probe/verb/verb.h"

#define MAX_MS 20000

static long now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int probe_swap(int argc, char **argv)
{
	long n = 0, end;

	if (argc != 3)
		return PROBE_USAGE;
	end = now_ms() + MIN(atol(argv[2]), MAX_MS);
	while (now_ms() < end) {
		if (renameat2(AT_FDCWD, argv[0], AT_FDCWD, argv[1], RENAME_EXCHANGE) < 0)
			return probe_refused("renameat2");
		n++;
	}
	printf("swapped %ld times\n", n);
	return PROBE_POSSIBLE;
}
