/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_child - the processes that hash and copy images, so that the keeper's loop keeps running.
 *
 * How      A helper (helper.h): reads, hashes, writes, exits. Its exit status, or a line in a pipe,
 *          is the result.
 */
#include "image_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/hex.h"
#include "lib/vm/vmm/helper.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define BUF (1 << 20)

enum child_exit { CHILD_GOOD, CHILD_DIFFERS, CHILD_FAILED };

/* ---- sums ---- */

int image_sum_begin(struct image_sum *s)
{
	*s = (struct image_sum){.ctx = EVP_MD_CTX_new()};
	/* Every start from an image waits for this; SHA-256 takes three times as long on
	 * processors that have no instructions for it. */
	if (s->ctx && EVP_DigestInit_ex(s->ctx, EVP_blake2b512(), NULL) == 1)
		return 0;
	(void)image_sum_end(s, NULL);
	return -ENOMEM;
}

int image_sum_add(struct image_sum *s, const void *p, size_t n)
{
	s->size += n;
	return EVP_DigestUpdate(s->ctx, p, n) == 1 ? 0 : -EIO;
}

int image_sum_end_bytes(struct image_sum *s, uint8_t hash[IMAGE_HASH_BYTES])
{
	uint8_t md[EVP_MAX_MD_SIZE] = {0};
	int r = EVP_DigestFinal_ex(s->ctx, md, NULL) == 1 ? 0 : -EIO;

	memcpy(hash, md, IMAGE_HASH_BYTES);
	EVP_MD_CTX_free(TAKE(s->ctx));
	return r;
}

int image_sum_end(struct image_sum *s, struct image_file *ret)
{
	uint8_t hash[IMAGE_HASH_BYTES];
	int r;

	if (!ret) {
		EVP_MD_CTX_free(TAKE(s->ctx));
		return 0;
	}
	*ret = (struct image_file){.size = s->size};
	r = image_sum_end_bytes(s, hash);
	if (r == 0)
		hex_print(hash, sizeof(hash), ret->hash);
	return r;
}

bool image_file_equal(const struct image_file *a, const struct image_file *b)
{
	return a->size == b->size && strcmp(a->hash, b->hash) == 0;
}

/* ---- checking ---- */

static enum child_exit hash_file(int fd, const struct image_file *want)
{
	uint8_t *buf = xmalloc(BUF);
	struct image_file is;
	struct image_sum sum;
	ssize_t n;
	int r = image_sum_begin(&sum);

	while (r == 0 && (n = pread(fd, buf, BUF, (off_t)sum.size)) != 0) {
		if (n < 0)
			return CHILD_FAILED;
		r = image_sum_add(&sum, buf, (size_t)n);
	}
	if (r < 0 || image_sum_end(&sum, &is) < 0)
		return CHILD_FAILED;
	return image_file_equal(&is, want) ? CHILD_GOOD : CHILD_DIFFERS;
}

/* Pages of zeros, also where a qemu that waited has written. Its size must not change: qemu checks
 * it when it starts. */
static int empty_file(int fd, uint64_t size)
{
	int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

	return fallocate(fd, mode, 0, (off_t)size) < 0 ? -errno : 0;
}

/* Blocks are shared until one of both is written (btrfs, XFS). 1: done; 0: not possible, and `to`
 * is all zeros, whatever a failure in between has left there. */
static int clone_file(int from, int to, uint64_t size)
{
	return ioctl(to, FICLONE, from) == 0 ? 1 : empty_file(to, size);
}

static int hash_table(const uint8_t *table, uint64_t memory, struct image_file *ret)
{
	struct image_sum sum;
	int r = image_sum_begin(&sum);

	if (r == 0)
		r = image_sum_add(&sum, table, image_table_size(memory));
	if (image_sum_end(&sum, r == 0 ? ret : NULL) < 0 && r == 0)
		r = -EIO;
	ret->size = memory;
	return r;
}

/* -EUCLEAN: not the table that image.json describes. */
static int load_table(int fd, const struct image_file *want, uint8_t **ret)
{
	size_t size = image_table_size(want->size);
	AUTO_FREE uint8_t *table = xmalloc(size + 1);
	ssize_t n = fd_read_full(fd, table, size + 1);
	struct image_file is;
	int r;

	if (n < 0)
		return (int)n;
	if ((size_t)n != size)
		return -EUCLEAN;
	r = hash_table(table, want->size, &is);
	if (r == 0 && !image_file_equal(&is, want))
		r = -EUCLEAN;
	if (r == 0)
		*ret = TAKE(table);
	return r;
}

static int fill_pieces(
	const struct image_check *c, int bad_wr, int from, int to, const struct image_file *want)
{
	AUTO_FREE uint8_t *table = NULL;
	int bad = -1, r = load_table(c->sums, want, &table);

	if (r == 0)
		r = image_copy_pieces(from, to, want->size, table, true, &bad);
	if (bad >= 0)
		(void)!fd_write_all(bad_wr, &bad, sizeof(bad));
	return r;
}

static int fill_whole(int from, int to, const struct image_file *want)
{
	struct image_file is;
	int r = image_copy_memory(from, to, want->size, &is);

	return r == 0 && !image_file_equal(&is, want) ? -EUCLEAN : r;
}

/* A process of the user can write to the snapshot at any time, but not to the file without a name:
 * the hash is of what the machine gets, the copied bytes or the clone. */
static enum child_exit fill_memory(
	const struct image_check *c, int bad_wr, const struct image_file *want)
{
	int from = c->from, to = c->memory_fd, r;
	struct stat st;

	if (fstat(from, &st) < 0)
		return CHILD_FAILED;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != want->size)
		return CHILD_DIFFERS;
	r = empty_file(to, want->size);
	if (r == 0)
		r = clone_file(from, to, want->size);
	if (r > 0) {
		from = to;
		to = -1;
	}
	if (r >= 0)
		r = c->sums < 0 ? fill_whole(from, to, want)
				: fill_pieces(c, bad_wr, from, to, want);
	if (r < 0)
		return r == -EUCLEAN ? CHILD_DIFFERS : CHILD_FAILED;
	return CHILD_GOOD;
}

static int open_part(const char *dir, const char *name, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	return fd < 0 ? err_errno(err, -errno, "cannot open %s", path) : fd;
}

static int open_sums(const char *dir, int format, int *ret, struct err *err)
{
	*ret = format == IMAGE_FORMAT ? open_part(dir, IMAGE_SUMS, err) : -1;
	return format == IMAGE_FORMAT ? MIN(*ret, 0) : 0;
}

static int make_pipe(int *ret_rd, int *ret_wr)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	*ret_rd = p[0];
	*ret_wr = p[1];
	return 0;
}

int image_check_open(const char *dir, int format, const struct image_file want[IMAGE_N_SAVED],
	const char *memory_dir, struct image_check *ret, struct err *err)
{
	AUTO_CLOSE int fd = open_part(dir, "state", err), from = -1, memory = -1, sums = -1;
	int r;

	*ret = (struct image_check)IMAGE_CHECK_EMPTY;
	if (fd < 0)
		return fd;
	from = open_part(dir, "memory", err);
	r = from < 0 ? from : open_sums(dir, format, &sums, err);
	if (r < 0)
		return r;
	memory = vmm_memory_new(want[IMAGE_MEMORY].size, memory_dir, err);
	if (memory < 0)
		return memory;
	ret->fd = TAKE_FD(fd);
	ret->from = TAKE_FD(from);
	ret->sums = TAKE_FD(sums);
	ret->memory_fd = TAKE_FD(memory);
	return 0;
}

int image_check_begin(
	struct image_check *c, const struct image_file want[IMAGE_N_SAVED], struct err *err)
{
	AUTO_CLOSE int bad_wr = -1;
	enum child_exit e;
	int r = make_pipe(&c->bad_fd, &bad_wr);

	if (r < 0)
		return err_errno(err, r, "cannot create a pipe");
	r = helper_begin(&c->pid, &c->pidfd, err);
	if (r < 0)
		return r;
	if (r == 0) {
		e = hash_file(c->fd, &want[IMAGE_STATE]);
		_exit(e == CHILD_GOOD ? fill_memory(c, bad_wr, &want[IMAGE_MEMORY]) : e);
	}
	fd_close(&c->from);
	fd_close(&c->sums);
	return 0;
}

static int say_changed(int bad_fd, struct err *err)
{
	unsigned mib = IMAGE_PIECE >> 20;
	int bad;

	if (fd_read_full(bad_fd, &bad, sizeof(bad)) != sizeof(bad) || bad < 0)
		return err_set(err, -EUCLEAN,
			"the snapshot is corrupt: it was changed after it was created");
	return err_set(err, -EUCLEAN,
		"the snapshot is corrupt: the memory from %u to %u MiB was changed",
		(unsigned)bad * mib, ((unsigned)bad + 1) * mib);
}

int image_check_end(struct image_check *c, struct err *err)
{
	int status = helper_end(c->pid, &c->pidfd);

	if (status == CHILD_GOOD)
		return 0;
	fd_close(&c->fd);
	if (status == CHILD_DIFFERS)
		return say_changed(c->bad_fd, err);
	/* Killed, no memory, or a disk that did not answer: nothing is known about the image. */
	return err_set(err, -EIO, "the process that reads the snapshot %s",
		status < 0 ? "was killed" : "failed");
}

void image_check_done(struct image_check *c)
{
	helper_kill(c->pid, &c->pidfd);
	fd_close(&c->fd);
	fd_close(&c->from);
	fd_close(&c->sums);
	fd_close(&c->memory_fd);
	fd_close(&c->bad_fd);
}

/* ---- saving ---- */

/* "0 SIZE HASH SIZE HASH" or "ERRNO". */
static void say_child(int fd, int r, const struct image_file files[IMAGE_N_SAVED])
{
	char line[256];
	int n;

	if (r < 0)
		n = snprintf(line, sizeof(line), "%d", r);
	else
		n = snprintf(line, sizeof(line), "0 %llu %s %llu %s",
			(unsigned long long)files[IMAGE_STATE].size, files[IMAGE_STATE].hash,
			(unsigned long long)files[IMAGE_MEMORY].size, files[IMAGE_MEMORY].hash);
	(void)!fd_write_all(fd, line, (size_t)n);
}

/* Until the pipe ends. qemu may be compromised: only the size is bounded, nothing is understood. */
static int save_state(int in, int out, struct image_file *ret)
{
	uint8_t *buf = xmalloc(BUF);
	struct image_sum sum;
	ssize_t n = 1;
	int r = image_sum_begin(&sum);

	while (r == 0 && n > 0) {
		n = fd_read_full(in, buf, BUF);
		if (n > 0)
			r = image_sum_add(&sum, buf, (size_t)n);
		if (n > 0 && r == 0)
			r = sum.size > IMAGE_MAX_STATE ? -EFBIG : fd_write_all(out, buf, (size_t)n);
	}
	free(buf);
	if (r == 0 && n < 0)
		r = (int)n;
	if (r == 0 && sum.size == 0)
		r = -EBADMSG;
	if (image_sum_end(&sum, r == 0 ? ret : NULL) < 0 && r == 0)
		r = -EIO;
	return r == 0 && fsync(out) < 0 ? -errno : r;
}

/* Where the child writes; memory < 0: the file is already in its place. */
struct outputs {
	int state, memory, sums, result;
};

static int save_table(int from, const struct outputs *out, uint64_t size, struct image_file *ret)
{
	AUTO_FREE uint8_t *table = xcalloc(1, image_table_size(size));
	int r = image_copy_pieces(from, out->memory, size, table, false, NULL);

	if (r == 0)
		r = hash_table(table, size, ret);
	if (r == 0)
		r = fd_write_all(out->sums, table, image_table_size(size));
	return r == 0 && fsync(out->sums) < 0 ? -errno : r;
}

static int save_memory(int from, const struct outputs *out, struct image_file *ret)
{
	struct stat st;
	int r = fstat(from, &st) < 0 ? -errno : 0;

	if (r == 0 && out->memory >= 0 && ftruncate(out->memory, st.st_size) < 0)
		r = -errno;
	if (r == 0)
		r = save_table(from, out, (uint64_t)st.st_size, ret);
	return r == 0 && fsync(out->memory < 0 ? from : out->memory) < 0 ? -errno : r;
}

static void __attribute__((noreturn)) save(int in, int memory, const struct outputs *out)
{
	struct image_file files[IMAGE_N_SAVED];
	int r = save_state(in, out->state, &files[IMAGE_STATE]);

	if (r == 0)
		r = save_memory(memory, out, &files[IMAGE_MEMORY]);
	say_child(out->result, r, files);
	_exit(r < 0 ? CHILD_FAILED : CHILD_GOOD);
}

static int make_part(const char *dir, const char *name, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name);
	/* qemu gets it as a descriptor, and could open that again in another mode (/fd) */
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);

	return fd < 0 ? err_errno(err, -errno, "cannot create %s", path) : fd;
}

/* The machine's own file gets the name. The kernel permits that once for each file, and never for a
 * memfd. */
static bool give_name(int memory_fd, const char *dir)
{
	AUTO_FREE char *path = xasprintf("%s/memory", dir);
	AUTO_FREE char *from = xasprintf("/proc/self/fd/%d", memory_fd);

	return linkat(AT_FDCWD, from, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}

static int make_memory(int memory_fd, bool copy, const char *dir, int *ret_fd, struct err *err)
{
	if (!copy && give_name(memory_fd, dir))
		return fchmod(memory_fd, 0400) < 0
			       ? err_errno(err, -errno, "cannot change the mode of the memory")
			       : 0;
	*ret_fd = make_part(dir, "memory", err);
	return MIN(*ret_fd, 0);
}

int image_save_begin(const char *dir, int memory_fd, bool copy, struct image_save *ret, int *ret_fd,
	struct err *err)
{
	AUTO_CLOSE int state = make_part(dir, "state", err), memory = -1, sums = -1;
	AUTO_CLOSE int rd = -1, wr = -1, result_rd = -1, result_wr = -1;
	int r;

	*ret = (struct image_save)IMAGE_SAVE_EMPTY;
	if (state < 0)
		return state;
	sums = make_part(dir, IMAGE_SUMS, err);
	r = sums < 0 ? sums : make_memory(memory_fd, copy, dir, &memory, err);
	if (r < 0)
		return r;
	r = make_pipe(&rd, &wr);
	if (r == 0)
		r = make_pipe(&result_rd, &result_wr);
	if (r < 0)
		return err_errno(err, r, "cannot create a pipe");
	r = helper_begin(&ret->pid, &ret->pidfd, err);
	if (r < 0)
		return r;
	if (r == 0) {
		fd_close(&wr);
		save(rd, memory_fd, &(struct outputs){state, memory, sums, result_wr});
	}
	ret->result_fd = TAKE_FD(result_rd);
	*ret_fd = TAKE_FD(wr);
	return 0;
}

static bool is_hash(const char *s)
{
	return hex_is(s, IMAGE_HASH_HEX);
}

static int parse_result(const char *line, struct image_file ret[IMAGE_N_SAVED])
{
	char hash[IMAGE_N_SAVED][80] = {"", ""};
	unsigned long long size[IMAGE_N_SAVED] = {0, 0};
	int code = -EIO;
	int n = sscanf(line, "%d %llu %79s %llu %79s", &code, &size[0], hash[0], &size[1], hash[1]);

	if (n != 5 || code != 0 || !is_hash(hash[0]) || !is_hash(hash[1]))
		return code < 0 ? code : -EIO;
	for (size_t i = 0; i < IMAGE_N_SAVED; i++) {
		ret[i].size = size[i];
		memcpy(ret[i].hash, hash[i], sizeof(ret[i].hash));
	}
	return 0;
}

int image_save_end(struct image_save *s, struct image_file ret[IMAGE_N_SAVED], struct err *err)
{
	char line[256] = "";
	ssize_t n = read(s->result_fd, line, sizeof(line) - 1);
	int status = helper_end(s->pid, &s->pidfd), r;

	fd_close(&s->result_fd);
	line[n > 0 ? n : 0] = '\0';
	r = parse_result(line, ret);
	if (r == 0 && status != CHILD_GOOD)
		r = -EIO;
	return r < 0 ? err_errno(err, r, "cannot write the snapshot") : 0;
}

void image_save_done(struct image_save *s)
{
	helper_kill(s->pid, &s->pidfd);
	fd_close(&s->result_fd);
}
