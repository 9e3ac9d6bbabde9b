/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/os/jail/cgroup.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

static char dir[64] = "/tmp/sbx-cgroup-test-XXXXXX";
static char self[128], mount[128];
static const struct jail_cgroup_host host = {self, mount};

static void put(const char *name, const char *text)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name);
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void assert_text(const char *name, const char *want)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[128] = {0};

	assert_true(fd >= 0);
	assert_true(fd_read_full(fd, text, sizeof(text) - 1) >= 0);
	assert_string_equal(text, want);
}

static void make(const char *name)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name);

	assert_int_equal(mkdir(path, 0700), 0);
}

static void assert_none(const char *why)
{
	char buf[256];
	struct err err = {0};

	assert_true(jail_cgroup_find(&host, buf, sizeof(buf), &err) < 0);
	assert_non_null(strstr(err.text, why));
}

static void what_is_missing_is_said(void **state)
{
	put("self", "4:memory:/x\n1:cpu:/\n");
	assert_none("not in a cgroup v2");
	put("self", "4:memory:/x\n0::/../up\n");
	assert_none("not in a cgroup v2");
	put("self", "4:memory:/x\n0::/user/unit\n");
	assert_none("is not a cgroup v2 hierarchy");
	put("fs/user/unit/cgroup.controllers", "cpu memory pidsx\n");
	assert_none("no memory and pids");
	put("fs/user/unit/cgroup.controllers", "cpu memory pids\n");
	assert_none("not delegated");
}

static void a_delegated_group_is_found_and_used(void **state)
{
	static const struct jail_cgroup_limits memory_only = {1 << 20, 0}, pids_only = {0, 77};
	struct jail_cgroup group = {0};
	char root[256];
	AUTO_FREE char *pid = xasprintf("%ld", (long)getpid());
	struct err err = {0};

	put("fs/user/unit/cgroup.procs", "");
	put("fs/user/unit/cgroup.subtree_control", "");
	assert_int_equal(jail_cgroup_find(&host, root, sizeof(root), &err), 0);
	assert_true(strlen(root) > 10 && !strcmp(root + strlen(root) - 10, "/user/unit"));
	/* a real one has its files at once; this folder needs them made */
	make("fs/user/unit/main");
	put("fs/user/unit/main/cgroup.procs", "");
	assert_int_equal(jail_cgroup_prepare(&host, "main", &err), 0);
	assert_text("fs/user/unit/main/cgroup.procs", pid);
	assert_text("fs/user/unit/cgroup.subtree_control", "+cpu"); /* written last */
	put("fs/user/unit/cgroup.subtree_control", "cpu memory pids\n");
	make("fs/user/unit/sbx-qemu");
	put("fs/user/unit/sbx-qemu/memory.max", "");
	put("fs/user/unit/sbx-qemu/pids.max", "");
	put("fs/user/unit/sbx-qemu/cgroup.procs", "");
	assert_int_equal(jail_cgroup_enter(&host, "qemu", &memory_only, &group, &err), 0);
	assert_text("fs/user/unit/sbx-qemu/memory.max", "1048576");
	assert_text("fs/user/unit/sbx-qemu/pids.max", "max");
	assert_int_equal(jail_cgroup_enter(&host, "qemu", &pids_only, &group, &err), 0);
	assert_text("fs/user/unit/sbx-qemu/memory.max", "max");
	assert_text("fs/user/unit/sbx-qemu/pids.max", "77");
}

/* A slice hands controllers down; the own group below it has processes. */
static void a_sandbox_gets_a_group_with_limits(void **state)
{
	const struct jail_cgroup_limits limits = {3ull << 30, 2048};
	struct jail_cgroup g = {0};
	AUTO_FREE char *pid = xasprintf("%ld", (long)getpid());
	AUTO_FREE char *left = xasprintf("%s/fs/user/sbx-left", dir);
	char place[256];
	struct err err = {0};

	assert_int_equal(jail_cgroup_place(&host, place, sizeof(place), &err), 0);
	assert_non_null(strstr(place, "/user/unit")); /* claimed by the test before */
	put("fs/user/unit/cgroup.subtree_control", "cpu memory pidsx\n");
	assert_int_equal(jail_cgroup_place(&host, place, sizeof(place), &err), -ENOENT);
	assert_int_equal(jail_cgroup_enter(&host, "0123", &limits, &g, &err), -ENOENT);
	assert_string_equal(g.dir, "");
	put("fs/user/cgroup.procs", "");
	put("fs/user/cgroup.subtree_control", "cpu memory pids\n");
	assert_int_equal(jail_cgroup_place(&host, place, sizeof(place), &err), 0);
	assert_true(!strcmp(place + strlen(place) - 5, "/user"));
	make("fs/user/sbx-0123");
	put("fs/user/sbx-0123/memory.max", "");
	put("fs/user/sbx-0123/pids.max", "");
	/* cgroup.procs is missing: it cannot be entered, and is not said to be */
	assert_true(jail_cgroup_enter(&host, "0123", &limits, &g, &err) < 0);
	assert_string_equal(g.dir, "");
	put("fs/user/sbx-0123/cgroup.procs", "");
	assert_int_equal(jail_cgroup_enter(&host, "0123", &limits, &g, &err), 0);
	assert_text("fs/user/sbx-0123/memory.max", "3221225472");
	assert_text("fs/user/sbx-0123/pids.max", "2048");
	assert_text("fs/user/sbx-0123/cgroup.procs", pid);
	make("fs/user/sbx-left");
	make("fs/user/other");
	jail_cgroup_sweep(&host);
	assert_int_equal(access(left, F_OK), -1);
	assert_text("fs/user/sbx-0123/pids.max", "2048"); /* not empty: it stays */
	put("fs/user/unit/cgroup.procs", "");
	jail_cgroup_leave(&g);
	assert_text("fs/user/unit/cgroup.procs", pid);
	assert_string_equal(g.dir, "");
}

static void sbxd_makes_room_for_groups(void **state)
{
	AUTO_FREE char *pid = xasprintf("%ld", (long)getpid());
	struct err err = {0};

	put("fs/user/cgroup.subtree_control", "");
	put("fs/user/unit/cgroup.subtree_control", "");
	make("fs/user/unit/sbxd");
	put("fs/user/unit/sbxd/cgroup.procs", "");
	assert_int_equal(jail_cgroup_prepare(&host, "sbxd", &err), 0);
	assert_text("fs/user/unit/sbxd/cgroup.procs", pid);
	put("fs/user/unit/sbxd/cgroup.procs", "");
	put("fs/user/unit/cgroup.subtree_control", "memory pids\n");
	assert_int_equal(jail_cgroup_prepare(&host, "sbxd", &err), 0);
	assert_text("fs/user/unit/sbxd/cgroup.procs", ""); /* it is there already */
}

static void names_cannot_lead_out(void **state)
{
	const struct jail_cgroup_limits limits = {1, 1};
	struct jail_cgroup g = {0};

	assert_int_equal(jail_cgroup_enter(&host, "x/../../y", &limits, &g, NULL), -EINVAL);
	put("fs/user/unit/cgroup.subtree_control", "");
	assert_int_equal(jail_cgroup_prepare(&host, "../x", NULL), -EINVAL);
	assert_int_equal(jail_cgroup_prepare(&host, "..", NULL), -EINVAL);
	assert_int_equal(jail_cgroup_prepare(&host, "", NULL), -EINVAL);
}

static int setup(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	(void)snprintf(self, sizeof(self), "%s/self", dir);
	(void)snprintf(mount, sizeof(mount), "%s/fs", dir);
	make("fs");
	make("fs/user");
	make("fs/user/unit");
	return 0;
}

static int teardown(void **state)
{
	AUTO_FREE char *cmd = xasprintf("rm -rf '%s'", dir);

	return system(cmd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_missing_is_said),
		cmocka_unit_test(a_delegated_group_is_found_and_used),
		cmocka_unit_test(a_sandbox_gets_a_group_with_limits),
		cmocka_unit_test(sbxd_makes_room_for_groups),
		cmocka_unit_test(names_cannot_lead_out),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
