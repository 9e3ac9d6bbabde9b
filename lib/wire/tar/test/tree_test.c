/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/tar/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/fs/fd.h"

static char dir[64];

static void sh(const char *command)
{
	assert_int_equal(system(command), 0);
}

static int in_new_dir(void **state)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/sbx-tree-test.XXXXXX");
	return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int away(void **state)
{
	char command[192];

	(void)snprintf(command, sizeof(command), "chmod -R u+rwx %s; rm -rf %s", dir, dir);
	return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

/* Both halves as `sbx cp` runs them: the packer in a child, through a pipe. */
static int copy(const char *from, const char *to, unsigned flags, struct err *err)
{
	char as[256];
	int fds[2], status, r;
	pid_t pid;

	tree_base_name(from, as, sizeof(as));
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0)
		_exit(tree_pack_path(from, flags, fds[1], NULL, NULL) < 0);
	close(fds[1]);
	r = tree_unpack_path(fds[0], to, as, 0, NULL, err);
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return r < 0 ? r : status ? -EIO : 0;
}

#define DUMP "find . -printf '%P %y %m %s %T@ %l %n\\n' | sed 's/ d \\([0-9]*\\) [0-9]* / d \\1 /'"

static void everything_comes_back_the_same(void **state)
{
	struct err err;

	sh("mkdir -p a/sub/deep && echo hi > a/f && chmod 640 a/f && ln -s ../nowhere a/l"
	   " && ln a/f a/sub/hard && : > a/empty && chmod 755 a/empty"
	   " && touch -h -d '2001-02-03 04:05:06.123456789' a/l a/f a/empty && chmod 555 a/sub/deep"
	   " && head -c 3000000 /dev/urandom > a/big && mkdir a/$(printf 'n%.0s' $(seq 200))"
	   " && touch -d '1969-12-31 23:59:58.25' a/$(printf 'n%.0s' $(seq 200))/old"
	   " && chmod 500 a/sub && touch -d '2002-03-04' a/sub");
	assert_int_equal(copy("a", "b", 0, &err), 0);
	sh("(cd a && " DUMP ") | sort > 1; (cd b && " DUMP ") | sort > 2; diff 1 2");
	sh("cmp a/big b/big && test b/f -ef b/sub/hard");
}

static void directory_rules(void **state)
{
	struct err err;

	sh("mkdir s d && echo 1 > s/f && echo old > g");
	assert_int_equal(copy("s", "d", 0, &err), 0);
	sh("test -f d/s/f");
	assert_int_equal(copy("s", "d/new", 0, &err), 0);
	sh("test -f d/new/f");
	assert_int_equal(copy("s/.", "d", 0, &err), 0);
	sh("test -f d/f");
	assert_int_equal(copy("s/f", "d/", 0, &err), 0);
	assert_int_equal(copy("s/f", "g", 0, &err), 0);
	sh("cmp s/f g");
	assert_int_equal(copy("s/f", "none/", 0, &err), -ENOTDIR);
	assert_int_equal(copy("s", "g", 0, &err), -ENOTDIR);
	assert_int_equal(copy("s/f", "g/", 0, &err), -ENOTDIR);
	assert_int_equal(copy("s/f", "none/such/f", 0, &err), -ENOENT);
	assert_int_equal(copy("s", "none2/", 0, &err), 0);
	sh("test -f none2/f && ! test -e none");
}

static void links_at_the_source(void **state)
{
	struct err err;

	sh("mkdir real && echo 1 > real/f && ln -s real l && ln -s real/f lf");
	assert_int_equal(copy("l", "c1", 0, &err), 0);
	sh("test -L c1");
	assert_int_equal(copy("l", "c2", TREE_FOLLOW, &err), 0);
	sh("test -d c2 && ! test -L c2 && test -f c2/f");
	assert_int_equal(copy("l/", "c3", 0, &err), 0);
	sh("test -d c3 && ! test -L c3");
	assert_int_equal(copy("lf", "c4", TREE_FOLLOW, &err), 0);
	sh("test -f c4 && ! test -L c4");
}

static void special_files_are_left_out(void **state)
{
	struct err err;

	sh("mkdir s && mkfifo s/fifo && echo 1 > s/f");
	assert_int_equal(copy("s", "d", 0, &err), 0);
	sh("test -f d/f && ! test -e d/fifo");
	assert_true(copy("s/fifo", "x", 0, &err) < 0);
}

/* What is there is replaced, never written through; a folder keeps its own mode. */
static void what_is_there(void **state)
{
	struct err err;

	sh("mkdir s d && echo new > s/f && echo keep > precious && ln precious d/f && chmod 700 d"
	   " && echo new > s/g && ln -s ../precious d/g && chmod 755 s");
	assert_int_equal(copy("s/.", "d", 0, &err), 0);
	sh("grep -q keep precious && grep -q new d/f && grep -q new d/g && ! test -L d/g"
	   " && test $(stat -c %a d) = 700");
	sh("mkdir d2 && ln -s .. d2/s");
	assert_int_equal(copy("s", "d2", 0, &err), -EEXIST);
	sh("mkdir -p d3/f");
	assert_int_equal(copy("s/f", "d3", 0, &err), -EISDIR);
}

static void set_id_bits_are_dropped(void **state)
{
	struct err err;

	sh("mkdir s && echo 1 > s/f && chmod 6755 s/f && chmod 2775 s && mkdir s/t && chmod 1777 "
	   "s/t");
	assert_int_equal(copy("s", "d", 0, &err), 0);
	sh("test $(stat -c %a d/f) = 755 && test $(stat -c %a d) = 775 && test $(stat -c %a d/t) = "
	   "1777");
}

static void base_names(void **state)
{
	static const char *const rows[][2] = {{"a", "a"}, {"/a/b", "b"}, {"a/b/", "b"},
		{"a/.", "."}, {"/", "."}, {"..", "."}, {"a/..", "."}, {".", "."}, {"//", "."},
		{"./x", "x"}};
	char buf[64];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		tree_base_name(rows[i][0], buf, sizeof(buf));
		assert_string_equal(buf, rows[i][1]);
	}
}

#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, in_new_dir, away)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIR(everything_comes_back_the_same),
		IN_DIR(directory_rules),
		IN_DIR(links_at_the_source),
		IN_DIR(special_files_are_left_out),
		IN_DIR(what_is_there),
		IN_DIR(set_id_bits_are_dropped),
		cmocka_unit_test(base_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
