/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/vm/share/hide.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/vm/share/scaffold.h"
#include "lib/vm/share/share.h"

static char dir[64] = "/tmp/sbx-share-test-XXXXXX";

static const char *at(const char *name)
{
	static char buf[16][256];
	static unsigned i;
	char *p = buf[i++ % 16];

	(void)snprintf(p, sizeof(buf[0]), "%s/%s", dir, name);
	return p;
}

static bool has_virtiofsd(void)
{
	return access("/usr/lib/qemu/virtiofsd", X_OK) == 0 ||
	       access("/usr/libexec/virtiofsd", X_OK) == 0;
}

static void assert_check(int want, const char *text, const struct share_mount *mounts, size_t n)
{
	struct share_config cfg = {
		.mounts = mounts, .n_mounts = n, .home = at("home"), .log_fd = -1};
	struct err err = {0};
	int r = share_check(&cfg, &err);

	if (r != want || !strstr(err.text, text))
		fail_msg("%d '%s' instead of %d '%s'", r, err.text, want, text);
}

static void assert_host(int want, const char *text, const char *host)
{
	assert_check(want, text, &(struct share_mount){host, "/work", false}, 1);
}

static void hosts_that_must_not_be_shared(void **state)
{
	assert_host(0, "", at("ws"));
	assert_host(0, "", at("file"));
	assert_host(0, "", at("home/project"));
	assert_host(-ELOOP, "link-to-ws is a symbolic link now", at("link-to-ws"));
	assert_host(-ELOOP, "link-to-ws is a symbolic link now", at("link-to-ws/sub"));
	assert_host(-EPERM, "refusing to share '/'", "/");
	assert_host(-EPERM, "refusing to share", at("home"));
	assert_host(-EPERM, "refusing to share", at("home/"));
	assert_host(-EPERM, "refusing to share", at("home/project/.."));
	assert_host(-ELOOP, "is a symbolic link now", at("link-to-home"));
	assert_host(-EPERM, "refusing to share", dir);
	assert_host(-ENOENT, "mkdir -p", at("nothing"));
	assert_host(-EINVAL, "is a socket", at("sock"));
	assert_host(-EINVAL, "is a pipe", at("pipe"));
	assert_host(-EINVAL, "is a device", "/dev/null");
	assert_host(-EINVAL, "not an absolute path", "ws");
	assert_host(-ELOOP, "is a symbolic link now", "/proc/self/root/etc");
}

/* Way A of the review: the sandbox has ws and, at another place, ws/data. The guest replaces
 * ws/data by a link and ends. Start, pool claim and resume all come here. */
static void a_guest_cannot_lead_its_workspace_elsewhere(void **state)
{
	const struct share_mount m[] = {{at("ws"), "/w", false}, {at("ws/data"), "/data", false}};
	struct share_config cfg = {.mounts = m, .n_mounts = 2, .home = "/nowhere", .log_fd = -1};
	struct share s = SHARE_EMPTY;
	struct err err = {0};

	if (!has_virtiofsd())
		skip();
	assert_int_equal(mkdir(at("ws/data"), 0700), 0);
	assert_int_equal(share_start(&cfg, &s, &err), 0);
	share_stop(&s);
	assert_int_equal(rmdir(at("ws/data")), 0);
	assert_int_equal(symlink(at("home"), at("ws/data")), 0);
	assert_int_equal(share_start(&cfg, &s, &err), -ELOOP);
	assert_non_null(strstr(err.text, "ws/data is a symbolic link now"));
	assert_int_equal(unlink(at("ws/data")), 0);
}

static void force_is_heard(void **state)
{
	struct share_mount m = {at("home"), "/work", false};
	struct share_config cfg = {
		.mounts = &m, .n_mounts = 1, .home = at("home"), .force = true, .log_fd = -1};

	assert_int_equal(share_check(&cfg, NULL), 0);
	m.host = "/";
	assert_int_equal(share_check(&cfg, NULL), 0);
	m.guest = "/";
	assert_int_equal(share_check(&cfg, NULL), -EINVAL);
}

static int check_mount_at(const char *guest)
{
	const struct share_mount m = {at("home"), guest, false};
	const struct share_config cfg = {
		.mounts = &m, .n_mounts = 1, .home = at("home"), .force = true, .log_fd = -1};

	return share_check(&cfg, NULL);
}

static void guests_that_must_not_be_covered(void **state)
{
	static const char *const bad[] = {"/", "/proc", "/sys", "/dev", "/run", "/usr", "/etc",
		"/bin", "/lib", "/lib64", "/sbin", "/boot", "/home", "/home/agent", "/root", "/tmp",
		"/var", "/proc/1", "/etc/ssh", "/usr/bin", "/usr/local/bin", "/dev/shm/x",
		"/var/lib/docker/x", "/run/user", "/lib32/x", "/libx32", "/libx32/x", "/var/run",
		"/var/run/x", "/var/tmp", "/var/lib", "/var/lib/containerd/x", "relative", "",
		"/a/../b", "/a/./b", "/a//b", "/a/", "/..", NULL};
	static const char *const good[] = {"/work", "/home/me/project", "/home/agent/project",
		"/srv/x", "/tmp/x", "/opt", "/var/www", "/usr/src/linux", "/run/media/me/disk",
		"/libfoo", "/libx32foo", "/var/lib/mine", "/var/running", "/etcetera", "/a/..b",
		"/mnt/data", NULL};

	for (const char *const *p = bad; *p; p++)
		if (check_mount_at(*p) != -EINVAL)
			fail_msg("%s is allowed", *p);
	for (const char *const *p = good; *p; p++)
		if (check_mount_at(*p) != 0)
			fail_msg("%s is refused", *p);
}

static void parents_come_before_children(void **state)
{
	const struct share_mount m[] = {{at("file"), "/w/a/b/file", true},
		{at("ws"), "/w/a", false}, {at("ws/sub"), "/z", false}, {at("ws"), "/w", false},
		{at("home/project"), "/w/a/b", true}};
	struct share_config cfg = {.mounts = m, .n_mounts = 5, .home = "/nowhere", .log_fd = -1};
	struct scaffold s;

	assert_int_equal(scaffold_pin(&cfg, &s, NULL), 0);
	assert_int_equal(s.n, 5);
	assert_string_equal(s.pins[0].guest, "/w");
	assert_string_equal(s.pins[1].guest, "/z");
	assert_string_equal(s.pins[2].guest, "/w/a");
	assert_string_equal(s.pins[3].guest, "/w/a/b");
	assert_string_equal(s.pins[4].guest, "/w/a/b/file");
	assert_true(s.pins[4].ro && !s.pins[4].dir && s.pins[3].dir);
	scaffold_done(&s);
}

static void two_cannot_have_one_place(void **state)
{
	const struct share_mount twice[] = {{at("ws"), "/w", false}, {at("file"), "/w", false}};
	const struct share_mount in_file[] = {{at("file"), "/w", false}, {at("ws"), "/w/x", false}};

	assert_check(-EEXIST, "the same guest path /w", twice, 2);
	assert_check(-ENOTDIR, "which is a file", in_file, 2);
}

static void globs_look_at_the_last_name(void **state)
{
	static const char *const globs[] = {".env*", "*.pem", "id_[er]*"};

	assert_true(hide_matches(globs, 3, ".env"));
	assert_true(hide_matches(globs, 3, ".env.local"));
	assert_true(hide_matches(globs, 3, "a/b/.env"));
	assert_true(hide_matches(globs, 3, ".env/"));
	assert_true(hide_matches(globs, 3, ".env//"));
	assert_true(hide_matches(globs, 3, "server.pem"));
	assert_true(hide_matches(globs, 3, "id_rsa"));
	assert_false(hide_matches(globs, 3, "env"));
	assert_false(hide_matches(globs, 3, ".env/inner"));
	assert_false(hide_matches(globs, 3, ""));
	assert_false(hide_matches(globs, 3, "/"));
	assert_false(hide_matches((const char *const[]){".*"}, 1, ".."));
	assert_false(hide_matches((const char *const[]){".*"}, 1, "."));
	assert_true(hide_matches((const char *const[]){".*"}, 1, "..."));
}

static void globs_that_would_break_the_share(void **state)
{
	static const char *const bad[] = {"*", "?", "[0-9]*", "1*", "a/b", "", "[!a]*", NULL};

	for (const char *const *p = bad; *p; p++)
		if (hide_check(p, 1, NULL) != -EINVAL)
			fail_msg("%s is allowed", *p);
	assert_int_equal(hide_check((const char *const[]){".env*", "*.key"}, 2, NULL), 0);
}

static void a_missing_place_in_a_workspace_is_explained(void **state)
{
	const struct share_mount m[] = {
		{at("ws"), "/w", false}, {at("file"), "/w/not/there", true}};
	struct share_config cfg = {.mounts = m, .n_mounts = 2, .home = "/nowhere", .log_fd = -1};
	struct share s;
	struct err err = {0};

	if (!has_virtiofsd())
		skip();
	assert_int_equal(share_start(&cfg, &s, &err), -ENOENT);
	assert_non_null(strstr(err.text, "does not exist: create it first"));
	/* The keeper says what was being done, and so it is said once. */
	assert_null(strstr(err.text, "sharing"));
	assert_int_equal(access(at("ws/not"), F_OK), -1);
}

static int build(void *ctx, int new_root, struct err *err)
{
	return scaffold_build(ctx, new_root, err);
}

static void a_replaced_folder_is_noticed(void **state)
{
	const struct share_mount m = {at("swap"), "/w", false};
	struct share_config cfg = {.mounts = &m, .n_mounts = 1, .home = "/nowhere", .log_fd = -1};
	const char *argv[] = {"true", NULL};
	struct scaffold s;
	struct jail_plan plan = {.profile = JAIL_VIRTIOFSD,
		.program = "/bin/true",
		.argv = (char *const *)(uintptr_t)argv,
		.log_fd = -1,
		.scaffold = build,
		.scaffold_ctx = &s};
	struct jail_child child;
	struct err err = {0};

	assert_int_equal(mkdir(at("swap"), 0700), 0);
	assert_int_equal(scaffold_pin(&cfg, &s, NULL), 0);
	assert_int_equal(rename(at("swap"), at("swapped")), 0);
	assert_int_equal(mkdir(at("swap"), 0700), 0);
	assert_int_equal(jail_spawn(&plan, &child, &err), -ESTALE);
	assert_non_null(strstr(err.text, "was replaced while"));
	/* nor is a symlink in its place followed */
	assert_int_equal(rmdir(at("swap")), 0);
	assert_int_equal(symlink("swapped", at("swap")), 0);
	assert_int_equal(jail_spawn(&plan, &child, &err), -ESTALE);
	scaffold_done(&s);
}

/* virtiofsd and the supervisor of a keeper that is killed. */
static void nothing_outlives_the_keeper(void **state)
{
	const struct share_mount m = {at("ws"), "/w", false};
	const char *const globs[] = {".env*"};
	struct share_config cfg = {.mounts = &m,
		.n_mounts = 1,
		.hide = globs,
		.n_hide = 1,
		.home = "/nowhere",
		.log_fd = -1};
	pid_t pids[2] = {0}, keeper;
	int up[2];

	if (!has_virtiofsd())
		skip();
	assert_int_equal(pipe2(up, O_CLOEXEC), 0);
	keeper = fork();
	if (keeper == 0) {
		struct share s;

		if (share_start(&cfg, &s, NULL) < 0)
			_exit(1);
		pids[0] = s.child.pid;
		pids[1] = s.hidden.pid;
		(void)!write(up[1], pids, sizeof(pids));
		for (;;)
			(void)pause();
	}
	(void)close(up[1]);
	assert_int_equal(read(up[0], pids, sizeof(pids)), (ssize_t)sizeof(pids));
	for (int i = 0; i < 2; i++)
		assert_int_equal(kill(pids[i], 0), 0);
	assert_int_equal(kill(keeper, SIGKILL), 0);
	assert_int_equal(waitpid(keeper, NULL, 0), keeper);
	for (int i = 0; i < 2; i++) {
		AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, pids[i], 0);
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (fd >= 0)
			assert_int_equal(poll(&p, 1, 3000), 1);
	}
	(void)close(up[0]);
}

static int count_fds(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/fd");

	assert_non_null(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

static void stopping_gives_everything_back(void **state)
{
	const struct share_mount m = {at("ws"), "/w", false};
	const char *const globs[] = {".env*"};
	struct share_config cfg = {.mounts = &m,
		.n_mounts = 1,
		.hide = globs,
		.n_hide = 1,
		.home = "/nowhere",
		.log_fd = -1};
	struct share s;
	int before = count_fds();

	if (!has_virtiofsd())
		skip();
	assert_int_equal(share_start(&cfg, &s, NULL), 0);
	assert_int_equal(kill(s.child.pid, 0), 0);
	assert_int_equal(kill(s.hidden.pid, 0), 0);
	pid_t a = s.child.pid, b = s.hidden.pid;
	share_stop(&s);
	share_stop(&s);
	assert_int_equal(kill(a, 0), -1);
	assert_int_equal(kill(b, 0), -1);
	assert_int_equal(count_fds(), before);
}

static int setup(void **state)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	AUTO_CLOSE int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	AUTO_CLOSE int file = -1;

	if (!mkdtemp(dir))
		return -1;
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sock", dir);
	file = open(at("file"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (mkdir(at("ws"), 0700) < 0 || mkdir(at("ws/sub"), 0700) < 0 ||
		mkdir(at("home"), 0700) < 0 || mkdir(at("home/project"), 0700) < 0 || file < 0 ||
		mkfifo(at("pipe"), 0600) < 0 || symlink("ws", at("link-to-ws")) < 0 ||
		symlink("home", at("link-to-home")) < 0 ||
		bind(sock, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -1;
	return 0;
}

static int teardown(void **state)
{
	AUTO_FREE char *cmd = xasprintf("rm -rf '%s'", dir);

	return system(cmd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_that_must_not_be_shared),
		cmocka_unit_test(a_guest_cannot_lead_its_workspace_elsewhere),
		cmocka_unit_test(force_is_heard),
		cmocka_unit_test(guests_that_must_not_be_covered),
		cmocka_unit_test(parents_come_before_children),
		cmocka_unit_test(two_cannot_have_one_place),
		cmocka_unit_test(globs_look_at_the_last_name),
		cmocka_unit_test(globs_that_would_break_the_share),
		cmocka_unit_test(a_missing_place_in_a_workspace_is_explained),
		cmocka_unit_test(a_replaced_folder_is_noticed),
		cmocka_unit_test(nothing_outlives_the_keeper),
		cmocka_unit_test(stopping_gives_everything_back),
	};

	if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
		return 1;
	/* a change of identity makes a process undumpable, and its /proc root's */
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	return cmocka_run_group_tests(tests, setup, teardown);
}
