/* SPDX-License-Identifier: Apache-2.0 */
/* A merge that is killed before each of its calls leaves disks with the same content. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/vm/template/layers_merge.h"
#include "lib/vm/vmm/disk.h"

#define KILLED 9

static char dir[] = "/tmp/layers_merge_test.XXXXXX";
static unsigned calls, kill_at; /* kill_at 0: never */
static struct template template;

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __real_unlink(const char *name);
int __wrap_unlink(const char *name);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_layers_copy(const char *from, const char *to, struct err *err);
int __wrap_disk_merge(
	const char *const *files, size_t n, const char *lower, const char *upper, struct err *err);

static void count_call(void)
{
	if (++calls == kill_at)
		_exit(KILLED);
}

int __wrap_rename(const char *from, const char *to)
{
	count_call();
	return __real_rename(from, to);
}

int __wrap_unlink(const char *name)
{
	count_call();
	return __real_unlink(name);
}

int __wrap_fsync(int fd)
{
	count_call();
	return 0;
}

static char *load(const char *path)
{
	char *text = NULL;
	size_t n;

	assert_int_equal(file_load(path, 100000, &text, &n, NULL), 0);
	return text;
}

static void put_at(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
}

/* A copy in two steps: a kill between them leaves a half. */
int __wrap_layers_copy(const char *from, const char *to, struct err *err)
{
	AUTO_FREE char *text = load(from);

	count_call();
	put_at(to, "half");
	count_call();
	put_at(to, text);
	return 0;
}

/* What a layer has is a text of letters; the content of a disk is all of them. */
int __wrap_disk_merge(
	const char *const *files, size_t n, const char *lower, const char *upper, struct err *err)
{
	AUTO_FREE char *a = load(lower), *b = load(upper), *both = xasprintf("%s%s", a, b);

	count_call();
	put_at(lower, "half");
	count_call();
	put_at(lower, both);
	return 0;
}

/* ---- the directory ---- */

static void put(const char *name, const char *text)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name);

	put_at(path, text);
}

static void put_disks(void)
{
	AUTO_FREE char *command = xasprintf("rm -rf %s && mkdir %s", dir, dir);

	assert_int_equal(system(command), 0);
	put("root.1.qcow2", "a");
	put("root.2.qcow2", "b");
	put("root.4.qcow2", "c");
	put("root.qcow2", "top");
	put("docker.1.qcow2", "d");
	calls = kill_at = 0;
}

/* "1=a 2=b 4=c ", the layers of root. */
static void must_be(const char *want)
{
	char have[256] = "";
	size_t used = 0;
	struct layers l;

	assert_int_equal(layers_find(dir, TEMPLATE_ROOT, &l), 0);
	for (size_t i = 0; i < l.n; i++) {
		AUTO_FREE char *path = layers_path(dir, TEMPLATE_ROOT, l.number[i]),
			       *text = load(path);

		used += (size_t)snprintf(
			have + used, sizeof(have) - used, "%u=%s ", l.number[i], text);
	}
	assert_string_equal(have, want);
}

static int merge(unsigned number)
{
	struct err err = {0};

	return layers_merge(&template, dir, TEMPLATE_ROOT, number, &err);
}

/* ---- tests ---- */

static void a_layer_and_the_next_become_one(void **state)
{
	AUTO_FREE char *top = layers_path(dir, TEMPLATE_ROOT, 0), *text = NULL;

	put_disks();
	assert_int_equal(merge(1), 0);
	must_be("2=ab 4=c ");
	assert_int_equal(merge(2), 0);
	must_be("4=abc ");
	text = load(top);
	assert_string_equal(text, "top");
}

static void other_numbers_are_skipped(void **state)
{
	put_disks();
	assert_int_equal(merge(3), 0);
	assert_int_equal(merge(4), 0);
	assert_int_equal(merge(9), 0);
	must_be("1=a 2=b 4=c ");
}

static void a_kill_before_each_call_leaves_the_same_content(void **state)
{
	bool killed = true;
	unsigned n;

	for (n = 1; killed; n++) {
		AUTO_FREE char *lower = layers_path(dir, TEMPLATE_ROOT, 1),
			       *upper = layers_path(dir, TEMPLATE_ROOT, 2), *text = NULL;
		int status;
		pid_t pid;

		put_disks();
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			kill_at = n;
			_exit(merge(1) < 0 ? 1 : 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 1);
		killed = WEXITSTATUS(status) == KILLED;
		/* Before, after, or both: data of `a` in two layers is the same disk. */
		text = load(upper);
		assert_true(strcmp(text, "b") == 0 ? access(lower, F_OK) == 0
						   : strcmp(text, "ab") == 0);
		/* The next merge completes it; if only the removal was left, it merges again. */
		assert_int_equal(merge(1), 0);
		assert_int_not_equal(access(lower, F_OK), 0);
	}
	assert_true(n > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_layer_and_the_next_become_one),
		cmocka_unit_test(other_numbers_are_skipped),
		cmocka_unit_test(a_kill_before_each_call_leaves_the_same_content),
	};
	AUTO_FREE char *command = NULL;
	int r;

	if (!mkdtemp(dir))
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	command = xasprintf("rm -rf %s", dir);
	return system(command) == 0 ? r : 1;
}
