/* SPDX-License-Identifier: Apache-2.0 */
#include "src/sbx/top/usage.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"

#define MIB (UINT64_C(1) << 20)

/* A child that does `work` and then waits, until stop_child. */
static pid_t start_child(void (*work)(void))
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_return_code(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		work();
		(void)!write(ready[1], "x", 1);
		for (;;)
			(void)pause();
	}
	assert_true(pid > 0);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
	return pid;
}

static void stop_child(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static struct usage use_of(pid_t pid, pid_t qemu)
{
	AUTO_USAGE struct usage_scan scan = {0};
	struct usage ret;

	usage_scan(&scan);
	usage_of(&scan, pid, qemu, &ret);
	return ret;
}

static void do_nothing(void)
{
}

static void fork_again(void)
{
	(void)start_child(do_nothing);
}

static void fork_twice(void)
{
	/* The form of a field of /proc/PID/stat. */
	(void)prctl(PR_SET_NAME, "a) S 1 (b");
	(void)start_child(fork_again);
}

static void all_processes_below_the_keeper_count(void **state)
{
	pid_t pid = start_child(fork_twice), other = start_child(do_nothing);

	assert_int_equal(use_of(pid, 0).n_processes, 3);
	assert_int_equal(use_of(other, 0).n_processes, 1);
	stop_child(other);
	assert_int_equal(use_of(other, 0).n_processes, 0);
	assert_int_equal(use_of(0, 0).n_processes, 0);
	stop_child(pid);
}

static void burn(void)
{
	while (clock() < CLOCKS_PER_SEC / 2)
		;
}

static void burn_below(void)
{
	stop_child(start_child(burn));
}

static void the_time_of_a_process_that_exited_stays(void **state)
{
	pid_t pid = start_child(burn_below);
	struct usage use = use_of(pid, 0);

	assert_int_equal(use.n_processes, 1);
	assert_in_range(use.cpu_us, 400000, 2000000);
	stop_child(pid);
}

static void take_memory(void)
{
	char *own =
		mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *shared =
		mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (own == MAP_FAILED || shared == MAP_FAILED)
		_exit(1);
	memset(own, 1, 32 * MIB);
	memset(shared, 1, 64 * MIB);
}

static void shared_memory_counts_for_qemu_only(void **state)
{
	pid_t pid = start_child(take_memory);

	assert_in_range(use_of(pid, pid).memory, 96 * MIB, 110 * MIB);
	assert_in_range(use_of(pid, 0).memory, 32 * MIB, 46 * MIB);
	stop_child(pid);
}

static void write_file(const char *path, size_t n)
{
	AUTO_FREE char *bytes = xcalloc(1, n);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	memset(bytes, 7, n);
	assert_int_equal(write(fd, bytes, n), (ssize_t)n);
	assert_return_code(close(fd), 0);
}

static void the_disk_is_what_the_files_take(void **state)
{
	char root[] = "/tmp/sbx-usage.XXXXXX", path[128], outside[128];
	static const char *const folders[] = {
		"/sbx", "/sbx/sandboxes", "/sbx/sandboxes/one", "/sbx/sandboxes/one/memory.7"};
	static const char *const all[] = {"/outside", "/sbx/sandboxes/one/root.1.qcow2",
		"/sbx/sandboxes/one/memory.7/memory", "/sbx/sandboxes/one/link",
		"/sbx/sandboxes/one/holes"};

	assert_non_null(mkdtemp(root));
	assert_return_code(setenv("XDG_STATE_HOME", root, 1), 0);
	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		(void)snprintf(path, sizeof(path), "%s%s", root, folders[i]);
		assert_return_code(mkdir(path, 0700), 0);
	}
	assert_int_equal(usage_disk("one"), 0);
	assert_int_equal(usage_disk("two"), 0);
	(void)snprintf(outside, sizeof(outside), "%s%s", root, all[0]);
	write_file(outside, 8 * MIB);
	for (size_t i = 1; i < 3; i++) {
		(void)snprintf(path, sizeof(path), "%s%s", root, all[i]);
		write_file(path, MIB);
	}
	(void)snprintf(path, sizeof(path), "%s%s", root, all[3]);
	assert_return_code(symlink(outside, path), 0);
	(void)snprintf(path, sizeof(path), "%s%s", root, all[4]);
	write_file(path, 1);
	assert_return_code(truncate(path, 64 * MIB), 0);
	assert_in_range(usage_disk("one"), 2 * MIB, 3 * MIB);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		(void)snprintf(path, sizeof(path), "%s%s", root, all[i]);
		assert_return_code(unlink(path), 0);
	}
	for (size_t i = ARRAY_LEN(folders); i-- > 0;) {
		(void)snprintf(path, sizeof(path), "%s%s", root, folders[i]);
		assert_return_code(rmdir(path), 0);
	}
	assert_return_code(rmdir(root), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_processes_below_the_keeper_count),
		cmocka_unit_test(the_time_of_a_process_that_exited_stays),
		cmocka_unit_test(shared_memory_counts_for_qemu_only),
		cmocka_unit_test(the_disk_is_what_the_files_take),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
