/* SPDX-License-Identifier: Apache-2.0 */
/* Places where a value must never be found: files, command lines, environments, logs, memory after
 * its removal. The same search finds it where it is, so the search works. */
#include "vault_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/os/jail/unsealed.h"
#include "lib/secret/secret/scan.h"

static const char *const by_file[] = {"--key=file", "--no-hidden-memory", NULL};
static const char *const hidden[] = {"--key=file", NULL};

static char canary[40], fetched[40];
static struct book canaries;
static struct scan *search;

static void add_canary(const char *value)
{
	struct book_entry *e = xcalloc(1, sizeof(*e)), *old;

	(void)snprintf(e->meta.name, sizeof(e->meta.name), "%.8s", value);
	assert_int_equal(secret_copy(&e->value, slice_from_str(value), NULL), 0);
	assert_int_equal(book_put(&canaries, e, &old, NULL), 0);
}

static int setup(void **state)
{
	str_random_hex(canary, 16);
	str_random_hex(fetched, 16);
	add_canary(canary);
	add_canary(fetched);
	return 0;
}

static int teardown(void **state)
{
	book_done(&canaries);
	return 0;
}

/* How often any value was found. */
static uint64_t n_found(const struct scan *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->n_owners; i++)
		n += s->owners[i].times;
	return n;
}

static uint64_t count_in(int fd)
{
	size_t room;
	uint64_t n;
	ssize_t r;

	search = scan_new(&canaries, "", NULL);
	while ((r = read(fd, scan_room(search, &room), SCAN_WINDOW)) > 0)
		scan_feed(search, (size_t)r);
	n = n_found(search);
	scan_free(search);
	return n;
}

static uint64_t count_in_file(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		fail_msg("%s: %s", path, strerror(errno));
	return count_in(fd);
}

static uint64_t n_in_files;
static unsigned n_files;

static int visit(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	if (kind == FTW_F) {
		n_files++;
		n_in_files += count_in_file(path);
	}
	return 0;
}

/* Returns 0 if no file of the state directory and no line of the log contains it. */
static uint64_t count_on_disk(struct rig *r)
{
	AUTO_FREE char *state_dir = xasprintf("%s/sbx", r->dir), *log = xasprintf("%s/log", r->dir);

	n_in_files = n_files = 0;
	assert_int_equal(nftw(state_dir, visit, 16, FTW_PHYS), 0);
	assert_true(n_files >= 4); /* sealed, anchor, key, lock */
	return n_in_files + count_in_file(log);
}

static uint64_t count_in_proc(pid_t pid, const char *name)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return count_in_file(path);
}

/* Searches all readable memory; -1 if none is readable. */
static int64_t count_in_memory(pid_t pid)
{
	char path[64], line[512];
	int64_t found = 0;
	FILE *maps;
	int mem;

	(void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	mem = open(path, O_RDONLY | O_CLOEXEC);
	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (mem < 0 || !maps) {
		fd_close(&mem);
		if (maps)
			(void)fclose(maps);
		return -1;
	}
	search = scan_new(&canaries, "", NULL);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		while (from < to) {
			size_t room;
			uint8_t *p = scan_room(search, &room);
			ssize_t n = pread(mem, p, MIN(room, to - from), (off_t)from);

			if (n <= 0)
				break;
			scan_feed(search, (size_t)n);
			from += (unsigned long)n;
		}
	}
	found = (int64_t)n_found(search);
	scan_free(search);
	(void)fclose(maps);
	fd_close(&mem);
	return found;
}

/* Outside of the searched directories. */
static char *make_program(const char *value)
{
	char *path = xasprintf("/tmp/sbx-canary-%s", canary + 24);
	AUTO_FREE char *text = xasprintf("#!/bin/sh\necho %s\n", value);

	assert_int_equal(file_save(path, slice_from_str(text), NULL), 0);
	assert_int_equal(chmod(path, 0700), 0);
	return path;
}

static void use(struct rig *r, int admin)
{
	AUTO_CLOSE int keeper = rig_keeper(r, "s");
	AUTO_FREE char *program = make_program(fetched), *value = NULL, *again = NULL;

	assert_int_equal(rig_set_str(admin, "a", "", canary), 0);
	assert_int_equal(rig_set_ref(admin, "b", VAULT_REF_FIRST_LINE, program, NULL, 600), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(rig_release(keeper, "a", 0, &value, NULL), 0);
		assert_string_equal(value, canary);
		free(value);
	}
	value = NULL;
	assert_int_equal(rig_release(keeper, "b", 0, &again, NULL), 0);
	assert_string_equal(again, fetched);
	assert_int_equal(rig_list(admin, NULL), 2);
	assert_int_equal(unlink(program), 0);
}

static void test_a_value_is_nowhere(void **state)
{
	struct rig *r = rig_new(by_file);
	AUTO_CLOSE int admin = rig_admin(r);
	pid_t pid = rig_vault_pid(r);
	AUTO_FREE char *log = NULL;
	int64_t n;

	use(r, admin);
	assert_int_equal(count_on_disk(r), 0);
	assert_int_equal(count_in_proc(pid, "cmdline"), 0);
	assert_int_equal(count_in_proc(r->pid, "cmdline"), 0);
	assert_int_equal(count_in_proc(r->pid, "environ"), 0);
	n = count_in_memory(pid);
	assert_true(n == -1 || n >= 2); /* where it must be, so the search works */
	assert_true((geteuid() == 0) == (n != -1));
	if (n != -1)
		assert_int_equal(count_in_memory(r->pid), 0);
	assert_int_equal(rig_remove(admin, "a", ""), 0);
	assert_int_equal(rig_remove(admin, "b", ""), 0);
	n = count_in_memory(pid);
	assert_true(n == -1 || n == 0);
	assert_int_equal(count_on_disk(r), 0);
	log = rig_log(r);
	assert_null(strstr(log, "must-not-be-inherited"));
	rig_free(r);
}

/* Memory that not even root can read from outside. */
static void test_hidden_memory(void **state)
{
	struct rig *r = rig_new(hidden);
	AUTO_CLOSE int admin = rig_admin(r);
	struct vault_status status;

	use(r, admin);
	rig_status(admin, &status);
	if (status.memory == VAULT_MEMORY_HIDDEN) {
		int64_t n = count_in_memory(rig_vault_pid(r));

		assert_true(n == -1 || n == 0);
	} else {
		(void)printf("no memfd_secret here: %s\n", status.text);
	}
	rig_free(r);
}

static void test_no_core_and_no_ptrace(void **state)
{
	struct rig *r = rig_new(by_file);
	AUTO_CLOSE int admin = rig_admin(r);
	pid_t pid = rig_vault_pid(r);
	AUTO_FREE char *limits = NULL, *path = xasprintf("/proc/%d/limits", (int)pid),
		       *environment = xasprintf("/proc/%d/environ", (int)pid), *log = NULL;
	char *line;
	size_t n;

	use(r, admin);
	assert_int_equal(file_load(path, 1 << 16, &limits, &n, NULL), 0);
	line = strstr(limits, "Max core file size");
	assert_non_null(line);
	assert_int_equal(strncmp(line + 26, "0                    0 ", 23), 0);
	if (geteuid() == 0) { /* root can read everything; it finds no environment */
		assert_int_equal(count_in_file(environment), 0);
	} else {
		assert_int_equal(ptrace(PTRACE_ATTACH, pid, NULL, NULL), -1);
		assert_int_equal(errno, EPERM);
		assert_int_equal(open(environment, O_RDONLY | O_CLOEXEC), -1);
		assert_int_equal(count_in_memory(pid), -1);
	}
	assert_int_equal(kill(pid, SIGSEGV), 0);
	assert_int_equal(rig_wait(r), 3);
	log = rig_log(r);
	assert_non_null(strstr(log, "killed by signal 11"));
	assert_null(strstr(log, "core"));
	assert_int_equal(count_on_disk(r), 0);
	rig_free(r);
}

/* `sbx prove`: the vault searches for its own values, and reports only their names. */
static void test_scan(void **state)
{
	struct rig *r = rig_new(by_file);
	AUTO_CLOSE int admin = rig_admin(r), file = -1;
	AUTO_FREE char *path = xasprintf("%s/dump", r->dir);
	static struct vault_scanned got;
	static char zeros[1 << 20];

	use(r, admin);
	file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(fd_write_all(file, zeros, sizeof(zeros)), 0);
	assert_int_equal(lseek(file, 0, SEEK_SET), 0);
	assert_int_equal(rig_scan(admin, file, "", &got), 0);
	assert_int_equal(got.n_found, 0);
	assert_int_equal(got.bytes, 3 * sizeof(zeros));
	assert_int_equal(lseek(file, 0, SEEK_END), 3 * sizeof(zeros));
	assert_int_equal(fd_write_all(file, canary, strlen(canary)), 0);
	assert_int_equal(fd_write_all(file, zeros, sizeof(zeros)), 0);
	assert_int_equal(fd_write_all(file, fetched, strlen(fetched)), 0);
	assert_int_equal(lseek(file, 0, SEEK_SET), 0);
	assert_int_equal(rig_scan(admin, file, "", &got), 0);
	assert_int_equal(got.n_found, 2);
	assert_int_equal(got.n, 2);
	assert_int_equal(got.v[0].times + got.v[1].times, 2);
	rig_free(r);
}

/* Of a VM's memory that is mostly untouched, only existing pages are read, and values after holes
 * are found. */
static void test_scan_of_memory_with_holes(void **state)
{
	struct rig *r = rig_new(by_file);
	AUTO_CLOSE int admin = rig_admin(r), ram = memfd_create("ram", MFD_CLOEXEC);
	static struct vault_scanned got;
	const off_t size = (off_t)4 << 30;

	use(r, admin);
	assert_int_equal(ftruncate(ram, size), 0);
	assert_int_equal(pwrite(ram, "control-text", 12, 5 << 20), 12);
	assert_int_equal(pwrite(ram, canary, strlen(canary), size - 4096), strlen(canary));
	assert_int_equal(rig_scan(admin, ram, "control-text", &got), 0);
	assert_int_equal(got.control, 1);
	assert_int_equal(got.n_found, 1);
	assert_true(got.bytes <= 8 << 20);
	rig_free(r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_scan),
		TEST(test_scan_of_memory_with_holes),
	};
	/* effects of jail and seal, unless disabled: see lib/os/jail/unsealed.h */
	const struct CMUnitTest jail_tests[] = {
		TEST(test_a_value_is_nowhere),
		TEST(test_hidden_memory),
		TEST(test_no_core_and_no_ptrace),
	};
	int n_failed;

	n_failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (JAIL_SEALS)
		n_failed += cmocka_run_group_tests(jail_tests, NULL, NULL);
	return n_failed;
}
