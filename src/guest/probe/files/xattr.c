/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "files.h"
#include "src/guest/probe/verb/verb.h"

/* A capability that is well formed (cap_setuid, permitted and effective), so that only rights
 * decide. */
static const unsigned char capability[] = {
	1, 0, 0, 2, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

int probe_xattr_set(int argc, char **argv)
{
	const void *value = "probe";
	size_t n = 5;

	if (argc != 2)
		return PROBE_USAGE;
	if (strcmp(argv[1], "security.capability") == 0) {
		value = capability;
		n = sizeof(capability);
	}
	if (lsetxattr(argv[0], argv[1], value, n, 0) < 0)
		return probe_refused(argv[1]);
	printf("%s is set\n", argv[1]);
	return PROBE_POSSIBLE;
}

int probe_xattr_list(int argc, char **argv)
{
	char names[4096];
	ssize_t n;

	if (argc != 1)
		return PROBE_USAGE;
	n = llistxattr(argv[0], names, sizeof(names));
	if (n < 0)
		return probe_refused("listxattr");
	for (ssize_t i = 0; i < n; i += (ssize_t)strlen(names + i) + 1)
		printf("%s\n", names + i);
	return PROBE_POSSIBLE;
}
