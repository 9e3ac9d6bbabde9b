/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disks of a running sandbox become layers: names, records and refusals. Uses a fake qemu, edge
 * and sbxd.
 */
#include "qemu_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

static void put_disks(void)
{
	struct disks *d = rig_k.disks;
	AUTO_FREE char *base = at("base.img");
	AUTO_CLOSE int fd = open(base, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct err err = {0};

	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	for (size_t i = 0; i < TEMPLATE_N_DISKS; i++) {
		d->template.disks[i] = (struct template_chain){.files = {xstrdup(base)}, .n = 1};
		d->size[i] = 1 << 20;
	}
	if (disks_open(d, rig_k.dir, &err) < 0)
		fail_msg("%s", err.text);
}

static void free_disks(void)
{
	struct disks *d = rig_k.disks;

	for (size_t i = 0; i < TEMPLATE_N_DISKS; i++) {
		while (d->n_own[i] > 0)
			free(d->own[i][--d->n_own[i]]);
	}
	template_done(&d->template);
}

static ino_t inode_of(const char *name)
{
	AUTO_FREE char *path = at(name);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

/* The guest parks, and is woken later. */
static void freeze_as(const char *label)
{
	freeze_begin(&rig_k, 0, 5, label, false);
	assert_int_equal(rig_k.freeze->state, FREEZE_PARKING);
	reply_to(take_question(), true, "");
	RIG_UNTIL(rig_k.freeze->state != FREEZE_PARKING);
}

static void freeze(void)
{
	freeze_as("");
}

static void wake_up(void)
{
	assert_int_equal(rig_k.freeze->state, FREEZE_WAKING);
	reply_to(take_question(), true, "");
	RIG_UNTIL(rig_k.freeze->state == FREEZE_IDLE);
	assert_true(rig_k.freeze->code < 0);
	assert_false(is_there("root.next.qcow2"));
}

/* Regression ZM5 b: QEMU wrote to a file that was deleted because it could not be renamed. */
static void a_disk_that_cannot_get_its_name_is_not_written_to(void **state)
{
	AUTO_FREE char *in_the_way = at("root.1.qcow2");
	ino_t top;

	put_disks();
	top = inode_of("root.qcow2");
	assert_int_equal(mkdir(in_the_way, 0700), 0);
	freeze();
	must_be_silent();
	wake_up();
	assert_int_equal(inode_of("root.qcow2"), top);
	free_disks();
}

static void what_qemu_writes_to_has_a_name_when_it_refuses(void **state)
{
	ino_t top;

	put_disks();
	top = inode_of("root.qcow2");
	freeze();
	freeze_on_snapshot(&rig_k, false, "no");
	wake_up();
	assert_int_equal(inode_of("root.1.qcow2"), top); /* below an empty layer */
	assert_int_not_equal(inode_of("root.qcow2"), top);
	free_disks();
}

static void qemu_switches(void)
{
	must_command("add-fd");
	must_command("add-fd");
	must_command("blockdev-add");
	must_command("blockdev-snapshot");
}

/* What the guest does after it has a later record. */
static void the_record_of_a_checkpoint_is_written_while_the_guest_waits(void **state)
{
	AUTO_FREE char *find = xasprintf(
		"grep -rqF '\"action\":\"checkpoint\",\"op\":\"c1\",\"reason\":\"layers root.1, "
		"docker.1\"' %s/sbx/audit",
		rig_dir);

	put_disks();
	freeze_as("c1");
	qemu_switches();
	assert_int_not_equal(system(find), 0);
	assert_int_equal(rig_k.freeze->disk, TEMPLATE_DOCKER);
	qemu_switches();
	assert_int_equal(rig_k.freeze->state, FREEZE_WAKING);
	assert_int_equal(system(find), 0);
	assert_true(rig_k.freeze->seq > 0);
	reply_to(take_question(), true, "");
	RIG_UNTIL(rig_k.freeze->state == FREEZE_IDLE);
	assert_int_equal(rig_k.freeze->code, 0);
	free_disks();
}

/* sbxd finds the client that waits for a checkpoint by its label. */
static void a_second_freeze_is_refused_with_its_label(void **state)
{
	struct keeper_frozen frozen;

	put_disks();
	freeze_begin(&rig_k, 0, 5, "c1", false);
	freeze_begin(&rig_k, 0, 6, "c2", false);
	do {
		ipc_msg_done(&rig_msg);
		assert_int_equal(ipc_recv(rig_sbxd, &rig_msg), 1);
	} while (rig_msg.type != KEEPER_FROZEN);
	assert_int_equal(keeper_get_frozen(&rig_msg, &frozen), 0);
	assert_int_equal(rig_msg.id, 6);
	assert_int_equal(frozen.code, -EBUSY);
	assert_string_equal(frozen.label, "c2");
	reply_to(take_question(), false, "no");
	RIG_UNTIL(rig_k.freeze->state == FREEZE_WAKING);
	wake_up();
	free_disks();
}

static void must_get_frozen(struct keeper_frozen *ret)
{
	do {
		ipc_msg_done(&rig_msg);
		if (!rig_run_until(rig_sbxd, 4000))
			fail_msg("there is no result");
		assert_int_equal(ipc_recv(rig_sbxd, &rig_msg), 1);
	} while (rig_msg.type != KEEPER_FROZEN);
	assert_int_equal(keeper_get_frozen(&rig_msg, ret), 0);
}

/* A layer that the guest writes to before its memory is saved would not fit the memory. */
static void layers_of_a_checkpoint_with_memory_are_of_a_paused_machine(void **state)
{
	struct keeper_frozen frozen;

	put_disks();
	freeze_begin(&rig_k, 0, 5, "c1", true);
	assert_int_equal(rig_k.suspend->step, SUSPEND_PARKING);
	reply_to(take_question(), true, "");
	RIG_UNTIL(rig_k.suspend->step == SUSPEND_LINGERING);
	assert_false(is_there("root.1.qcow2"));
	suspend_on_timer(&rig_k);
	must_command("stop");
	qemu_switches();
	qemu_switches();
	/* this sandbox has no initrd: its memory cannot be saved */
	must_command("cont");
	must_get_frozen(&frozen);
	assert_true(frozen.code < 0);
	assert_string_equal(frozen.label, "c1");
	assert_non_null(strstr(frozen.text, "was not saved and keeps running"));
	assert_true(is_there("root.qcow2") && is_there("docker.1.qcow2"));
	assert_int_equal(rig_k.freeze->state, FREEZE_IDLE);
	free_disks();
}

static void a_guest_that_does_not_park_has_no_checkpoint(void **state)
{
	struct keeper_frozen frozen;

	put_disks();
	freeze_begin(&rig_k, 0, 5, "c1", true);
	reply_to(take_question(), false, "a program cannot be frozen");
	must_get_frozen(&frozen);
	assert_int_equal(frozen.code, -EIO);
	assert_non_null(strstr(frozen.text, "a program cannot be frozen"));
	reply_to(take_question(), true, ""); /* /wake */
	RIG_UNTIL(!rig_k.suspend->is_waking);
	assert_false(is_there("root.1.qcow2"));
	assert_false(is_there("root.next.qcow2"));
	free_disks();
}

static void a_full_disk_ends_a_checkpoint_with_memory(void **state)
{
	struct keeper_frozen frozen;
	int park;

	put_disks();
	freeze_begin(&rig_k, 0, 5, "c1", true);
	park = take_question();
	suspend_on_full(&rig_k);
	must_get_frozen(&frozen);
	assert_int_equal(frozen.code, -ENOSPC);
	assert_non_null(strstr(frozen.text, "not saved: disk full"));
	reply_to(park, true, "");
	reply_to(take_question(), true, ""); /* /wake */
	RIG_UNTIL(!rig_k.suspend->is_waking);
	assert_int_equal(rig_k.freeze->state, FREEZE_IDLE);
	assert_false(is_there("root.1.qcow2"));
	free_disks();
}

/* Regression: the command reported success, and the sandbox restarted 90 s later. */
static void a_machine_that_cannot_continue_fails_its_checkpoint(void **state)
{
	struct keeper_frozen frozen;

	put_disks();
	freeze_begin(&rig_k, 0, 5, "c1", true);
	reply_to(take_question(), true, "");
	RIG_UNTIL(rig_k.suspend->step == SUSPEND_LINGERING);
	rig_k.suspend->step = SUSPEND_NONE; /* as if it was saved, and cont was sent */
	rig_k.suspend->is_waking = rig_k.suspend->is_undone = true;
	assert_true(suspend_on_vmm(
		&rig_k, &(struct vmm_event){.kind = VMM_EV_REFUSED, .text = "cannot lock root-1"}));
	must_get_frozen(&frozen);
	assert_int_equal(frozen.code, -EIO);
	assert_non_null(strstr(frozen.text, "cannot lock root-1"));
	assert_true(rig_k.boot_timer.at_ms <= clock_mono_ms());
	free_disks();
}

/* Its sequence number would be unknown. */
static void a_checkpoint_without_a_record_fails(void **state)
{
	put_disks();
	record_close(&rig_k);
	freeze_as("c1");
	qemu_switches();
	qemu_switches();
	wake_up();
	assert_non_null(strstr(rig_k.freeze->text, "the audit log is not open"));
	assert_true(is_there("root.qcow2") && is_there("root.1.qcow2"));
	free_disks();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		QEMU_TEST(a_disk_that_cannot_get_its_name_is_not_written_to),
		QEMU_TEST(the_record_of_a_checkpoint_is_written_while_the_guest_waits),
		QEMU_TEST(a_second_freeze_is_refused_with_its_label),
		QEMU_TEST(a_checkpoint_without_a_record_fails),
		QEMU_TEST(layers_of_a_checkpoint_with_memory_are_of_a_paused_machine),
		QEMU_TEST(a_guest_that_does_not_park_has_no_checkpoint),
		QEMU_TEST(a_machine_that_cannot_continue_fails_its_checkpoint),
		QEMU_TEST(a_full_disk_ends_a_checkpoint_with_memory),
		QEMU_TEST(what_qemu_writes_to_has_a_name_when_it_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
