/* SPDX-License-Identifier: Apache-2.0 */
#include "disk.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "args.h"
#include "tool.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/os/worker/worker.h"

/* What is kept of a program's complaint. */
#define MAX_COMPLAINT 256
/* The bytes of an image that qemu locks to say what it does with it. */
#define LOCKS_AT 100
#define LOCKS_N 200
#define FREE_STEP_MS 20
#define ROOM_STEP_MS 250
/* Offset of the size in an image. */
#define QCOW2_MAGIC 0x514649fb
#define QCOW2_AT_SIZE 24
#define QCOW2_HEAD 32

/* Until the child exits. A few MB of layers can expand: the child is stopped before the disk of
 * `out` is full, which would pause sandboxes that write. */
static int watch_room(struct jail_child *child, const char *out, struct err *err)
{
	struct pollfd p = {.fd = child->pidfd, .events = POLLIN};
	uint64_t end = clock_mono_ms() + DISK_COPY_MS;
	struct statvfs v;

	do {
		if (statvfs(out, &v) == 0 && (uint64_t)v.f_bavail * v.f_frsize < DISK_MIN_FREE) {
			worker_end(child);
			return err_set(err, -ENOSPC, "%llu MiB of the disk must stay free",
				DISK_MIN_FREE >> 20);
		}
	} while (poll(&p, 1, ROOM_STEP_MS) <= 0 && clock_mono_ms() < end);
	return 0;
}

/* qemu-img in the jail, with those images. `out`: the file that grows, or NULL. */
static int run_jailed(const char *const *argv, struct args *a, const char *out, char *said,
	size_t size, int timeout_ms, struct err *err)
{
	AUTO_CLOSE int rd = -1, wr = -1;
	struct jail_child child;
	int p[2], r;

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	rd = p[0];
	wr = p[1];
	args_mount_programs(a);
	r = worker_spawn(&(struct jail_plan){.profile = JAIL_QEMU,
				 .program = DISK_QEMU_IMG,
				 .argv = (char *const *)argv,
				 .mounts = a->mounts,
				 .n_mounts = a->n_mounts,
				 .log_fd = wr},
		&child, err);
	if (r < 0)
		return r;
	fd_close(&wr);
	r = out ? watch_room(&child, out, err) : 0;
	if (r == 0)
		r = tool_finish(&child, rd, said, size, timeout_ms);
	fd_close(&child.pidfd);
	fd_close(&child.notify_fd);
	return r;
}

static int check_base(const char *path, const char *base, uint64_t *size, struct err *err)
{
	struct stat st;

	if (access(path, F_OK) == 0)
		return err_set(err, -EEXIST, "%s already exists", path);
	if (stat(base, &st) < 0)
		return err_errno(err, -errno, "cannot access %s", base);
	if (base[0] != '/' || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return err_set(err, -EINVAL, "%s is not a disk image with an absolute path", base);
	if (*size == 0)
		*size = (uint64_t)st.st_size;
	if (*size < (uint64_t)st.st_size)
		return err_set(err, -EINVAL,
			"a disk of %" PRIu64 " bytes is smaller than its base %s", *size, base);
	return 0;
}

static int layer_size(const char *path, uint64_t *ret_size, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	uint8_t head[QCOW2_HEAD];
	uint32_t magic;
	ssize_t n;

	if (fd < 0)
		return err_errno(err, -errno, "cannot open %s", path);
	n = fd_read_full(fd, head, sizeof(head));
	memcpy(&magic, head, sizeof(magic));
	memcpy(ret_size, head + QCOW2_AT_SIZE, sizeof(*ret_size));
	*ret_size = be64toh(*ret_size);
	if (n != (ssize_t)sizeof(head) || be32toh(magic) != QCOW2_MAGIC || *ret_size == 0 ||
		*ret_size > DISK_MAX_BYTES)
		return err_set(err, -EUCLEAN, "%s is not a qcow2 image of at most 1 TiB", path);
	return 0;
}

int disk_chain_size(const char *const *files, size_t n, uint64_t *ret_size, struct err *err)
{
	struct stat st;

	if (n > 1)
		return layer_size(files[n - 1], ret_size, err);
	if (stat(files[0], &st) < 0)
		return err_errno(err, -errno, "cannot access %s", files[0]);
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

static int make_raw(uint64_t size, const char *out, struct err *err)
{
	AUTO_CLOSE int fd = open(out, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		return err_errno(err, -errno, "cannot create %s", out);
	return 0;
}

/* link and unlink instead of rename: never replaces an image that another made meanwhile. */
static int put_in_place(const char *temp, const char *path, struct err *err)
{
	if (link(temp, path) < 0)
		return err_errno(err, -errno, "cannot create %s", path);
	return 0;
}

int disk_make(const char *path, const char *base, uint64_t size, struct err *err)
{
	AUTO_FREE char *temp = xasprintf("%s.new-%d", path, (int)getpid());
	/* 64 KiB clusters: a whole table of a 50 GiB disk is 6 MiB, which stays in qemu's cache.
	 * With a base, a write to part of a cluster copies the rest; extended_l2 halves that but
	 * doubles the tables, and allocation is what ext4 does in large runs anyway: off.
	 * lazy_refcounts saves a write for each allocation and pays with a repair after a kill,
	 * when a sandbox should be back at once: off. preallocation stays off: sparse. */
	const char *options =
		"cluster_size=65536,lazy_refcounts=off,extended_l2=off,preallocation=off";
	AUTO_FREE char *bytes = NULL;
	char said[MAX_COMPLAINT] = "";
	struct args a = {.mounts = {{.from = temp, .to = "/disk/image", .flags = JAIL_MOUNT_RW}},
		.n_mounts = 1};
	int r = check_base(path, base, &size, err);

	if (r == 0)
		r = make_raw(0, temp, err);
	if (r < 0)
		return r;
	bytes = xasprintf("%" PRIu64, size);
	/* -u: the base is not opened, its name is only written down. */
	r = run_jailed((const char *[]){"qemu-img", "create", "-q", "-u", "-f", "qcow2", "-o",
			       options, "-F", "raw", "-b", base, "--", "/disk/image", bytes, NULL},
		&a, NULL, said, sizeof(said), DISK_TIMEOUT_MS, err);
	if (r < 0)
		r = err_wrap(err, r, "cannot create %s with qemu-img", path);
	else if (r > 0)
		r = err_set(
			err, -EIO, "cannot create %s: %s", path, *said ? said : "qemu-img failed");
	else
		r = put_in_place(temp, path, err);
	(void)unlink(temp);
	return r;
}

/* The chain as passed to qemu-img, inside the jail: no name in an image is followed. */
static char *chain_json(size_t n)
{
	char *json = xstrdup("{\"driver\":\"raw\",\"file\":{\"driver\":\"file\",\"filename\":"
			     "\"/disk/0\"}}");

	for (size_t i = 1; i < n; i++) {
		AUTO_FREE char *below = json;

		json = xasprintf(
			"{\"driver\":\"qcow2\",\"backing\":%s,\"file\":{\"driver\":\"file\","
			"\"filename\":\"/disk/%zu\"}}",
			below, i);
	}
	return json;
}

int disk_flatten(const char *const *files, size_t n, const char *out, struct err *err)
{
	AUTO_FREE char *chain = chain_json(n), *image = xasprintf("json:%s", chain);
	const char *argv[] = {"qemu-img", "convert", "-U", "-n", "--target-is-zero", "-O", "raw",
		image, "/disk/out", NULL};
	char places[VMM_MAX_LAYERS][16], said[MAX_COMPLAINT] = "";
	struct args a = {};
	uint64_t size;
	int r;

	if (n == 0 || n > VMM_MAX_LAYERS)
		return err_set(
			err, -EINVAL, "invalid disk: expected 1 to %d files", VMM_MAX_LAYERS);
	r = disk_chain_size(files, n, &size, err);
	if (r == 0)
		r = make_raw(size, out, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(places[i], sizeof(places[i]), "/disk/%zu", i);
		a.mounts[a.n_mounts++] = (struct jail_mount){.from = files[i], .to = places[i]};
	}
	a.mounts[a.n_mounts++] =
		(struct jail_mount){.from = out, .to = "/disk/out", .flags = JAIL_MOUNT_RW};
	r = run_jailed(argv, &a, out, said, sizeof(said), DISK_TIMEOUT_MS, err);
	if (r > 0)
		r = err_set(err, -EIO, "cannot merge the files of a disk: %s",
			*said ? said : "qemu-img failed");
	if (r < 0)
		(void)unlink(out);
	return r;
}

int disk_merge(
	const char *const *files, size_t n, const char *lower, const char *upper, struct err *err)
{
	AUTO_FREE char *chain = chain_json(n + 2), *image = xasprintf("json:%s", chain);
	const char *argv[] = {"qemu-img", "commit", "-q", "-d", image, NULL};
	char places[VMM_MAX_LAYERS][16], said[MAX_COMPLAINT] = "";
	struct args a = {};
	int r;

	if (n == 0 || n + 2 > VMM_MAX_LAYERS)
		return err_set(err, -EINVAL, "invalid disk: it has too many files");
	for (size_t i = 0; i < n + 2; i++) {
		const char *from = i < n ? files[i] : i == n ? lower : upper;

		(void)snprintf(places[i], sizeof(places[i]), "/disk/%zu", i);
		a.mounts[a.n_mounts++] = (struct jail_mount){
			.from = from, .to = places[i], .flags = i < n ? 0 : JAIL_MOUNT_RW};
	}
	r = run_jailed(argv, &a, lower, said, sizeof(said), DISK_TIMEOUT_MS, err);
	if (r > 0)
		r = err_set(err, -EIO, "cannot merge two layers of a disk: %s",
			*said ? said : "qemu-img failed");
	return r;
}

int disk_wait_free(const char *path, uint64_t ms, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
	uint64_t end = clock_mono_ms() + ms;

	if (fd < 0)
		return err_errno(err, -errno, "cannot open %s", path);
	for (;;) {
		struct flock lock = {.l_type = F_WRLCK,
			.l_whence = SEEK_SET,
			.l_start = LOCKS_AT,
			.l_len = LOCKS_N};

		if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
			return err_errno(err, -errno, "cannot query the lock of %s", path);
		if (lock.l_type == F_UNLCK)
			return 0;
		if (clock_mono_ms() >= end)
			return err_set(err, -EBUSY, "another process uses %s", path);
		(void)poll(NULL, 0, FREE_STEP_MS);
	}
}
