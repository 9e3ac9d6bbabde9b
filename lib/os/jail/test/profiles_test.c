/* SPDX-License-Identifier: Apache-2.0 */
/* The table itself: what no row may ever contain, and that every list becomes a filter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>
#include "lib/os/jail/filter.h"
#include "lib/os/jail/profiles.h"

static bool has_call(const struct jail_group *groups, const char *call)
{
	size_t n = strlen(call);

	for (; groups && groups->why; groups++)
		for (const char *p = groups->calls; (p = strstr(p, call)); p += n)
			if ((p == groups->calls || p[-1] == ' ') && strchr(" /", p[n]))
				return true;
	return false;
}

/* No program of ours or of others gets these, in any phase; the supervisor of hidden and guarded
 * names reads them out of virtiofsd and is the one exception to the one call it needs for that. */
static void test_no_row_has_a_way_out(void **state)
{
	static const char *const never[] = {"ptrace", "process_vm_readv", "process_vm_writev",
		"bpf", "perf_event_open", "keyctl", "add_key", "request_key", "userfaultfd",
		"kexec_load", "init_module", "finit_module", "delete_module", "setns", "reboot",
		"swapon", "io_uring_setup", "pidfd_getfd"};

	for (int i = 0; i < JAIL_N_PROFILES; i++)
		for (size_t c = 0; c < ARRAY_LEN(never); c++) {
			if ((i == JAIL_HIDE || i == JAIL_GUARD) &&
				strcmp(never[c], "process_vm_readv") == 0)
				continue;
			assert_false(has_call(jail_row(i)->start, never[c]));
			assert_false(has_call(jail_row(i)->seal, never[c]));
		}
}

static void test_sealed_edge_has_no_files_sockets_or_exec(void **state)
{
	static const char *const never[] = {"open", "openat", "openat2", "creat", "socket",
		"connect", "bind", "listen", "execve", "execveat", "fork", "vfork", "clone",
		"clone3", "kill", "mount", "unlink", "rename", "seccomp", "prctl"};
	const struct jail_row *edge = jail_row(JAIL_EDGE);

	for (size_t c = 0; c < ARRAY_LEN(never); c++)
		assert_false(has_call(edge->seal, never[c]));
	assert_true(has_call(edge->seal, "epoll_wait")); /* the helper finds what is there */
	assert_int_equal(edge->caps, 0);
	assert_int_equal(edge->limit.fsize, 0);
	assert_int_equal(edge->limit.nproc, 0);
}

static void test_sealed_ssh_agent_has_passed_sockets_only(void **state)
{
	static const char *const never[] = {"open", "openat", "openat2", "creat", "socket",
		"socketpair", "connect", "bind", "listen", "accept", "accept4", "execve",
		"execveat", "fork", "vfork", "clone", "clone3", "kill", "mount", "unlink", "rename",
		"seccomp", "prctl", "ioctl", "setsockopt"};
	const struct jail_row *agent = jail_row(JAIL_SSH_AGENT);

	for (size_t c = 0; c < ARRAY_LEN(never); c++)
		assert_false(has_call(agent->seal, never[c]));
	assert_true(has_call(agent->seal, "recvfrom"));
	assert_int_equal(agent->caps, 0);
	assert_false(agent->host_net);
	assert_int_equal(agent->limit.fsize, 0);
	assert_int_equal(agent->limit.nproc, 0);
}

static void test_sealed_notify_has_its_two_sockets_only(void **state)
{
	static const char *const never[] = {"open", "openat", "openat2", "creat", "socket",
		"socketpair", "connect", "bind", "listen", "accept", "accept4", "execve",
		"execveat", "fork", "vfork", "clone", "clone3", "kill", "mount", "unlink", "rename",
		"seccomp", "prctl", "ioctl", "setsockopt", "memfd_create", "pidfd_open"};
	const struct jail_row *notify = jail_row(JAIL_NOTIFY);

	for (size_t c = 0; c < ARRAY_LEN(never); c++)
		assert_false(has_call(notify->seal, never[c]));
	assert_true(has_call(notify->seal, "sendmsg"));
	for (int i = 0; i < JAIL_N_PROFILES; i++)
		assert_int_equal(jail_row(i)->outlives, i == JAIL_NOTIFY);
	assert_null(notify->start); /* it is not executed in the jail */
	assert_int_equal(notify->caps, 0);
	assert_false(notify->host_net);
	assert_int_equal(notify->limit.nproc, 0);
}

static void test_sealed_egress_has_no_files_or_exec_and_no_way_in(void **state)
{
	static const char *const never[] = {"open", "openat", "openat2", "creat", "bind", "listen",
		"accept", "accept4", "socketpair", "execve", "execveat", "fork", "vfork", "clone",
		"clone3", "kill", "mount", "unlink", "rename", "seccomp", "prctl", "ioctl"};
	const struct jail_row *egress = jail_row(JAIL_EGRESS);

	for (size_t c = 0; c < ARRAY_LEN(never); c++)
		assert_false(has_call(egress->seal, never[c]));
	assert_true(has_call(egress->seal, "connect"));
	assert_int_equal(egress->caps, 0);
	assert_int_equal(egress->limit.fsize, 0);
	assert_int_equal(egress->limit.nproc, 0);
	/* the keeper listens on published ports and connects to nothing */
	for (int i = 0; i < JAIL_N_PROFILES; i++)
		assert_int_equal(jail_row(i)->host_net,
			i == JAIL_EGRESS || i == JAIL_KEEPER || i == JAIL_SBXD);
	assert_false(has_call(jail_row(JAIL_KEEPER)->start, "connect"));
	assert_false(has_call(jail_row(JAIL_SBXD)->start, "connect"));
}

static void test_sealed_vault_starts_nothing_and_calls_nobody(void **state)
{
	static const char *const never[] = {"socket", "connect", "bind", "listen", "execve",
		"execveat", "fork", "vfork", "clone", "clone3", "kill", "mount", "seccomp", "prctl",
		"ioctl", "memfd_create", "process_vm_readv", "link", "symlink", "splice",
		"sendfile"};
	const struct jail_row *vault = jail_row(JAIL_VAULT);

	for (size_t c = 0; c < ARRAY_LEN(never); c++)
		assert_false(has_call(vault->seal, never[c]));
	assert_true(has_call(vault->seal, "mlock"));
	assert_true(vault->landlock);
	assert_int_equal(vault->caps, 0);
	assert_int_equal(vault->limit.core, 0);
	assert_int_equal(vault->limit.nproc, 0);
}

static void test_sealed_origin_has_what_it_is_given(void **state)
{
	static const char *const never[] = {"socket", "socketpair", "connect", "bind", "listen",
		"accept", "accept4", "setsockopt", "open", "openat", "execve", "execveat", "fork",
		"vfork", "clone", "clone3", "kill", "mount", "seccomp", "prctl", "ioctl",
		"memfd_create", "process_vm_readv", "splice", "sendfile", "unlink", "rename"};
	const struct jail_row *origin = jail_row(JAIL_ORIGIN);

	for (size_t c = 0; c < ARRAY_LEN(never); c++)
		assert_false(has_call(origin->seal, never[c]));
	assert_true(has_call(origin->seal, "mlock"));
	assert_true(origin->landlock);
	assert_false(origin->host_net);
	assert_int_equal(origin->limit.core, 0);
	assert_int_equal(origin->limit.nproc, 0);
}

static void clerk_has_passed_sockets_only(enum jail_profile profile)
{
	static const char *const never[] = {"open", "openat", "openat2", "creat", "socket",
		"socketpair", "connect", "bind", "listen", "accept", "accept4", "execve",
		"execveat", "fork", "vfork", "clone", "clone3", "kill", "mount", "unlink", "rename",
		"seccomp", "prctl", "ioctl", "setsockopt", "memfd_create", "mlock"};
	const struct jail_row *clerk = jail_row(profile);

	for (size_t c = 0; c < ARRAY_LEN(never); c++)
		assert_false(has_call(clerk->seal, never[c]));
	assert_true(has_call(clerk->seal, "recvfrom"));
	assert_int_equal(clerk->caps, 0);
	assert_true(clerk->landlock);
	assert_false(clerk->host_net);
	assert_int_equal(clerk->limit.fsize, 0);
	assert_int_equal(clerk->limit.nproc, 0);
	assert_true(clerk->limit.as > 0 && clerk->limit.cpu > 0);
}

static void test_sealed_clerks_have_passed_sockets_only(void **state)
{
	clerk_has_passed_sockets_only(JAIL_CLERK_GIT);
	clerk_has_passed_sockets_only(JAIL_CLERK);
}

static void test_only_virtiofsd_and_template_tools_keep_capabilities(void **state)
{
	for (int i = 0; i < JAIL_N_PROFILES; i++)
		assert_int_equal(jail_row(i)->caps != 0, i == JAIL_VIRTIOFSD || i == JAIL_TEMPLATE);
}

/* The only rows that may execute more than one program: what they read is a stranger's. */
static void test_template_tools_and_git_make_no_namespace_mount_or_socket(void **state)
{
	static const char *const never[] = {"mount", "umount2", "pivot_root", "unshare",
		"mount_setattr", "open_tree", "move_mount", "fsopen", "socket", "connect", "bind",
		"open_by_handle_at", "setuid", "setgid", "setresuid", "setgroups", "capset",
		"clone3", "setrlimit"};

	for (int i = 0; i < JAIL_N_PROFILES; i++) {
		const struct jail_row *row = jail_row(i);
		bool runs = i == JAIL_TEMPLATE || i == JAIL_GIT;

		assert_int_equal(has_call(row->start, "execve"), runs);
		assert_true(!runs || has_call(row->start, "clone/no-namespaces"));
		assert_true(!runs || !row->host_net);
		for (size_t c = 0; runs && c < ARRAY_LEN(never); c++)
			assert_false(has_call(row->start, never[c]));
	}
}

static void test_git_is_limited_in_memory_and_files(void **state)
{
	const struct jail_row *row = jail_row(JAIL_GIT);

	assert_true(row->landlock);
	assert_true(row->limit.as > 0 && row->limit.fsize == JAIL_GIT_FSIZE);
	assert_false(has_call(row->start, "mknod") || has_call(row->start, "symlink") ||
		     has_call(row->start, "chroot"));
}

static void test_every_list_becomes_a_filter(void **state)
{
	for (int i = 0; i < JAIL_N_PROFILES; i++) {
		struct filter start = {0}, seal = {0};
		struct err err = {0};

		if (jail_row(i)->start)
			assert_int_equal(filter_make_start(jail_row(i), true, 99, &start, &err), 0);
		if (jail_row(i)->seal)
			assert_int_equal(filter_make_seal(jail_row(i), &seal, &err), 0);
		assert_true(start.prog.len > 0 || seal.prog.len > 0);
		filter_done(&start);
		filter_done(&seal);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_row_has_a_way_out),
		cmocka_unit_test(test_sealed_edge_has_no_files_sockets_or_exec),
		cmocka_unit_test(test_sealed_ssh_agent_has_passed_sockets_only),
		cmocka_unit_test(test_sealed_notify_has_its_two_sockets_only),
		cmocka_unit_test(test_sealed_egress_has_no_files_or_exec_and_no_way_in),
		cmocka_unit_test(test_sealed_vault_starts_nothing_and_calls_nobody),
		cmocka_unit_test(test_sealed_origin_has_what_it_is_given),
		cmocka_unit_test(test_sealed_clerks_have_passed_sockets_only),
		cmocka_unit_test(test_only_virtiofsd_and_template_tools_keep_capabilities),
		cmocka_unit_test(test_template_tools_and_git_make_no_namespace_mount_or_socket),
		cmocka_unit_test(test_git_is_limited_in_memory_and_files),
		cmocka_unit_test(test_every_list_becomes_a_filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
