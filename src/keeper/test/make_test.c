/* SPDX-License-Identifier: Apache-2.0 */
/* The maker of snapshots fails if its VM does not boot. Test program. */
#include "net_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/os/jail/unsealed.h"
#include "lib/os/worker/spawner.h"

#define KEY "0123456789abcdef0123456789abcdef"

/* Regression: `sbx template warm` reported an existing snapshot: the maker had exited with 0. */
static void a_machine_that_does_not_boot_is_a_failure(void **state)
{
	rig_k.plan = START_MAKE;
	rig_k.boot_tries = 2;
	rig_k.state.phase = KEEPER_STARTING;
	start_on_timeout(&rig_k);
	assert_true(rig_k.over);
	assert_int_equal(rig_k.warm->exit_code, 1);
}

/* Regression R10B8: nothing let the VM continue, and the store was locked for three minutes. */
static void a_full_disk_is_a_failure(void **state)
{
	rig_k.plan = START_MAKE;
	rig_k.state.phase = KEEPER_STARTING;
	assert_true(warm_on_vmm(&rig_k, &(struct vmm_event){.kind = VMM_EV_DISK_FULL}));
	assert_true(rig_k.over);
	assert_int_equal(rig_k.warm->exit_code, 1);
}

static char *in_store(const char *name)
{
	return paths_get(PATHS_STATE, "warm/%s", name);
}

/* image.json is not signed: its writer chooses the hashes. */
static void the_maker_writes_to_its_draft_only(void **state)
{
	AUTO_FREE char *draft = in_store(".new"), *own = in_store(".new/image.json");
	AUTO_FREE char *image = in_store(KEY), *other = in_store(KEY "/image.json");
	AUTO_FREE char *fresh = in_store("fresh");

	assert_int_equal(paths_make(draft, NULL) | paths_make(image, NULL), 0);
	assert_int_equal(file_save(other, slice_from_str("{}"), NULL), 0);
	rig_k.plan = START_MAKE;
	free(rig_k.dir);
	rig_k.dir = xstrdup(draft);
	assert_int_equal(rig_sealed_open(false, own, O_WRONLY | O_CREAT), 0);
	assert_int_equal(rig_sealed_open(false, other, O_RDONLY), 0);
	assert_int_equal(rig_sealed_open(false, other, O_WRONLY), JAIL_SEALS ? EACCES : 0);
	assert_int_equal(
		rig_sealed_open(false, fresh, O_WRONLY | O_CREAT), JAIL_SEALS ? EACCES : 0);
}

/* Regression R10B1: the sealed maker left an empty directory in its read-only parent. */
static void the_spawner_removes_what_is_left_of_a_draft(void **state)
{
	AUTO_FREE char *draft = in_store(".draft"), *file = in_store(".draft/memory");
	AUTO_FREE char *disk = NULL;
	struct err err = {0};

	assert_int_equal(paths_make(draft, NULL), 0);
	assert_int_equal(file_save(file, slice_from_str("x"), NULL), 0);
	disk = xasprintf("%s/root.qcow2", rig_k.dir);
	assert_int_equal(file_save(disk, slice_from_str("x"), NULL), 0);
	assert_int_equal(hands_start(&rig_k, &err), 0);
	hands_leave(&rig_k); /* of a sandbox: its disks stay */
	spawner_stop();
	assert_int_equal(access(disk, F_OK), 0);
	rig_k.plan = START_MAKE;
	free(rig_k.dir);
	rig_k.dir = xstrdup(draft);
	assert_int_equal(hands_start(&rig_k, &err), 0);
	hands_leave(&rig_k);
	spawner_stop();
	assert_int_equal(access(draft, F_OK), -1);
}

#define KERNEL_HASH "00112233445566778899aabbccddeeff0011"

/* Same size, same time. */
static char *initrd_of(const char *modules, const char *hash)
{
	AUTO_FREE char *kernel = xasprintf("%s/vmlinuz", rig_dir);
	AUTO_FREE char *init = xasprintf("%s/sbx-guest", rig_dir);
	AUTO_FREE char *file = xasprintf("%s/modules.cpio", rig_dir);
	struct template *t = &rig_k.disks->template;
	struct err err = {0};

	if (access(init, F_OK) < 0)
		assert_int_equal(file_save(init, slice_from_str("init"), NULL), 0);
	assert_int_equal(file_save(file, slice_from_str(modules), NULL), 0);
	assert_int_equal(utimensat(AT_FDCWD, file, (struct timespec[2]){0}, 0), 0);
	t->modules = file;
	t->kernel = kernel;
	if (access(kernel, F_OK) < 0)
		assert_int_equal(file_save(kernel, slice_from_str("not a bzImage"), NULL), 0);
	t->manifest = json_pack("{s:{s:{s:s},s:{s:s}}}", "files", "modules.cpio", "hash", hash,
		"vmlinuz", "hash", KERNEL_HASH);
	if (machine_make_initrd(&rig_k, &err) < 0)
		fail_msg("%s", err.text);
	json_decref(t->manifest);
	t->manifest = NULL;
	t->modules = t->kernel = NULL;
	return TAKE(rig_k.initrd);
}

/* Regression ZM5 a: the second one got the initrd of the first, with its modules. */
static void templates_with_other_modules_have_another_initrd(void **state)
{
	AUTO_FREE char *mine = initrd_of("one", "0123456789abcdef0123"),
		       *again = initrd_of("one", "0123456789abcdef0123"),
		       *other = initrd_of("two", "fedcba98765432100123");

	assert_string_equal(mine, again);
	assert_string_not_equal(mine, other);
	assert_int_equal(access(mine, F_OK) | access(other, F_OK), 0);
}

/* A kernel of another format has none; the next template is another one. */
static void the_stub_of_a_kernel_is_made_once(void **state)
{
	AUTO_FREE char *kernel = xasprintf("%s/vmlinuz", rig_dir), *stub = NULL;
	AUTO_FREE uint8_t *bytes = xcalloc(1, 1 << 20);
	struct stat st;

	free(initrd_of("one", "0123456789abcdef0123"));
	assert_null(rig_k.stub);
	memcpy(bytes + 0x202, "HdrS", 4);
	assert_int_equal(file_save(kernel, slice_of(bytes, 1 << 20), NULL), 0);
	free(initrd_of("one", "0123456789abcdef0123"));
	assert_non_null(rig_k.stub);
	assert_non_null(strstr(rig_k.stub, "/initrd/00112233445566778899aabbccddeeff.kernel"));
	assert_int_equal(stat(rig_k.stub, &st), 0);
	assert_in_range(st.st_size, 512, 16 << 10);
	stub = TAKE(rig_k.stub);
	assert_int_equal(unlink(kernel), 0);
	free(initrd_of("one", "0123456789abcdef0123"));
	assert_string_equal(rig_k.stub, stub);
	free(TAKE(rig_k.stub));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_machine_that_does_not_boot_is_a_failure, rig_up, rig_down),
		RIG_TEST(a_full_disk_is_a_failure),
		RIG_TEST(the_maker_writes_to_its_draft_only),
		RIG_TEST(the_spawner_removes_what_is_left_of_a_draft),
		RIG_TEST(templates_with_other_modules_have_another_initrd),
		RIG_TEST(the_stub_of_a_kernel_is_made_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
