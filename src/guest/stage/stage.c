/* SPDX-License-Identifier: Apache-2.0 */
#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "src/guest/base/base.h"
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/hash/sha256.h"
#include "lib/base/hex.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/wire/stage/stage_pack.h"
#include "refresh.h"

#define OLD "old." /* a directory that is being removed */

/* A name without the characters that separate mount options. */
static void make_tag(const char *path, char tag[17])
{
	uint8_t sha[SHA256_BYTES];

	sha256(slice_from_str(path), sha);
	hex_print(sha, 8, tag);
}

static char *stage_path(const char *path, const char *name)
{
	char tag[17];

	make_tag(path, tag);
	return xasprintf("%s/%s%s%s", STAGE_DIR, tag, name[0] ? "/" : "", name);
}

static char *mount_path(const char *path, const char *name)
{
	char tag[17];

	make_tag(path, tag);
	return xasprintf("%s/%s%s%s", STAGE_MOUNTS, tag, name[0] ? "/" : "", name);
}

/* ---- discarded changes ---- */

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return flag == FTW_DP ? rmdir(path) : unlink(path);
}

/* A child, since it may take long: PID 1 reaps it. */
static void remove_old(void)
{
	AUTO_DIR DIR *d = NULL;
	struct dirent *e;

	if (fork() != 0)
		return;
	d = opendir(STAGE_DIR);
	while ((e = dir_next(d))) {
		AUTO_FREE char *path = xasprintf("%s/%s", STAGE_DIR, e->d_name);

		if (str_starts(e->d_name, OLD))
			(void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	}
	_exit(0);
}

static bool is_of(const char *id, const char *path)
{
	AUTO_FREE char *file = stage_path(path, "id"), *text = NULL;

	return file_read(file, &text) == 0 && strcmp(text, id) == 0;
}

static int drop_unwanted(const char *id, const char *path, bool keep, struct err *err)
{
	AUTO_FREE char *dir = stage_path(path, ""), *mark = stage_path(path, "discard");
	AUTO_FREE char *old = NULL;
	char random[17];

	if (access(dir, F_OK) < 0 || ((keep || is_of(id, path)) && access(mark, F_OK) < 0))
		return 0;
	str_random_hex(random, 8);
	old = xasprintf("%s/%s%s", STAGE_DIR, OLD, random);
	if (rename(dir, old) < 0)
		return err_errno(err, -errno, "cannot discard the staged changes");
	remove_old();
	return 0;
}

/* ---- directories ---- */

static int make_dir(const char *path, mode_t mode, struct err *err)
{
	if (mkdir(path, mode) < 0 && errno != EEXIST)
		return err_errno(err, -errno, "cannot create %s in the guest", path);
	return 0;
}

/* The root of the overlay has the attributes of the upper directory. */
static int make_upper(const char *upper, const char *lower, struct err *err)
{
	struct stat st;

	if (mkdir(upper, 0700) < 0)
		return errno == EEXIST ? 0 : err_errno(err, -errno, "cannot create %s", upper);
	if (stat(lower, &st) < 0 || chown(upper, st.st_uid, st.st_gid) < 0 ||
		chmod(upper, st.st_mode & 0777) < 0)
		return err_errno(err, -errno, "cannot set the owner of %s", upper);
	return 0;
}

static int make_disk(
	const char *id, const struct guest_mount *w, const char *lower, struct err *err)
{
	bool keep = w->flags & GUEST_MOUNT_KEPT;
	const char *path = w->path;
	AUTO_FREE char *dir = stage_path(path, ""), *upper = stage_path(path, "u");
	AUTO_FREE char *work = stage_path(path, "w"), *file = stage_path(path, "id");
	int r = file_make_parents(dir, err);

	if (r == 0)
		r = make_dir(STAGE_DIR, 0700, err);
	if (r == 0 && chmod(STAGE_DIR, 0700) < 0)
		r = err_errno(err, -errno, "cannot close " STAGE_DIR);
	if (r == 0)
		r = drop_unwanted(id, path, keep, err);
	if (r == 0)
		r = make_dir(dir, 0700, err);
	if (r == 0)
		r = make_upper(upper, lower, err);
	if (r == 0)
		r = make_dir(work, 0700, err);
	return r < 0 ? r : file_say(file, id, err);
}

static int make_mount_points(const char *path, struct err *err)
{
	AUTO_FREE char *top = mount_path(path, ""), *lower = mount_path(path, "lower");
	AUTO_FREE char *merged = mount_path(path, "merged");
	int r = make_dir(STAGE_MOUNTS, 0700, err);

	if (r == 0)
		r = make_dir(top, 0700, err);
	if (r == 0)
		r = make_dir(lower, 0700, err);
	return r < 0 ? r : make_dir(merged, 0700, err);
}

/* ---- mounts ---- */

/* An overlay stores a handle of the file below with each copy, and decodes it later. A handle of
 * the share is the number of a file in virtiofsd: after a restart it is another file, and the copy
 * would fail with ESTALE. Handles are ignored if the process that mounts lacks this capability. */
static int change_handles(bool allow)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3];
	uint32_t bit = CAP_TO_MASK(CAP_DAC_READ_SEARCH);

	if (syscall(SYS_capget, &h, d) < 0)
		return -errno;
	d[0].effective = allow ? d[0].effective | bit : d[0].effective & ~bit;
	return syscall(SYS_capset, &h, d) < 0 ? -errno : 0;
}

static int mount_overlay(const char *path, const char *lower, const char *merged, struct err *err)
{
	static const char *const names[] = {"overlay", NULL};
	AUTO_FREE char *upper = stage_path(path, "u"), *work = stage_path(path, "w");
	AUTO_FREE char *options = xasprintf("lowerdir=%s,upperdir=%s,workdir=%s,redirect_dir=on,"
					    "metacopy=off,index=off",
		lower, upper, work);
	int r = modules_load(names, err), restored;

	if (r < 0)
		return r;
	r = change_handles(false);
	if (r == 0 && mount("overlay", merged, "overlay", MS_NOSUID | MS_NODEV, options) < 0)
		r = -errno;
	restored = change_handles(true);
	if (r == 0)
		r = restored;
	return r < 0 ? err_errno(err, r, "cannot mount the overlay of %s in the guest", path) : 0;
}

int stage_mount(
	const char *id, const struct guest_mount *w, const char *share, char **ret, struct err *err)
{
	AUTO_FREE char *lower = mount_path(w->path, "lower");
	AUTO_FREE char *merged = mount_path(w->path, "merged");
	int r = make_mount_points(w->path, err);

	if (r == 0)
		r = make_disk(id, w, share, err);
	if (r < 0)
		return r;
	if (mount(share, lower, NULL, MS_BIND, NULL) < 0)
		return err_errno(err, -errno, "cannot bind %s in the guest", share);
	r = mount_overlay(w->path, lower, merged, err);
	if (r < 0)
		return r;
	refresh_start(merged);
	*ret = TAKE(merged);
	return 0;
}

/* ---- builtins ---- */

int stage_send(const char *path, int out_fd, struct err *err)
{
	AUTO_FREE char *upper = stage_path(path, "u"), *merged = mount_path(path, "merged");
	AUTO_CLOSE int u = open(upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int m = open(merged, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stage_source src = {.upper = u, .merged = m, .prefix = "trusted.overlay."};

	if (u < 0 || m < 0)
		return err_set(err, -ENOENT, "%s is not a staged workspace", path);
	return stage_pack(&src, out_fd, err);
}

int stage_refresh(const char *path, struct err *err)
{
	AUTO_FREE char *merged = mount_path(path, "merged"), *lower = mount_path(path, "lower");

	return refresh_now(merged, lower, err);
}

int stage_discard(const char *path, struct err *err)
{
	AUTO_FREE char *mark = stage_path(path, "discard");

	return file_say(mark, "", err);
}
