/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host.h"
#include "src/guest/probe/verb/verb.h"

#define MAX_KEYS 4096

/* Prints the key's bytes. Root can link a key to its own keyring and then read it. */
static int print_key(long serial)
{
	static char bytes[65536];
	long n = syscall(SYS_keyctl, KEYCTL_READ, serial, bytes, sizeof(bytes));

	if (n < 0 && errno == EACCES &&
		syscall(SYS_keyctl, KEYCTL_LINK, serial, KEY_SPEC_PROCESS_KEYRING) == 0)
		n = syscall(SYS_keyctl, KEYCTL_READ, serial, bytes, sizeof(bytes));
	if (n < 0)
		return -1;
	if (n > (long)sizeof(bytes))
		n = sizeof(bytes);
	(void)fwrite(bytes, 1, (size_t)n, stdout);
	(void)putchar('\n');
	return 0;
}

/* Keyrings hold numbers of other keys, which are in the list themselves. */
static int print_all(void)
{
	FILE *list = fopen("/proc/keys", "re");
	unsigned n = 0, n_read = 0;
	char line[512];

	if (!list)
		return probe_refused("/proc/keys");
	while (n < MAX_KEYS && fgets(line, sizeof(line), list)) {
		char *end;
		long serial = strtol(line, &end, 16);

		if (end == line || strstr(line, " keyring "))
			continue;
		n++;
		n_read += print_key(serial) == 0;
	}
	(void)fclose(list);
	printf("%u keys, %u of them can be read\n", n, n_read);
	return PROBE_POSSIBLE;
}

static int remove_key(const char *name)
{
	long key = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, "user", name, 0);

	if (key < 0 || syscall(SYS_keyctl, KEYCTL_UNLINK, key, KEY_SPEC_USER_KEYRING) < 0)
		return probe_refused("keyctl");
	return PROBE_POSSIBLE;
}

int probe_keys(int argc, char **argv)
{
	if (argc == 0)
		return print_all();
	if (argc == 2 && strcmp(argv[0], "rm") == 0)
		return remove_key(argv[1]);
	if (argc != 3 || strcmp(argv[0], "add") != 0)
		return PROBE_USAGE;
	if (syscall(SYS_add_key, "user", argv[1], argv[2], strlen(argv[2]), KEY_SPEC_USER_KEYRING) <
		0)
		return probe_refused("add_key");
	printf("a key %s\n", argv[1]);
	return PROBE_POSSIBLE;
}
