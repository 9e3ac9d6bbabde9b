/* SPDX-License-Identifier: Apache-2.0 */
/* Runs as sbx-graft before the jail; input: arguments of template-oci; mounts only in its own
 * namespace. */
#include "jail.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/os/jail/jail.h"

struct mounts {
	struct jail_mount v[GRAFT_MAX_MOUNTS];
	size_t n;
};

static void add_jail(struct mounts *m, const char *from, const char *to, unsigned flags)
{
	if (m->n == GRAFT_MAX_MOUNTS)
		die("more than %d mounts", GRAFT_MAX_MOUNTS);
	m->v[m->n++] = (struct jail_mount){.from = from, .to = to, .flags = flags};
}

/* FROM:TO, both absolute. */
static void add_pair(struct mounts *m, char *pair, unsigned flags)
{
	char *to = strrchr(pair, ':');

	if (!to || pair[0] != '/' || to[1] != '/')
		die("invalid mount '%s': expected /FROM:/TO", pair);
	*to++ = '\0';
	add_jail(m, pair, to, flags);
}

static void add_system(struct mounts *m)
{
	/* With a merged /usr these are symlinks; their targets are bound. */
	static const char *const folders[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"};

	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		add_jail(m, folders[i], folders[i], i ? JAIL_MOUNT_OPTIONAL : 0);
}

/* The time of the files to write, for mke2fs and tar; no other environment. */
static char *setting_jail(const char *name)
{
	const char *value = getenv(name);

	return xasprintf("%s=%.20s", name, value ? value : "0");
}

void graft_jail(char **argv)
{
	struct mounts m = {.n = 0};
	char *env[] = {(char[]){"PATH=/usr/sbin:/usr/bin"}, (char[]){"HOME=/tmp"},
		(char[]){"LC_ALL=C"}, (char[]){"TMPDIR=/scratch"},
		setting_jail("SOURCE_DATE_EPOCH"), setting_jail("E2FSPROGS_FAKE_TIME"), NULL};
	struct err err = {0};
	int r;

	add_system(&m);
	for (; *argv && strcmp(*argv, "--") != 0; argv += 2) {
		if (!argv[1] || (strcmp(*argv, "--ro") != 0 && strcmp(*argv, "--rw") != 0))
			die("invalid argument '%s': expected --ro or --rw FROM:TO", *argv);
		add_pair(&m, argv[1], (*argv)[3] == 'w' ? JAIL_MOUNT_RW : 0);
	}
	if (!*argv || !argv[1])
		die("missing program after --");
	r = jail_exec(JAIL_TEMPLATE, m.v, m.n, argv + 1, env, &err);
	die("%s", err_text(&err, r));
}
