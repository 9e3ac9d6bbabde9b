/* SPDX-License-Identifier: Apache-2.0 */
#include "broker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "filter.h"
#include "jail_internal.h"
#include "lib/base/fs/fd.h"
#include "unsealed.h"

/* Before version 2 nothing can be renamed from one directory to another. */
#define ABI_LEAST 2
#define ABI_TRUNCATE 3
#define ABI_NET 4
#define ABI_IOCTL 5
#define ABI_SCOPE 6

/* Younger than the oldest headers we build with. */
#define ACCESS_TRUNCATE (UINT64_C(1) << 14)
#define ACCESS_IOCTL_DEV (UINT64_C(1) << 15)
#define NET_CONNECT_TCP (UINT64_C(1) << 1)
#define SCOPE_ABSTRACT_UNIX (UINT64_C(1) << 0)
#define SCOPE_SIGNAL (UINT64_C(1) << 1)

#define ACCESS_ABI_2 ((UINT64_C(1) << 14) - 1)
#define ACCESS_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define ACCESS_NEVER                                                 \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR | \
		LANDLOCK_ACCESS_FS_MAKE_BLOCK | ACCESS_IOCTL_DEV)
/* The rights that apply to a file; the others apply to entries of a directory. */
#define ACCESS_OF_FILE \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE)

/* The kernel's struct landlock_ruleset_attr, all of it. */
struct ruleset {
	uint64_t files, net, scope;
};

static size_t describe_broker(int abi, struct ruleset *ret)
{
	*ret = (struct ruleset){.files = ACCESS_ABI_2};
	if (abi >= ABI_TRUNCATE)
		ret->files |= ACCESS_TRUNCATE;
	if (abi >= ABI_IOCTL)
		ret->files |= ACCESS_IOCTL_DEV;
	if (abi >= ABI_NET)
		ret->net = NET_CONNECT_TCP;
	if (abi >= ABI_SCOPE)
		ret->scope = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;
	return abi >= ABI_SCOPE ? 24 : abi >= ABI_NET ? 16 : 8;
}

static int allow_broker(int rules, const struct jail_root *d, uint64_t known, struct err *err)
{
	AUTO_CLOSE int fd = open(d->path, O_PATH | O_CLOEXEC);
	uint64_t access = d->rw ? known & ~ACCESS_NEVER : ACCESS_READ;
	struct landlock_path_beneath_attr rule = {.parent_fd = fd};
	struct stat st;

	if (fd < 0 && (errno == ENOENT || errno == EACCES))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, -errno, "cannot open %s for Landlock", d->path);
	rule.allowed_access = S_ISDIR(st.st_mode) ? access : access & known & ACCESS_OF_FILE;
	if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return err_errno(err, -errno, "Landlock rule for %s", d->path);
	return 0;
}

int jail_broker_files(const struct jail_root *dirs, size_t n, struct err *err)
{
	int abi = landlock_abi(), r = 0;
	AUTO_CLOSE int rules = -1;
	struct ruleset set;
	size_t size;

	if (!JAIL_SEALS || abi < ABI_LEAST)
		return 0;
	size = describe_broker(abi, &set);
	rules = (int)syscall(SYS_landlock_create_ruleset, &set, size, 0);
	if (rules < 0)
		return err_errno(err, -errno, "cannot create a Landlock ruleset");
	for (size_t i = 0; r == 0 && i < n; i++)
		r = allow_broker(rules, &dirs[i], set.files, err);
	if (r == 0 && syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		r = err_errno(err, -errno, "cannot apply Landlock");
	return r;
}

int jail_broker_close(struct err *err)
{
	AUTO_CLOSE int status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	if (!JAIL_SEALS)
		return 0;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_errno(err, -errno, "cannot make the process non-dumpable");
	return jail_refuse_tracer(status, err);
}

int jail_broker(enum jail_profile profile, const struct jail_root *dirs, size_t n, struct err *err)
{
	const struct jail_row *row = jail_row(profile);
	CLEANUP(filter_done) struct filter f = {0};
	int r;

	if (!JAIL_SEALS)
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_errno(err, -errno, "no_new_privs");
	r = jail_broker_files(dirs, n, err);
	if (r == 0)
		r = filter_make_start(row, false, -1, &f, err); /* -1: nothing can be executed */
	if (r == 0) {
		r = filter_install(&f, false);
		r = r < 0 ? err_errno(err, r, "seccomp") : 0;
	}
	return r < 0 ? err_wrap(err, r, "cannot seal %s", row->name) : 0;
}

int jail_broker_spawner(struct err *err)
{
	CLEANUP(filter_done) struct filter f = {0};
	int r;

	if (!JAIL_SEALS)
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_errno(err, -errno, "no_new_privs");
	r = filter_make_refusal(&f, err);
	if (r < 0)
		return r;
	r = filter_install(&f, false);
	return r < 0 ? err_errno(err, r, "seccomp") : 0;
}

const char *jail_broker_walls(void)
{
	int abi = landlock_abi();

	if (abi >= ABI_SCOPE)
		return "files, TCP connections, signals, abstract sockets";
	if (abi >= ABI_NET)
		return "files, TCP connections";
	return abi >= ABI_LEAST ? "files" : "";
}
