/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "src/keeper/memory/suspend_file.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"

#define KEY "0123456789abcdef0123456789abcdef"
#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

#define HASH2 "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static char dir[64];

static char *at(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static void put(const char *name, const char *text)
{
	AUTO_FREE char *path = at(name);

	assert_int_equal(file_save(path, slice_from_str(text), NULL), 0);
}

static bool is_there(const char *name)
{
	AUTO_FREE char *path = at(name);

	return access(path, F_OK) == 0;
}

static int begin(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/sbx-suspend-XXXXXX");
	assert_non_null(mkdtemp(dir));
	put("root.qcow2", "root");
	put("docker.qcow2", "docker");
	return 0;
}

static int end(void **state)
{
	AUTO_FREE char *cmd = xasprintf("rm -rf %s", dir);

	return system(cmd);
}

static const struct suspend_file saved = {.key = KEY,
	.at_ms = 5,
	.saved = {{.size = 6, .hash = HASH}, {.size = 4096, .hash = HASH2}},
	.has_ca = true,
	.ca = {.pem = "certificate\n", .n_saved = 3, .saved = {1, 0, 2}}};

/* As the keeper does it; the VM exits before the second step. */
static int prepare(struct suspend_file *f, struct err *err)
{
	int r = suspend_file_stamp(dir, f, err);

	return r < 0 ? r : suspend_file_prepare(dir, f, err);
}

static int name(struct suspend_file *f, struct err *err)
{
	int r = suspend_file_stamp(dir, f, err);

	return r < 0 ? r : suspend_file_publish(dir, f, err);
}

static void publish(void)
{
	struct suspend_file f = saved;
	AUTO_FREE char *path = NULL;
	struct err err = {0};

	assert_int_equal(suspend_file_begin(dir, &path, &err), 0);
	put(SUSPEND_NEW "/state", "device");
	put(SUSPEND_NEW "/memory", "memory");
	assert_int_equal(prepare(&f, &err), 0);
	assert_false(suspend_file_is_there(dir));
	if (name(&f, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(suspend_file_is_there(dir));
}

static void refused(const char *why)
{
	struct suspend_file f;
	struct err err = {0};

	assert_int_equal(suspend_file_open(dir, KEY, &f, &err), -EUCLEAN);
	if (!strstr(err.text, why))
		fail_msg("%s", err.text);
}

static void what_is_kept_comes_back(void **state)
{
	struct suspend_file f;
	struct stat st;
	AUTO_FREE char *ca = at("suspend/ca");

	assert_int_equal(suspend_file_open(dir, KEY, &f, NULL), -ENOENT);
	publish();
	assert_int_equal(suspend_file_open(dir, KEY, &f, NULL), 0);
	assert_int_equal(f.saved[IMAGE_STATE].size, 6);
	assert_string_equal(f.saved[IMAGE_STATE].hash, HASH);
	assert_int_equal(f.saved[IMAGE_MEMORY].size, 4096);
	assert_string_equal(f.saved[IMAGE_MEMORY].hash, HASH2);
	assert_true(f.has_ca);
	assert_string_equal(f.ca.pem, "certificate\n");
	assert_int_equal(f.ca.n_saved, 3);
	assert_memory_equal(f.ca.saved, "\1\0\2", 3);
	assert_int_equal(stat(ca, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	suspend_file_wipe(&f);
	assert_int_equal(f.ca.saved[0], 0);
}

static void it_is_used_once(void **state)
{
	struct suspend_file f;

	publish();
	assert_int_equal(suspend_file_consume(dir, NULL), 0);
	assert_false(suspend_file_is_there(dir));
	assert_int_equal(suspend_file_open(dir, KEY, &f, NULL), -ENOENT);
	assert_true(suspend_file_consume(dir, NULL) < 0);
	suspend_file_tidy(dir);
	assert_false(is_there(SUSPEND_USED));
}

/* The VM did not run after all. */
static void what_was_not_used_is_put_back(void **state)
{
	struct suspend_file f;

	publish();
	assert_int_equal(suspend_file_consume(dir, NULL), 0);
	suspend_file_put_back(dir);
	assert_int_equal(suspend_file_open(dir, KEY, &f, NULL), 0);
	/* An unused snapshot stays. */
	suspend_file_put_back(dir);
	assert_int_equal(suspend_file_open(dir, KEY, &f, NULL), 0);
}

/* ---- a file system that really is full, in a mount namespace ---- */

static void fill_disk(void)
{
	static const char block[4096];
	AUTO_FREE char *path = at("filler");
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	while (write(fd, block, sizeof(block)) > 0)
		;
}

static int write_proc(const char *file, const char *text)
{
	AUTO_FREE char *path = xasprintf("/proc/self/%s", file);
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

static int enter_small_disk(void)
{
	AUTO_FREE char *uid = xasprintf("0 %u 1", geteuid());
	AUTO_FREE char *gid = xasprintf("0 %u 1", getegid());

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || write_proc("uid_map", uid) < 0 ||
		write_proc("setgroups", "deny") < 0 || write_proc("gid_map", gid) < 0 ||
		mount("suspend", dir, "tmpfs", 0, "size=1m,mode=700") < 0)
		return -1;
	put("root.qcow2", "root");
	put("docker.qcow2", "docker");
	return 0;
}

/* QEMU's last writes occur between the two steps; after its exit nothing can be undone. */
static int fill_behind(bool prepared)
{
	struct suspend_file f = saved, got;
	AUTO_FREE char *path = NULL;
	struct err err = {0};

	if (enter_small_disk() < 0 || suspend_file_begin(dir, &path, &err) < 0)
		return 1;
	if (!prepared) {
		f.has_ca = false; /* only image.json */
		fill_disk();
		return prepare(&f, &err) == -ENOSPC ? 0 : 2;
	}
	if (prepare(&f, &err) < 0)
		return 3;
	put("root.qcow2", "root and more");
	fill_disk();
	if (name(&f, &err) < 0) {
		printf("%s\n", err.text);
		return 4;
	}
	return suspend_file_open(dir, KEY, &got, &err) == 0 && got.has_ca ? 0 : 5;
}

static void in_child(bool prepared)
{
	int status;

	if (fork() == 0)
		_exit(fill_behind(prepared));
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
}

static void a_full_disk_is_found_before_the_machine_ends(void **state)
{
	in_child(false);
}

static void a_disk_that_is_full_afterwards_loses_nothing(void **state)
{
	in_child(true);
}

static void what_was_not_finished_is_nothing(void **state)
{
	AUTO_FREE char *path = NULL;
	struct suspend_file f;

	assert_int_equal(suspend_file_begin(dir, &path, NULL), 0);
	put(SUSPEND_NEW "/state", "half");
	assert_int_equal(suspend_file_open(dir, KEY, &f, NULL), -ENOENT);
	suspend_file_tidy(dir);
	assert_false(is_there(SUSPEND_NEW));
}

static void another_machine_is_refused(void **state)
{
	struct suspend_file f;
	struct err err = {0};

	publish();
	assert_int_equal(suspend_file_open(dir, "f" KEY, &f, &err), -EUCLEAN);
	assert_non_null(strstr(err.text, "another version"));
}

static void other_disks_are_refused(void **state)
{
	publish();
	put("docker.qcow2", "changed");
	refused("changed");
	suspend_file_refuse(dir);
	assert_true(is_there(SUSPEND_BAD "/state"));
	assert_false(is_there(SUSPEND_DIR));
	publish();
	suspend_file_refuse(dir);
	suspend_file_remove(dir);
	assert_false(is_there(SUSPEND_BAD));
}

/* Every truncation of the description, and every changed byte: rejected, or equal. */
static void a_damaged_description_is_refused(void **state)
{
	AUTO_FREE char *path = at("suspend/image.json");
	AUTO_FREE char *text = NULL;
	struct suspend_file good, f;
	size_t n;

	publish();
	assert_int_equal(suspend_file_open(dir, KEY, &good, NULL), 0);
	assert_int_equal(file_load(path, SUSPEND_MAX_JSON, &text, &n, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(file_save(path, slice_of(text, i), NULL), 0);
		assert_int_equal(suspend_file_open(dir, KEY, &f, NULL), -EUCLEAN);
	}
	for (size_t i = 0; i < n; i++) {
		text[i] ^= 1;
		assert_int_equal(file_save(path, slice_of(text, n), NULL), 0);
		/* A digit of the state's own size or hash is checked against the file only. */
		if (suspend_file_open(dir, KEY, &f, NULL) == 0)
			assert_true(memcmp(f.saved, good.saved, sizeof(f.saved)) != 0 ||
				    f.format != good.format || f.at_ms != good.at_ms || !f.has_ca);
		text[i] ^= 1;
	}
}

/* The format before the memory had its own file. */
static void an_older_format_is_named(void **state)
{
	publish();
	put("suspend/image.json",
		"{\"version\":1,\"key\":\"" KEY "\",\"at_ms\":5,\"state\":{\"size\":6,\"blake2b\":"
		"\"" HASH "\"},\"disks\":[],\"ca\":\"\"}");
	refused("format 1, and this version of sbx supports formats 2 and 3");
	suspend_file_remove(dir);
	assert_false(is_there(SUSPEND_DIR));
}

/* It was written by the version before; its memory is checked by one hash. */
static void the_format_before_is_opened(void **state)
{
	AUTO_FREE char *path = at("suspend/image.json"), *text = NULL;
	char *version;
	struct suspend_file f;
	size_t n;

	publish();
	assert_int_equal(suspend_file_open(dir, KEY, &f, NULL), 0);
	assert_int_equal(f.format, 3);
	assert_int_equal(file_load(path, SUSPEND_MAX_JSON, &text, &n, NULL), 0);
	version = strstr(text, "\"version\":3");
	assert_non_null(version);
	version[strlen("\"version\":")] = '2';
	assert_int_equal(file_save(path, slice_of(text, n), NULL), 0);
	assert_int_equal(suspend_file_open(dir, KEY, &f, NULL), 0);
	assert_int_equal(f.format, 2);
}

static void a_damaged_ca_is_done_without(void **state)
{
	struct suspend_file f;

	publish();
	put("suspend/ca", "nonsense");
	assert_int_equal(suspend_file_open(dir, KEY, &f, NULL), 0);
	assert_false(f.has_ca);
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_is_kept_comes_back),
		T(it_is_used_once),
		T(what_was_not_used_is_put_back),
		T(a_full_disk_is_found_before_the_machine_ends),
		T(a_disk_that_is_full_afterwards_loses_nothing),
		T(what_was_not_finished_is_nothing),
		T(another_machine_is_refused),
		T(other_disks_are_refused),
		T(a_damaged_description_is_refused),
		T(an_older_format_is_named),
		T(the_format_before_is_opened),
		T(a_damaged_ca_is_done_without),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
