/* SPDX-License-Identifier: Apache-2.0 */
#include "jail.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "jail_internal.h"
#include "lib/base/fs/fd.h"
#include "tree.h"

/* ---- first: what needs no namespace ---- */

/* exec keeps ignored signals ignored: give every signal back to its default. A write beyond
 * RLIMIT_FSIZE shall be an error, not a death. */
static void reset_signals(void)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL}, ign = {.sa_handler = SIG_IGN};
	sigset_t none;

	for (int sig = 1; sig < _NSIG; sig++)
		(void)sigaction(sig, &dfl, NULL);
	(void)sigaction(SIGXFSZ, &ign, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static int set_limit(int what, rlim_t value)
{
	struct rlimit now, lim;

	if (getrlimit((__rlimit_resource_t)what, &now) < 0)
		return -errno;
	lim.rlim_max = MIN(value, now.rlim_max);
	lim.rlim_cur = lim.rlim_max;
	return setrlimit((__rlimit_resource_t)what, &lim) < 0 ? -errno : 0;
}

static int set_limits(const struct jail_state *s)
{
	const struct jail_row *row = s->row;
	int r = set_limit(RLIMIT_CORE, row->limit.core);

	if (r == 0)
		r = set_limit(RLIMIT_FSIZE, row->limit.fsize);
	if (r == 0)
		r = set_limit(RLIMIT_MEMLOCK, row->limit.memlock);
	if (r == 0)
		r = set_limit(RLIMIT_NPROC, row->limit.nproc);
#ifndef __SANITIZE_ADDRESS__ /* its shadow takes terabytes */
	if (r == 0 && row->limit.as)
		r = set_limit(RLIMIT_AS, row->limit.as);
	if (r == 0 && row->limit.cpu)
		r = set_limit(RLIMIT_CPU, row->limit.cpu);
#endif
	return r == 0 ? set_limit(RLIMIT_MSGQUEUE, 0) : r;
}

int jail_start(struct jail_state *s, struct err *err)
{
	int r;

	reset_signals();
	(void)umask(077);
	if (setsid() < 0)
		return err_errno(err, -errno, "start: cannot create a session");
	/* Nothing passes exec but what spawn.c places afterwards. */
	if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		return err_errno(
			err, -errno, "start: cannot set close-on-exec for all descriptors");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_errno(err, -errno, "start: cannot set no_new_privs");
	r = set_limits(s);
	return r < 0 ? err_errno(err, r, "start: cannot set resource limits") : 0;
}

/* ---- second: namespaces (the fork made them) and the new root ---- */

static int write_file(const char *path, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return fd_write_all(fd, text, strlen(text));
}

/* The single mapping an ordinary user may make: himself. */
static int map_ids(const struct jail_state *s, struct err *err)
{
	char text[64];
	int r;

	/* /proc/self belongs to root while the process is not dumpable */
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	r = write_file("/proc/self/setgroups", "deny");
	if (r < 0 && r != -ENOENT)
		return err_errno(err, r, "enter: cannot disable setgroups");
	(void)snprintf(text, sizeof(text), "%u %u 1", s->gid, s->gid);
	r = write_file("/proc/self/gid_map", text);
	if (r < 0)
		return err_errno(err, r, "enter: cannot write the gid map");
	(void)snprintf(text, sizeof(text), "%u %u 1", s->uid, s->uid);
	r = write_file("/proc/self/uid_map", text);
	return r < 0 ? err_errno(err, r, "enter: cannot write the uid map") : 0;
}

static unsigned tree_flags_of(const struct jail_mount *m)
{
	return (m->flags & JAIL_MOUNT_RW ? TREE_RW : 0) |
	       (m->flags & JAIL_MOUNT_DEV ? TREE_DEV : 0);
}

static bool is_below(const char *path, const char *root)
{
	size_t n = strlen(root);

	return strncmp(path, root, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Decided about what was opened, so that no link that changes meanwhile leads elsewhere. */
static int check_root(
	const struct jail_plan *p, const struct jail_mount *m, int fd, struct err *err)
{
	char link[32], path[PATH_MAX];
	ssize_t n;

	/* The second: of the child itself, for any caller. */
	if (p->n_roots == 0 || strcmp(m->from, "/proc/self/fd") == 0)
		return 0;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return err_errno(err, -errno, "enter: cannot resolve %s", m->from);
	path[n] = '\0';
	for (size_t i = 0; i < p->n_roots; i++)
		if (is_below(path, p->roots[i].path) &&
			(p->roots[i].rw || !(m->flags & JAIL_MOUNT_RW)))
			return 0;
	return err_set(err, -EPERM, "enter: mounting %s is not permitted", path);
}

static int bind_mount(
	const struct jail_plan *p, int root, const struct jail_mount *m, struct err *err)
{
	AUTO_CLOSE int from = open(m->from, O_PATH | O_CLOEXEC);
	AUTO_CLOSE int tree = -1;
	AUTO_CLOSE int place = -1;
	struct stat st;
	int r;

	if (from < 0 && errno == ENOENT && (m->flags & JAIL_MOUNT_OPTIONAL))
		return 0;
	if (from < 0 || fstat(from, &st) < 0)
		return err_errno(err, -errno, "enter: cannot open %s", m->from);
	r = check_root(p, m, from, err);
	if (r < 0)
		return r;
	r = tree_clone(from, tree_flags_of(m), &tree);
	if (r < 0)
		return err_errno(err, r, "enter: cannot bind %s", m->from);
	r = tree_place(root, m->to, S_ISDIR(st.st_mode), 0755, &place, err);
	if (r < 0)
		return err_wrap(err, r, "enter");
	r = tree_attach(tree, place);
	return r < 0 ? err_errno(err, r, "enter: cannot mount %s on %s", m->from, m->to) : 0;
}

static int mount_tmpfs_at(int root, const char *path, struct err *err)
{
	AUTO_CLOSE int tree = -1;
	AUTO_CLOSE int place = -1;
	int r = tree_place(root, path, true, 0755, &place, err);

	if (r < 0)
		return err_wrap(err, r, "enter");
	r = tree_tmpfs("1M", "0700", &tree);
	if (r == 0)
		r = tree_attach(tree, place);
	return r < 0 ? err_errno(err, r, "enter: cannot mount a tmpfs on %s", path) : 0;
}

/* The kernel permits a new /proc only while the complete /proc of the host is visible, so before
 * the root changes. */
static int mount_proc(int root, struct err *err)
{
	AUTO_CLOSE int fs = fsopen("proc", FSOPEN_CLOEXEC);
	AUTO_CLOSE int tree = -1;
	AUTO_CLOSE int place = -1;
	int r = tree_place(root, "/proc", true, 0555, &place, err);

	if (r < 0)
		return err_wrap(err, r, "enter");
	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_errno(err, -errno, "enter: cannot create /proc");
	tree = fsmount(
		fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (tree < 0)
		return err_errno(err, -errno, "enter: cannot create /proc");
	r = tree_attach(tree, place);
	return r < 0 ? err_errno(err, r, "enter: cannot mount /proc") : 0;
}

/* The new root is mounted on "/": lookups of absolute paths still start in the old one. */
static int make_root(int *ret_root, struct err *err)
{
	AUTO_CLOSE int root = -1;
	int r;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_errno(err, -errno,
			"enter: cannot make mounts private (if AppArmor restricts user namespaces on this host, set kernel.apparmor_restrict_unprivileged_userns=0 as root)");
	r = tree_tmpfs("4M", "0755", &root);
	if (r < 0)
		return err_errno(err, r, "enter: cannot create a tmpfs for the new root");
	if (move_mount(root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_errno(err, -errno, "enter: cannot mount the new root");
	*ret_root = TAKE_FD(root);
	return 0;
}

static int fill_root(const struct jail_state *s, int root, struct err *err)
{
	const struct jail_plan *p = s->plan;
	int r = s->row->dev_null ? bind_mount(p, root, &jail_dev_null, err) : 0;

	for (size_t i = 0; r == 0 && i < p->n_mounts; i++)
		r = bind_mount(p, root, &p->mounts[i], err);
	if (r == 0 && s->row->proc)
		r = mount_proc(root, err);
	if (r == 0 && s->row->run_tmpfs)
		r = mount_tmpfs_at(root, "/run", err);
	if (r == 0 && p->scaffold) {
		r = p->scaffold(p->scaffold_ctx, root, err);
		if (r < 0)
			return err_wrap(err, r, "scaffold");
	}
	return r;
}

static int change_root(int root, struct err *err)
{
	int r;

	if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return err_errno(err, -errno, "enter: pivot_root");
	if (umount2(".", MNT_DETACH) < 0)
		return err_errno(err, -errno, "enter: cannot unmount the old root");
	r = tree_set_readonly(root);
	if (r < 0)
		return err_errno(err, r, "enter: cannot make the root read-only");
	return chdir("/") < 0 ? err_errno(err, -errno, "enter: cannot change to the root directory")
			      : 0;
}

int jail_enter(struct jail_state *s, struct err *err)
{
	AUTO_CLOSE int root = -1;
	mode_t old;
	int r = s->has_ids ? 0 : map_ids(s, err);

	if (r < 0)
		return r;
	if (sethostname("sbx", 3) < 0)
		return err_errno(err, -errno, "enter: cannot set the host name");
	r = make_root(&root, err);
	if (r < 0)
		return r;
	old = umask(0);
	r = fill_root(s, root, err);
	(void)umask(old);
	return r < 0 ? r : change_root(root, err);
}

/* ---- third: the second lock on files ---- */

int jail_files(struct jail_state *s, struct err *err)
{
	int r;

	if (!s->row->landlock)
		return 0;
	r = landlock_apply(s, err);
	return r < 0 ? err_wrap(err, r, "files") : 0;
}

/* ---- fourth: capabilities, the parent-death signal, seccomp ---- */

static int set_caps(uint64_t keep)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	uint32_t lo = (uint32_t)keep, hi = (uint32_t)(keep >> 32);
	struct __user_cap_data_struct d[2] = {{lo, lo, lo}, {hi, hi, hi}};

	return syscall(SYS_capset, &h, d) < 0 ? -errno : 0;
}

static int drop_bounding(uint64_t keep)
{
	for (int cap = 0; cap < 64; cap++) {
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) < 0)
			return 0; /* the kernel's last one was before */
		if (keep & (UINT64_C(1) << cap))
			continue;
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -errno;
	}
	return 0;
}

static int raise_ambient(uint64_t keep)
{
	for (int cap = 0; cap < 64; cap++)
		if (keep & (UINT64_C(1) << cap) &&
			prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
			return -errno;
	return 0;
}

static int drop_caps(uint64_t keep, struct err *err)
{
	/* uid 0 of a namespace gets nothing from exec either */
	unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED;
	int r;

	if (keep == 0)
		bits |= SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED |
			SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED;
	if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
		return err_errno(err, -errno, "lock: cannot set securebits");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return err_errno(err, -errno, "lock: cannot clear ambient capabilities");
	r = drop_bounding(keep);
	if (r < 0)
		return err_errno(err, r, "lock: cannot drop the bounding set");
	r = set_caps(keep);
	if (r == 0)
		r = raise_ambient(keep);
	return r < 0 ? err_errno(err, r, "lock: cannot set capabilities") : 0;
}

int jail_lock(struct jail_state *s, struct err *err)
{
	/* Not in the first stage: the spawner's own descriptors may be more than that. */
	int r = set_limit(RLIMIT_NOFILE, s->nofile);

	if (r < 0)
		return err_errno(err, r, "lock: cannot set the descriptor limit");
	r = drop_caps(s->row->caps, err);
	if (r < 0)
		return r;
	/* Every change of credentials above clears it, so here and not before. */
	if (!s->row->outlives && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_errno(err, -errno, "lock: cannot set the parent-death signal");
	return 0;
}
