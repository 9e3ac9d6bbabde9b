/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/vm/vmm/initrd.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

static char dir[] = "/tmp/sbx-initrd-XXXXXX";

static char *in_dir(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void run(const char *fmt, ...) PRINTF_LIKE(1, 2);

static void run(const char *fmt, ...)
{
	char cmd[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	if (system(cmd) != 0)
		fail_msg("%s", cmd);
}

/* cpio itself lists and unpacks what we wrote, modules archive and all. */
static void cpio_reads_it(void **state)
{
	AUTO_FREE char *init = in_dir("init.bin"), *mods = in_dir("mods.cpio"),
		       *out = in_dir("out");

	write_file(init, "#!/bin/sh\necho 12345\n", 0600); /* not a multiple of four */
	run("mkdir %s/m %s/m/modules && echo one > %s/m/modules/00-a.ko && cd %s/m && "
	    "find modules | cpio --quiet -o -H newc > %s",
		dir, dir, dir, dir, mods);
	assert_int_equal(initrd_write(out, init, mods, NULL), 0);
	run("test $(( $(stat -c %%s %s) %% 4 )) = 0", out);
	run("mkdir %s/x && cd %s/x && cpio --quiet -i < %s && test -x init && cmp init %s && "
	    "test -d dev -a -d proc -a -d sys -a -d root",
		dir, dir, out, init);
	/* cpio stops at the first trailer; the rest, found behind it, is the archive as it was. */
	run("tail -c $(stat -c %%s %s) %s | cmp - %s", mods, out, mods);
}

static void same_input_same_bytes(void **state)
{
	AUTO_FREE char *init = in_dir("init.bin"), *mods = in_dir("mods.cpio");
	AUTO_FREE char *one = in_dir("one"), *two = in_dir("two"), *copy = in_dir("copy");

	assert_int_equal(initrd_write(one, init, mods, NULL), 0);
	run("cp %s %s && touch -d 2001-01-01 %s", init, copy, copy);
	assert_int_equal(initrd_write(two, copy, mods, NULL), 0);
	run("cmp %s %s", one, two);
}

/* The old one stays whole when the new one cannot be written, and no scrap is left. */
static void failure_leaves_nothing(void **state)
{
	AUTO_FREE char *init = in_dir("init.bin"), *gone = in_dir("gone"), *dest = in_dir("dest");
	AUTO_FREE char *empty = in_dir("empty");
	struct err err = {};

	write_file(dest, "old", 0600);
	write_file(empty, "", 0600);
	assert_int_equal(initrd_write(dest, init, gone, &err), -ENOENT);
	assert_non_null(strstr(err.text, "gone"));
	assert_int_equal(initrd_write(dest, empty, NULL, &err), -EINVAL);
	run("test \"$(cat %s)\" = old && ! ls %s/dest.* 2>/dev/null", dest, dir);
}

static int make_dir(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	run("rm -r %s", dir);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpio_reads_it),
		cmocka_unit_test(same_input_same_bytes),
		cmocka_unit_test(failure_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
