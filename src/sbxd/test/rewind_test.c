/* SPDX-License-Identifier: Apache-2.0 */
/* A rewind that is killed before each of its calls leaves the state before or after it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "src/sbxd/disk/rewind.h"

#define ID "0123456789ab"
#define KILLED 9

static char root[] = "/tmp/rewind_test.XXXXXX";
static char *dir;
static unsigned calls, kill_at; /* kill_at 0: never */
static bool is_saving;

int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __real_unlinkat(int at, const char *name, int flags);
int __wrap_unlinkat(int at, const char *name, int flags);
int __real_unlink(const char *name);
int __wrap_unlink(const char *name);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __real_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int __real_file_save(const char *path, struct slice content, struct err *err);
int __wrap_file_save(const char *path, struct slice content, struct err *err);

static void count_call(void)
{
	if (++calls == kill_at)
		_exit(KILLED);
}

int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	count_call();
	return __real_renameat(from_dir, from, to_dir, to);
}

int __wrap_unlinkat(int at, const char *name, int flags)
{
	count_call();
	return __real_unlinkat(at, name, flags);
}

int __wrap_unlink(const char *name)
{
	count_call();
	return __real_unlink(name);
}

int __wrap_rename(const char *from, const char *to)
{
	if (!is_saving) /* the last step of a save is not one of its own */
		count_call();
	return __real_rename(from, to);
}

int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
	count_call();
	return __real_linkat(from_dir, from, to_dir, to, flags);
}

int __wrap_file_save(const char *path, struct slice content, struct err *err)
{
	int r;

	count_call();
	is_saving = true;
	r = __real_file_save(path, content, err);
	is_saving = false;
	return r;
}

/* ---- the directory ---- */

static void put(const char *name, const char *text)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name);

	is_saving = true;
	assert_int_equal(__real_file_save(path, slice_from_str(text), NULL), 0);
	is_saving = false;
}

static void clear(void)
{
	AUTO_FREE char *command = xasprintf("rm -rf %s && mkdir %s", dir, dir);

	assert_int_equal(system(command), 0);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "root.1.qcow2=one root.qcow2=two", the disk files with their contents, then the labels. */
static void describe(char *buf, size_t size)
{
	char *names[64], *text;
	size_t n = 0, used = 0;
	struct dirent *e;
	DIR *d = opendir(dir);

	assert_non_null(d);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.' && strcmp(e->d_name, "checkpoints") != 0)
			names[n++] = xstrdup(e->d_name);
	(void)closedir(d);
	qsort(names, n, sizeof(names[0]), by_name);
	for (size_t i = 0; i < n; i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", dir, names[i]);
		size_t length;

		assert_int_equal(file_load(path, 100000, &text, &length, NULL), 0);
		used += (size_t)snprintf(buf + used, size - used, "%s=%s ", names[i], text);
		free(text);
		free(names[i]);
	}
}

static void must_be(const char *want, const char *labels)
{
	static struct checkpoints l;
	char buf[4096] = "", have[512] = "";
	size_t used = 0;

	describe(buf, sizeof(buf));
	assert_string_equal(buf, want);
	assert_int_equal(checkpoints_load(ID, &l, NULL), 0);
	for (size_t i = 0; i < l.n; i++)
		used += (size_t)snprintf(have + used, sizeof(have) - used, "%s ", l.v[i].label);
	assert_string_equal(have, labels);
}

#define BEFORE                                                                                 \
	"docker.1.qcow2=d1 docker.2.qcow2=d2 docker.qcow2=dt root.1.qcow2=r1 root.2.qcow2=r2 " \
	"root.4.qcow2=r4 root.qcow2=rt "
#define AFTER                                                                              \
	"docker.1.qcow2=d1 docker.aside.2.qcow2=d2 docker.aside.qcow2=dt root.1.qcow2=r1 " \
	"root.2.qcow2=r2 root.aside.4.qcow2=r4 root.aside.qcow2=rt "

/* Checkpoints a (root 2, docker 1) and b (root 4, docker 2), and newer tops. */
static void put_sandbox(void)
{
	static struct checkpoints l;

	clear();
	put("root.1.qcow2", "r1");
	put("root.2.qcow2", "r2");
	put("root.4.qcow2", "r4");
	put("root.qcow2", "rt");
	put("docker.1.qcow2", "d1");
	put("docker.2.qcow2", "d2");
	put("docker.qcow2", "dt");
	l = (struct checkpoints){
		.v = {{.label = "a", .layer = {2, 1}}, {.label = "b", .layer = {4, 2}}}, .n = 2};
	assert_int_equal(checkpoints_save(ID, &l, NULL), 0);
	calls = kill_at = 0;
}

static void rewind_to(const char *label)
{
	struct err err = {0};

	if (rewind_begin(ID, label, &err) < 0)
		fail_msg("%s", err.text);
}

/* ---- tests ---- */

static void layers_above_are_set_aside_and_come_back(void **state)
{
	put_sandbox();
	rewind_to("a");
	must_be(AFTER, "a ");
	rewind_to(NULL);
	must_be(BEFORE, "a b ");
}

static void undo_exchanges_so_it_can_be_undone(void **state)
{
	put_sandbox();
	rewind_to("a");
	put("root.qcow2", "new");
	rewind_to(NULL);
	must_be("docker.1.qcow2=d1 docker.2.qcow2=d2 docker.qcow2=dt root.1.qcow2=r1 "
		"root.2.qcow2=r2 root.4.qcow2=r4 root.aside.qcow2=new root.qcow2=rt ",
		"a b ");
	rewind_to(NULL);
	must_be("docker.1.qcow2=d1 docker.aside.2.qcow2=d2 docker.aside.qcow2=dt root.1.qcow2=r1 "
		"root.2.qcow2=r2 root.aside.4.qcow2=r4 root.aside.qcow2=rt root.qcow2=new ",
		"a ");
}

static void the_next_rewind_removes_what_the_last_one_set_aside(void **state)
{
	put_sandbox();
	rewind_to("b");
	must_be("docker.1.qcow2=d1 docker.2.qcow2=d2 docker.aside.qcow2=dt root.1.qcow2=r1 "
		"root.2.qcow2=r2 root.4.qcow2=r4 root.aside.qcow2=rt ",
		"a b ");
	rewind_to("a");
	must_be("docker.1.qcow2=d1 docker.aside.2.qcow2=d2 root.1.qcow2=r1 root.2.qcow2=r2 "
		"root.aside.4.qcow2=r4 ",
		"a ");
}

/* Kills `label` before call n. Returns false if it needs fewer calls. */
static bool kill_before(const char *label, unsigned n)
{
	struct err err = {0};
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		kill_at = n;
		_exit(rewind_begin(ID, label, &err) < 0 ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 1);
	return WEXITSTATUS(status) == KILLED;
}

/* The settling process is killed before each of its calls too. */
static void settle_with_kills(void)
{
	bool killed = true;

	for (unsigned n = 1; killed; n++) {
		struct err err = {0};
		pid_t pid = fork();
		int status;

		assert_true(pid >= 0);
		if (pid == 0) {
			calls = 0;
			kill_at = n % 4 + 1;
			_exit(rewind_settle(ID, &err) < 0 ? 1 : 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 1);
		killed = WEXITSTATUS(status) == KILLED && n < 64;
	}
	assert_int_equal(rewind_settle(ID, NULL), 0);
}

static void a_kill_before_each_call_leaves_before_or_after(void **state)
{
	bool killed = true;
	unsigned n;

	for (n = 1; killed; n++) {
		put_sandbox();
		killed = kill_before("a", n);
		settle_with_kills();
		/* Call 1 writes the plan. */
		must_be(n == 1 ? BEFORE : AFTER, n == 1 ? "a b " : "a ");
	}
	assert_true(n > 8);
}

static void an_undo_that_is_killed_leaves_before_or_after(void **state)
{
	bool killed = true;
	unsigned n;

	for (n = 1; killed; n++) {
		put_sandbox();
		rewind_to("a");
		calls = 0;
		killed = kill_before(NULL, n);
		settle_with_kills();
		must_be(n == 1 ? AFTER : BEFORE, n == 1 ? "a " : "a b ");
	}
	assert_true(n > 8);
}

/* Checkpoint a has memory. */
static void put_memory(void)
{
	static const char *const names[] = {
		"state", "memory", "memory.sums", "ca", "root.qcow2", "docker.qcow2"};
	static struct checkpoints l;
	AUTO_FREE char *at = xasprintf("%s/memory.7", dir);

	put_sandbox();
	assert_int_equal(checkpoints_load(ID, &l, NULL), 0);
	l.v[0].seq = 7;
	l.v[0].has_memory = true;
	assert_int_equal(checkpoints_save(ID, &l, NULL), 0);
	assert_int_equal(mkdir(at, 0700), 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO_FREE char *path = xasprintf("memory.7/%s", names[i]);

		put(path, names[i]);
	}
	put("memory.7/image.json", "{\"version\":3,\"disks\":[]}");
	calls = 0;
}

static bool is_there(const char *name)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name);
	struct stat st;

	return lstat(path, &st) == 0;
}

static void must_have(const char *name, const char *text)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name), *is = NULL;
	size_t n;

	assert_int_equal(file_load(path, 1000, &is, &n, NULL), 0);
	assert_string_equal(is, text);
}

/* The next start resumes: image.json names the tops that are there. */
static void must_be_suspended(void)
{
	AUTO_FREE char *path = xasprintf("%s/suspend/image.json", dir),
		       *top = xasprintf("%s/root.qcow2", dir), *text = NULL, *want = NULL;
	struct stat st;
	size_t n;

	assert_int_equal(file_load(path, 1000, &text, &n, NULL), 0);
	assert_int_equal(stat(top, &st), 0);
	want = xasprintf("\"mtime_ns\":%lld}",
		(long long)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
	assert_non_null(strstr(text, want));
	must_have("root.qcow2", "root.qcow2");
	must_have("docker.qcow2", "docker.qcow2");
	must_have("suspend/memory", "memory");
	must_have("suspend/ca", "ca");
	must_have("root.aside.qcow2", "rt");
	must_have("docker.aside.2.qcow2", "d2");
	assert_true(is_there("memory.7/image.json") && !is_there("suspend.new") &&
		    !is_there("rewind") && !is_there("root.4.qcow2"));
}

static void a_kill_before_each_call_leaves_the_memory_too(void **state)
{
	bool killed = true;
	unsigned n;

	for (n = 1; killed; n++) {
		put_memory();
		killed = kill_before("a", n);
		if (n > 1)
			settle_with_kills();
		if (n > 1)
			must_be_suspended();
		else
			assert_true(!is_there("suspend") && is_there("root.4.qcow2"));
	}
	assert_true(n > 16);
}

static void what_does_not_exist_is_refused(void **state)
{
	struct err err = {0};

	put_sandbox();
	assert_int_equal(rewind_check(ID, "c", &err), -ENOENT);
	assert_int_equal(rewind_begin(ID, "c", &err), -ENOENT);
	assert_int_equal(rewind_check(ID, NULL, &err), -ENOENT);
	assert_int_equal(rewind_settle(ID, &err), 0);
	must_be(BEFORE, "a b ");
}

#define NEGATIVE                                                              \
	"{\"undo\":false,\"step\":1,\"list\":{\"checkpoints\":[],\"aside\":{" \
	"\"set_aside_at\":1,\"layers\":{\"root\":-1,\"docker\":0},\"checkpoints\":[]}}}"

/* A compromised keeper can write the plan. */
static void a_bad_plan_moves_nothing(void **state)
{
	static const char *const plans[] = {"", "{}", "{\"undo\":true,\"step\":4,\"list\":{}}",
		"{\"undo\":false,\"step\":2,\"list\":{\"checkpoints\":[]}}", (NEGATIVE)};

	for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
		struct err err = {0};
		char buf[4096] = "";

		put_sandbox();
		put("rewind", plans[i]);
		assert_int_equal(rewind_settle(ID, &err), -EBADMSG);
		describe(buf, sizeof(buf));
		assert_null(strstr(buf, ".aside."));
		assert_null(strstr(buf, ".hold."));
	}
}

static void other_files_stay(void **state)
{
	put_sandbox();
	put("root.next.qcow2", "n");
	put("machine-id", "m");
	rewind_to("a");
	must_be("docker.1.qcow2=d1 docker.aside.2.qcow2=d2 docker.aside.qcow2=dt machine-id=m "
		"root.1.qcow2=r1 root.2.qcow2=r2 root.aside.4.qcow2=r4 root.aside.qcow2=rt "
		"root.next.qcow2=n ",
		"a ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layers_above_are_set_aside_and_come_back),
		cmocka_unit_test(undo_exchanges_so_it_can_be_undone),
		cmocka_unit_test(the_next_rewind_removes_what_the_last_one_set_aside),
		cmocka_unit_test(a_kill_before_each_call_leaves_before_or_after),
		cmocka_unit_test(an_undo_that_is_killed_leaves_before_or_after),
		cmocka_unit_test(a_kill_before_each_call_leaves_the_memory_too),
		cmocka_unit_test(what_does_not_exist_is_refused),
		cmocka_unit_test(a_bad_plan_moves_nothing),
		cmocka_unit_test(other_files_stay),
	};
	AUTO_FREE char *sandboxes = NULL, *command = NULL;
	int r;

	if (!mkdtemp(root) || setenv("XDG_STATE_HOME", root, 1) < 0)
		return 1;
	sandboxes = xasprintf("mkdir -p -m 700 %s/sbx/sandboxes", root);
	dir = xasprintf("%s/sbx/sandboxes/" ID, root);
	if (system(sandboxes) != 0)
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	command = xasprintf("rm -rf %s", root);
	return system(command) == 0 ? r : 1;
}
