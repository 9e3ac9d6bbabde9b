/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory - what /proc says about a process.
 */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/base/str.h"

uint64_t rig_memory(pid_t pid, const char *field)
{
	char path[64], line[256];
	uint64_t kib = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = pid > 0 ? fopen(path, "re") : NULL;
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		if (str_starts(line, field))
			kib = strtoul(line + strlen(field), NULL, 10);
	}
	(void)fclose(f);
	return kib;
}
