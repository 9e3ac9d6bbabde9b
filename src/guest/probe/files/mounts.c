/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "files.h"
#include "src/guest/probe/verb/verb.h"

int probe_mounts(int argc, char **argv)
{
	if (argc < 1)
		return PROBE_USAGE;
	if (unshare(CLONE_NEWNS) < 0)
		return probe_refused("unshare");
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return probe_refused("private mounts");
	(void)execvp(argv[0], argv);
	return probe_refused(argv[0]);
}

int probe_mount(int argc, char **argv)
{
	bool bind = argc == 3 && strcmp(argv[0], "bind") == 0;

	if (argc != 3)
		return PROBE_USAGE;
	if (mount(argv[1], argv[2], bind ? NULL : argv[0], bind ? MS_BIND : 0, NULL) < 0)
		return probe_refused(argv[0]);
	printf("%s is mounted\n", argv[1]);
	return PROBE_POSSIBLE;
}
