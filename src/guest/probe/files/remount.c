/* SPDX-License-Identifier: Apache-2.0 */
#include "remount.h"

#include <errno.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

#include "src/guest/probe/verb/verb.h"

#define FLAGS (MS_NOSUID | MS_NODEV)

void remount_note(struct remount *r)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	const struct mntent *m;

	r->n = 0;
	while (f && r->n < REMOUNT_MAX && (m = getmntent(f))) {
		if (strcmp(m->mnt_type, "virtiofs") != 0 ||
			strlen(m->mnt_dir) >= sizeof(r->mounts[0].path))
			continue;
		(void)snprintf(r->mounts[r->n].path, sizeof(r->mounts[0].path), "%s", m->mnt_dir);
		r->mounts[r->n++].ro = hasmntopt(m, "ro");
	}
	if (f)
		(void)endmntent(f);
}

static int bind_again(const char *path, bool ro)
{
	char from[sizeof(REMOUNT_SHARE) + 1024];

	(void)snprintf(from, sizeof(from), "%s%s", REMOUNT_SHARE, path);
	if (mount(from, path, NULL, MS_BIND, NULL) < 0)
		return -1;
	return mount("none", path, NULL, MS_BIND | MS_REMOUNT | FLAGS | (ro ? MS_RDONLY : 0), NULL);
}

int remount_again(const struct remount *r)
{
	for (size_t i = r->n; i > 0; i--)
		(void)umount2(r->mounts[i - 1].path, MNT_DETACH);
	if (r->n && mount("sbx", REMOUNT_SHARE, "virtiofs", FLAGS, NULL) < 0)
		return probe_refused("mounting the share again");
	for (size_t i = 0; i < r->n; i++) {
		const char *path = r->mounts[i].path;

		if (strncmp(path, REMOUNT_SHARE, strlen(REMOUNT_SHARE)) == 0)
			continue;
		if (bind_again(path, r->mounts[i].ro) < 0 && errno != ENOENT)
			return probe_refused(path);
	}
	return PROBE_POSSIBLE;
}
