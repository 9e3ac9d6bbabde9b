/* SPDX-License-Identifier: Apache-2.0 */
#include "hide.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "guard_internal.h"
#include "lib/base/fs/fd.h"
#include "hide_internal.h"

/* Since Linux 6.6; the headers of Debian 12 are older. */
#define NOTIF_SET_FLAGS SECCOMP_IOW(4, uint64_t)
#define NOTIF_SYNC_WAKE_UP UINT64_C(1)

/* Which arguments are names, each with the directory it is looked up in. The first argument of
 * symlinkat is content, not a name. */
static const struct name_args {
	int nr;
	int at[2], name[2]; /* -1: none */
} name_args[] = {
	{SYS_openat, {0, -1}, {1, -1}},
	{SYS_openat2, {0, -1}, {1, -1}},
	{SYS_newfstatat, {0, -1}, {1, -1}},
	{SYS_statx, {0, -1}, {1, -1}},
	{SYS_faccessat, {0, -1}, {1, -1}},
	{439 /* faccessat2 */, {0, -1}, {1, -1}},
	{SYS_readlinkat, {0, -1}, {1, -1}},
	{SYS_name_to_handle_at, {0, -1}, {1, -1}},
	{SYS_mkdirat, {0, -1}, {1, -1}},
	{SYS_mknodat, {0, -1}, {1, -1}},
	{SYS_unlinkat, {0, -1}, {1, -1}},
	{SYS_fchmodat, {0, -1}, {1, -1}},
	{452 /* fchmodat2 */, {0, -1}, {1, -1}},
	{SYS_fchownat, {0, -1}, {1, -1}},
	{SYS_utimensat, {0, -1}, {1, -1}},
	{SYS_symlinkat, {1, -1}, {2, -1}},
	{SYS_linkat, {0, 2}, {1, 3}},
	{SYS_renameat, {0, 2}, {1, 3}},
	{SYS_renameat2, {0, 2}, {1, 3}},
};

int hide_check(const char *const *globs, size_t n, struct err *err)
{
	static const char *const numbers[] = {"0", "7", "9", "12", "38", "104", "5210", "16384"};

	if (n > SHARE_MAX_HIDE)
		return err_set(err, -E2BIG, "cannot hide more than %d patterns", SHARE_MAX_HIDE);
	for (size_t i = 0; i < n; i++) {
		if (!globs[i][0] || strchr(globs[i], '/') || strlen(globs[i]) > NAME_MAX)
			return err_set(err, -EINVAL,
				"invalid pattern '%s' to hide: use a pattern for file names, such as .env*",
				globs[i]);
		for (size_t k = 0; k < ARRAY_LEN(numbers); k++)
			if (fnmatch(globs[i], numbers[k], 0) == 0)
				return err_set(err, -EINVAL,
					"pattern '%s' would hide all files: use a narrower one, such as .env*",
					globs[i]);
	}
	return 0;
}

bool hide_matches(const char *const *globs, size_t n, const char *path)
{
	char name[NAME_MAX + 2];
	size_t end = strlen(path), start;

	while (end > 0 && path[end - 1] == '/')
		end--;
	for (start = end; start > 0 && path[start - 1] != '/'; start--)
		;
	if (end - start > NAME_MAX)
		return false; /* the kernel refuses such a name anyway */
	memcpy(name, path + start, end - start);
	name[end - start] = '\0';
	if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (fnmatch(globs[i], name, 0) == 0)
			return true;
	return false;
}

/* What cannot be read cannot be allowed. Names without a directory's fd are virtiofsd's own. */
static bool is_hidden(const struct seccomp_notif *req, const char *const *globs, size_t n)
{
	static char name[PATH_MAX];
	const struct name_args *a = NULL;

	for (size_t i = 0; i < ARRAY_LEN(name_args) && !a; i++)
		if (name_args[i].nr == req->data.nr)
			a = &name_args[i];
	if (!a)
		return true;
	for (int i = 0; i < 2 && a->name[i] >= 0; i++) {
		uint64_t addr = req->data.args[a->name[i]];

		if ((int)req->data.args[a->at[i]] == AT_FDCWD || addr == 0)
			continue;
		if (hide_read_name((pid_t)req->pid, addr, name) < 0 || hide_matches(globs, n, name))
			return true;
	}
	return false;
}

/* Without globs only the guard's calls come, and those about room. */
static int judge_call(const struct seccomp_notif *req, const struct hide_ask *a)
{
	if (a->n && is_hidden(req, a->globs, a->n))
		return -EACCES;
	return a->guard ? guard_answer(a->guard, req) : GUARD_CONTINUE;
}

static void set_answer(
	int notify_fd, const struct hide_ask *a, int r, struct seccomp_notif_resp *resp)
{
	if (r == GUARD_SINK) {
		r = guard_add_sink(a->guard, notify_fd, resp->id);
		resp->val = r < 0 ? 0 : r;
	} else if (r == GUARD_CONTINUE) {
		resp->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	}
	resp->error = r < 0 ? r : 0;
}

int hide_answer(int notify_fd, const struct hide_ask *a)
{
	struct seccomp_notif req = {0};
	struct seccomp_notif_resp resp = {0};
	struct pollfd p = {.fd = notify_fd, .events = POLLIN};
	int r = poll(&p, 1, -1);

	if (r < 0)
		return errno == EINTR ? 0 : -errno;
	if (!(p.revents & POLLIN))
		return 1; /* no process is left in the filter */
	if (ioctl(notify_fd, SECCOMP_IOCTL_NOTIF_RECV, &req) < 0)
		return errno == ENOENT || errno == EINTR ? 0 : -errno;
	resp.id = req.id;
	room_ask(&a->room, &req);
	r = judge_call(&req, a);
	if (r == -EPIPE)
		return r; /* without the hand nothing can be decided */
	/* The pid could have been another process's by the time its memory was read. Then the id is
	 * no longer known, and the answer is for nobody. */
	set_answer(notify_fd, a, r, &resp);
	if (ioctl(notify_fd, SECCOMP_IOCTL_NOTIF_SEND, &resp) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

/* The thread of virtiofsd waits for the answer, so the supervisor can have its processor. To wake
 * another one takes longer than most decisions. */
static void share_processor(int notify_fd)
{
	(void)ioctl(notify_fd, NOTIF_SET_FLAGS, NOTIF_SYNC_WAKE_UP);
}

static void supervise_hide(pid_t keeper, int notify_fd, const struct hide_ask *ask)
{
	int fds[2 + GUARD_N_FDS] = {notify_fd, ask->room.sock};
	size_t n = 2 + (ask->guard ? guard_fds(ask->guard, fds + 2) : 0);
	struct rlimit none = {0, 0};
	int r = 0;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != keeper ||
		hide_keep_fds(fds, n) < 0)
		_exit(1);
	(void)prctl(PR_SET_NAME, "sbx-hide");
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)setrlimit(RLIMIT_FSIZE, &none);
	share_processor(notify_fd);
	if (jail_seal(ask->guard ? JAIL_GUARD : JAIL_HIDE, NULL) < 0)
		_exit(1);
	while (r == 0)
		r = hide_answer(notify_fd, ask);
	_exit(r < 0 ? 1 : 0);
}

int hide_start(
	int *notify_fd, const struct hide_ask *ask, struct jail_child *ret_child, struct err *err)
{
	struct jail_child c = {.pidfd = -1, .notify_fd = -1};
	struct clone_args args = {
		.flags = CLONE_PIDFD, .pidfd = (uintptr_t)&c.pidfd, .exit_signal = SIGCHLD};
	pid_t keeper = getpid();
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid < 0)
		return err_errno(err, -errno, "cannot start the supervisor of hidden names");
	if (pid == 0)
		supervise_hide(keeper, *notify_fd, ask);
	c.pid = (pid_t)pid;
	/* With a copy here, virtiofsd would wait for ever when the supervisor dies. */
	fd_close(notify_fd);
	*ret_child = c;
	return 0;
}
