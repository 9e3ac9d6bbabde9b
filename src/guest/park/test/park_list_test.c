/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include "src/guest/park/park_list.h"
#include "lib/base/mem.h"

static bool parse(const char *text, struct park_mount *m)
{
	AUTO_FREE char *line = xstrdup(text);

	return park_list_mount(line, m);
}

static void test_mountinfo(void **state)
{
	struct park_mount m;

	assert_true(parse("61 29 0:45 /src /srv/a\\040b/w ro,nosuid,nodev,relatime shared:3 - "
			  "virtiofs sbx rw",
		&m));
	assert_int_equal(m.id, 61);
	assert_true(m.dev == makedev(0, 45));
	assert_string_equal(m.root, "/src");
	assert_string_equal(m.place, "/srv/a b/w");
	assert_int_equal(m.attrs, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	free(m.root);
	free(m.place);
}

static void test_other_mounts(void **state)
{
	static const char *const lines[] = {
		"29 1 254:0 / / rw,noatime - ext4 /dev/vda rw",
		"61 29 0:45 / /x rw - virtiofsx sbx rw",
		"61 29 0:45 / - virtiofs sbx rw",
		"61 29 045 / /x rw - virtiofs sbx rw",
		"",
	};
	struct park_mount m;

	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		if (parse(lines[i], &m))
			fail_msg("%s", lines[i]);
}

static void test_fdinfo(void **state)
{
	struct park_item it = {0};

	assert_int_equal(park_list_fdinfo("pos:\t4096\nflags:\t02102001\nmnt_id:\t61\nino:\t9\n"
					  "lock:\t1: FLOCK  ADVISORY  WRITE 359 00:13:11691 0 EOF\n"
					  "lock:\t2: POSIX  ADVISORY  READ 359 00:13:11691 10 14\n",
				 &it),
		0);
	assert_int_equal(it.pos, 4096);
	assert_int_equal(it.flags, 02102001);
	assert_int_equal(it.n_locks, 2);
	assert_int_equal(it.locks[0].kind, PARK_LOCK_FLOCK);
	assert_true(it.locks[0].is_write);
	assert_int_equal(it.locks[0].len, 0);
	assert_int_equal(it.locks[1].kind, PARK_LOCK_POSIX);
	assert_false(it.locks[1].is_write);
	assert_int_equal(it.locks[1].start, 10);
	assert_int_equal(it.locks[1].len, 5);
	assert_int_equal(park_list_fdinfo("", &it), -EBADMSG);
	assert_int_equal(park_list_fdinfo("pos:\t1\n", &it), -EBADMSG);
}

/* Flags that created the file at the first open must not create or truncate it again. */
static void test_first_flags_are_dropped(void **state)
{
	struct park_item it = {0};

	assert_int_equal(park_list_fdinfo("pos:\t0\nflags:\t0101301\n", &it), 0);
	assert_int_equal(it.flags & (O_CREAT | O_EXCL | O_TRUNC), 0);
	assert_int_equal(it.flags & O_ACCMODE, O_WRONLY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mountinfo),
		cmocka_unit_test(test_other_mounts),
		cmocka_unit_test(test_fdinfo),
		cmocka_unit_test(test_first_flags_are_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
