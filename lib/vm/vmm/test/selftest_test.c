/* SPDX-License-Identifier: Apache-2.0 */
/* The choice and its memory, with files that are no kernel; vmm_boot_test has the real boot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/vm/vmm/args.h"
#include "lib/vm/vmm/selftest.h"
#include "lib/vm/vmm/verdict.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

static char dir[] = "/tmp/sbx-selftest-XXXXXX";
static char kernel[64], initrd[64], cache[64];

/* A kernel that is none cannot boot, whatever the host: never KVM, never silently TCG. */
static void broken_kernel_is_an_error(void **state)
{
	struct selftest_input in = {.kernel = kernel, .initrd = initrd, .cache_dir = dir};
	enum vmm_accel accel = VMM_TCG;
	struct err err = {};

	assert_int_equal(vmm_accel_decide(SELFTEST_AUTO, &in, &accel, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "--accel tcg"));
	assert_non_null(strstr(err.text, "sbx settings set vm.accel tcg"));
	assert_int_equal(vmm_accel_decide(SELFTEST_WANT_KVM, &in, &accel, &err), -ENOTSUP);
	assert_int_equal(accel, VMM_TCG);
	assert_int_equal(vmm_accel_decide(SELFTEST_WANT_TCG, &in, &accel, &err), 0);
}

/* With a /dev/kvm that opens the decision follows the cached verdict; without one it never is
 * KVM. */
static void check_decision(const struct selftest_input *in, int r_with_device)
{
	bool has_device = access("/dev/kvm", R_OK | W_OK) == 0;
	enum vmm_accel accel = VMM_TCG;
	struct err err = {};
	int expected = has_device ? r_with_device : -ENOTSUP;

	assert_int_equal(vmm_accel_decide(SELFTEST_AUTO, in, &accel, &err), expected);
	assert_int_equal(accel, expected == 0 ? VMM_KVM : VMM_TCG);
}

/* As the self-test stores it. A host without /dev/kvm makes none. */
static void store_verdict(const char *text)
{
	char key[VERDICT_MAX / 2] = "";
	AUTO_CLOSE int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	struct wr w = wr_init(key, sizeof(key) - 1);
	char boot[37] = "";

	assert_int_equal(read(fd, boot, 36), 36);
	wr_bytes(&w, slice_from_str(boot));
	wr_u8(&w, ' ');
	assert_int_equal(verdict_add_file(&w, ARGS_QEMU), 0);
	assert_int_equal(verdict_add_file(&w, kernel), 0);
	assert_int_equal(verdict_add_file(&w, initrd), 0);
	verdict_store(cache, key, text);
}

/* The cached verdict is used, but not for another kernel. */
static void verdict_is_remembered(void **state)
{
	struct selftest_input in = {.kernel = kernel, .initrd = initrd, .cache_dir = dir};
	char change[128];
	struct err err = {};

	snprintf(change, sizeof(change), "echo more >> %s", kernel);
	store_verdict("KVM does not work here");
	assert_int_equal(selftest_cached(&in, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "KVM does not work here"));
	store_verdict("ok");
	assert_int_equal(selftest_cached(&in, &err), 0);
	check_decision(&in, 0);
	assert_int_equal(system(change), 0);
	assert_true(selftest_cached(&in, &err) < 0);
	check_decision(&in, -ENOTSUP);
}

static int make_dir(void **state)
{
	AUTO_FREE char *cmd = NULL;

	if (!mkdtemp(dir))
		return -1;
	snprintf(kernel, sizeof(kernel), "%s/kernel", dir);
	snprintf(initrd, sizeof(initrd), "%s/initrd", dir);
	snprintf(cache, sizeof(cache), "%s/kvm-selftest", dir);
	cmd = xasprintf("echo no kernel > %s; echo none > %s", kernel, initrd);
	return system(cmd);
}

static int remove_dir(void **state)
{
	AUTO_FREE char *cmd = xasprintf("rm -rf %s", dir);

	return system(cmd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(broken_kernel_is_an_error),
		cmocka_unit_test(verdict_is_remembered),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
