/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "sub_ids.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/os/jail/broker.h"
#include "lib/os/jail/cgroup.h"
#include "lib/rules/settings/settings.h"
#include "lib/client/api/accel.h"
#include "lib/client/api/api.h"

#define KVM_GET_API_VERSION_IOCTL 0xae00u
#define KVM_API_VERSION_WANTED 12
#define WANTED_FILES 262144

bool check_find_program(const char *name, char *buf, size_t size)
{
	const char *path = getenv("PATH");
	char dirs[4096], *save = NULL;
	struct stat st;

	(void)snprintf(dirs, sizeof(dirs), "%s:/usr/sbin:/sbin:/usr/lib/qemu:/usr/libexec",
		path ? path : "/usr/bin:/bin");
	for (char *d = strtok_r(dirs, ":", &save); d; d = strtok_r(NULL, ":", &save)) {
		(void)snprintf(buf, size, "%s/%s", d, name);
		if (stat(buf, &st) == 0 && S_ISREG(st.st_mode) && access(buf, X_OK) == 0)
			return true;
	}
	return false;
}

static void need_program(struct check *c, const char *name, const char *package)
{
	char path[512];

	if (check_find_program(name, path, sizeof(path))) {
		check_set(c, CHECK_PASS, "found");
		check_detail(c, "%s", path);
		return;
	}
	check_set(c, CHECK_FAIL, "%s is not installed", name);
	check_hint(c, "sudo apt-get install %s", package);
}

static void check_qemu(struct check *c)
{
#if defined(__aarch64__)
	need_program(c, "qemu-system-aarch64", "qemu-system-arm");
#else
	need_program(c, "qemu-system-x86_64", "qemu-system-x86");
#endif
}

static void check_qemu_img(struct check *c)
{
	need_program(c, "qemu-img", "qemu-utils");
}

static void check_virtiofsd(struct check *c)
{
	/* The package of Debian 13; Debian 12 has the program in qemu-system-common. */
	need_program(c, "virtiofsd", "virtiofsd || sudo apt-get install qemu-system-common");
}

static void check_mmdebstrap(struct check *c)
{
	need_program(c, "mmdebstrap", "mmdebstrap");
	if (c->status == CHECK_FAIL)
		c->status = CHECK_WARN; /* only for building templates */
}

static bool emulation_is_chosen(void)
{
	AUTO_SETTINGS struct settings set = {0};

	return settings_load(&set, NULL) == 0 &&
	       strcmp(settings_get(&set, SETTINGS_VM_ACCEL), "tcg") == 0;
}

static void check_kvm(struct check *c)
{
	AUTO_CLOSE int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	int r = errno;

	if (fd >= 0 && ioctl(fd, KVM_GET_API_VERSION_IOCTL, 0) == KVM_API_VERSION_WANTED) {
		check_set(c, CHECK_PASS, "/dev/kvm is accessible");
		return;
	}
	if (fd < 0 && r == EACCES) {
		check_set(c, emulation_is_chosen() ? CHECK_WARN : CHECK_FAIL,
			"cannot open /dev/kvm: permission denied");
		check_hint(c, "%s", accel_open_command());
		return;
	}
	check_set(c, CHECK_WARN, "KVM is not available: %s",
		fd < 0 ? strerror(r) : "/dev/kvm does not respond");
	check_detail(c,
		"enable virtualization in the firmware; software emulation is slow and not an "
		"isolation boundary");
	check_hint(c, "sbx settings set vm.accel tcg");
}

#define APPARMOR_USERNS "apparmor_restrict_unprivileged_userns" /* Ubuntu */

/* In a child, because a user namespace cannot be left again. */
static void check_userns(struct check *c)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) == 0 ? 0 : errno);
	if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0) {
		check_set(c, CHECK_PASS, "available");
		return;
	}
	check_set(c, CHECK_FAIL, "not available to ordinary users: %s",
		strerror(status > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EAGAIN));
	check_detail(c, "the jail around QEMU, virtiofsd and sbx-edge requires user namespaces");
	check_hint(c, "sudo sysctl -w kernel.%s",
		access("/proc/sys/kernel/" APPARMOR_USERNS, F_OK) == 0
			? APPARMOR_USERNS "=0"
			: "unprivileged_userns_clone=1");
}

static void check_subuid(struct check *c)
{
	struct passwd *pw = getpwuid(getuid());
	const char *user = pw ? pw->pw_name : "?";
	uint32_t first = sub_ids_free("/etc/subuid", "/etc/subgid"), last = first + SUB_IDS - 1;

	if (sub_ids_has("/etc/subuid", user, getuid()) &&
		sub_ids_has("/etc/subgid", user, getuid())) {
		check_set(c, CHECK_PASS, "%s has a range", user);
		return;
	}
	check_set(c, CHECK_WARN, "%s has no range of 65536 in /etc/subuid and /etc/subgid", user);
	check_detail(c, "required only to build templates");
	if (first)
		check_hint(c, "sudo usermod --add-subuids %u-%u --add-subgids %u-%u %s", first,
			last, first, last, user);
	else
		check_hint(c, "cat /etc/subuid /etc/subgid");
}

/* virtiofsd holds one descriptor for each file that the guest has cached; the guest is told to drop
 * files when few are left (lib/vm/share/room.h). */
static void check_files(struct check *c)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_max >= WANTED_FILES) {
		check_set(c, CHECK_PASS, "up to %llu", (unsigned long long)lim.rlim_max);
		return;
	}
	check_set(c, CHECK_WARN, "a process can open at most %llu files",
		(unsigned long long)lim.rlim_max);
	check_detail(c,
		"workspaces with more files are slower, and programs that open more files fail with "
		"\"Too many open files\"; the command raises the limit at the next login");
	check_hint(c, "echo \"$USER hard nofile %d\" | sudo tee /etc/security/limits.d/sbx.conf",
		WANTED_FILES);
}

static void check_landlock(struct check *c)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	if (abi >= 1) {
		const char *walls = jail_broker_walls();

		check_set(c, CHECK_PASS, "version %ld", abi);
		check_detail(c, "restrictions of sbx-keeper: %s", walls[0] ? walls : "nothing");
		return;
	}
	check_set(c, CHECK_WARN, "not available: %s", strerror(errno));
	check_detail(c, "namespaces and seccomp are not affected; to enable Landlock, add landlock "
			"to the kernel parameter lsm=");
	check_hint(c, "cat /sys/kernel/security/lsm");
}

static void check_notify(struct check *c)
{
	if (jail_can_notify()) {
		check_set(c, CHECK_PASS, "available");
		return;
	}
	check_set(c, CHECK_FAIL, "not available");
	check_detail(c,
		"sandboxes do not start: the guard of workspaces requires the seccomp action "
		"user_notif of Linux 5.9; a container can block it");
	check_hint(c, "cat /proc/sys/kernel/seccomp/actions_avail");
}

#define SOCKET_UNIT \
	SBX_SHAREDIR "/../../lib/systemd/user/sbxd.socket" /* as in data/units/meson.build */
#define USE_UNIT "sbx daemon stop; systemctl --user enable --now sbxd.socket"
#define USE_SCOPE "sbx daemon stop; systemd-run --user --scope -p Delegate=yes sbx daemon start"

/* A login by ssh or on the console has no group of the user; services of its systemd do. */
static void hint_cgroup(struct check *c)
{
	check_hint(c, "%s", access(SOCKET_UNIT, R_OK) == 0 ? USE_UNIT : USE_SCOPE);
}

/* Of a running sbxd, because it may have been started elsewhere; else of this session. */
static void check_cgroup(struct check *c)
{
	AUTO_JSON json_t *v = NULL;
	struct problem ignored = {0};
	char file[64], dir[PATH_MAX];
	struct jail_cgroup_host of = {.self = NULL};
	struct err err = {0};
	int r;

	if (api_peek("GET", "/v1/version", CHECK_WAIT_MS, &v, &ignored) == 0) {
		(void)snprintf(file, sizeof(file), "/proc/%lld/cgroup", api_int(v, "pid"));
		of.self = file;
	}
	r = jail_cgroup_place(&of, dir, sizeof(dir), &err);
	if (r < 0)
		r = jail_cgroup_find(&of, dir, sizeof(dir), &err);
	if (r == 0) {
		check_set(c, CHECK_PASS, "delegated to your user");
		check_detail(c, "%s: memory and processes of each sandbox are limited", dir);
		return;
	}
	check_set(c, CHECK_WARN, "no memory and process limits: %s", err_text(&err, r));
	check_detail(c, "memory and process limits for QEMU and virtiofsd are disabled");
	hint_cgroup(c);
}

const struct check_row check_host_rows[] = {
	{"Programs", "qemu", check_qemu},
	{"Programs", "qemu-img", check_qemu_img},
	{"Programs", "virtiofsd", check_virtiofsd},
	{"Programs", "mmdebstrap", check_mmdebstrap},
	{"Platform", "Virtualization", check_kvm},
	{"Platform", "User namespaces", check_userns},
	{"Platform", "Subordinate ids", check_subuid},
	{"Platform", "Open files", check_files},
	{"Platform", "Landlock", check_landlock},
	{"Platform", "Seccomp notification", check_notify},
	{"Platform", "Control groups", check_cgroup},
	{0},
};
