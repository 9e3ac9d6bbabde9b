/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of an overlay, without an overlay; src/sbx/test/stage_oracle_test.c has a real one
 * and tests/e2e/test_share_walls.py the one of the guest. */
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/wire/stage/stage_pack.h"
#include "lib/wire/stage/stage_read.h"

static char top[] = "/tmp/stage-pack-XXXXXX";

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static int make_top(void **state)
{
	assert_non_null(mkdtemp(top));
	assert_int_equal(chdir(top), 0);
	return 0;
}

static int remove_top(void **state)
{
	return nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void put_file(const char *path, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

/* "o dir\nf dir/a text\n": the stream as text, in its order. */
static void read_items(int fd, char *text, size_t size)
{
	static struct stage_reader r;
	static uint8_t buf[1 << 20];
	ssize_t n = pread(fd, buf, sizeof(buf), 0);
	struct slice in = slice_of(buf, (size_t)n);
	size_t at = 0;
	int ev;

	stage_reader_init(&r);
	while ((ev = stage_read(&r, &in, NULL)) != TAR_EV_END) {
		assert_true(ev == TAR_EV_ENTRY || ev == TAR_EV_DATA);
		if (ev == TAR_EV_ENTRY)
			at += (size_t)snprintf(text + at, size - at, "%c %s\n",
				stage_op_letter(r.item.op), r.item.path);
	}
}

static void pack(char *text, size_t size)
{
	AUTO_CLOSE int u = open("u", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int m = open("m", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int out = open("out", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct stage_source src = {.upper = u, .merged = m, .prefix = "user.overlay."};

	assert_int_equal(stage_pack(&src, out, NULL), 0);
	read_items(out, text, size);
}

static void a_renamed_directory_is_sent_as_the_overlay_shows_it(void **state)
{
	char text[4096] = "";

	assert_int_equal(mkdir("u", 0755) | mkdir("u/new", 0755) | mkdir("m", 0755) |
				 mkdir("m/new", 0755) | mkdir("m/new/deep", 0755),
		0);
	put_file("m/new/deep/file", "below");
	assert_int_equal(setxattr("u/new", "user.overlay.redirect", "/old/name", 9, 0), 0);
	assert_int_equal(mknod("u/old", S_IFCHR, makedev(0, 0)), 0);
	pack(text, sizeof(text));
	assert_non_null(strstr(text, "d .\n"));
	assert_non_null(strstr(text, "x old\n"));
	assert_non_null(strstr(text, "o new\no new/deep\nf new/deep/file\n"));
}

static void opaque_directories_links_and_others_have_their_operation(void **state)
{
	char text[4096] = "";

	assert_int_equal(mkdir("u/opaque", 0755) | mkdir("u/merged", 0755), 0);
	assert_int_equal(setxattr("u/opaque", "user.overlay.opaque", "y", 1, 0), 0);
	assert_int_equal(setxattr("u/merged", "user.overlay.opaque", "x", 1, 0), 0);
	assert_int_equal(symlink("a", "u/merged/link") | mkfifo("u/opaque/pipe", 0600), 0);
	pack(text, sizeof(text));
	assert_non_null(strstr(text, "o opaque\ns opaque/pipe\n"));
	assert_non_null(strstr(text, "d merged\nl merged/link\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_renamed_directory_is_sent_as_the_overlay_shows_it),
		cmocka_unit_test(opaque_directories_links_and_others_have_their_operation),
	};

	return cmocka_run_group_tests(tests, make_top, remove_top);
}
