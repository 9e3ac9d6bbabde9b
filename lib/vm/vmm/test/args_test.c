/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "lib/vm/vmm/args.h"
#include "lib/base/mem.h"

static struct vmm_config whole(void)
{
	return (struct vmm_config){
		.kernel = "/t/vmlinuz",
		.initrd = "/c/initrd",
		.disks = {[VMM_ROOT] = {{"/t/root.img", "/t/root.1.qcow2", "/s/a,b=c/root.qcow2"},
				  3},
			[VMM_DOCKER] = {{"/t/docker.img", "/s/docker.qcow2"}, 2}},
		.cpus = 2,
		.memory = 1ULL << 30,
		.memory_fd = 24,
		.accel = VMM_TCG,
		.ctl_listen_fd = 20,
		.net_listen_fd = 23,
		.share_fd = 21,
		.log_fd = -1,
	};
}

/* The value after an option (the nth of that name), or NULL. */
static const char *value(const struct args *a, const char *option, int nth)
{
	for (size_t i = 0; i + 1 < a->n; i++) {
		if (strcmp(a->argv[i], option) == 0 && nth-- == 0)
			return a->argv[i + 1];
	}
	return NULL;
}

static bool mentions(const struct args *a, const char *what)
{
	for (size_t i = 0; i < a->n; i++) {
		if (strstr(a->argv[i], what))
			return true;
	}
	return false;
}

static const struct jail_mount *mount_at(const struct args *a, const char *to)
{
	for (size_t i = 0; i < a->n_mounts; i++) {
		if (strcmp(a->mounts[i].to, to) == 0)
			return &a->mounts[i];
	}
	return NULL;
}

static void no_host_path_and_no_way_out(void **state)
{
	static const char *const never[] = {"/t/", "/s/", "/c/", "a,b=c", "-netdev", "-nic", "vnc",
		"-daemonize", "-monitor", "vga", "exec:"};
	struct vmm_config c = whole();
	struct args a;

	assert_int_equal(args_build(&a, &c, 30, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(never); i++)
		assert_false(mentions(&a, never[i]));
	assert_null(a.argv[a.n]);
	assert_string_equal(value(&a, "-sandbox", 0),
		"on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
	assert_true(mentions(&a, "-nodefaults"));
	assert_true(mentions(&a, "-no-user-config"));
	args_done(&a);
}

static void files_are_bound_with_least_rights(void **state)
{
	struct vmm_config c = whole();
	struct args a;

	assert_int_equal(args_build(&a, &c, 30, NULL), 0);
	assert_string_equal(mount_at(&a, "/disk/root.2")->from, "/s/a,b=c/root.qcow2");
	for (size_t i = 0; i < a.n_mounts; i++) {
		const char *to = a.mounts[i].to;
		bool rw = strcmp(to, "/disk/root.2") == 0 || strcmp(to, "/disk/docker.1") == 0 ||
			  strcmp(to, "/dev/null") == 0;

		assert_int_equal((a.mounts[i].flags & JAIL_MOUNT_RW) != 0, rw);
	}
	assert_null(mount_at(&a, "/dev/kvm"));
	args_done(&a);
	c.accel = VMM_KVM;
	assert_int_equal(args_build(&a, &c, 30, NULL), 0);
	assert_non_null(mount_at(&a, "/dev/kvm"));
	assert_string_equal(value(&a, "-cpu", 0), "host,-vmx,-svm,pmu=off");
	args_done(&a);
}

static void descriptors_have_fixed_places(void **state)
{
	struct vmm_config c = whole();
	struct args a;
	int seen[8] = {};

	assert_int_equal(args_build(&a, &c, 30, NULL), 0);
	for (size_t i = 0; i < a.n_fds; i++)
		seen[a.fds[i].to] = a.fds[i].from;
	assert_int_equal(seen[ARGS_FD_QMP], 30);
	assert_int_equal(seen[ARGS_FD_CTL], 20);
	assert_int_equal(seen[ARGS_FD_SHARE], 21);
	assert_int_equal(seen[ARGS_FD_NET], 23);
	assert_int_equal(seen[ARGS_FD_MEMORY], 24);
	assert_string_equal(value(&a, "-object", 0),
		"memory-backend-file,id=ram,share=on,mem-path=/fd/7,size=1024M");
	assert_true(mentions(&a, "nr=2,name=sbx.net"));
	assert_null(value(&a, "-incoming", 0));
	args_done(&a);
	c.share_fd = c.net_listen_fd = -1;
	c.incoming = true;
	assert_int_equal(args_build(&a, &c, 30, NULL), 0);
	assert_int_equal(a.n_fds, 3);
	assert_false(mentions(&a, "vhost-user-fs"));
	assert_false(mentions(&a, "sbx.net"));
	assert_string_equal(value(&a, "-incoming", 0), "defer");
	args_done(&a);
}

/* The name in the jail stays: the key of a snapshot is made of the command line. */
static void a_restored_machine_gets_the_stub_of_its_kernel(void **state)
{
	struct vmm_config c = whole();

	c.share_fd = -1;
	for (int i = 0; i < 4; i++) {
		bool is_stub = i == 3;
		struct args a;

		c.incoming = i & 1;
		c.stub = i & 2 ? "/c/stub" : NULL;
		assert_int_equal(args_build(&a, &c, 30, NULL), 0);
		assert_string_equal(
			mount_at(&a, "/kernel")->from, is_stub ? "/c/stub" : "/t/vmlinuz");
		assert_string_equal(value(&a, "-kernel", 0), "/kernel");
		assert_false(mentions(&a, "stub"));
		args_done(&a);
	}
}

static void threads_of_emulation(void **state)
{
	static const struct {
		enum vmm_accel accel;
		const char *want;
	} rows[] = {
		{VMM_KVM, "kvm"},
		{VMM_TCG, "tcg,thread=single,tb-size=256"},
		{VMM_TCG_PARALLEL, "tcg,thread=multi,tb-size=256"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct vmm_config c = whole();
		struct args a;

		c.accel = rows[i].accel;
		assert_int_equal(args_build(&a, &c, 30, NULL), 0);
		assert_string_equal(value(&a, "-accel", 0), rows[i].want);
		assert_int_equal(
			strncmp(value(&a, "-cpu", 0), "host,", 5) == 0, c.accel == VMM_KVM);
		args_done(&a);
	}
}

/* How deep the chain goes that a -blockdev names, and whether each file of it is the right one. */
static size_t count_layers(const char *json, const char *name)
{
	json_t *top = json_loads(json, 0, NULL), *at = top;
	char want[32];
	size_t n = 0;

	assert_non_null(top);
	for (; at; at = json_object_get(at, "backing"))
		n++;
	at = top;
	for (size_t i = n; i-- > 0; at = json_object_get(at, "backing")) {
		json_t *file = json_object_get(at, "file");
		bool is_top = i == n - 1;

		snprintf(want, sizeof(want), "/disk/%s.%zu", name, i);
		assert_string_equal(json_string_value(json_object_get(file, "filename")), want);
		assert_string_equal(
			json_string_value(json_object_get(at, "driver")), i == 0 ? "raw" : "qcow2");
		assert_int_equal(json_is_true(json_object_get(at, "read-only")), !is_top);
		assert_int_equal(json_is_true(json_object_get(file, "read-only")), !is_top);
	}
	json_decref(top);
	return n;
}

/* A balloon that QEMU never inflates: the guest reports pages that it does not use. */
static void unused_memory_is_returned(void **state)
{
	struct vmm_config c = whole();
	struct args a;

	assert_int_equal(args_build(&a, &c, 30, NULL), 0);
	assert_true(mentions(&a, "free-page-reporting=on"));
	args_done(&a);
}

static void disks_are_chains(void **state)
{
	struct vmm_config c = whole();
	struct args a;

	assert_int_equal(args_build(&a, &c, 30, NULL), 0);
	assert_int_equal(count_layers(value(&a, "-blockdev", 0), "root"), 3);
	assert_int_equal(count_layers(value(&a, "-blockdev", 1), "docker"), 2);
	args_done(&a);
	for (enum vmm_disk_id d = 0; d < VMM_N_DISKS; d++) {
		for (size_t i = 0; i < VMM_MAX_LAYERS; i++)
			c.disks[d].files[i] = "/t/x";
		c.disks[d].n = VMM_MAX_LAYERS;
	}
	assert_int_equal(args_build(&a, &c, 30, NULL), 0);
	assert_int_equal(count_layers(value(&a, "-blockdev", 0), "root"), VMM_MAX_LAYERS);
	assert_int_equal(count_layers(value(&a, "-blockdev", 1), "docker"), VMM_MAX_LAYERS);
	args_done(&a);
}

static void emulated_processor(void **state)
{
	struct vmm_config c = whole();
	struct args a;

	assert_int_equal(args_build(&a, &c, 30, NULL), 0);
	assert_non_null(strstr(value(&a, "-cpu", 0), ",-cx16")); /* kernel 6.12 panicked */
	assert_non_null(
		strstr(value(&a, "-cpu", 0), ",-erms")); /* page faults took three times as long */
	args_done(&a);
}

static void kernel_command_line(void **state)
{
	struct vmm_config c = whole();
	struct args a;
	const char *tcg, *kvm;

	assert_int_equal(args_build(&a, &c, 30, NULL), 0);
	tcg = value(&a, "-append", 0);
	assert_non_null(strstr(tcg, "mitigations=off"));
	assert_non_null(strstr(tcg, "clocksource=acpi_pm")); /* a guest was two hours ahead */
	assert_non_null(strstr(tcg, "norandmaps")); /* /bin/true took 58 ms instead of 14 */
	assert_non_null(strstr(tcg, "panic=-1"));
	args_done(&a);
	c.accel = VMM_KVM;
	c.cmdline_extra = "sbx.name=x";
	assert_int_equal(args_build(&a, &c, 30, NULL), 0);
	kvm = value(&a, "-append", 0);
	assert_null(strstr(kvm, "mitigations"));
	assert_null(strstr(kvm, "clocksource"));
	assert_null(strstr(kvm, "norandmaps"));
	assert_string_equal(strrchr(kvm, ' '), " sbx.name=x");
	args_done(&a);
}

static void refuses_what_cannot_be(void **state)
{
	const struct vmm_config good = whole();
	AUTO_FREE char *longer = xmalloc(VMM_MAX_CMDLINE + 2);
	struct vmm_config bad[12];
	struct err err;

	memset(longer, 'a', VMM_MAX_CMDLINE + 1);
	longer[VMM_MAX_CMDLINE + 1] = 0;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		bad[i] = good;
	bad[0].cpus = 0;
	bad[1].cpus = VMM_MAX_CPUS + 1;
	bad[2].memory = VMM_MIN_MEMORY - (1 << 20);
	bad[3].memory += 1;
	bad[4].disks[VMM_ROOT].n = 1;
	bad[5].disks[VMM_ROOT].n = 0;
	bad[6].cmdline_extra = "a\nb";
	bad[7].cmdline_extra = longer;
	bad[8].kernel = NULL;
	bad[9].ctl_listen_fd = -1;
	bad[10].disks[VMM_DOCKER].n = VMM_MAX_LAYERS + 1;
	bad[11].incoming = true; /* with a share */
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct args a;

		err.text[0] = 0;
		assert_int_equal(args_build(&a, &bad[i], 30, &err), -EINVAL);
		assert_true(err.text[0] != 0);
		args_done(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_host_path_and_no_way_out),
		cmocka_unit_test(files_are_bound_with_least_rights),
		cmocka_unit_test(descriptors_have_fixed_places),
		cmocka_unit_test(a_restored_machine_gets_the_stub_of_its_kernel),
		cmocka_unit_test(threads_of_emulation),
		cmocka_unit_test(unused_memory_is_returned),
		cmocka_unit_test(disks_are_chains),
		cmocka_unit_test(emulated_processor),
		cmocka_unit_test(kernel_command_line),
		cmocka_unit_test(refuses_what_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
