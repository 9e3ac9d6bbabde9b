/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "jail_internal.h"
#include "lib/base/fs/fd.h"
#include "unsealed.h"

/* No pid namespace: only a child could be in it. */
#define NAMESPACES \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWCGROUP)

/* For a program that other processes of the user must not inspect: it is executed outside and
 * enters the jail itself, all stages but seccomp (jail_seal follows). Its memory then belongs to
 * the outer user namespace, over which the user has no rights; the user can trace a program that
 * was executed inside, dumpable or not, because the inner namespace belongs to the user. One
 * thread; not the leader of its process group. */
static int jail_self(enum jail_profile profile, const struct jail_mount *mounts, size_t n_mounts,
	struct err *err)
{
	const struct jail_plan plan = {.profile = profile, .mounts = mounts, .n_mounts = n_mounts};
	AUTO_CLOSE int program = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	struct jail_state s = {.plan = &plan,
		.row = jail_row(profile),
		.program_fd = program,
		.nofile = jail_row(profile)->limit.nofile,
		.uid = geteuid(),
		.gid = getegid()};
	int r;

	if (program < 0)
		return err_errno(err, -errno, "cannot open the program to jail");
	r = jail_start(&s, err);
	if (r == 0 && unshare(NAMESPACES) < 0)
		r = err_errno(err, -errno, "cannot create namespaces");
	if (r == 0)
		r = jail_enter(&s, err);
	if (r == 0)
		r = jail_files(&s, err);
	if (r == 0)
		r = jail_lock(&s, err);
	return r < 0 ? err_wrap(err, r, "cannot jail %s", s.row->name) : 0;
}

static int install_start(const struct jail_row *row, struct err *err)
{
	CLEANUP(filter_done) struct filter f = {0};
	int r = filter_make_start(
		row, false, -1, &f, err); /* -1: execve is in the list, or nothing is */

	if (r == 0)
		r = filter_install(&f, false);
	return r < 0 && !err->text[0] ? err_errno(err, r, "lock: cannot install the seccomp filter")
				      : r;
}

int jail_exec(enum jail_profile profile, const struct jail_mount *mounts, size_t n_mounts,
	char *const *argv, char *const *envp, struct err *err)
{
	const struct jail_plan plan = {.profile = profile, .mounts = mounts, .n_mounts = n_mounts};
	struct jail_state s = {.plan = &plan,
		.row = jail_row(profile),
		.program_fd = -1,
		.nofile = jail_row(profile)->limit.nofile,
		.has_ids = true};
	int r = jail_start(&s, err);

	(void)umask(022);
	if (r == 0)
		r = jail_enter(&s, err);
	if (r == 0)
		r = jail_lock(&s, err);
	if (r == 0)
		r = install_start(s.row, err);
	if (r == 0) {
		(void)execve(argv[0], argv, envp);
		r = err_errno(err, -errno, "exec: %s", argv[0]);
	}
	return err_wrap(err, r, "cannot jail %s", s.row->name);
}

/* Until it was sealed a process of the same user could attach to it. */
int jail_refuse_tracer(int status, struct err *err)
{
	char text[4096] = "";
	const char *line;

	if (status < 0 || pread(status, text, sizeof(text) - 1, 0) <= 0)
		return err_set(err, -EPERM, "cannot determine whether this process is traced");
	line = strstr(text, "TracerPid:\t");
	if (!line || atoi(line + 11) != 0)
		return err_set(err, -EPERM, "the process is traced");
	return 0;
}

const char *jail_place(const struct jail_mount *mount)
{
	return JAIL_SEALS ? mount->to : mount->from;
}

int jail_go_in(enum jail_profile profile, const struct jail_mount *mounts, size_t n_mounts,
	struct err *err)
{
	AUTO_CLOSE int status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	int r = JAIL_SEALS ? jail_self(profile, mounts, n_mounts, err) : 0;

	if (r == 0)
		r = jail_seal(profile, err);
	return r < 0 || !JAIL_SEALS ? r : jail_refuse_tracer(status, err);
}
