/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/vm/vmm/helper.h"
#include "lib/vm/vmm/test/memory_fixture.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define KEY "0123456789abcdef0123456789abcdef"
#define OTHER "ffffffffffffffff0123456789abcdef"
#define STEP_MS 10000
#define MEMORY (256 << 20)
#define FAR (MEMORY - 4096)

static char dir[256];
/* A directory on a file system whose files can share blocks (tests/long/memory-clone). */
static const char *clone_fs;
static char initrd[300];
static struct image_class class = {.template_id = "tid"};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static int prepare(void **state)
{
	clone_fs = getenv("SBX_TEST_CLONE_FS");
	snprintf(dir, sizeof(dir), "%s/sbx-image-XXXXXX", clone_fs ? clone_fs : "/tmp");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(setenv("XDG_STATE_HOME", dir, 1), 0);
	snprintf(initrd, sizeof(initrd), "%s/initrd", dir);
	write_to(initrd, "initrd");
	class.initrd = initrd;
	return 0;
}

static int clean(void **state)
{
	return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static char *in_store(const char *key, const char *name)
{
	return xasprintf("%s/sbx/warm/%s/%s", dir, key, name);
}

static void wait_for(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, STEP_MS), 1);
}

static const char stream[] = "QEVM\0\0\0\3\4whatever devices say";

/* A guest that has used three pages of its memory, the last of them only for zeros. */
static int guest_memory(const char *in)
{
	int fd = vmm_memory_new(MEMORY, in, NULL);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "first", 5, 0), 5);
	assert_int_equal(pwrite(fd, "far", 3, FAR), 3);
	assert_int_equal(pwrite(fd, "", 1, MEMORY / 2), 1);
	return fd;
}

static int save_memory(int memory, const char *to, const char *bytes, size_t n,
	struct image_file ret[IMAGE_N_SAVED], struct err *err)
{
	uint64_t before = memory_used(memory);
	struct image_save save;
	int fd, r = image_save_begin(to, memory, false, &save, &fd, err);

	assert_int_equal(r, 0);
	/* the other end may be gone: too much was written */
	(void)!fd_write_all(fd, bytes, n);
	close(fd);
	wait_for(save.pidfd);
	/* Saving must not make the guest's memory larger. */
	assert_int_equal(memory_used(memory), before);
	return image_save_end(&save, ret, err);
}

static int save_machine(const char *to, const char *bytes, size_t n,
	struct image_file ret[IMAGE_N_SAVED], struct err *err)
{
	AUTO_CLOSE int memory = guest_memory(NULL);

	return save_memory(memory, to, bytes, n, ret, err);
}

/* An image as the keeper makes it. */
static void make(const char *key, const struct image_class *c)
{
	struct image_draft d;
	struct image_file files[IMAGE_N_SAVED];
	struct err err = {};
	char path[4096];

	assert_int_equal(image_draft_begin(key, &d, &err), 0);
	snprintf(path, sizeof(path), "%s/root.qcow2", d.dir);
	write_to(path, "root");
	snprintf(path, sizeof(path), "%s/docker.qcow2", d.dir);
	write_to(path, "docker");
	snprintf(path, sizeof(path), "%s/lock", d.dir);
	write_to(path, "a stranger");
	assert_int_equal(save_machine(d.dir, stream, sizeof(stream), files, &err), 0);
	assert_int_equal(files[IMAGE_STATE].size, sizeof(stream));
	assert_int_equal(files[IMAGE_MEMORY].size, MEMORY);
	assert_int_equal(image_finish(&d, c, files, &err), 0);
	assert_int_equal(image_publish(&d, &err), 0);
	image_draft_done(&d);
}

static void memory_must_be_restored(int fd)
{
	char text[8] = "";
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, MEMORY);
	assert_int_equal(pread(fd, text, 6, 0), 6);
	assert_string_equal(text, "first");
	assert_int_equal(pread(fd, text, 4, FAR), 4);
	assert_string_equal(text, "far");
	/* two pages: zeros are not kept, unless blocks of the machine's own file are shared */
	assert_in_range(memory_used(fd), 2 * 4096, (clone_fs ? 8 : 2) * 4096);
}

/* As the keeper uses it: 0 when all of it was right. */
static int use(const char *key, struct err *err)
{
	AUTO_FREE char *root = xasprintf("%s/root", dir), *docker = xasprintf("%s/docker", dir);
	AUTO_IMAGE struct image image = {};
	struct image_check check = IMAGE_CHECK_EMPTY;
	int r = image_open(key, &image, err);

	if (r == 0)
		r = image_copy_disk(&image, IMAGE_ROOT, root, err);
	if (r == 0)
		r = image_copy_disk(&image, IMAGE_DOCKER, docker, err);
	if (r == 0)
		r = image_check_open(image.dir, IMAGE_FORMAT, image.files, NULL, &check, err);
	if (r == 0) {
		/* As a qemu that waited with this memory: discarded. */
		assert_int_equal(pwrite(check.memory_fd, "old", 3, FAR / 2), 3);
		r = image_check_begin(&check, image.files, err);
	}
	if (r == 0) {
		wait_for(check.pidfd);
		r = image_check_end(&check, err);
		assert_int_equal(check.fd >= 0, r == 0);
	}
	if (r == 0)
		memory_must_be_restored(check.memory_fd);
	image_check_done(&check);
	if (r < 0 && r != -ENOENT)
		assert_true(err->text[0] != 0);
	/* Nothing of a wrong overlay is left behind. */
	if (r < 0 && access(root, F_OK) < 0)
		assert_int_equal(access(docker, F_OK), -1);
	(void)unlink(root);
	(void)unlink(docker);
	return r;
}

/* Whether the first extent is of another file, too. */
static bool is_shared(int fd)
{
	AUTO_FREE struct fiemap *q = xcalloc(1, sizeof(*q) + sizeof(struct fiemap_extent));

	*q = (struct fiemap){
		.fm_length = MEMORY, .fm_flags = FIEMAP_FLAG_SYNC, .fm_extent_count = 1};
	return ioctl(fd, FS_IOC_FIEMAP, q) == 0 && q->fm_mapped_extents == 1 &&
	       (q->fm_extents[0].fe_flags & FIEMAP_EXTENT_SHARED);
}

static void flip(const char *path, off_t at)
{
	int fd = chmod(path, 0600) == 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
	char c;

	assert_int_equal(pread(fd, &c, 1, at), 1);
	c ^= 1;
	assert_int_equal(pwrite(fd, &c, 1, at), 1);
	close(fd);
}

static void write_at(const char *path, off_t at, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_int_equal(pwrite(fd, text, strlen(text), at), strlen(text));
}

static int check_format(
	const char *in, int format, const struct image_file want[IMAGE_N_SAVED], struct err *err)
{
	struct image_check check = IMAGE_CHECK_EMPTY;
	struct stat st;
	int r = image_check_open(in, format, want, dir, &check, err);

	assert_int_equal(r, 0);
	assert_int_equal(image_check_begin(&check, want, NULL), 0);
	wait_for(check.pidfd);
	r = image_check_end(&check, err);
	if (r == 0) {
		assert_int_equal(is_shared(check.memory_fd), clone_fs != NULL);
		memory_must_be_restored(check.memory_fd);
		assert_int_equal(fstat(check.memory_fd, &st), 0);
		assert_int_equal(st.st_nlink, 0);
		assert_int_equal(st.st_mode & 07777, 0600);
	}
	image_check_done(&check);
	return r;
}

static int check_saved(const char *in, const struct image_file want[IMAGE_N_SAVED])
{
	return check_format(in, IMAGE_FORMAT, want, NULL);
}

/* Saves the same memory twice: is_own says whether its own file must be in the folder. */
static void save_to(const char *folder, int memory, bool is_own, struct image_file *ret)
{
	AUTO_FREE char *to = xasprintf("%s/%s", dir, folder), *path = xasprintf("%s/memory", to);
	struct err err = {};
	struct stat own, saved;

	assert_int_equal(mkdir(to, 0700), 0);
	assert_int_equal(save_memory(memory, to, stream, sizeof(stream), ret, &err), 0);
	assert_int_equal(fstat(memory, &own), 0);
	assert_int_equal(stat(path, &saved), 0);
	assert_int_equal(own.st_ino == saved.st_ino, is_own);
	assert_int_equal(saved.st_mode & 07777, 0400);
	assert_int_equal(check_saved(to, ret), 0);
}

static void memory_in_a_file_is_not_copied_when_it_is_saved(void **state)
{
	AUTO_FREE char *first = xasprintf("%s/one/memory", dir);
	AUTO_FREE char *two = xasprintf("%s/two", dir), *second = xasprintf("%s/memory", two);
	AUTO_CLOSE int memory = guest_memory(dir);
	struct image_file a[IMAGE_N_SAVED], b[IMAGE_N_SAVED];

	save_to("one", memory, true, a);
	/* The machine went on, and is saved again: the file had its one name. */
	assert_int_equal(unlink(first), 0);
	save_to("two", memory, false, b);
	for (size_t i = 0; i < IMAGE_N_SAVED; i++) {
		assert_int_equal(a[i].size, b[i].size);
		assert_string_equal(a[i].hash, b[i].hash);
	}
	assert_int_equal(chmod(second, 0600), 0);
	assert_int_equal(truncate(second, MEMORY - 4096), 0);
	assert_int_equal(check_saved(two, b), -EUCLEAN);
	assert_int_equal(truncate(second, MEMORY), 0);
	assert_int_equal(check_saved(two, b), -EUCLEAN); /* a hole that was a page */
	write_at(second, FAR, "fur");
	assert_int_equal(check_saved(two, b), -EUCLEAN);
	write_at(second, FAR, "far");
	assert_int_equal(check_saved(two, b), 0);
	write_at(second, MEMORY / 4, "x"); /* a page that was a hole */
	assert_int_equal(check_saved(two, b), -EUCLEAN);
}

/* The first byte of each piece that has data, and of some that have none. */
static void a_damaged_piece_is_named(void **state)
{
	static const unsigned used[] = {0, MEMORY / IMAGE_PIECE - 1}, holes[] = {1, 64};
	AUTO_FREE char *to = xasprintf("%s/pieces", dir), *path = xasprintf("%s/memory", to);
	struct image_file files[IMAGE_N_SAVED];
	struct err err = {};

	assert_int_equal(mkdir(to, 0700), 0);
	assert_int_equal(save_machine(to, stream, sizeof(stream), files, &err), 0);
	for (size_t i = 0; i < 2 * ARRAY_LEN(used); i++) {
		unsigned piece = i < ARRAY_LEN(used) ? used[i] : holes[i - ARRAY_LEN(used)];
		off_t at = piece == used[1] ? FAR : (off_t)(piece * IMAGE_PIECE);
		char want[64];

		snprintf(want, sizeof(want), "the memory from %u to %u MiB was changed", 2 * piece,
			2 * piece + 2);
		flip(path, at);
		assert_int_equal(check_format(to, IMAGE_FORMAT, files, &err), -EUCLEAN);
		if (!strstr(err.text, want))
			fail_msg("%s instead of %s", err.text, want);
		flip(path, at);
		assert_int_equal(check_saved(to, files), 0);
	}
}

/* Whoever changes a piece and its hash does not know that of the table. */
static void a_changed_table_is_refused(void **state)
{
	AUTO_FREE char *to = xasprintf("%s/tables", dir), *path = xasprintf("%s/" IMAGE_SUMS, to);
	AUTO_FREE char *memory = xasprintf("%s/memory", to);
	uint8_t table[MEMORY / IMAGE_PIECE * IMAGE_HASH_BYTES];
	struct image_file files[IMAGE_N_SAVED];
	off_t size = (off_t)image_table_size(MEMORY);
	struct err err = {};
	struct stat st;

	assert_int_equal(mkdir(to, 0700), 0);
	assert_int_equal(save_machine(to, stream, sizeof(stream), files, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, size);
	assert_int_equal(st.st_mode & 07777, 0400);
	for (off_t at = 0; at < size; at += size / 16 - 1) {
		flip(path, at);
		assert_int_equal(check_saved(to, files), -EUCLEAN);
		flip(path, at);
	}
	assert_int_equal(check_saved(to, files), 0);
	flip(memory, FAR);
	{
		AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
		AUTO_CLOSE int from = open(memory, O_RDONLY | O_CLOEXEC);

		assert_int_equal(image_copy_pieces(from, -1, MEMORY, table, false, NULL), 0);
		assert_int_equal(fd_write_all(fd, table, sizeof(table)), 0);
	}
	assert_int_equal(check_saved(to, files), -EUCLEAN);
	assert_int_equal(truncate(path, size - IMAGE_HASH_BYTES), 0);
	assert_int_equal(check_saved(to, files), -EUCLEAN);
	assert_int_equal(truncate(path, size), 0); /* the last piece has data */
	assert_int_equal(check_saved(to, files), -EUCLEAN);
	assert_int_equal(truncate(path, size + 1), 0);
	assert_int_equal(check_saved(to, files), -EUCLEAN);
	assert_int_equal(unlink(path), 0);
	{
		struct image_check check = IMAGE_CHECK_EMPTY;

		assert_int_equal(
			image_check_open(to, IMAGE_FORMAT, files, dir, &check, &err), -ENOENT);
	}
}

/* A sandbox that the version before suspended: one hash, no table. */
static void the_format_before_is_checked_as_it_was(void **state)
{
	AUTO_FREE char *to = xasprintf("%s/before", dir), *path = xasprintf("%s/memory", to);
	AUTO_FREE char *sums = xasprintf("%s/" IMAGE_SUMS, to);
	struct image_file files[IMAGE_N_SAVED];
	AUTO_CLOSE int memory = guest_memory(NULL);
	struct err err = {};

	assert_int_equal(mkdir(to, 0700), 0);
	assert_int_equal(save_memory(memory, to, stream, sizeof(stream), files, &err), 0);
	assert_int_equal(unlink(sums), 0);
	assert_int_equal(image_copy_memory(memory, -1, MEMORY, &files[IMAGE_MEMORY]), 0);
	assert_int_equal(check_format(to, IMAGE_FORMAT_OLD, files, &err), 0);
	flip(path, FAR);
	assert_int_equal(check_format(to, IMAGE_FORMAT_OLD, files, &err), -EUCLEAN);
	flip(path, FAR);
	assert_int_equal(check_format(to, IMAGE_FORMAT_OLD, files, &err), 0);
}

/* The kernel kills it when there is no memory: that says nothing about the image. */
static void a_reader_that_was_killed_is_no_damage(void **state)
{
	struct image_check check = IMAGE_CHECK_EMPTY;
	struct err err = {};
	int r = helper_begin(&check.pid, &check.pidfd, &err);

	if (r == 0) {
		(void)pause();
		_exit(0);
	}
	assert_int_equal(r, 1);
	assert_int_equal(kill(check.pid, SIGKILL), 0);
	assert_int_equal(image_check_end(&check, &err), -EIO);
	assert_non_null(strstr(err.text, "was killed"));
	image_check_done(&check);
}

static void made_and_used(void **state)
{
	AUTO_FREE char *stranger = in_store(KEY, "lock"), *json = in_store(KEY, "image.json");
	AUTO_FREE char *memory = in_store(KEY, "memory"), *kept = in_store(KEY, "state");
	AUTO_IMAGE struct image image = {};
	struct err err = {};
	struct stat st;

	assert_int_equal(use(KEY, &err), -ENOENT);
	make(KEY, &class);
	assert_int_equal(use(KEY, &err), 0);
	assert_int_equal(use(KEY, &err), 0);
	assert_int_equal(use(OTHER, &err), -ENOENT);
	assert_int_equal(access(stranger, F_OK), -1);
	assert_int_equal(stat(json, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(stat(memory, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0400); /* no program opens it for writing again */
	assert_int_equal(stat(kept, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0400);
	assert_int_equal(image_open(KEY, &image, &err), 0);
	assert_string_equal(image.template_id, "tid");
	make(KEY, &class); /* in the place of the old one */
	assert_int_equal(use(KEY, &err), 0);
	image_remove(KEY);
	assert_int_equal(use(KEY, &err), -ENOENT);
}

/* R10B9: who made the image puts a pipe in the place of a disk after it was looked at. */
static void a_pipe_instead_of_a_disk_is_refused_at_once(void **state)
{
	AUTO_FREE char *disk = in_store(KEY, "root.qcow2"), *to = xasprintf("%s/root", dir);
	AUTO_IMAGE struct image image = {};
	struct err err = {};

	make(KEY, &class);
	assert_int_equal(image_open(KEY, &image, &err), 0);
	assert_int_equal(unlink(disk), 0);
	assert_int_equal(mkfifo(disk, 0600), 0);
	alarm(10);
	assert_int_equal(image_copy_disk(&image, IMAGE_ROOT, to, &err), -EUCLEAN);
	alarm(0);
	assert_int_equal(access(to, F_OK), -1);
}

static void every_wrong_byte_is_refused(void **state)
{
	static const char *const names[] = {
		"state", "memory", IMAGE_SUMS, "root.qcow2", "docker.qcow2"};
	struct err err = {};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO_FREE char *path = in_store(KEY, names[i]);
		bool is_memory = strcmp(names[i], "memory") == 0;
		int step = strcmp(names[i], IMAGE_SUMS) == 0 ? 509 : 1;
		struct stat st;

		make(KEY, &class);
		assert_int_equal(stat(path, &st), 0);
		for (off_t at = 0; at < st.st_size; at += is_memory ? MEMORY / 4 - 1 : step) {
			flip(path, at);
			assert_int_equal(use(KEY, &err), -EUCLEAN);
			flip(path, at);
		}
		if (is_memory) {
			AUTO_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);

			flip(path, FAR); /* an extent that holds data */
			assert_int_equal(use(KEY, &err), -EUCLEAN);
			flip(path, FAR);
			/* the same pages at other places */
			assert_int_equal(pwrite(fd, "\0\0\0", 3, FAR), 3);
			assert_int_equal(pwrite(fd, "far", 3, FAR - 4096), 3);
			assert_int_equal(use(KEY, &err), -EUCLEAN);
			assert_int_equal(pwrite(fd, "\0\0\0", 3, FAR - 4096), 3);
			assert_int_equal(pwrite(fd, "far", 3, FAR), 3);
		}
		assert_int_equal(use(KEY, &err), 0);
		assert_int_equal(truncate(path, st.st_size - 1), 0);
		assert_int_equal(use(KEY, &err), -EUCLEAN);
		assert_int_equal(truncate(path, st.st_size + 1), 0);
		assert_int_equal(use(KEY, &err), -EUCLEAN);
		assert_int_equal(unlink(path), 0);
		assert_int_equal(use(KEY, &err), -EUCLEAN);
		assert_int_equal(symlink(initrd, path), 0);
		assert_int_equal(use(KEY, &err), -EUCLEAN);
	}
}

static void image_json_is_checked(void **state)
{
	AUTO_FREE char *path = in_store(KEY, "image.json"), *from = in_store(KEY, ""),
		       *to = in_store(OTHER, "");
	static const char *const bad[] = {"", "{", "[]", "{}", "{\"version\":3,\"version\":3}",
		"{\"version\":2}", "{\"version\":3,\"key\":\"" KEY "\",\"template\":\"t\"}",
		"{\"version\":3,\"key\":\"" KEY "\",\"template\":\"t\",\"files\":{\"state\":{"
		"\"size\":-1,\"blake2b\":\"00\"}}}"};
	struct err err = {};

	make(KEY, &class);
	assert_int_equal(rename(from, to), 0); /* an image of another machine */
	assert_int_equal(use(OTHER, &err), -EUCLEAN);
	image_remove(OTHER);
	make(KEY, &class);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		write_to(path, bad[i]);
		assert_int_equal(use(KEY, &err), -EUCLEAN);
	}
	assert_int_equal(unlink(path), 0);
	assert_int_equal(use(KEY, &err), -EUCLEAN);
}

/* A qemu that was taken over, or that writes the memory too, must not fill the disk. */
static void too_much_of_devices_is_not_saved(void **state)
{
	AUTO_FREE char *to = xasprintf("%s/save", dir), *file = xasprintf("%s/state", to);
	AUTO_FREE char *memory = xasprintf("%s/memory", to);
	AUTO_FREE char *sums = xasprintf("%s/" IMAGE_SUMS, to);
	AUTO_FREE char *much = xcalloc(1, IMAGE_MAX_STATE + 1);
	struct image_file files[IMAGE_N_SAVED];
	struct err err = {};

	(void)signal(SIGPIPE, SIG_IGN);
	assert_int_equal(mkdir(to, 0700), 0);
	assert_int_equal(save_machine(to, much, IMAGE_MAX_STATE + 1, files, &err), -EFBIG);
	assert_int_equal(unlink(file) + unlink(memory) + unlink(sums), 0);
	assert_int_equal(save_machine(to, "", 0, files, &err), -EBADMSG);
}

static void one_at_a_time(void **state)
{
	struct image_draft a, b;
	AUTO_FREE char *left = in_store(".new", "state");
	struct err err = {};

	assert_int_equal(image_draft_begin(KEY, &a, &err), 0);
	assert_int_equal(image_draft_begin(OTHER, &b, &err), -EBUSY);
	image_draft_done(&b);
	write_to(left, "half");
	assert_int_equal(access(left, F_OK), 0);
	image_draft_done(&a);
	assert_int_equal(access(left, F_OK), -1);
	assert_int_equal(image_draft_begin("../../etc", &a, &err), -EINVAL);
	image_draft_done(&a);
}

static bool is_tid(void *arg, const char *id)
{
	return strcmp(id, "tid") == 0;
}

static void collects_what_nobody_needs(void **state)
{
	AUTO_FREE char *json = in_store(OTHER, "image.json");
	struct image_class gone = class;
	struct err err = {};

	gone.template_id = "gone";
	make(KEY, &class);
	make(OTHER, &gone);
	image_collect(is_tid, NULL);
	assert_int_equal(use(KEY, &err), 0);
	assert_int_equal(use(OTHER, &err), -ENOENT);
	make(OTHER, &class);
	write_to(json, "{\"version\":2,\"template\":\"tid\"}");
	image_collect(is_tid, NULL);
	assert_int_equal(use(KEY, &err), 0);
	assert_int_equal(use(OTHER, &err), -ENOENT);
}

static void key_of(const struct vmm_config *c, const struct image_class *cl, char *key)
{
	struct err err = {};
	int r = image_key(c, cl, key, &err);

	if (r < 0)
		fail_msg("%s", err_text(&err, r));
	assert_int_equal(strlen(key), IMAGE_KEY_LEN);
}

/* Everything that the machine is made of is in its name, and nothing that it is not. */
static void key_tells_machines_apart(void **state)
{
	struct vmm_config base = {.kernel = "/k",
		.initrd = initrd,
		.disks = {{{"/b", "/o"}, 2}, {{"/b", "/o"}, 2}},
		.cpus = 2,
		.memory = 1 << 30,
		.accel = VMM_TCG,
		.ctl_listen_fd = 5,
		.net_listen_fd = 6,
		.share_fd = 7,
		.log_fd = -1};
	struct vmm_config c[] = {base, base, base, base, base};
	struct image_class cl[] = {class, class, class};
	char first[IMAGE_KEY_LEN + 1], key[IMAGE_KEY_LEN + 1];
	AUTO_FREE char *other = xasprintf("%s/initrd2", dir);

	key_of(&base, &class, first);
	base.share_fd = -1;
	base.ctl_listen_fd = 9;
	base.disks[0].files[1] = "/elsewhere";
	base.disks[1] = (struct vmm_disk){{"/b", "/o", "/o2"}, 3}; /* layers that a merge removes */
	key_of(&base, &class, key);
	assert_string_equal(key, first);
	cl[0].initrd = other;
	write_to(other, "initrd");
	key_of(&base, &cl[0], key);
	assert_string_equal(key, first);
	cl[0].initrd = class.initrd;

	c[0].cpus = 3;
	c[1].memory <<= 1;
	c[2].accel = VMM_KVM;
	c[3].cmdline_extra = "x";
	c[4].disks[1].n = 0;
	for (size_t i = 0; i < ARRAY_LEN(c); i++) {
		key_of(&c[i], &class, key);
		assert_string_not_equal(key, first);
	}
	cl[0].template_id = "tie";
	cl[1].initrd = other;
	cl[2].disk = 40ull << 30;
	write_to(other, "initrd2");
	for (size_t i = 0; i < ARRAY_LEN(cl); i++) {
		key_of(&base, &cl[i], key);
		assert_string_not_equal(key, first);
	}
	write_to(initrd, "other!");
	key_of(&base, &class, key);
	assert_string_not_equal(key, first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reader_that_was_killed_is_no_damage),
		cmocka_unit_test(memory_in_a_file_is_not_copied_when_it_is_saved),
		cmocka_unit_test(a_damaged_piece_is_named),
		cmocka_unit_test(a_changed_table_is_refused),
		cmocka_unit_test(the_format_before_is_checked_as_it_was),
		cmocka_unit_test(made_and_used),
		cmocka_unit_test(a_pipe_instead_of_a_disk_is_refused_at_once),
		cmocka_unit_test(every_wrong_byte_is_refused),
		cmocka_unit_test(image_json_is_checked),
		cmocka_unit_test(too_much_of_devices_is_not_saved),
		cmocka_unit_test(one_at_a_time),
		cmocka_unit_test(collects_what_nobody_needs),
		cmocka_unit_test(key_tells_machines_apart),
	};

	return cmocka_run_group_tests(tests, prepare, clean);
}
