/* SPDX-License-Identifier: Apache-2.0 */
/* Boots VMs under TCG in the jail. SBX_TEST_TEMPLATE: template directory; argv[1]: boot_init. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "machine_fixture.h"
#include "memory_fixture.h"
#include "lib/vm/vmm/vmm.h"
#include "lib/vm/vmm/disk.h"
#include "lib/vm/vmm/initrd.h"
#include "lib/vm/vmm/selftest.h"
#include "lib/vm/vmm/stub.h"
#include "lib/vm/share/share.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

static const char *template, *init_path;
static char dir[] = "/tmp/sbx-vmm-XXXXXX";
static char kernel[512], stub[512], initrd[512], root_base[512], docker_base[512], root[512],
	docker[512];

/* What a failed test leaves; its teardown ends them. */
static struct machine *live[4];
/* Of the first tests, which go on with the machine of the one before: a boot is dear. */
static struct machine shared;
static struct share boot_share = SHARE_EMPTY;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void listen_on(struct machine *m)
{
	static int n;

	m->sa.sun_family = AF_UNIX;
	snprintf(m->sa.sun_path, sizeof(m->sa.sun_path), "%s/ctl%d", dir, n++);
	m->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(m->listen_fd, (struct sockaddr *)&m->sa, sizeof(m->sa)), 0);
	assert_int_equal(listen(m->listen_fd, 1), 0);
}

static void connect_wire(struct machine *m)
{
	m->conn = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(m->conn, (struct sockaddr *)&m->sa, sizeof(m->sa)), 0);
}

static struct vmm_config config(struct machine *m)
{
	*m = (struct machine){.conn = -1, .listen_fd = -1};
	listen_on(m);
	m->log_fd = memfd_create("log", MFD_CLOEXEC);
	return (struct vmm_config){
		.kernel = kernel,
		.initrd = initrd,
		.disks = {[VMM_ROOT] = {{root_base, root}, 2},
			[VMM_DOCKER] = {{docker_base, docker}, 2}},
		.cpus = 2,
		.memory = 512 << 20,
		.memory_fd = -1,
		.accel = VMM_TCG,
		.ctl_listen_fd = m->listen_fd,
		.net_listen_fd = -1,
		.share_fd = -1,
		.log_fd = m->log_fd,
	};
}

static void start(struct machine *m, const struct vmm_config *c)
{
	struct err err = {};
	int r = vmm_start(c, &m->vmm, &err);

	if (r < 0)
		fail_msg("%s", err_text(&err, r));
	for (size_t i = 0; i < ARRAY_LEN(live); i++) {
		if (!live[i]) {
			live[i] = m;
			break;
		}
	}
	connect_wire(m);
}

static void stop(struct machine *m)
{
	for (size_t i = 0; i < ARRAY_LEN(live); i++) {
		if (live[i] == m)
			live[i] = NULL;
	}
	vmm_done(TAKE(m->vmm));
	fd_close(&m->conn);
	fd_close(&m->listen_fd);
	fd_close(&m->log_fd);
}

static void expect_byte(struct machine *m, char want, int timeout_ms)
{
	uint64_t end = clock_mono_ms() + (uint64_t)timeout_ms;
	const char *why = NULL;
	char c;

	while (!why && clock_mono_ms() < end) {
		struct pollfd p[] = {{.fd = m->conn, .events = POLLIN},
			{.fd = vmm_poll_fd(m->vmm), .events = POLLIN}};
		struct vmm_event ev;

		(void)poll(p, 2, 1000);
		if (p[0].revents) {
			assert_int_equal(read(m->conn, &c, 1), 1);
			assert_int_equal(c, want);
			return;
		}
		while (vmm_next(m->vmm, &ev) > 0) {
			if (ev.kind == VMM_EV_FATAL)
				why = "the machine is over";
			if (ev.kind == VMM_EV_RESET)
				why = "the guest panicked or rebooted";
		}
	}
	print_log(m);
	fail_msg("%s", why ? why : "no byte came in time");
}

static void boot(struct machine *m, const struct vmm_config *c)
{
	start(m, c);
	expect_byte(m, 'R', BOOT_MS);
}

static struct machine *shared_machine(void)
{
	struct vmm_config c;

	if (!shared.vmm) {
		c = config(&shared);
		boot(&shared, &c);
	}
	return &shared;
}

static void ask(struct machine *m, char c, char want)
{
	assert_int_equal(write(m->conn, &c, 1), 1);
	expect_byte(m, want, STEP_MS);
}

/* As ask, when the guest may first say that it saw its peer come back. */
static void ask_after_return(struct machine *m, char c)
{
	char got = 0;

	assert_int_equal(write(m->conn, &c, 1), 1);
	for (int i = 0; i < 2 && got != c; i++) {
		struct pollfd p = {.fd = m->conn, .events = POLLIN};

		assert_int_equal(poll(&p, 1, STEP_MS), 1);
		assert_int_equal(read(m->conn, &got, 1), 1);
		assert_true(got == c || got == 'A');
	}
	assert_int_equal(got, c);
}

/* Away for longer and longer, until the guest has noticed: a short absence can pass unseen. */
static void leave_and_return(struct machine *m)
{
	for (unsigned pause = 1; pause <= 8; pause *= 2) {
		struct pollfd p = {.events = POLLIN};
		char c;

		fd_close(&m->conn);
		sleep(pause);
		connect_wire(m);
		p.fd = m->conn;
		if (poll(&p, 1, 2000) == 1) {
			assert_int_equal(read(m->conn, &c, 1), 1);
			assert_int_equal(c, 'A');
			return;
		}
	}
	fail_msg("the guest never saw its port close and open");
}

static void save(struct machine *m, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct vmm_event ev;

	assert_true(fd >= 0);
	assert_int_equal(vmm_save(m->vmm, fd), 0);
	expect_event(m, VMM_EV_SAVED, &ev);
}

static long long size_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (long long)st.st_size;
}

/* qemu may say that it cannot, or end. */
static void expect_no_restore(struct machine *m)
{
	uint64_t end = clock_mono_ms() + STEP_MS;
	struct vmm_event ev = {};

	while (clock_mono_ms() < end) {
		struct pollfd p = {.fd = vmm_poll_fd(m->vmm), .events = POLLIN};

		(void)poll(&p, 1, 100);
		while (vmm_next(m->vmm, &ev) > 0) {
			assert_int_not_equal(ev.kind, VMM_EV_RESTORED);
			if (ev.kind == VMM_EV_RESTORE_FAILED || ev.kind == VMM_EV_FATAL)
				return;
		}
	}
	fail_msg("neither restored nor refused");
}

/* The first boot: both disks, the wire, and its second connection. */
static void boots_and_takes_a_new_connection(void **state)
{
	struct machine *m = &shared;
	struct vmm_config c = config(m);
	uint64_t t = clock_mono_ms();
	struct vmm_event ev;

	start(m, &c);
	expect_event(m, VMM_EV_READY, &ev);
	expect_byte(m, 'R', BOOT_MS);
	print_message("vmm_start to the first byte: %d ms\n", (int)(clock_mono_ms() - t));
	ask(m, 'd', 'y');
	ask(m, 'x', 'x');
	leave_and_return(m);
	ask(m, 'y', 'y');
}

static void pauses(void **state)
{
	struct machine *m = shared_machine();
	struct pollfd p = {.fd = m->conn, .events = POLLIN};
	struct vmm_event ev;

	assert_int_equal(vmm_pause(m->vmm), 0);
	expect_event(m, VMM_EV_PAUSED, &ev);
	assert_int_equal(write(m->conn, "x", 1), 1);
	assert_int_equal(poll(&p, 1, 500), 0);
	assert_int_equal(vmm_resume(m->vmm), 0);
	expect_event(m, VMM_EV_RESUMED, &ev);
	expect_byte(m, 'x', STEP_MS);
}

/* A share whose server hangs up at once is refused, and the machine goes on. */
static void bad_share_is_refused(void **state)
{
	struct machine *m = shared_machine();
	struct vmm_event ev;
	int pair[2];

	for (int i = 0; i < 2; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		close(pair[1]);
		assert_int_equal(vmm_attach_share(m->vmm, pair[0]), 0);
		expect_event(m, VMM_EV_SHARE_FAILED, &ev);
		assert_true(ev.text[0] != 0);
	}
	ask(m, 'x', 'x');
}

static struct share start_share(void)
{
	AUTO_FREE char *folder = xasprintf("%s/w", dir), *file = xasprintf("%s/w/hello", dir);
	struct share_mount mount = {.host = folder, .guest = "/w"};
	struct share_config cfg = {.mounts = &mount, .n_mounts = 1, .home = "/", .log_fd = -1};
	struct share share = SHARE_EMPTY;
	struct err err = {};
	int fd, r;

	(void)mkdir(folder, 0700);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	r = share_start(&cfg, &share, &err);
	if (r < 0)
		fail_msg("%s", err_text(&err, r));
	return share;
}

/* Another one in its place, with a real virtiofsd that is there at boot. */
static struct machine *boot_with_share(void)
{
	struct vmm_config c;

	if (shared.vmm)
		stop(&shared); /* SIGKILL */
	c = config(&shared);
	boot_share = start_share();
	c.share_fd = boot_share.vhost_fd;
	boot(&shared, &c);
	fd_close(&boot_share.vhost_fd);
	return &shared;
}

/* What was synced before SIGKILL is there afterwards; meanwhile nobody else gets the disk. */
static void disk_survives_a_kill(void **state)
{
	struct machine *m = shared_machine();
	static struct machine second;
	struct vmm_config c = config(&second);
	struct vmm_event ev;
	char log[500] = "";

	ask(m, 'r', 'n');
	ask(m, 'w', 'W');
	start(&second, &c);
	do {
		struct pollfd p = {.fd = vmm_poll_fd(second.vmm), .events = POLLIN};

		(void)poll(&p, 1, STEP_MS);
	} while (vmm_next(second.vmm, &ev) == 0);
	assert_int_equal(ev.kind, VMM_EV_FATAL);
	assert_true(pread(second.log_fd, log, sizeof(log) - 1, 0) > 0);
	assert_non_null(strstr(log, "lock"));
	stop(&second);
	ask(boot_with_share(), 'r', 'y');
}

/* A share that is there at boot, or plugged in later. */
static void shares_a_folder(void **state)
{
	struct machine *m = boot_share.child.pid > 0 ? &shared : boot_with_share();
	struct vmm_event ev;

	ask(m, 's', 'S');
	for (int i = 0; i < 4; i++) {
		ask(m, 'u', 'U');
		assert_int_equal(vmm_detach_share(m->vmm), 0);
		assert_int_equal(vmm_detach_share(m->vmm), -EBUSY);
		expect_event(m, VMM_EV_SHARE_DETACHED, &ev);
		share_stop(&boot_share);
		if (i == 3)
			break;
		boot_share = start_share();
		assert_int_equal(vmm_attach_share(m->vmm, TAKE_FD(boot_share.vhost_fd)), 0);
		expect_event(m, VMM_EV_SHARE_ATTACHED, &ev);
		ask(m, 's', 'S');
	}
	save(m, "/dev/null"); /* a machine that has had a share */
	assert_int_equal(vmm_detach_share(m->vmm), 0);
	expect_event(m, VMM_EV_SHARE_DETACH_FAILED, &ev);
	stop(m);
}

/* The guest runs, and its kernel does not hear that the device shall go. */
static void stuck_share_is_told(void **state)
{
	static struct machine m;
	struct vmm_config c = config(&m);
	struct share share = start_share();
	struct vmm_event ev;
	uint64_t t;

	c.share_fd = share.vhost_fd;
	c.cmdline_extra = "acpiphp.disable=1";
	boot(&m, &c);
	fd_close(&share.vhost_fd);
	t = clock_mono_ms();
	assert_int_equal(vmm_detach_share(m.vmm), 0);
	expect_event(&m, VMM_EV_SHARE_DETACH_FAILED, &ev);
	assert_in_range(clock_mono_ms() - t, VMM_DETACH_MS - 100, VMM_DETACH_MS + 60000);
	ask(&m, 'x', 'x');
	stop(&m);
	share_stop(&share);
}

/* With a thread for each processor, QEMU 7.2 did not live through 1,000 of these: "Oops: int3". */
static void kernel_patches_its_own_code(void **state)
{
	struct selftest_input in = {.kernel = kernel, .initrd = initrd, .cache_dir = dir};
	static struct machine m;
	struct vmm_config c = config(&m);
	struct err err = {};
	uint64_t t;

	assert_int_equal(vmm_accel_decide(SELFTEST_WANT_TCG, &in, &c.accel, &err), 0);
	boot(&m, &c);
	t = clock_mono_ms();
	assert_int_equal(write(m.conn, "p", 1), 1);
	expect_byte(&m, 'P', BOOT_MS);
	print_message("patched in %d ms\n", (int)(clock_mono_ms() - t));
	stop(&m);
}

static void panic_shows_the_console(void **state)
{
	static struct machine m;
	struct vmm_config c = config(&m);
	struct vmm_event ev;

	c.cmdline_extra = "sbx.panic";
	start(&m, &c);
	expect_event(&m, VMM_EV_RESET, &ev);
	assert_int_equal(vmm_console_tail(m.vmm), 0);
	expect_event(&m, VMM_EV_CONSOLE, &ev);
	memcpy(m.console, ev.console, ev.console_len);
	assert_non_null(strstr(m.console, "init gives up?[2J\n"));
	assert_non_null(strstr(m.console, "Attempted to kill init"));
	stop(&m);
}

/* The guest goes on where it was, as often as the image is used, with its kernel or the stub of
 * it; one that is cut or changed is never run. */
static void saves_and_restores(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/image", dir);
	static struct machine m;
	struct vmm_config c = config(&m);
	AUTO_CLOSE int memory = -1;
	unsigned waiting[2];
	struct vmm_event ev;
	uint64_t t, used;

	boot(&m, &c);
	fd_close(&m.conn);
	memory = fcntl(vmm_memory_fd(m.vmm), F_DUPFD_CLOEXEC, 0);
	used = memory_used(memory);
	assert_int_equal(vmm_restore(m.vmm, open(path, O_RDONLY | O_CLOEXEC)), -EINVAL);
	t = clock_mono_ms();
	save(&m, path);
	print_message("saved in %d ms, %lld bytes, %llu of memory\n", (int)(clock_mono_ms() - t),
		size_of(path), (unsigned long long)used);
	/* Saving touches no more memory than the guest uses, and has none of it. */
	assert_true(memory_used(memory) <= used + used / 5 && size_of(path) < 8 << 20);
	assert_int_equal(vmm_quit(m.vmm), 0);
	expect_event(&m, VMM_EV_ENDED, &ev);
	expect_exit(&m);
	stop(&m);

	for (int i = 0; i < 2; i++) {
		c = config(&m);
		c.incoming = true;
		c.stub = i ? stub : NULL;
		c.memory_fd = memory_copy(memory, c.memory);
		t = clock_mono_ms();
		start(&m, &c);
		expect_event(&m, VMM_EV_READY, &ev);
		waiting[i] = anonymous_mib(&m);
		assert_int_equal(vmm_restore(m.vmm, open(path, O_RDONLY | O_CLOEXEC)), 0);
		expect_event(&m, VMM_EV_RESTORED, &ev);
		print_message("restored after %d ms\n", (int)(clock_mono_ms() - t));
		assert_int_equal(vmm_resume(m.vmm), 0);
		expect_event(&m, VMM_EV_RESUMED, &ev);
		ask_after_return(&m, 'x');
		print_message("answers after %d ms\n", (int)(clock_mono_ms() - t));
		ask(&m, 'x', 'x');
		if (i)
			expect_reboot_to_end(&m);
		stop(&m);
		fd_close(&c.memory_fd);
	}
	print_message("qemu waits with %u MiB, with a stub %u MiB\n", waiting[0], waiting[1]);
	assert_true(waiting[1] + size_of(kernel) / (1 << 20) <= waiting[0] + 2);

	assert_int_equal(truncate(path, size_of(path) / 2), 0);
	c = config(&m);
	c.incoming = true;
	start(&m, &c);
	assert_int_equal(vmm_restore(m.vmm, open(path, O_RDONLY | O_CLOEXEC)), 0);
	expect_no_restore(&m);
	stop(&m);
}

static void add_overlay(const char *path)
{
	struct err err = {};
	int r = disk_make(path, root_base, 0, &err);

	if (r < 0)
		fail_msg("%s", err_text(&err, r));
}

static void snapshot(struct machine *m, const char *path)
{
	uint64_t t = clock_mono_ms();
	struct vmm_event ev;

	assert_int_equal(vmm_snapshot_disk(m->vmm, VMM_ROOT, open(path, O_RDWR | O_CLOEXEC)), 0);
	expect_event(m, VMM_EV_SNAPSHOT, &ev);
	print_message("snapshot in %d ms\n", (int)(clock_mono_ms() - t));
}

/* What was written before a snapshot is in the lower layer, what comes later in the upper one; the
 * machine goes on meanwhile. */
static void snapshots_a_running_disk(void **state)
{
	AUTO_FREE char *one = xasprintf("%s/one", dir), *two = xasprintf("%s/two", dir);
	AUTO_FREE char *three = xasprintf("%s/three", dir), *four = xasprintf("%s/four", dir);
	static struct machine m;
	struct vmm_config c = config(&m);
	struct vmm_event ev;

	add_overlay(one);
	add_overlay(two);
	add_overlay(three);
	add_overlay(four);
	c.disks[VMM_ROOT] = (struct vmm_disk){{root_base, one}, 2};
	boot(&m, &c);
	ask(&m, '1', 'W');
	snapshot(&m, two);
	ask(&m, '2', 'W');
	/* A file that is no qcow2 image is refused, and the disk stays where it is. */
	assert_int_equal(vmm_snapshot_disk(m.vmm, VMM_ROOT, open(initrd, O_RDWR | O_CLOEXEC)), 0);
	assert_int_equal(vmm_snapshot_disk(m.vmm, VMM_ROOT, -1), -EBUSY);
	expect_event(&m, VMM_EV_SNAPSHOT_FAILED, &ev);
	snapshot(&m, three);
	ask(&m, '3', 'W');
	ask(&m, '4', 'y');
	stop(&m); /* SIGKILL */

	c = config(&m);
	c.disks[VMM_ROOT] = (struct vmm_disk){{root_base, one, two, three}, 4};
	boot(&m, &c);
	ask(&m, '4', 'y');
	ask(&m, '5', 'y');
	ask(&m, '6', 'y');
	stop(&m);

	c = config(&m);
	c.disks[VMM_ROOT] = (struct vmm_disk){{root_base, one, two, four}, 4};
	boot(&m, &c);
	ask(&m, '4', 'y');
	ask(&m, '5', 'y');
	ask(&m, '6', 'n');
	expect_shutdown(&m);
	stop(&m);
}

/* Regression: the second of two snapshots left the locks of a writer on the file of the first, and
 * qemu refused to continue after a save. */
static void continues_after_snapshots_and_a_save(void **state)
{
	AUTO_FREE char *image = xasprintf("%s/image", dir), *top = NULL;
	static struct machine m;
	struct vmm_config c = config(&m);
	struct vmm_event ev;

	top = xasprintf("%s/s0", dir);
	add_overlay(top);
	c.disks[VMM_ROOT] = (struct vmm_disk){{root_base, top}, 2};
	boot(&m, &c);
	for (int i = 1; i <= 3; i++) {
		AUTO_FREE char *next = xasprintf("%s/s%d", dir, i);

		add_overlay(next);
		if (i == 2) { /* as for a checkpoint with memory */
			assert_int_equal(vmm_pause(m.vmm), 0);
			expect_event(&m, VMM_EV_PAUSED, &ev);
		}
		snapshot(&m, next);
		if (i == 1)
			continue;
		save(&m, image);
		assert_int_equal(vmm_resume(m.vmm), 0);
		expect_event(&m, VMM_EV_RESUMED, &ev);
		ask(&m, 'x', 'x');
	}
	ask(&m, '1', 'W');
	stop(&m);
}

static void selftest_decides(void **state)
{
	struct selftest_input in = {.kernel = kernel, .initrd = initrd, .cache_dir = dir};
	enum vmm_accel accel;
	struct err err = {};
	uint64_t t = clock_mono_ms();
	int r = selftest_run(&in, VMM_TCG, &err);

	if (r < 0)
		fail_msg("%s", err_text(&err, r));
	print_message("self-test boot under TCG: %d ms\n", (int)(clock_mono_ms() - t));
	assert_int_equal(vmm_accel_decide(SELFTEST_WANT_TCG, &in, &accel, &err), 0);
	assert_int_not_equal(accel, VMM_KVM);
	r = vmm_accel_decide(SELFTEST_AUTO, &in, &accel, &err);
	if (r == 0) {
		assert_int_equal(accel, VMM_KVM);
		return;
	}
	print_message("%s\n", err.text);
	assert_int_equal(r, -ENOTSUP);
	assert_non_null(strstr(err.text, "--accel tcg"));
}

static int prepare(void **state)
{
	struct err err = {};
	int r;

	assert_non_null(mkdtemp(dir));
	snprintf(kernel, sizeof(kernel), "%s/vmlinuz", template);
	snprintf(stub, sizeof(stub), "%s/stub", dir);
	snprintf(root_base, sizeof(root_base), "%s/root.img", template);
	snprintf(docker_base, sizeof(docker_base), "%s/docker.img", template);
	snprintf(initrd, sizeof(initrd), "%s/initrd", dir);
	snprintf(root, sizeof(root), "%s/root.qcow2", dir);
	snprintf(docker, sizeof(docker), "%s/docker.qcow2", dir);
	{
		AUTO_FREE char *modules = xasprintf("%s/modules.cpio", template);

		r = initrd_write(initrd, init_path, modules, &err);
	}
	if (r == 0)
		r = stub_write(stub, kernel, &err);
	if (r == 0)
		r = disk_make(root, root_base, 0, &err);
	if (r == 0)
		r = disk_make(docker, docker_base, 0, &err);
	if (r < 0)
		print_message("%s\n", err_text(&err, r));
	return r;
}

static int end_live(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(live); i++) {
		if (live[i])
			stop(live[i]);
	}
	return 0;
}

static int clean(void **state)
{
	(void)end_live(state);
	share_stop(&boot_share);
	return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(boots_and_takes_a_new_connection),
		cmocka_unit_test(pauses),
		cmocka_unit_test(bad_share_is_refused),
		cmocka_unit_test(disk_survives_a_kill),
		cmocka_unit_test_teardown(shares_a_folder, end_live),
		cmocka_unit_test_teardown(stuck_share_is_told, end_live),
		cmocka_unit_test_teardown(kernel_patches_its_own_code, end_live),
		cmocka_unit_test_teardown(panic_shows_the_console, end_live),
		cmocka_unit_test_teardown(saves_and_restores, end_live),
		cmocka_unit_test_teardown(snapshots_a_running_disk, end_live),
		cmocka_unit_test_teardown(continues_after_snapshots_and_a_save, end_live),
		cmocka_unit_test_teardown(selftest_decides, end_live),
	};

	template = getenv("SBX_TEST_TEMPLATE");
	if (!template || argc < 2) {
		printf("SBX_TEST_TEMPLATE names no template: skipped\n");
		return 77;
	}
	init_path = argv[1];
	cmocka_set_message_output(CM_OUTPUT_STDOUT);
	cmocka_set_test_filter(getenv("SBX_TEST_FILTER"));
	return cmocka_run_group_tests(tests, prepare, clean);
}
