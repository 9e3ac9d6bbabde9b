/* SPDX-License-Identifier: Apache-2.0 */
/* hands_seal of hands.h: the access that a sealed keeper keeps. */
#include <errno.h>
#include "hands.h"
#include "worker.h"
#include "lib/vm/template/template.h"
#include "lib/rules/audit/audit_crypto.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/os/jail/broker.h"
#include "lib/os/jail/dirs.h"

/* Only the sandbox's own audit log; a VM of the pool has none before it is claimed. */
static int add_audit(struct keeper *k, struct jail_dirs *d, bool waits, struct err *err)
{
	AUTO_FREE char *all = paths_get(PATHS_STATE, "audit"), *heads = xasprintf("%s/heads", all);
	AUTO_FREE char *mine = xasprintf("%s/%s", all, k->spec.id);
	struct audit_key *key = NULL;
	int r = paths_make(heads, err);

	if (r == 0 && !waits && k->plan != START_MAKE)
		r = paths_make(mine, err);
	/* The first process creates the key. */
	if (r == 0 && audit_key_load(all, &key, NULL) == 0)
		audit_key_free(key);
	if (k->plan == START_MAKE)
		return r;
	jail_dirs_add(d, TAKE(heads), true);
	jail_dirs_add(d, TAKE(mine), true);
	jail_dirs_add(d, TAKE(all), waits);
	return r;
}

static int fill_dirs(struct keeper *k, struct jail_dirs *d, bool waits, struct err *err)
{
	AUTO_FREE char *config = paths_get(PATHS_CONFIG, NULL);
	AUTO_FREE char *own = xasprintf("%s/services", config);
	AUTO_FREE char *shipped = paths_get(PATHS_SHARE, "services");
	AUTO_FREE char *packs = paths_get(PATHS_SHARE, "apis");
	AUTO_FREE char *own_packs = xasprintf("%s/apis", config);
	AUTO_FREE char *airlock = paths_get(PATHS_SHARE, "airlock");

	jail_dirs_add(d, xstrdup(k->dir), true);
	jail_dirs_add(d, spec_dir(k->spec.id), false);
	jail_dirs_add(d, xstrdup(k->run_dir), true);
	jail_dirs_add(d, paths_get(PATHS_STATE, "warm"), false);
	jail_dirs_add(d, paths_get(PATHS_STATE, "initrd"), false);
	jail_dirs_add_links(d, shipped, false);
	jail_dirs_add_links(d, packs, false);
	jail_dirs_add_links(d, airlock, false);
	jail_dirs_add(d, paths_get(PATHS_DATA, "templates"), false);
	jail_dirs_add_of(d, k->template->kernel);
	jail_dirs_add_of(d, "/etc/resolv.conf");
	jail_dirs_add_of(d, "/etc/ssl/certs/ca-certificates.crt");
	jail_dirs_add(d, xstrdup("/etc"), false);
	jail_dirs_add(d, xstrdup("/proc"), false);
	jail_dirs_add(d, xstrdup("/dev/null"), true);
	jail_dirs_add(d, xstrdup("/usr/share/zoneinfo"), false);
	/* A Landlock rule needs an existing directory. Without one there are no settings. */
	(void)!paths_make(config, NULL);
	jail_dirs_add_links(d, config, false);
	jail_dirs_add_links(d, own, false);
	jail_dirs_add_links(d, own_packs, false);
	return add_audit(k, d, waits, err);
}

int hands_seal_files(struct keeper *k, bool waits, struct err *err)
{
	CLEANUP(jail_dirs_done) struct jail_dirs d = {0};
	int r = fill_dirs(k, &d, waits, err);

	return r < 0 ? r : jail_broker_files(d.list, d.n, err);
}

int hands_seal(struct keeper *k, struct err *err)
{
	CLEANUP(jail_dirs_done) struct jail_dirs d = {0};
	int r = fill_dirs(k, &d, k->plan == START_POOL, err);

	return r < 0 ? r : jail_broker(JAIL_KEEPER, d.list, d.n, err);
}
