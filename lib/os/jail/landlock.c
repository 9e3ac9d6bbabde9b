/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "jail_internal.h"
#include "lib/base/fs/fd.h"

/* Younger than the oldest headers we build with. */
#define ACCESS_TRUNCATE (UINT64_C(1) << 14)

#define ACCESS_ABI_1 ((UINT64_C(1) << 13) - 1)
#define ACCESS_READ \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
/* The rights that apply to a file; the others apply to entries of a directory. */
#define ACCESS_OF_FILE                                               \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | \
		LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE)

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? 0 : (int)abi;
}

static uint64_t access_known(int abi)
{
	uint64_t access = ACCESS_ABI_1;

	if (abi >= 2)
		access |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		access |= ACCESS_TRUNCATE;
	return access;
}

static int allow_landlock(int rules, int fd, uint64_t access)
{
	struct landlock_path_beneath_attr rule = {.parent_fd = fd, .allowed_access = access};
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= ACCESS_OF_FILE;
	if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return -errno;
	return 0;
}

static int allow_mount(int rules, const struct jail_mount *m, uint64_t known, struct err *err)
{
	AUTO_CLOSE int fd = open(m->to, O_PATH | O_CLOEXEC);
	uint64_t access = m->flags & JAIL_MOUNT_RW ? known : known & ACCESS_READ;
	int r;

	if (fd < 0 && errno == ENOENT && (m->flags & JAIL_MOUNT_OPTIONAL))
		return 0;
	if (fd < 0)
		return err_errno(err, -errno, "cannot open %s for Landlock", m->to);
	if (m->flags & JAIL_MOUNT_DEV)
		access |= LANDLOCK_ACCESS_FS_WRITE_FILE;
	r = allow_landlock(rules, fd, access);
	return r < 0 ? err_errno(err, r, "cannot add a Landlock rule for %s", m->to) : 0;
}

/* A file that the program gets open for reading and writing it may open again, by way of a mounted
 * /proc/self/fd: qemu does that with its memory. The kernel never refuses files of no mount, such
 * as a memfd, and takes no rule for them (EBADFD). */
static int allow_fds(int rules, const struct jail_plan *plan, uint64_t known, struct err *err)
{
	for (size_t i = 0; i < plan->n_fds; i++) {
		int fd = plan->fds[i].from, flags = fcntl(fd, F_GETFL), r;
		struct stat st;

		if (flags < 0 || (flags & O_ACCMODE) != O_RDWR || fstat(fd, &st) < 0 ||
			!S_ISREG(st.st_mode))
			continue;
		r = allow_landlock(rules, fd, known & ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE);
		if (r < 0 && r != -EBADFD)
			return err_errno(err, r, "cannot add a Landlock rule for descriptor %d",
				plan->fds[i].to);
	}
	return 0;
}

int landlock_apply(const struct jail_state *s, struct err *err)
{
	const struct jail_plan *plan = s->plan;
	int abi = landlock_abi();
	struct landlock_ruleset_attr attr = {.handled_access_fs = access_known(abi)};
	AUTO_CLOSE int rules = -1;
	int r;

	if (abi == 0)
		return 1;
	rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (rules < 0)
		return err_errno(err, -errno, "cannot create a Landlock ruleset");
	r = allow_landlock(rules, s->program_fd, ACCESS_READ);
	if (r < 0)
		return err_errno(err, r, "cannot add a Landlock rule for the program");
	if (s->row->dev_null)
		r = allow_mount(rules, &jail_dev_null, attr.handled_access_fs, err);
	if (r < 0)
		return r;
	r = allow_fds(rules, plan, attr.handled_access_fs, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < plan->n_mounts; i++) {
		r = allow_mount(rules, &plan->mounts[i], attr.handled_access_fs, err);
		if (r < 0)
			return r;
	}
	if (syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		return err_errno(err, -errno, "cannot apply Landlock");
	return 0;
}
