/* SPDX-License-Identifier: Apache-2.0 */
#include "boot.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>
#include "src/guest/base/base.h"
#include "grow.h"
#include "src/guest/net/net.h"
#include "lib/base/fs/dir.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define NEW_ROOT "/newroot"
#define MODULES "/modules"

struct mount_row {
	const char *type, *path;
	unsigned long flags;
	const char *data;
	mode_t mode;
};

static const struct mount_row early_mounts[] = {
	{"proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, 0755},
	{"sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, 0755},
	{"devtmpfs", "/dev", MS_NOSUID, "mode=0755", 0755},
};

/* No bpf and no tracefs: mounting bpf alone loads modules for 0.3 s of a 6 s boot. */
static const struct mount_row late_mounts[] = {
	{"devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "gid=5,mode=620,ptmxmode=666", 0755},
	{"tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777", 0755},
	{"tmpfs", "/run", MS_NOSUID | MS_NODEV, "mode=0755,size=25%", 0755},
	{"tmpfs", "/run/lock", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=1777,size=5m", 0755},
	{"cgroup2", "/sys/fs/cgroup", MS_NOSUID | MS_NODEV | MS_NOEXEC, "nsdelegate", 0755},
	{"securityfs", "/sys/kernel/security", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, 0755},
	{"mqueue", "/dev/mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, 0755},
};

static int mount_one(const struct mount_row *m)
{
	(void)mkdir(m->path, m->mode);
	if (mount(m->type, m->path, m->type, m->flags, m->data) < 0 && errno != EBUSY)
		return -errno;
	return 0;
}

/* The kernel gives PID 1 its console as 0, 1, 2 only if the initramfs has the node. */
static void open_console(void)
{
	int fd = open("/dev/console", O_RDWR | O_NOCTTY);

	if (fd < 0)
		fd = open("/dev/null", O_RDWR);
	for (int i = 0; fd >= 0 && i < 3; i++)
		if (fd != i)
			(void)dup2(fd, i);
	if (fd > 2)
		(void)close(fd);
}

static int is_module(const struct dirent *e)
{
	return strstr(e->d_name, ".ko") != NULL;
}

static int load_module(const char *name, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/%s", MODULES, name);

	return modules_load_file(path, "", err);
}

static int load_modules(struct err *err)
{
	struct dirent **v = NULL;
	int n = scandir(MODULES, &v, is_module, alphasort), r = 0;

	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = load_module(v[i]->d_name, err);
		free(v[i]);
	}
	free(v);
	return r;
}

int boot_early(struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(early_mounts); i++) {
		int r = mount_one(&early_mounts[i]);

		if (r < 0)
			return err_errno(err, r, "cannot mount %s", early_mounts[i].path);
	}
	open_console();
	return load_modules(err);
}

/* Waits until the path exists. Returns 0 or -ETIMEDOUT. */
static int wait_path(const char *path, unsigned timeout_ms)
{
	uint64_t end = clock_mono_ms() + timeout_ms;
	const struct timespec pause = {.tv_nsec = 2000000};

	while (access(path, F_OK) < 0) {
		if (clock_mono_ms() >= end)
			return -ETIMEDOUT;
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

/* Empties the initramfs, which is memory: files first, then their directory. */
static void empty_folder(const char *dir)
{
	AUTO_DIR DIR *d = opendir(dir);
	struct dirent *e;

	while ((e = dir_next(d)))
		(void)unlinkat(dirfd(d), e->d_name, 0);
	(void)rmdir(dir);
}

static int move_mounts(void)
{
	for (size_t i = 0; i < ARRAY_LEN(early_mounts); i++) {
		AUTO_FREE char *to = xasprintf("%s%s", NEW_ROOT, early_mounts[i].path);

		(void)mkdir(to, 0755);
		if (mount(early_mounts[i].path, to, NULL, MS_MOVE, NULL) < 0)
			return -errno;
	}
	return 0;
}

static int enter_root(void)
{
	empty_folder(MODULES);
	/* /init stays: its memory is needed as long as PID 1 runs, and opener.c mounts it. */
	if (chdir(NEW_ROOT) < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 ||
		chdir("/") < 0)
		return -errno;
	return 0;
}

int boot_root(struct err *err)
{
	int r = wait_path(BOOT_ROOT_DISK, BOOT_DISK_MS);

	if (r < 0)
		return err_errno(err, r, "waiting for the disk %s", BOOT_ROOT_DISK);
	(void)mkdir(NEW_ROOT, 0755);
	if (mount(BOOT_ROOT_DISK, NEW_ROOT, "ext4", MS_NOATIME, "") < 0)
		return err_errno(err, -errno, "cannot mount the disk %s", BOOT_ROOT_DISK);
	grow_file_system(BOOT_ROOT_DISK, NEW_ROOT);
	r = move_mounts();
	if (r == 0)
		r = enter_root();
	return r < 0 ? err_errno(err, r, "cannot move to the disk") : 0;
}

static void bring_up_loopback(void)
{
	AUTO_CLOSE int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq req = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

	if (s < 0 || ioctl(s, SIOCSIFFLAGS, &req) < 0)
		log_warn("bringing up the loopback interface: %s", strerror(errno));
}

/* Inherited by every program. The soft limit stays low enough for programs that loop over all
 * descriptors. */
static void set_limits(void)
{
	struct rlimit files = {65536, 1048576}, core = {0, RLIM_INFINITY};

	(void)setrlimit(RLIMIT_NOFILE, &files);
	(void)setrlimit(RLIMIT_CORE, &core);
	(void)umask(022);
}

/* PID 1 and all its children are in one group next to Docker's, so that the top group has kernel
 * threads only and controllers can be enabled for nested groups. */
static void enter_cgroup(void)
{
	int r;

	(void)mkdir("/sys/fs/cgroup/sbx", 0755);
	r = file_poke("/sys/fs/cgroup/sbx/cgroup.procs", "1");
	if (r < 0)
		log_warn("cannot move to the group sbx: %s", strerror(-r));
}

static void finish_dev(void)
{
	/* There is no udev; only these two modes would matter for the user's programs. */
	(void)chmod("/dev/fuse", 0666);
	(void)chmod("/dev/kmsg", 0600);
	/* The kernel loads the module when a program opens it. */
	(void)mkdir("/dev/net", 0755);
	(void)mknod("/dev/net/tun", S_IFCHR | 0666, makedev(10, 200));
	(void)chmod("/dev/net/tun", 0666);
	(void)!symlink("/proc/self/fd", "/dev/fd");
	(void)!symlink("/proc/self/fd/0", "/dev/stdin");
	(void)!symlink("/proc/self/fd/1", "/dev/stdout");
	(void)!symlink("/proc/self/fd/2", "/dev/stderr");
}

void boot_late(void)
{
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(late_mounts); i++) {
		int r = mount_one(&late_mounts[i]);

		if (r < 0 && r != -ENODEV && r != -ENOENT)
			log_warn("cannot mount %s: %s", late_mounts[i].path, strerror(-r));
	}
	finish_dev();
	set_limits();
	enter_cgroup();
	bring_up_loopback();
	if (why_install("", &err) < 0)
		log_warn("%s", err.text);
	if (opener_install(&err) < 0)
		log_warn("%s", err.text);
	(void)setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
}

bool boot_has_option(const char *word)
{
	AUTO_FREE char *line = NULL;
	char *save = NULL;

	if (file_read("/proc/cmdline", &line) < 0)
		return false;
	for (char *w = strtok_r(line, " \n", &save); w; w = strtok_r(NULL, " \n", &save))
		if (!strcmp(w, word))
			return true;
	return false;
}
