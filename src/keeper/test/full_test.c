/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's disk or memory is full while a sandbox starts, is suspended or resumes: its programs
 * are not lost. Uses a fake qemu, edge and sbxd.
 */
#include "qemu_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/quota.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/rules/settings/settings.h"
#include "lib/vm/vmm/vmm_internal.h"

#define FULL                                                                            \
	"{\"event\":\"BLOCK_IO_ERROR\",\"data\":{\"nospace\":true,\"action\":\"stop\"," \
	"\"device\":\"root\"}}\n{\"event\":\"STOP\"}\n"
/* Its timeout expired. */
static void time_out(const char *path)
{
	struct loop_event ev = {0};

	while (ev.key.idx < KEEPER_MAX_ASKS &&
		!(rig_k.asks[ev.key.idx].kind &&
			strcmp(rig_k.asks[ev.key.idx].kind->path, path) == 0))
		ev.key.idx++;
	assert_true(ev.key.idx < KEEPER_MAX_ASKS);
	ask_on_timeout(&rig_k, &ev);
}

static struct keeper_done must_get_done(void)
{
	struct keeper_done done;

	do {
		if (!rig_run_until(rig_sbxd, 4000))
			fail_msg("there is no answer");
		ipc_msg_done(&rig_msg);
		assert_int_equal(ipc_recv(rig_sbxd, &rig_msg), 1);
	} while (rig_msg.type != KEEPER_DONE);
	assert_int_equal(keeper_get_done(&rig_msg, &done), 0);
	return done;
}

static int begin_suspend(void)
{
	struct err err = {0};

	if (suspend_begin(&rig_k, SUSPEND_BY_REQUEST, 0, 5, &err) < 0)
		fail_msg("%s", err.text);
	return take_question();
}
/* ---- a snapshot in the sandbox's directory ---- */

static void put_memory(void)
{
	AUTO_FREE char *dir = at("suspend"), *json = at("suspend/image.json");

	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(file_save(json, slice_from_str("{}"), NULL), 0);
	rig_k.state.phase = KEEPER_STARTING;
	rig_k.plan = START_RESUME;
}

static void must_be_kept(void)
{
	assert_true(is_there("suspend/image.json"));
	assert_false(is_there("suspend.bad"));
	assert_int_equal(rig_k.state.phase, KEEPER_STOPPING);
	assert_non_null(strstr(rig_k.why, "the snapshot is kept"));
	assert_non_null(strstr(rig_k.why, "sbx start --cold demo"));
}

/* ---- the disk ---- */

/* Regression: the VM was killed after the start timeout, and booted. */
static void a_machine_that_starts_waits_for_space(void **state)
{
	rig_k.state.phase = KEEPER_STARTING;
	say(FULL);
	assert_true(rig_k.state.paused);
	assert_int_not_equal(rig_k.space->timer.pos, 0);
	start_on_timeout(&rig_k);
	assert_non_null(rig_k.vmm);
	assert_int_equal(rig_k.state.phase, KEEPER_STARTING);
	assert_int_not_equal(rig_k.boot_timer.pos, 0);
	must_be_silent();
	space_on_timer(&rig_k);
	must_command("cont");
	assert_false(rig_k.state.paused);
	/* From here on its timeout runs again. */
	assert_true(rig_k.boot_timer.at_ms > clock_mono_ms() + 1000);
}

static void one_that_comes_to_run_in_that_moment_is_continued(void **state)
{
	rig_k.state.phase = KEEPER_STARTING;
	say(FULL);
	start_on_trusted(&rig_k);
	assert_int_equal(rig_k.state.phase, KEEPER_RUNNING);
	assert_true(rig_k.state.paused);
	space_on_timer(&rig_k);
	must_command("cont");
}

/* The programs are stopped and the guest writes: it can be woken only after it has parked. */
static void a_guest_that_parks_continues_and_is_woken(void **state)
{
	int park = begin_suspend();
	struct keeper_done done;

	say(FULL);
	done = must_get_done();
	assert_int_equal(done.code, -ENOSPC);
	assert_non_null(strstr(done.text, "not suspended: disk full"));
	time_out(GUEST_PATH_PARK);
	assert_int_equal(rig_k.suspend->step, SUSPEND_PARKING);
	space_on_timer(&rig_k);
	must_command("cont");
	assert_false(rig_k.state.paused);
	reply_to(park, true, "");
	reply_to(take_question(), true, ""); /* /wake */
	RIG_UNTIL(!rig_k.suspend->is_waking);
	assert_int_equal(rig_k.suspend->step, SUSPEND_NONE);
}

static void a_disk_that_is_full_when_the_memory_is_to_be_taken(void **state)
{
	int park = begin_suspend();

	reply_to(park, true, "");
	RIG_UNTIL(rig_k.suspend->step == SUSPEND_LINGERING);
	say(FULL);
	assert_int_equal(must_get_done().code, -ENOSPC);
	suspend_on_timer(&rig_k);
	assert_int_equal(rig_k.suspend->step, SUSPEND_NONE);
	assert_int_equal(rig_k.state.phase, KEEPER_STARTING);
	assert_true(rig_k.edge->worker.alive);
	reply_to(take_question(), true, ""); /* /wake waits until the VM continues */
	RIG_UNTIL(!rig_k.suspend->is_waking);
}

/* Regression: reported as "was not suspended", but stopped, if the guest took too long. */
static void a_guest_that_parks_too_long_is_woken_later(void **state)
{
	int park = begin_suspend();

	time_out(GUEST_PATH_PARK);
	assert_int_equal(must_get_done().code, -EIO);
	reply_to(take_question(), false, "the guest is being parked or woken already");
	RIG_UNTIL(rig_k.suspend->timer.pos != 0);
	assert_int_equal(rig_k.state.phase, KEEPER_STARTING);
	suspend_on_timer(&rig_k);
	reply_to(take_question(), true, "");
	RIG_UNTIL(!rig_k.suspend->is_waking);
	(void)close(park);
}

static uint64_t linger_of(uint64_t parked_ms)
{
	struct vmm_event ev = {.kind = VMM_EV_SHARE_DETACHED};

	rig_k.state.phase = KEEPER_STOPPING;
	rig_k.suspend->step = SUSPEND_DETACHING;
	rig_k.suspend->parked_ms = parked_ms;
	assert_true(suspend_on_vmm(&rig_k, &ev));
	assert_int_equal(rig_k.suspend->step, SUSPEND_LINGERING);
	return rig_k.suspend->timer.at_ms;
}

/* The time that the share takes is part of it. */
static void the_wait_for_clients_begins_when_the_guest_has_parked(void **state)
{
	uint64_t now = clock_mono_ms();

	assert_int_equal(linger_of(now), now + KEEPER_PARK_LINGER_MS);
	assert_int_equal(linger_of(now - 10000), now - 10000 + KEEPER_PARK_LINGER_MS);
	loop_timer_clear(&rig_k.loop, &rig_k.suspend->timer);
	rig_k.suspend->step = SUSPEND_NONE;
	rig_k.state.phase = KEEPER_RUNNING;
}

/* Regression R10B4: a running VM counted as paused. */
static void a_machine_whose_memory_found_no_room_is_not_paused_any_more(void **state)
{
	rig_k.state.phase = KEEPER_STOPPING;
	rig_k.suspend->step = SUSPEND_SAVING;
	rig_k.suspend->is_paused = true;
	say(FULL);
	assert_true(rig_k.state.paused);
	assert_true(suspend_on_vmm(
		&rig_k, &(struct vmm_event){.kind = VMM_EV_SAVE_FAILED, .text = "no space"}));
	machine_on_qmp(&rig_k);
	must_command("cont");
	assert_false(rig_k.state.paused);
	reply_to(take_question(), true, ""); /* /wake */
	RIG_UNTIL(!rig_k.suspend->is_waking);
}

/* Regression R10B6: the sandbox kept running without a server for its workspaces. */
static void a_share_that_is_lost_while_the_guest_parks_ends_the_sandbox(void **state)
{
	int park = begin_suspend();

	rig_k.has_share = true;
	suspend_on_share_end(&rig_k);
	reply_to(park, false, "a program cannot be frozen");
	RIG_UNTIL(rig_k.why[0]);
	assert_non_null(strstr(rig_k.why, "virtiofsd exited"));
	rig_k.has_share = false;
}

static void room_is_counted_above_the_reserve(void **state)
{
	struct err err = {0};

	rig_k.disk_reserve = 0;
	assert_int_equal(space_check(&rig_k, 0, &err), 0);
	assert_int_equal(space_check(&rig_k, 1ull << 60, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "not enough disk space"));
}

int __wrap_statfs64(const char *path, struct statfs *st);
int __real_statfs64(const char *path, struct statfs *st);
static bool is_disk_full;

int __wrap_statfs64(const char *path, struct statfs *st)
{
	int r = __real_statfs64(path, st);

	if (is_disk_full)
		st->f_bavail = 0;
	return r;
}

static bool has_quota;
long __real_syscall(long nr, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long nr, long a, long b, long c, long d, long e, long f);

/* Of the user only, with a limit of 1 GiB. */
long __wrap_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	if (nr != SYS_quotactl_fd || !has_quota)
		return __real_syscall(nr, a, b, c, d, e, f);
	if ((b & SUBCMDMASK) != USRQUOTA || c != getuid()) {
		errno = ESRCH;
		return -1;
	}
	((struct dqblk *)d)->dqb_bhardlimit = 1 << 20;
	return 0;
}

static void check_pause(enum start_plan plan, enum warm_step step, bool is_paused)
{
	rig_k.plan = plan;
	rig_k.warm->step = step;
	rig_k.state.phase = KEEPER_STARTING;
	rig_k.memory_dir = rig_k.dir;
	space_start(&rig_k);
	is_disk_full = true;
	space_on_timer(&rig_k);
	is_disk_full = false;
	if (!is_paused) {
		must_be_silent();
		return;
	}
	must_command("stop");
	assert_true(rig_k.state.paused);
	space_on_timer(&rig_k);
	must_command("cont");
	assert_false(rig_k.state.paused);
}

/* A page without space on the disk kills qemu: of a VM that boots, or that a snapshot has just
 * become. One of the pool has no guest. */
static void every_guest_whose_memory_is_a_file_is_paused(void **state)
{
	check_pause(START_COLD, WARM_WAITING, true);
	check_pause(START_WARM, WARM_WAITING, false);
	check_pause(START_WARM, WARM_RESTORING, false);
	check_pause(START_WARM, WARM_RUNNING, true);
	check_pause(START_POOL, WARM_WAITING, false);
	rig_k.memory_dir = NULL;
	rig_k.plan = START_COLD;
}

/* overlayfs before Linux 6.3 has no files without a name: the start must not fail. */
static void memory_is_a_memfd_where_no_file_is_possible(void **state)
{
	rig_k.plan = START_COLD;
	rig_k.spec.memory = 1 << 20;
	space_place_memory(&rig_k); /* the default is a file */
	assert_ptr_equal(rig_k.memory_dir, rig_k.dir);
	is_disk_full = true;
	space_place_memory(&rig_k);
	is_disk_full = false;
	assert_null(rig_k.memory_dir);
	has_quota = true;
	space_place_memory(&rig_k);
	has_quota = false;
	assert_null(rig_k.memory_dir);
	assert_int_equal(chmod(rig_k.dir, 0500), 0);
	space_place_memory(&rig_k);
	assert_int_equal(chmod(rig_k.dir, 0700), 0);
	assert_null(rig_k.memory_dir);
	assert_int_equal(settings_change(SETTINGS_VM_MEMORY_BACKING, "memfd", NULL), 0);
	space_place_memory(&rig_k);
	assert_null(rig_k.memory_dir);
	assert_int_equal(settings_change(SETTINGS_VM_MEMORY_BACKING, NULL, NULL), 0);
}

/* ---- restoring the snapshot ---- */

/* The kernel may kill the reader for lack of memory, because it fills the guest's memory. */
static void a_memory_whose_reader_was_killed_is_kept(void **state)
{
	struct jail_child c = rig_false_child();

	put_memory();
	rig_k.suspend->check.pid = c.pid;
	rig_k.suspend->check.pidfd = c.pidfd;
	assert_int_equal(kill(c.pid, SIGKILL), 0);
	resume_on_checked(&rig_k);
	must_be_kept();
}

static void a_memory_whose_qemu_was_killed_is_kept(void **state)
{
	put_memory();
	machine_on_qemu_end(&rig_k);
	must_be_kept();
}

static void a_memory_that_takes_too_long_is_kept(void **state)
{
	put_memory();
	start_on_timeout(&rig_k);
	must_be_kept();
}

/* sbx-edge does not run here. */
static void a_memory_is_kept_until_all_is_there_that_it_needs(void **state)
{
	put_memory();
	edge_kill(&rig_k);
	assert_true(resume_on_vmm(&rig_k, &(struct vmm_event){.kind = VMM_EV_RESTORED}));
	must_be_silent();
	must_be_kept();
}

/* The process is a child that only sleeps. */
static int spawn_nothing(
	struct keeper *k, struct worker *w, int sock, struct jail_child *ret, struct err *err)
{
	*ret = rig_false_child();
	return 0;
}

/* qemu has read the memory and gets `cont`. */
static void restore(void)
{
	static struct worker_ops ops;

	put_memory();
	edge_kill(&rig_k);
	ops = *rig_k.edge->worker.ops;
	ops.spawn = spawn_nothing;
	rig_k.edge->worker.ops = &ops;
	assert_true(resume_on_vmm(&rig_k, &(struct vmm_event){.kind = VMM_EV_RESTORED}));
	assert_false(is_there("suspend"));
}

/* Regression R10B5: the snapshot was deleted when `cont` was sent. */
static void a_memory_is_deleted_when_the_machine_runs(void **state)
{
	restore();
	assert_true(is_there("suspend.used/image.json"));
	must_command("cont");
	assert_true(is_there("suspend.used/image.json"));
	say("{\"event\":\"RESUME\"}\n");
	assert_false(is_there("suspend.used"));
	assert_int_equal(rig_k.state.phase, KEEPER_STARTING);
	/* a later error of QEMU does not undo the resume */
	assert_false(resume_on_vmm(&rig_k, &(struct vmm_event){.kind = VMM_EV_REFUSED}));
}

static void a_memory_whose_machine_is_not_continued_is_kept(void **state)
{
	restore();
	assert_true(
		resume_on_vmm(&rig_k, &(struct vmm_event){.kind = VMM_EV_REFUSED, .text = "no"}));
	must_be_kept();
	assert_false(is_there("suspend.used"));
}

static void a_memory_whose_machine_never_ran_is_kept(void **state)
{
	restore();
	machine_on_qemu_end(&rig_k);
	must_be_kept();
}

/* Regression R10B2: reading the snapshot used up the timeout of the programs. */
static void programs_that_are_restored_have_their_own_time(void **state)
{
	loop_timer_set(&rig_k.loop, &rig_k.boot_timer, clock_mono_ms() + 1,
		(struct loop_key){.kind = EV_TIMER_BOOT});
	restore();
	assert_true(rig_k.boot_timer.at_ms >= clock_mono_ms() + KEEPER_WAKE_MS - 1000);
}

/* Regression R10B3: the next VM waited for a share that it had from its start on. */
static void a_machine_that_boots_instead_is_not_woken(void **state)
{
	rig_k.state.phase = KEEPER_STARTING;
	rig_k.state.how = KEEPER_HOW_RESUMED;
	rig_k.suspend->is_waking = rig_k.suspend->is_share_due = true;
	start_on_timeout(&rig_k);
	assert_false(rig_k.suspend->is_waking || rig_k.suspend->is_share_due);
	assert_int_equal(rig_k.state.how, KEEPER_HOW_COLD);
	assert_non_null(strstr(rig_k.state.cold_why, "the restored programs did not respond"));
}

/* Regression: the reason named a restore, but nothing was restored. */
static void programs_that_an_undone_suspension_lost_are_named_so(void **state)
{
	rig_k.state.phase = KEEPER_STARTING;
	rig_k.suspend->is_waking = rig_k.suspend->is_undone = true;
	start_on_timeout(&rig_k);
	assert_int_equal(rig_k.state.how, KEEPER_HOW_COLD);
	assert_non_null(strstr(rig_k.state.cold_why, "after a failed suspension"));
	assert_null(strstr(rig_k.state.cold_why, "restored"));
}

/* Regression R10B7: the log was opened after it. */
static void a_memory_that_is_refused_is_in_the_audit_log(void **state)
{
	AUTO_FREE char *find = xasprintf("grep -rqF resume-refused %s/sbx/audit", rig_dir);

	put_memory();
	record_close(&rig_k);
	assert_true(resume_on_vmm(&rig_k, &(struct vmm_event){.kind = VMM_EV_RESTORE_FAILED}));
	assert_true(is_there("suspend.bad"));
	assert_int_equal(system(find), 0);
}

/* As during an upgrade: one of its files is missing for a moment. */
static void a_start_without_qemu_keeps_the_memory(void **state)
{
	struct err err = {0};

	put_memory();
	rig_k.initrd = at("initrd-that-is-not-there");
	assert_true(resume_begin(&rig_k, &err) < 0);
	assert_non_null(strstr(err.text, "the snapshot is kept"));
	assert_true(is_there("suspend/image.json"));
	free(TAKE(rig_k.initrd));
}
int main(void)
{
	const struct CMUnitTest tests[] = {
		QEMU_TEST(a_machine_that_starts_waits_for_space),
		QEMU_TEST(one_that_comes_to_run_in_that_moment_is_continued),
		QEMU_TEST(a_guest_that_parks_continues_and_is_woken),
		QEMU_TEST(a_disk_that_is_full_when_the_memory_is_to_be_taken),
		QEMU_TEST(a_guest_that_parks_too_long_is_woken_later),
		QEMU_TEST(the_wait_for_clients_begins_when_the_guest_has_parked),
		QEMU_TEST(a_machine_whose_memory_found_no_room_is_not_paused_any_more),
		QEMU_TEST(a_share_that_is_lost_while_the_guest_parks_ends_the_sandbox),
		QEMU_TEST(room_is_counted_above_the_reserve),
		QEMU_TEST(a_memory_whose_reader_was_killed_is_kept),
		QEMU_TEST(a_memory_whose_qemu_was_killed_is_kept),
		QEMU_TEST(a_memory_that_takes_too_long_is_kept),
		QEMU_TEST(a_memory_is_kept_until_all_is_there_that_it_needs),
		QEMU_TEST(a_memory_is_deleted_when_the_machine_runs),
		QEMU_TEST(a_memory_whose_machine_is_not_continued_is_kept),
		QEMU_TEST(a_memory_whose_machine_never_ran_is_kept),
		QEMU_TEST(programs_that_are_restored_have_their_own_time),
		QEMU_TEST(a_machine_that_boots_instead_is_not_woken),
		QEMU_TEST(programs_that_an_undone_suspension_lost_are_named_so),
		QEMU_TEST(a_memory_that_is_refused_is_in_the_audit_log),
		QEMU_TEST(every_guest_whose_memory_is_a_file_is_paused),
		QEMU_TEST(memory_is_a_memfd_where_no_file_is_possible),
		QEMU_TEST(a_start_without_qemu_keeps_the_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
