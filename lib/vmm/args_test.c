#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include "args.h"
#include "lib/base/mem.h"

static struct vmm_config whole(void)
{
	return (struct vmm_config){
		.kernel = "/t/vmlinuz",
		.initrd = "/c/initrd",
		.root_disk = "/s/a,b=c/root.qcow2",
		.root_base = "/t/root.img",
		.docker_disk = "/s/docker.qcow2",
		.docker_base = "/t/docker.img",
		.cpus = 2,
		.memory = 1ULL << 30,
		.accel = VMM_TCG,
		.ctl_listen_fd = 20,
		.net_listen_fd = 23,
		.share_fd = 21,
		.restore_fd = -1,
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
	assert_string_equal(mount_at(&a, "/disk/root.qcow2")->from, c.root_disk);
	for (size_t i = 0; i < a.n_mounts; i++) {
		const char *to = a.mounts[i].to;
		bool rw = strstr(to, ".qcow2") || strcmp(to, "/dev/null") == 0;

		assert_int_equal((a.mounts[i].flags & JAIL_MOUNT_RW) != 0, rw);
	}
	assert_null(mount_at(&a, "/dev/kvm"));
	args_done(&a);
	c.accel = VMM_KVM;
	assert_int_equal(args_build(&a, &c, 30, NULL), 0);
	assert_non_null(mount_at(&a, "/dev/kvm"));
	assert_string_equal(value(&a, "-cpu", 0), "host");
	args_done(&a);
}

static void descriptors_have_fixed_places(void **state)
{
	struct vmm_config c = whole();
	struct args a;
	int seen[8] = {};

	c.restore_fd = 22;
	assert_int_equal(args_build(&a, &c, 30, NULL), 0);
	for (size_t i = 0; i < a.n_fds; i++)
		seen[a.fds[i].to] = a.fds[i].from;
	assert_int_equal(seen[ARGS_FD_QMP], 30);
	assert_int_equal(seen[ARGS_FD_CTL], 20);
	assert_int_equal(seen[ARGS_FD_SHARE], 21);
	assert_int_equal(seen[ARGS_FD_STATE], 22);
	assert_int_equal(seen[ARGS_FD_NET], 23);
	assert_true(mentions(&a, "nr=2,name=sbx.net"));
	assert_string_equal(value(&a, "-incoming", 0), "defer");
	args_done(&a);
	c.restore_fd = c.share_fd = c.net_listen_fd = -1;
	assert_int_equal(args_build(&a, &c, 30, NULL), 0);
	assert_int_equal(a.n_fds, 2);
	assert_false(mentions(&a, "vhost-user-fs"));
	assert_false(mentions(&a, "sbx.net"));
	assert_null(value(&a, "-incoming", 0));
	args_done(&a);
}

static void kernel_command_line(void **state)
{
	struct vmm_config c = whole();
	AUTO_FREE char *tcg = args_kernel_cmdline(&c);

	assert_non_null(strstr(tcg, "mitigations=off"));
	assert_non_null(strstr(tcg, "panic=-1"));
	c.accel = VMM_KVM;
	c.cmdline_extra = "sbx.name=x";
	{
		AUTO_FREE char *kvm = args_kernel_cmdline(&c);

		assert_null(strstr(kvm, "mitigations"));
		assert_string_equal(strrchr(kvm, ' '), " sbx.name=x");
	}
}

static void refuses_what_cannot_be(void **state)
{
	const struct vmm_config good = whole();
	AUTO_FREE char *longer = xmalloc(VMM_MAX_CMDLINE + 2);
	struct vmm_config bad[10];
	struct err err;

	memset(longer, 'a', VMM_MAX_CMDLINE + 1);
	longer[VMM_MAX_CMDLINE + 1] = 0;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		bad[i] = good;
	bad[0].cpus = 0;
	bad[1].cpus = VMM_MAX_CPUS + 1;
	bad[2].memory = VMM_MIN_MEMORY - (1 << 20);
	bad[3].memory += 1;
	bad[4].root_base = NULL;
	bad[5].root_disk = bad[5].root_base = NULL;
	bad[6].cmdline_extra = "a\nb";
	bad[7].cmdline_extra = longer;
	bad[8].kernel = NULL;
	bad[9].ctl_listen_fd = -1;
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
		cmocka_unit_test(kernel_command_line),
		cmocka_unit_test(refuses_what_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
