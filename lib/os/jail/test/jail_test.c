/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/os/jail/jail.h"
#include "lib/os/jail/jail_internal.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/os/jail/tree.h"

static const char *probe;
static char dir[64] = "/tmp/sbx-jail-test-XXXXXX";

/* A started probe with both ends of what it speaks through. */
struct run {
	struct jail_child child;
	int ctl, out;
	char text[8192];
	struct err err;
};

static int start_plan(struct run *run, struct jail_plan *plan)
{
	int ctl[2], out[2], r;
	struct jail_fd fds[1];

	*run = (struct run){.child = {0, -1, -1}};
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ctl), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	fds[0] = (struct jail_fd){ctl[1], 3};
	plan->program = plan->program ? plan->program : probe;
	plan->fds = plan->fds ? plan->fds : fds;
	plan->n_fds = plan->n_fds ? plan->n_fds : 1;
	plan->log_fd = out[1];
	r = jail_spawn(plan, &run->child, &run->err);
	(void)close(ctl[1]);
	(void)close(out[1]);
	run->ctl = ctl[0];
	run->out = out[0];
	return r;
}

static int start(struct run *run, enum jail_profile profile, const char *mode, const char *arg)
{
	const char *argv[] = {"probe", mode, arg, NULL};
	struct jail_plan plan = {.profile = profile, .argv = (char *const *)(uintptr_t)argv};

	return start_plan(run, &plan);
}

/* Everything it says until `line` or the end, at most 60 seconds. */
static void hear(struct run *run, const char *line)
{
	uint64_t deadline = clock_mono_ms() + 60000;
	size_t n = strlen(run->text);

	while (!strstr(run->text, line)) {
		struct pollfd p = {.fd = run->out, .events = POLLIN};
		ssize_t k;

		assert_true(clock_mono_ms() < deadline);
		if (poll(&p, 1, 1000) <= 0)
			continue;
		k = read(run->out, run->text + n, sizeof(run->text) - 1 - n);
		if (k <= 0)
			return;
		n += (size_t)k;
	}
}

static void stop(struct run *run)
{
	jail_child_kill(&run->child);
	(void)close(run->ctl);
	(void)close(run->out);
}

static void assert_said(const struct run *run, const char *line)
{
	if (!strstr(run->text, line))
		fail_msg("no '%s' in:\n%s", line, run->text);
}

/* name=ERRNO on a line of its own */
static void assert_each(const struct run *run, const char *const *lines)
{
	char line[64];

	for (; *lines; lines++) {
		(void)snprintf(line, sizeof(line), "%s\n", *lines);
		assert_said(run, line);
	}
}

static int end_of(struct run *run, int *ret_status)
{
	siginfo_t si = {0};

	assert_int_equal(waitid(P_PIDFD, (id_t)run->child.pidfd, &si, WEXITED | WNOWAIT), 0);
	*ret_status = si.si_status;
	return si.si_code;
}

/* ---- from inside ---- */

static void edge_can_only_speak_over_its_sockets(void **state)
{
	static const char *const want[] = {"open=EPERM", "create=EPERM", "mkdir=EPERM",
		"socket=EPERM", "unix=EPERM", "connect=EPERM", "exec=EPERM", "execveat=EBADF",
		"ptrace=EPERM", "mount=EPERM", "fork=EPERM", "userns=EPERM", "setns=EPERM",
		"kill=EPERM", "keyctl=EPERM", "bpf=EPERM", "perf=EPERM", "uffd=EPERM",
		"vm_read=EPERM", "uring=EPERM", "clone3=EPERM", "setuid=EPERM", "module=EPERM",
		"exec_memory=EPERM", "outlive=EPERM", "tiocsti=EPERM", "raise_limit=EPERM",
		"write=ok", NULL};
	struct run run;

	assert_int_equal(start(&run, JAIL_EDGE, "report", NULL), 0);
	hear(&run, "done=");
	assert_each(&run, want);
	stop(&run);
}

static void qemu_has_files_and_threads_but_no_way_out(void **state)
{
	static const char *const want[] = {"open=ENOENT", "create=EROFS", "socket=EPERM",
		"unix=EPERM", "connect=EPERM", "exec=EPERM", "execveat=EBADF", "exec_number=EBADF",
		"ptrace=EPERM", "mount=EPERM", "fork=EPERM", "userns=EPERM", "setns=EPERM",
		"kill=EPERM", "keyctl=EPERM", "bpf=EPERM", "perf=EPERM", "uffd=EPERM",
		"vm_read=EPERM", "uring=ENOSYS", "clone3=ENOSYS", "setuid=EPERM", "module=EPERM",
		"exec_memory=ok", "outlive=EPERM", "tiocsti=EPERM", "raise_limit=EPERM", "write=ok",
		NULL};
	struct run run;

	assert_int_equal(start(&run, JAIL_QEMU, "report", NULL), 0);
	hear(&run, "done=");
	assert_each(&run, want);
	stop(&run);
}

static void virtiofsd_can_mount_but_not_leave(void **state)
{
	static const char *const want[] = {"open=ENOENT", "create=EROFS", "mkdir=EROFS",
		"socket=EPERM", "unix=EPERM", "connect=EPERM", "exec=EPERM", "execveat=EBADF",
		"exec_number=EBADF", "ptrace=EPERM", "mount=ok", "fork=ok", "userns=EPERM",
		"setns=EPERM", "keyctl=EPERM", "bpf=EPERM", "perf=EPERM", "uffd=EPERM",
		"vm_read=EPERM", "uring=ENOSYS", "clone3=ENOSYS", "setuid=ok", "module=EPERM",
		"outlive=EPERM", "tiocsti=EPERM", "raise_limit=EPERM", "write=ok", NULL};
	struct run run;

	assert_int_equal(start(&run, JAIL_VIRTIOFSD, "report", NULL), 0);
	hear(&run, "done=");
	assert_each(&run, want);
	stop(&run);
}

static void a_sealed_edge_dies_of_what_it_may_not_do(void **state)
{
	static const char *const deadly[] = {"open", "create", "socket", "connect", "exec",
		"execveat", "ptrace", "mount", "fork", "kill", "setuid", "exec_memory",
		"raise_limit", NULL};
	struct run run;
	int status;

	for (const char *const *what = deadly; *what; what++) {
		assert_int_equal(start(&run, JAIL_EDGE, "sealed", *what), 0);
		hear(&run, "done=");
		assert_int_equal(end_of(&run, &status), CLD_KILLED);
		assert_int_equal(status, SIGSYS);
		assert_string_equal(run.text, "");
		stop(&run);
	}
	assert_int_equal(start(&run, JAIL_EDGE, "sealed", "write"), 0);
	hear(&run, "done=");
	assert_said(&run, "write=ok\ndone=ok\n");
	stop(&run);
}

static void no_descriptor_leaks(void **state)
{
	int leak = open("/dev/null", O_RDWR); /* deliberately without CLOEXEC */
	int leak2 = fcntl(leak, F_DUPFD, 200);
	struct run run;

	assert_int_equal(start(&run, JAIL_QEMU, "fds", NULL), 0);
	hear(&run, "done=");
	assert_string_equal(run.text, "fd=0\nfd=1\nfd=2\nfd=3\ndone=ok\n");
	stop(&run);
	(void)close(leak);
	(void)close(leak2);
}

static void descriptors_may_swap_places(void **state)
{
	int a[2], b[2], lo, hi;
	char c = 0;
	const char *argv[] = {"probe", "sealed", "write", NULL};
	struct run run;

	assert_int_equal(pipe2(a, O_CLOEXEC), 0);
	assert_int_equal(pipe2(b, O_CLOEXEC), 0);
	lo = MIN(a[1], b[1]);
	hi = MAX(a[1], b[1]);
	struct jail_fd fds[] = {{lo, hi}, {hi, 3}, {lo, 4}};
	struct jail_plan plan = {.profile = JAIL_EDGE,
		.argv = (char *const *)(uintptr_t)argv,
		.fds = fds,
		.n_fds = ARRAY_LEN(fds)};

	assert_int_equal(start_plan(&run, &plan), 0);
	hear(&run, "done=");
	(void)close(a[1]);
	(void)close(b[1]);
	assert_int_equal(read(hi == a[1] ? a[0] : b[0], &c, 1), 1);
	assert_int_equal(c, 'x');
	assert_int_equal(read(hi == a[1] ? b[0] : a[0], &c, 1), 0);
	stop(&run);
	(void)close(a[0]);
	(void)close(b[0]);
}

static void the_environment_is_what_the_plan_says(void **state)
{
	const char *argv[] = {"probe", "args", NULL};
	const char *envp[] = {"SBX_TEST=given", NULL};
	struct jail_plan plan = {.profile = JAIL_EDGE, .argv = (char *const *)(uintptr_t)argv};
	struct run run;

	assert_int_equal(setenv("SBX_TEST", "inherited", 1), 0);
	assert_int_equal(start_plan(&run, &plan), 0);
	hear(&run, "done=");
	assert_said(&run, "none=ok");
	stop(&run);
	plan = (struct jail_plan){.profile = JAIL_EDGE,
		.argv = (char *const *)(uintptr_t)argv,
		.envp = (char *const *)(uintptr_t)envp};
	assert_int_equal(start_plan(&run, &plan), 0);
	hear(&run, "done=");
	assert_said(&run, "given=ok");
	stop(&run);
}

/* ---- mounts ---- */

static void put(const char *name, const char *text)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name);
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void try_mounted(
	enum jail_profile profile, const char *mode, const char *path, const char *want)
{
	AUTO_FREE char *rw = xasprintf("%s/rw", dir);
	AUTO_FREE char *file = xasprintf("%s/file", dir);
	const struct jail_mount mounts[] = {{dir, "/ro", 0}, {rw, "/deep/down/rw", JAIL_MOUNT_RW},
		{file, "/f", 0}, {"/nowhere", "/nowhere", JAIL_MOUNT_OPTIONAL},
		{"/dev/null", "/null-nodev", 0}};
	const char *argv[] = {"probe", mode, path, NULL};
	struct jail_plan plan = {.profile = profile,
		.argv = (char *const *)(uintptr_t)argv,
		.mounts = mounts,
		.n_mounts = ARRAY_LEN(mounts)};
	struct run run;
	int r = start_plan(&run, &plan);

	if (r < 0)
		fail_msg("%s", run.err.text);
	hear(&run, "done=");
	assert_said(&run, want);
	stop(&run);
}

static void only_the_plan_is_there_and_only_as_it_says(void **state)
{
	for (int profile = JAIL_QEMU; profile <= JAIL_VIRTIOFSD; profile++) {
		try_mounted(profile, "read", "/ro/file", "read=ok");
		try_mounted(profile, "read", "/f", "read=ok");
		try_mounted(profile, "read", "/deep/down/rw/x", "read=ok");
		try_mounted(profile, "write", "/deep/down/rw/x", "write=ok");
		try_mounted(profile, "write", "/deep/down/rw/new", "write=ok");
		try_mounted(profile, "write", "/dev/null", "write=ok");
		try_mounted(profile, "read", "/null-nodev", "read=EACCES");
		try_mounted(profile, "read", "/nowhere", "read=ENOENT");
		try_mounted(profile, "read", "/etc/passwd", "read=ENOENT");
		try_mounted(profile, "read", "/ro/../../../../etc/passwd", "read=ENOENT");
	}
	try_mounted(JAIL_QEMU, "write", "/ro/file", "write=EROFS");
	try_mounted(JAIL_QEMU, "write", "/ro/rw/x", "write=EROFS");
	try_mounted(JAIL_QEMU, "write", "/f", "write=EROFS");
	try_mounted(JAIL_QEMU, "write", "/new", "write=EROFS");
	try_mounted(JAIL_QEMU, "read", "/proc/self/status", "read=ENOENT");
	try_mounted(JAIL_VIRTIOFSD, "read", "/proc/self/status", "read=ok");
}

static void landlock_stands_behind_the_mounts(void **state)
{
	if (landlock_abi() == 0)
		skip();
	/* The root itself is in no rule: what the mount list does not name, Landlock refuses. */
	try_mounted(JAIL_QEMU, "read", "/", "read=EACCES");
	try_mounted(JAIL_QEMU, "read", "/deep", "read=EACCES");
	try_mounted(JAIL_QEMU, "read", "/ro", "read=ok");
	try_mounted(JAIL_VIRTIOFSD, "read", "/deep", "read=ok");
}

static void try_reopened(const char *name, int flags, const char *path, const char *want)
{
	AUTO_FREE char *file = xasprintf("%s/%s", dir, name);
	AUTO_CLOSE int fd = open(name ? file : dir, flags | O_CLOEXEC, 0600);
	const struct jail_mount mounts[] = {{"/proc/self/fd", "/fd", 0}};
	const struct jail_fd fds[] = {{fd, 5}};
	const char *argv[] = {"probe", "write", path, NULL};
	struct jail_plan plan = {.profile = JAIL_QEMU,
		.argv = (char *const *)(uintptr_t)argv,
		.mounts = mounts,
		.n_mounts = ARRAY_LEN(mounts),
		.fds = fds,
		.n_fds = ARRAY_LEN(fds)};
	struct run run;

	assert_true(fd >= 0);
	assert_int_equal(start_plan(&run, &plan), 0);
	hear(&run, "done=");
	assert_said(&run, want);
	stop(&run);
}

/* qemu opens its memory by the name of a descriptor. */
static void only_a_file_that_was_given_for_writing_is_opened_again(void **state)
{
	put("again", "x");
	try_reopened("again", O_RDWR, "/fd/5", "write=ok");
	try_reopened(NULL, O_RDWR | O_TMPFILE, "/fd/5", "write=ok");
	if (landlock_abi() > 0)
		try_reopened("again", O_RDONLY, "/fd/5", "write=EACCES");
}

static void nothing_is_made_in_a_bound_folder(void **state)
{
	const struct jail_mount mounts[] = {
		{dir, "/ws", JAIL_MOUNT_RW}, {"/usr/lib", "/ws/new/place", 0}};
	const char *argv[] = {"probe", "read", "/", NULL};
	struct jail_plan plan = {.profile = JAIL_QEMU,
		.argv = (char *const *)(uintptr_t)argv,
		.mounts = mounts,
		.n_mounts = 2};
	AUTO_FREE char *made = xasprintf("%s/new", dir);
	struct run run;

	assert_int_equal(start_plan(&run, &plan), -ENOENT);
	assert_non_null(strstr(run.err.text, "mount point /ws/new/place"));
	assert_int_equal(access(made, F_OK), -1);
	stop(&run);
}

/* ---- from outside ---- */

static void read_proc(pid_t pid, const char *file, char *buf, size_t size)
{
	AUTO_FREE char *path = xasprintf("/proc/%d/%s", pid, file);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	assert_true(fd >= 0);
	n = fd_read_full(fd, buf, size - 1);
	assert_true(n >= 0);
	buf[n] = '\0';
}

static void assert_own_namespaces(pid_t pid)
{
	static const char *const spaces[] = {
		"user", "pid", "mnt", "ipc", "uts", "net", "cgroup", NULL};

	for (const char *const *ns = spaces; *ns; ns++) {
		AUTO_FREE char *theirs = xasprintf("/proc/%d/ns/%s", pid, *ns);
		AUTO_FREE char *ours = xasprintf("/proc/self/ns/%s", *ns);
		struct stat a, b;

		assert_int_equal(stat(theirs, &a), 0);
		assert_int_equal(stat(ours, &b), 0);
		if (a.st_ino == b.st_ino)
			fail_msg("not an own %s namespace", *ns);
	}
}

/* Two heading lines, then lo and nothing else. */
static void assert_empty_net(pid_t pid)
{
	char text[4096];
	int lines = 0;

	read_proc(pid, "net/dev", text, sizeof(text));
	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	assert_int_equal(lines, 3);
	assert_non_null(strstr(text, "lo:"));
	read_proc(pid, "net/route", text, sizeof(text));
	assert_null(strstr(text, "lo"));
	read_proc(pid, "net/unix", text, sizeof(text));
	assert_null(strchr(strchr(text, '\n') + 1, '@'));
}

static void assert_status(pid_t pid, uint64_t caps)
{
	static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", NULL};
	char text[8192], line[64];

	read_proc(pid, "status", text, sizeof(text));
	assert_non_null(strstr(text, "NoNewPrivs:\t1\n"));
	assert_non_null(strstr(text, "Seccomp:\t2\n"));
	for (const char *const *set = sets; *set; set++) {
		(void)snprintf(
			line, sizeof(line), "%s:\t%016llx\n", *set, (unsigned long long)caps);
		if (!strstr(text, line))
			fail_msg("no %s in %s", line, text);
	}
}

static void assert_limits(pid_t pid, const struct jail_row *row)
{
	char text[4096], line[128];

	read_proc(pid, "limits", text, sizeof(text));
	(void)snprintf(line, sizeof(line), "Max core file size        %-20llu %-20llu",
		(unsigned long long)row->limit.core, (unsigned long long)row->limit.core);
	assert_non_null(strstr(text, line));
	(void)snprintf(line, sizeof(line), "Max processes             %-20llu %-20llu",
		(unsigned long long)row->limit.nproc, (unsigned long long)row->limit.nproc);
	assert_non_null(strstr(text, line));
	if (row->limit.as) {
		(void)snprintf(line, sizeof(line), "Max address space         %-20llu %-20llu",
			(unsigned long long)row->limit.as, (unsigned long long)row->limit.as);
		assert_non_null(strstr(text, line));
	}
	if (row->limit.fsize == 0)
		assert_non_null(strstr(text, "Max file size             0                    0"));
}

static void seen_from_outside_the_jail_is_closed(void **state)
{
	for (int profile = 0; profile <= JAIL_VIRTIOFSD; profile++) {
		struct run run;
		char text[8192];

		assert_int_equal(start(&run, profile, "wait", NULL), 0);
		hear(&run, "done=");
		assert_own_namespaces(run.child.pid);
		assert_status(run.child.pid, jail_row(profile)->caps);
		assert_limits(run.child.pid, jail_row(profile));
		assert_empty_net(run.child.pid);
		/* pid 1 of its own pid namespace, directly below ours */
		read_proc(run.child.pid, "status", text, sizeof(text));
		(void)snprintf(text + 4096, 64, "NSpid:\t%d\t1\n", run.child.pid);
		assert_non_null(strstr(text, text + 4096));
		read_proc(run.child.pid, "environ", text, sizeof(text));
		assert_string_equal(text, "");
		stop(&run);
	}
}

static void a_sealed_program_is_not_dumpable(void **state)
{
	pid_t pid = fork();
	char text[64];

	if (pid == 0) {
		if (jail_seal(JAIL_EDGE, NULL) < 0)
			_exit(1);
		for (;;)
			(void)poll(NULL, 0, 1000);
	}
	for (int i = 0; i < 100; i++) {
		char path[64];

		(void)usleep(20000);
		read_proc(pid, "stat", text, sizeof(text));
		(void)snprintf(path, sizeof(path), "/proc/%d/environ", pid);
		AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 && errno == EACCES)
			break;
		assert_true(i < 99);
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

/* The spawner is a child of the test; its end must be the end of what it started. */
static void assert_dies_with_spawner(enum jail_profile profile)
{
	int up[2];
	pid_t spawner, jailed = 0;
	AUTO_CLOSE int pidfd = -1;
	struct pollfd p = {.events = POLLIN};

	assert_int_equal(pipe2(up, O_CLOEXEC), 0);
	spawner = fork();
	if (spawner == 0) {
		struct run run;

		if (start(&run, profile, "stay", NULL) < 0)
			_exit(1);
		(void)!write(up[1], &run.child.pid, sizeof(run.child.pid));
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(up[0], &jailed, sizeof(jailed)), (ssize_t)sizeof(jailed));
	pidfd = (int)syscall(SYS_pidfd_open, jailed, 0);
	assert_true(pidfd >= 0);
	p.fd = pidfd;
	assert_int_equal(poll(&p, 1, 200), 0); /* alive until then */
	assert_int_equal(kill(spawner, SIGKILL), 0);
	assert_int_equal(waitpid(spawner, NULL, 0), spawner);
	assert_int_equal(poll(&p, 1, 60000), 1);
	(void)close(up[0]);
	(void)close(up[1]);
}

static void the_child_dies_with_its_spawner(void **state)
{
	for (int profile = 0; profile <= JAIL_VIRTIOFSD; profile++)
		assert_dies_with_spawner(profile);
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

static void the_spawner_keeps_nothing(void **state)
{
	int before = count_fds();
	struct run run;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(start(&run, JAIL_EDGE, "report", NULL), 0);
		stop(&run);
		assert_true(start(&run, JAIL_HIDE, "report", NULL) < 0);
		stop(&run);
	}
	assert_int_equal(count_fds(), before);
}

/* ---- errors ---- */

static int failing_scaffold(void *ctx, int new_root, struct err *err)
{
	return err_set(err, -EXDEV, "no wood");
}

static int sleeping_scaffold(void *ctx, int new_root, struct err *err)
{
	(void)poll(NULL, 0, JAIL_START_TIMEOUT_MS * 12);
	return 0;
}

static void expect_error(struct jail_plan *plan, int want, const char *text)
{
	const char *argv[] = {"probe", "report", NULL};
	struct run run;
	int r;

	plan->argv = (char *const *)(uintptr_t)argv;
	r = start_plan(&run, plan);
	if (r != want || !strstr(run.err.text, text))
		fail_msg("%d '%s' instead of %d '%s'", r, run.err.text, want, text);
	assert_int_equal(run.child.pidfd, -1);
	stop(&run);
}

static void an_error_names_its_stage(void **state)
{
	const struct jail_mount missing[] = {{"/nowhere/at/all", "/x", 0}};
	const struct jail_fd closed[] = {{999, 3}};
	AUTO_FREE char *script = xasprintf("%s/file", dir);

	expect_error(&(struct jail_plan){.program = "/nowhere"}, -ENOENT, "cannot open /nowhere");
	expect_error(&(struct jail_plan){.program = "/etc/passwd"}, -EACCES, "exec: /etc/passwd");
	expect_error(&(struct jail_plan){.program = script}, -EACCES, "exec");
	expect_error(&(struct jail_plan){.mounts = missing, .n_mounts = 1}, -ENOENT,
		"cannot jail edge: enter: cannot open /nowhere/at/all");
	expect_error(&(struct jail_plan){.fds = closed, .n_fds = 1}, -EBADF,
		"lock: cannot place descriptor 999");
	expect_error(
		&(struct jail_plan){.scaffold = failing_scaffold}, -EXDEV, "scaffold: no wood");
	expect_error(&(struct jail_plan){.profile = JAIL_HIDE}, -EINVAL, "cannot start programs");
}

static void a_start_that_hangs_is_ended(void **state)
{
	uint64_t t0 = clock_mono_ms();

	expect_error(&(struct jail_plan){.scaffold = sleeping_scaffold}, -ETIMEDOUT, "not started");
	assert_in_range(clock_mono_ms() - t0, JAIL_START_TIMEOUT_MS, JAIL_START_TIMEOUT_MS * 10);
}

static int setup(void **state)
{
	AUTO_FREE char *rw = NULL;

	if (!mkdtemp(dir))
		return -1;
	rw = xasprintf("%s/rw", dir);
	if (mkdir(rw, 0700) < 0)
		return -1;
	put("file", "text");
	put("rw/x", "text");
	return 0;
}

static int teardown(void **state)
{
	AUTO_FREE char *cmd = xasprintf("rm -rf '%s'", dir);

	return system(cmd);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edge_can_only_speak_over_its_sockets),
		cmocka_unit_test(qemu_has_files_and_threads_but_no_way_out),
		cmocka_unit_test(virtiofsd_can_mount_but_not_leave),
		cmocka_unit_test(a_sealed_edge_dies_of_what_it_may_not_do),
		cmocka_unit_test(no_descriptor_leaks),
		cmocka_unit_test(descriptors_may_swap_places),
		cmocka_unit_test(the_environment_is_what_the_plan_says),
		cmocka_unit_test(only_the_plan_is_there_and_only_as_it_says),
		cmocka_unit_test(landlock_stands_behind_the_mounts),
		cmocka_unit_test(only_a_file_that_was_given_for_writing_is_opened_again),
		cmocka_unit_test(nothing_is_made_in_a_bound_folder),
		cmocka_unit_test(seen_from_outside_the_jail_is_closed),
		cmocka_unit_test(a_sealed_program_is_not_dumpable),
		cmocka_unit_test(the_child_dies_with_its_spawner),
		cmocka_unit_test(the_spawner_keeps_nothing),
		cmocka_unit_test(an_error_names_its_stage),
		cmocka_unit_test(a_start_that_hangs_is_ended),
	};
	static char copy[] = "/tmp/sbx-jail-probe-XXXXXX";

	if (argc < 2)
		return 1;
	probe = argv[1];
	/* The claim is about ordinary users; root becomes one, who may not reach the build folder.
	 */
	if (geteuid() == 0) {
		int from = open(probe, O_RDONLY | O_CLOEXEC), to = mkostemp(copy, O_CLOEXEC);

		while (sendfile(to, from, NULL, 1 << 20) > 0)
			;
		if (fchmod(to, 0755) < 0 || close(to) < 0 || setgroups(0, NULL) < 0 ||
			setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
			return 1;
		probe = copy;
		/* a change of identity makes a process undumpable, and its /proc root's */
		(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
