/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A keeper whose VM waits in the pool: permitted messages, its claim, its exit. Uses a fake
 * sbxd and a snapshot without a VM.
 */
#include "net_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/os/jail/unsealed.h"
#include "lib/rules/gate/test/gate_free.h"
#include "lib/secret/service/own.h"

#define TEMPLATE "0123456789abcdef"

#define PAGE 4096

static struct life_ops life;
static unsigned n_helped;

static int count_helped(struct keeper *k, struct err *err)
{
	n_helped++;
	return 0;
}

static void make_spec(struct spec *s, const char *name)
{
	(void)!str_copy(s->id, sizeof(s->id), RIG_ID);
	(void)!str_copy(s->name, sizeof(s->name), name);
	(void)!str_copy(s->template_id, sizeof(s->template_id), TEMPLATE);
	spec_set_defaults(s, 2, 1ull << 30);
	s->generation = 1;
}

static void save_spec(const struct spec *s)
{
	AUTO_FREE char *dir = spec_dir(RIG_ID), *path = spec_path(RIG_ID);
	struct err err = {0};

	assert_int_equal(paths_make(dir, NULL), 0);
	assert_int_equal(spec_save(s, path, &err), 0);
}

static char *own_file(const char *name)
{
	return xasprintf("%s/%s", rig_k.dir, name);
}

static int wait_up(void **state)
{
	AUTO_FREE char *root = NULL;
	int r = rig_up(state);

	/* As main.c starts it with --pool. */
	record_close(&rig_k);
	gate_free(rig_k.gate);
	rig_k.gate = NULL;
	rig_close_tables();
	make_spec(&rig_k.spec, "pool-" RIG_ID);
	rig_k.plan = START_POOL;
	rig_k.state.phase = KEEPER_STARTING;
	n_helped = 0;
	life = *rig_k.life;
	life.helpers = count_helped;
	rig_k.life = &life;
	edge_kill(&rig_k);
	root = own_file("root.qcow2");
	assert_int_equal(file_save(root, slice_from_str("x"), NULL), 0);
	return r;
}

static int wait_down(void **state)
{
	spec_done(&rig_k.spec);
	fd_close(&rig_k.port_path[HANDS_NET]);
	loop_timer_clear(&rig_k.loop, &rig_k.boot_timer);
	return rig_down(state);
}

#define WAIT_TEST(f) cmocka_unit_test_setup_teardown(f, wait_up, wait_down)

static void be_ready(void)
{
	pool_on_ready(&rig_k);
	rig_must_get(rig_sbxd, KEEPER_STATE);
}

/* A snapshot with one page, of which the keeper has opened the files. Returns the memory. */
static int open_snapshot(void)
{
	struct image_file *files = rig_k.warm->image.files;
	AUTO_CLOSE int memory = vmm_memory_new(1 << 20, NULL, NULL);
	AUTO_FREE char *dir = own_file("snapshot");
	struct image_save save;
	int fd;

	assert_int_equal(pwrite(memory, "guest", 5, 8 * PAGE), 5);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(image_save_begin(dir, memory, false, &save, &fd, NULL), 0);
	assert_int_equal(fd_write_all(fd, "devices", 7), 0);
	fd_close(&fd);
	assert_int_equal(poll(&(struct pollfd){.fd = save.pidfd, .events = POLLIN}, 1, 60000), 1);
	assert_int_equal(image_save_end(&save, files, NULL), 0);
	assert_int_equal(
		image_check_open(dir, IMAGE_FORMAT, files, NULL, &rig_k.warm->check, NULL), 0);
	return dup(rig_k.warm->check.memory_fd);
}

static uint64_t memory_bytes(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static int claim(void)
{
	struct keeper_done done;

	assert_int_equal(chan_send_plain(rig_sbxd, KEEPER_CLAIM, 7, -1), 0);
	rig_must_get(rig_sbxd, KEEPER_DONE);
	assert_int_equal(rig_msg.id, 7);
	assert_int_equal(keeper_get_done(&rig_msg, &done), 0);
	return done.code;
}

static void not_before_it_is_ready(void **state)
{
	assert_int_equal(claim(), -EAGAIN);
	assert_int_equal(rig_k.plan, START_POOL);
}

static void ready_is_a_state(void **state)
{
	struct keeper_state s;

	be_ready();
	assert_int_equal(keeper_get_state(&rig_msg, &s), 0);
	assert_int_equal(s.phase, KEEPER_STARTING);
	assert_int_equal(s.how, KEEPER_HOW_POOL);
}

static void not_for_another_machine(void **state)
{
	AUTO_SPEC struct spec s = {0};

	be_ready();
	make_spec(&s, "demo");
	s.cpus = 3;
	save_spec(&s);
	assert_int_equal(claim(), -ESTALE);
	make_spec(&s, "demo");
	s.cpus = 2;
	s.template_id[0] = 'f';
	save_spec(&s);
	assert_int_equal(claim(), -ESTALE);
	assert_int_equal(rig_k.plan, START_POOL);
	assert_string_equal(rig_k.spec.name, "pool-" RIG_ID);
}

/* Network and memory arrive with the claim, once; from then on it is a warm start. */
static void becomes_the_sandbox(void **state)
{
	AUTO_SPEC struct spec s = {0};
	AUTO_FREE char *root = own_file("root.qcow2");
	AUTO_CLOSE int memory = open_snapshot();

	be_ready();
	assert_int_equal(memory_bytes(memory), 0);
	assert_null(rig_k.gate);
	make_spec(&s, "demo");
	save_spec(&s);
	assert_int_equal(claim(), 0);
	assert_int_equal(rig_k.plan, START_WARM);
	assert_int_equal(rig_k.state.how, KEEPER_HOW_POOL);
	assert_string_equal(rig_k.spec.name, "demo");
	assert_non_null(rig_k.gate);
	RIG_UNTIL(rig_k.warm->is_checked || rig_k.warm->failed[0]);
	assert_string_equal(rig_k.warm->failed, "");
	assert_int_equal(n_helped, 1);
	assert_int_equal(memory_bytes(memory), PAGE);
	assert_int_equal(access(root, F_OK), 0);
	while (rig_run_until(rig_sbxd, 50))
		assert_int_equal(ipc_recv(rig_sbxd, &rig_msg), 1);
	assert_int_equal(claim(), -EAGAIN);
	assert_int_equal(n_helped, 1);
}

/* A failed claim becomes a boot, with the reason. */
static void what_fails_then_is_a_boot(void **state)
{
	struct template_chain none = {.files = {(char *)"/none"}, .n = 1};
	AUTO_SPEC struct spec s = {0};
	AUTO_CLOSE int memory = open_snapshot();

	assert_true(memory >= 0);
	for (size_t i = 0; i < TEMPLATE_N_DISKS; i++)
		rig_k.disks->template.disks[i] = none;
	rig_k.warm->image.files[IMAGE_MEMORY].hash[0] ^= 1;
	be_ready();
	make_spec(&s, "demo");
	save_spec(&s);
	assert_int_equal(claim(), 0);
	RIG_UNTIL(rig_k.state.how == KEEPER_HOW_COLD);
	assert_int_equal(rig_k.plan, START_COLD);
	assert_non_null(strstr(rig_k.state.cold_why, "changed"));
	assert_false(rig_k.warm->is_checked);
	RIG_UNTIL(rig_k.over); /* there is no disk to boot from */
	rig_k.disks->template = (struct template){0};
}

/* The memory was empty while the VM waited: the room for it may be gone. */
static void a_claim_without_room_for_the_memory_is_refused(void **state)
{
	AUTO_SPEC struct spec s = {0};

	be_ready();
	make_spec(&s, "demo");
	save_spec(&s);
	rig_k.memory_dir = rig_k.dir;
	rig_k.spec.memory = 1ull << 60;
	assert_int_equal(claim(), -ENOSPC);
	assert_int_equal(rig_k.plan, START_POOL);
}

static void must_have_ended(void)
{
	AUTO_FREE char *root = own_file("root.qcow2");

	assert_true(rig_k.over);
	assert_int_equal(rig_k.state.phase, KEEPER_STOPPED);
	assert_true(access(root, F_OK) < 0);
}

static void ends_with_its_sbxd(void **state)
{
	be_ready();
	fd_close(&rig_sbxd);
	RIG_UNTIL(rig_k.over);
	must_have_ended();
}

static void knows_no_other_message(void **state)
{
	be_ready();
	assert_int_equal(keeper_ask_reload(rig_sbxd, 3, "demo"), 0);
	RIG_UNTIL(rig_k.over);
	must_have_ended();
}

static void stops_when_it_is_told(void **state)
{
	be_ready();
	assert_int_equal(keeper_ask_stop(rig_sbxd, 3, 0), 0);
	RIG_UNTIL(rig_k.over);
	must_have_ended();
}

/* Regression Z5: each start failed. */
static void a_configuration_that_cannot_be_made_is_an_empty_one(void **state)
{
	AUTO_FREE char *own = own_file("new");

	save_spec(&rig_k.spec);
	assert_int_equal(setenv("XDG_CONFIG_HOME", "/proc/none", 1), 0);
	assert_int_equal(rig_sealed_open(true, own, O_WRONLY | O_CREAT), 0);
}

/* The spawner and the next keeper of the sandbox trust the spec. */
static void cannot_write_its_own_spec(void **state)
{
	AUTO_FREE char *path = spec_path(RIG_ID), *dir = spec_dir(RIG_ID);
	AUTO_FREE char *other = xasprintf("%s/" OWN_FILE, dir), *own = own_file("new");

	save_spec(&rig_k.spec);
	assert_int_equal(rig_sealed_open(true, path, O_RDONLY), 0);
	assert_int_equal(rig_sealed_open(true, path, O_WRONLY), JAIL_SEALS ? EACCES : 0);
	assert_int_equal(rig_sealed_open(true, other, O_WRONLY | O_CREAT), JAIL_SEALS ? EACCES : 0);
	assert_int_equal(rig_sealed_open(true, own, O_WRONLY | O_CREAT), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WAIT_TEST(not_before_it_is_ready),
		WAIT_TEST(ready_is_a_state),
		WAIT_TEST(not_for_another_machine),
		WAIT_TEST(becomes_the_sandbox),
		WAIT_TEST(what_fails_then_is_a_boot),
		WAIT_TEST(a_claim_without_room_for_the_memory_is_refused),
		WAIT_TEST(ends_with_its_sbxd),
		WAIT_TEST(knows_no_other_message),
		WAIT_TEST(stops_when_it_is_told),
		WAIT_TEST(a_configuration_that_cannot_be_made_is_an_empty_one),
		WAIT_TEST(cannot_write_its_own_spec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
