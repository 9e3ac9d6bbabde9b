/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stale events of a replaced VM that waited in the batch do not stop the new VM. Test program; the
 * VMs are processes that only sleep.
 */
#include "net_rig.h"

#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/mem.h"
#include "lib/vm/vmm/vmm_internal.h"

static int their_end = -1; /* of the monitor's socket */

static int machine_up(void **state)
{
	int r = rig_up(state);

	rig_k.state.phase = KEEPER_STARTING;
	rig_k.boot_tries = 2; /* the next failure stops the sandbox */
	return r;
}

static int machine_down(void **state)
{
	start_undo(&rig_k);
	fd_close(&their_end);
	rig_close_tables();
	return rig_down(state);
}

#define MACHINE_TEST(f) cmocka_unit_test_setup_teardown(f, machine_up, machine_down)

static void put_machine(void)
{
	struct vmm *v = xcalloc(1, sizeof(*v));
	int fds[2];

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	qmp_init(&v->qmp);
	v->memory_fd = v->image_fd = v->snap_fd = v->snap_fd_ro = -1;
	v->top_fd[VMM_ROOT] = v->top_fd[VMM_DOCKER] = -1;
	v->fd = fds[0];
	fd_close(&their_end);
	their_end = fds[1];
	v->child = rig_false_child();
	v->deadline_ms = UINT64_MAX;
	rig_k.vmm = v;
	assert_int_equal(machine_watch(&rig_k), 0);
}

/* Kills the VM and returns both of its events, as one batch has them. */
static void kill_machine(struct loop_event ends[2])
{
	siginfo_t info;

	assert_int_equal(kill(vmm_child(rig_k.vmm)->pid, SIGKILL), 0);
	assert_int_equal(
		waitid(P_PID, (id_t)vmm_child(rig_k.vmm)->pid, &info, WEXITED | WNOWAIT), 0);
	fd_close(&their_end);
	for (size_t n = 0; n < 2;) {
		loop_next(&rig_k.loop, &ends[n]);
		if (ends[n].key.kind == EV_QMP || ends[n].key.kind == EV_QEMU_END)
			n++;
	}
	assert_int_not_equal(ends[0].key.kind, ends[1].key.kind);
}

static void replace_machine(void)
{
	loop_del(&rig_k.loop, vmm_poll_fd(rig_k.vmm));
	loop_del(&rig_k.loop, vmm_child(rig_k.vmm)->pidfd);
	vmm_done(rig_k.vmm);
	put_machine();
}

static void an_old_machine_in_the_same_batch_does_not_end_the_new_one(void **state)
{
	struct loop_event ends[2];

	put_machine();
	kill_machine(ends);
	replace_machine();
	keeper_dispatch(&rig_k, &ends[0]);
	keeper_dispatch(&rig_k, &ends[1]);
	assert_int_equal(rig_k.state.phase, KEEPER_STARTING);
	assert_non_null(rig_k.vmm);
	assert_int_equal(kill(vmm_child(rig_k.vmm)->pid, 0), 0);
}

/* Events of the current VM are handled. */
static void the_end_of_the_machine_itself_counts(void **state)
{
	struct loop_event ends[2];

	put_machine();
	replace_machine();
	kill_machine(ends);
	keeper_dispatch(&rig_k, &ends[ends[0].key.kind == EV_QEMU_END ? 0 : 1]);
	assert_null(rig_k.vmm);
	assert_int_equal(rig_k.state.phase, KEEPER_STOPPED);
}

/* A monitor that still has a deadline sets its timer for this VM only. */
static void a_timer_of_an_old_machine_is_dropped(void **state)
{
	struct loop_event ev = {.key = {.kind = EV_TIMER_VMM}};

	put_machine();
	ev.key.gen = rig_k.vmm_gen;
	replace_machine();
	fd_close(&their_end); /* machine_on_qmp would find it dead */
	keeper_dispatch(&rig_k, &ev);
	assert_false(rig_k.vmm->dead);
	ev.key.gen = rig_k.vmm_gen;
	keeper_dispatch(&rig_k, &ev);
	assert_true(rig_k.vmm->dead);
}

static void an_old_share_does_not_stop_the_sandbox(void **state)
{
	struct loop_event ev = {.key = {.kind = EV_SHARE_END, .gen = 1}};

	rig_k.state.phase = KEEPER_RUNNING;
	rig_k.has_share = true;
	rig_k.share.child.pidfd = rig_k.share.hidden.pidfd = rig_k.share.room.fd = -1;
	rig_k.share_gen = 2;
	keeper_dispatch(&rig_k, &ev);
	assert_int_equal(rig_k.state.phase, KEEPER_RUNNING);
	ev.key.gen = 2;
	keeper_dispatch(&rig_k, &ev);
	assert_int_not_equal(rig_k.state.phase, KEEPER_RUNNING);
	rig_k.has_share = false;
}

/* The children that pack and check a snapshot: an old child's exit is not the new one's answer. */
static void the_end_of_an_old_child_is_not_the_new_ones(void **state)
{
	static const uint8_t kinds[] = {EV_IMAGE, EV_SUSPEND_CHECKED, EV_SUSPEND_SAVED};
	struct jail_child c = rig_false_child();

	rig_k.warm->check.pidfd = rig_k.suspend->check.pidfd = rig_k.suspend->save.pidfd = c.pidfd;
	rig_k.warm->check.pid = rig_k.suspend->check.pid = rig_k.suspend->save.pid = c.pid;
	rig_k.image_gen = rig_k.check_gen = rig_k.save_gen = 2;
	rig_k.warm->step = WARM_RESTORING;
	rig_k.plan = START_RESUME;
	rig_k.suspend->step = SUSPEND_SAVING;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) /* waitpid would never return */
		keeper_dispatch(&rig_k, &(struct loop_event){.key = {.kind = kinds[i], .gen = 1}});
	assert_int_equal(kill(c.pid, 0), 0);
	assert_int_equal(rig_k.warm->check.pidfd, c.pidfd);
	assert_int_equal(rig_k.suspend->check.pidfd, c.pidfd);
	assert_int_equal(rig_k.suspend->save.pidfd, c.pidfd);
	rig_k.warm->check.pidfd = rig_k.suspend->check.pidfd = rig_k.suspend->save.pidfd = -1;
	rig_k.plan = START_COLD;
	rig_k.suspend->step = SUSPEND_NONE;
	jail_child_kill(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MACHINE_TEST(an_old_machine_in_the_same_batch_does_not_end_the_new_one),
		MACHINE_TEST(the_end_of_the_machine_itself_counts),
		MACHINE_TEST(a_timer_of_an_old_machine_is_dropped),
		MACHINE_TEST(an_old_share_does_not_stop_the_sandbox),
		MACHINE_TEST(the_end_of_an_old_child_is_not_the_new_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
