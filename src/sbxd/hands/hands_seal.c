/* SPDX-License-Identifier: Apache-2.0 */
/* hands_seal of hands.h: the access that a sealed sbxd keeps. */
#include "hands.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/os/jail/broker.h"
#include "lib/os/jail/dirs.h"

/* A Landlock rule needs an existing directory. */
static int add_made(struct jail_dirs *d, enum paths_root root, bool rw, struct err *err)
{
	AUTO_FREE char *dir = paths_get(root, NULL);
	int r = paths_make(dir, err);

	jail_dirs_add_links(d, dir, rw);
	return r;
}

static void add_links(struct jail_dirs *d, enum paths_root root, const char *name)
{
	AUTO_FREE char *dir = paths_get(root, "%s", name);

	jail_dirs_add_links(d, dir, false);
}

static int fill_dirs(struct jail_dirs *d, struct err *err)
{
	static const char *const readable[] = {
		"/etc", "/proc", "/dev/urandom", "/usr/share/zoneinfo"};
	static const char *const shipped[] = {"services", "policies", "airlock"};
	int r;

	/* Symlinks last: there may be more than the list can hold. */
	for (size_t i = 0; i < ARRAY_LEN(readable); i++)
		jail_dirs_add(d, xstrdup(readable[i]), false);
	jail_dirs_add(d, xstrdup("/dev/null"), true);
	r = add_made(d, PATHS_STATE, true, err);
	if (r == 0)
		r = add_made(d, PATHS_RUNTIME, true, err);
	if (r == 0)
		r = add_made(d, PATHS_DATA, true, err);
	if (r < 0)
		return r;
	(void)!add_made(d, PATHS_CONFIG, false, NULL); /* without one there are no settings */
	for (size_t i = 0; i < ARRAY_LEN(shipped); i++)
		add_links(d, PATHS_SHARE, shipped[i]);
	add_links(d, PATHS_CONFIG, "services");
	add_links(d, PATHS_DATA, "templates");
	add_links(d, PATHS_DATA, "templates/.store");
	return 0;
}

int hands_seal(struct err *err)
{
	CLEANUP(jail_dirs_done) struct jail_dirs d = {0};
	int r = fill_dirs(&d, err);

	return r < 0 ? r : jail_broker(JAIL_SBXD, d.list, d.n, err);
}
