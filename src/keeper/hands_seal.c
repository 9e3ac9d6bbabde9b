/* What the keeper keeps when it is sealed: hands_seal of hands.h. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "hands.h"
#include "keeper.h"
#include "lib/audit/audit_crypto.h"
#include "lib/base/mem.h"
#include "lib/base/paths.h"
#include "lib/jail/broker.h"

/* More links than that are not followed by a sealed keeper. */
#define MAX_DIRS 128

struct dirs {
	struct jail_root list[MAX_DIRS];
	size_t n;
};

static void dirs_done(struct dirs *d)
{
	for (size_t i = 0; i < d->n; i++)
		free((char *)(uintptr_t)d->list[i].path);
}

/* Takes the path over. */
static void add_dir(struct dirs *d, char *path, bool rw)
{
	if (path && d->n < MAX_DIRS)
		d->list[d->n++] = (struct jail_root){path, rw};
	else
		free(path);
}

/* Where the file really is: it is replaced there. */
static void add_dir_of(struct dirs *d, const char *file)
{
	char *real = realpath(file, NULL), *slash = real ? strrchr(real, '/') : NULL;

	if (slash && slash != real)
		*slash = '\0';
	add_dir(d, real, false);
}

/* A directory that people may have put links into: what they lead to now can be read too. */
static void add_dir_with_links(struct dirs *d, const char *path)
{
	char *real = realpath(path, NULL);
	DIR *dir = real ? opendir(real) : NULL;
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		AUTO_FREE char *file = xasprintf("%s/%s", real, e->d_name);
		struct stat st;

		if (lstat(file, &st) == 0 && S_ISLNK(st.st_mode))
			add_dir(d, realpath(file, NULL), false);
	}
	if (dir)
		(void)closedir(dir);
	add_dir(d, real, false);
}

/* Of the audit logs its own alone; a machine of the pool does not make one before it is claimed. */
static int add_audit(struct keeper *k, struct dirs *d, bool waits, struct err *err)
{
	AUTO_FREE char *all = paths_get(PATHS_STATE, "audit"), *heads = xasprintf("%s/heads", all);
	AUTO_FREE char *mine = xasprintf("%s/%s", all, k->spec.id);
	struct audit_key *key = NULL;
	int r = paths_make(heads, err);

	if (r == 0 && !waits && !k->warm.is_making)
		r = paths_make(mine, err);
	/* Made by whoever is first. */
	if (r == 0 && audit_key_load(all, &key, NULL) == 0)
		audit_key_free(key);
	if (k->warm.is_making)
		return r;
	add_dir(d, TAKE(heads), true);
	add_dir(d, TAKE(mine), true);
	add_dir(d, TAKE(all), waits);
	return r;
}

static int fill_dirs(struct keeper *k, struct dirs *d, bool waits, struct err *err)
{
	AUTO_FREE char *config = paths_get(PATHS_CONFIG, NULL);
	AUTO_FREE char *own = xasprintf("%s/services", config);
	AUTO_FREE char *shipped = paths_get(PATHS_SHARE, "services");

	add_dir(d, xstrdup(k->dir), true);
	add_dir(d, spec_dir(k->spec.id), false);
	add_dir(d, xstrdup(k->run_dir), true);
	add_dir(d, paths_get(PATHS_STATE, "warm"), k->warm.is_making);
	add_dir(d, paths_get(PATHS_STATE, "initrd"), false);
	add_dir_with_links(d, shipped);
	add_dir(d, paths_get(PATHS_DATA, "templates"), false);
	add_dir_of(d, k->disks.template.kernel);
	add_dir_of(d, "/etc/resolv.conf");
	add_dir_of(d, "/etc/ssl/certs/ca-certificates.crt");
	add_dir(d, xstrdup("/etc"), false);
	add_dir(d, xstrdup("/proc"), false);
	add_dir(d, xstrdup("/dev/null"), true);
	add_dir(d, xstrdup("/usr/share/zoneinfo"), false);
	/* It may be made later, and a rule needs it now. */
	if (paths_make(config, err) < 0)
		return -EIO;
	add_dir_with_links(d, config);
	add_dir_with_links(d, own);
	return add_audit(k, d, waits, err);
}

int hands_seal_files(struct keeper *k, bool waits, struct err *err)
{
	CLEANUP(dirs_done) struct dirs d = {0};
	int r = fill_dirs(k, &d, waits, err);

	return r < 0 ? r : jail_broker_files(d.list, d.n, err);
}

int hands_seal(struct keeper *k, struct err *err)
{
	CLEANUP(dirs_done) struct dirs d = {0};
	int r = fill_dirs(k, &d, pool_waits(k), err);

	return r < 0 ? r : jail_broker(JAIL_KEEPER, d.list, d.n, err);
}
