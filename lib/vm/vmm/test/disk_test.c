/* SPDX-License-Identifier: Apache-2.0 */
/* Real images, made and read with qemu-img. */
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
#include <sys/statvfs.h>
#include <unistd.h>
#include "lib/vm/vmm/disk.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define BASE_BYTES (64ULL << 20)

static char dir[] = "/tmp/sbx-disk-XXXXXX";
static char base[64], overlay[64];

static void makes_an_overlay(void **state)
{
	AUTO_FREE char *cmd = xasprintf("qemu-img info -U %s | grep -q 'virtual size: 64 MiB' && "
					"test $(stat -c %%b %s) -lt 1000"
					" && ! ls %s/*.new-* 2>/dev/null",
		overlay, overlay, dir);
	struct stat st;

	assert_int_equal(disk_make(overlay, base, 0, NULL), 0);
	assert_int_equal(system(cmd), 0);
	assert_int_equal(stat(overlay, &st), 0);
	assert_int_equal(disk_make(overlay, base, 0, NULL), -EEXIST);
}

static void grows_but_never_shrinks(void **state)
{
	AUTO_FREE char *big = xasprintf("%s/big", dir), *small = xasprintf("%s/small", dir);
	AUTO_FREE char *cmd = xasprintf("qemu-img info %s | grep -q 'virtual size: 128 MiB'", big);
	struct err err = {};

	assert_int_equal(disk_make(big, base, 2 * BASE_BYTES, NULL), 0);
	assert_int_equal(system(cmd), 0);
	assert_int_equal(disk_make(small, base, BASE_BYTES / 2, &err), -EINVAL);
	assert_non_null(strstr(err.text, "smaller"));
	assert_int_equal(access(small, F_OK), -1);
}

static void a_chain_is_as_large_as_its_last_layer(void **state)
{
	AUTO_FREE char *layer = xasprintf("%s/layer", dir), *flat = xasprintf("%s/flat", dir);
	const char *files[] = {base, layer};
	const uint8_t huge[8] = {0, 0, 1, 0, 0, 0, 0, 1}; /* 1 TiB and a byte */
	AUTO_CLOSE int fd = -1;
	uint64_t size = 0;
	struct err err = {};
	struct stat st;

	assert_int_equal(disk_chain_size(files, 1, &size, NULL), 0);
	assert_int_equal(size, BASE_BYTES);
	assert_int_equal(disk_make(layer, base, 2 * BASE_BYTES, NULL), 0);
	assert_int_equal(disk_chain_size(files, 2, &size, NULL), 0);
	assert_int_equal(size, 2 * BASE_BYTES);
	assert_int_equal(disk_flatten(files, 2, flat, NULL), 0);
	assert_int_equal(stat(flat, &st), 0);
	assert_int_equal(st.st_size, 2 * BASE_BYTES);
	fd = open(layer, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, huge, 8, 24), 8);
	assert_int_equal(disk_chain_size(files, 2, &size, &err), -EUCLEAN);
	assert_int_equal(ftruncate(fd, 31), 0);
	assert_int_equal(disk_chain_size(files, 2, &size, &err), -EUCLEAN);
	assert_int_equal(disk_chain_size((const char *[]){base, base}, 2, &size, &err), -EUCLEAN);
}

/* The qemu of a running sandbox has its layers open, and locks what it opened to write. */
static void a_layer_that_qemu_has_open_is_read(void **state)
{
	AUTO_FREE char *flat = xasprintf("%s/of-live", dir);
	const char *files[] = {base, overlay};
	AUTO_CLOSE int fd = open(overlay, O_RDWR | O_CLOEXEC);
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 100, .l_len = 4};
	struct err err = {};

	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0); /* what it does ... */
	lock.l_start = 201;
	lock.l_len = 1;
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0); /* ... and nobody else may: write */
	if (disk_flatten(files, 2, flat, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(unlink(flat), 0);
}

int __wrap_statvfs64(const char *path, struct statvfs *v);
int __real_statvfs64(const char *path, struct statvfs *v);
static uint64_t n_free; /* in MiB; 0: as the disk has it */

int __wrap_statvfs64(const char *path, struct statvfs *v)
{
	int r = __real_statvfs64(path, v);

	if (n_free) {
		v->f_frsize = 1 << 20;
		v->f_bavail = n_free;
	}
	return r;
}

/* ZM5 d: a few MB of layers may become much, and other sandboxes are paused on a full disk. */
static void a_disk_that_is_almost_full_gets_no_flat_image(void **state)
{
	AUTO_FREE char *flat = xasprintf("%s/no-flat", dir);
	const char *files[] = {base, overlay};
	struct err err = {};

	n_free = 511;
	assert_int_equal(disk_flatten(files, 2, flat, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "512 MiB"));
	assert_int_equal(access(flat, F_OK), -1);
	n_free = 512;
	assert_int_equal(disk_flatten(files, 2, flat, &err), 0);
	n_free = 0;
	assert_int_equal(unlink(flat), 0);
}

static void says_why_not(void **state)
{
	AUTO_FREE char *lost = xasprintf("%s/no/such/folder", dir);
	AUTO_FREE char *gone = xasprintf("%s/gone.img", dir);
	AUTO_FREE char *path = xasprintf("%s/x", dir);
	struct err err = {};

	assert_int_equal(disk_make(path, gone, 0, &err), -ENOENT);
	assert_int_equal(disk_make(path, "relative.img", 0, &err), -ENOENT);
	assert_int_equal(disk_make(lost, base, 0, &err), -ENOENT);
	assert_non_null(strstr(err.text, "No such file"));
}

/* A qemu that was killed may still hold its locks when the next one starts. */
static void a_locked_disk_is_waited_for(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/locked", dir);
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 201, .l_len = 1};
	AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct err err = {};

	assert_int_equal(disk_wait_free(path, 0, &err), 0);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
	assert_int_equal(disk_wait_free(path, 60, &err), -EBUSY);
	assert_non_null(strstr(err.text, "another process uses"));
	if (fork() == 0) { /* shares the lock, and ends a moment later */
		usleep(200000);
		_exit(0);
	}
	fd_close(&fd);
	assert_int_equal(disk_wait_free(path, 5000, &err), 0);
	assert_int_equal(disk_wait_free("/nowhere/at/all", 0, &err), -ENOENT);
}

static int make_dir(void **state)
{
	int fd;

	if (!mkdtemp(dir))
		return -1;
	snprintf(base, sizeof(base), "%s/base.img", dir);
	snprintf(overlay, sizeof(overlay), "%s/root.qcow2", dir);
	fd = open(base, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
	if (fd < 0 || ftruncate(fd, BASE_BYTES) < 0)
		return -1;
	return close(fd);
}

static int remove_dir(void **state)
{
	AUTO_FREE char *cmd = xasprintf("rm -rf %s", dir);

	return system(cmd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(makes_an_overlay),
		cmocka_unit_test(grows_but_never_shrinks),
		cmocka_unit_test(a_chain_is_as_large_as_its_last_layer),
		cmocka_unit_test(a_disk_that_is_almost_full_gets_no_flat_image),
		cmocka_unit_test(a_layer_that_qemu_has_open_is_read),
		cmocka_unit_test(says_why_not),
		cmocka_unit_test(a_locked_disk_is_waited_for),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
