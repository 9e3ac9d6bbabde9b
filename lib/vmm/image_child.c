/*
 * image_child - the processes that hash and pack images, so that the keeper's loop goes on.
 *
 * How      A fork without exec: reads, hashes, writes, exits. Its exit status, or a line in a pipe, is
 *          the result. SIGKILL when the parent dies.
 */
#include "image_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "stream.h"
#include "lib/base/fd.h"
#include "lib/base/mem.h"

#define BUF (1 << 20)
/* A pipe of its largest size that everybody may have: fewer turns of both processes. */
#define PIPE_BYTES (1 << 20)

enum child_exit { CHILD_GOOD, CHILD_DIFFERS, CHILD_FAILED };

/* ---- sums ---- */

int image_sum_begin(struct image_sum *s)
{
	*s = (struct image_sum){.ctx = EVP_MD_CTX_new()};
	/* Every start from an image waits for this; SHA-256 takes three times as long on processors that have no
	 * instructions for it. */
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

int image_sum_end(struct image_sum *s, struct image_file *ret)
{
	uint8_t md[EVP_MAX_MD_SIZE];
	int r = 0;

	if (ret) {
		*ret = (struct image_file){.size = s->size};
		r = EVP_DigestFinal_ex(s->ctx, md, NULL) == 1 ? 0 : -EIO;
		for (int i = 0; r == 0 && i < IMAGE_HASH_HEX / 2; i++)
			(void)snprintf(ret->hash + 2 * i, 3, "%02x", md[i]);
	}
	EVP_MD_CTX_free(TAKE(s->ctx));
	return r;
}

bool image_file_equal(const struct image_file *a, const struct image_file *b)
{
	return a->size == b->size && strcmp(a->hash, b->hash) == 0;
}

/* ---- children ---- */

/* 0 in the child; in the parent the pid and a pidfd. */
static int start_child(pid_t *ret_pid, int *ret_pidfd, struct err *err)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		return err_errno(err, -errno, "starting a process for the memory image");
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(CHILD_FAILED);
		return 0;
	}
	*ret_pid = pid;
	*ret_pidfd = pidfd_open(pid, 0);
	if (*ret_pidfd < 0) {
		int r = -errno;

		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return err_errno(err, r, "watching a process for the memory image");
	}
	return 1;
}

/* Its exit status; -1 when it did not exit by itself. */
static int end_child(pid_t pid, int *pidfd)
{
	int status = 0;

	fd_close(pidfd);
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static void kill_child(pid_t pid, int *pidfd)
{
	if (*pidfd < 0)
		return;
	(void)pidfd_send_signal(*pidfd, SIGKILL, NULL, 0);
	(void)end_child(pid, pidfd);
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

int image_check_begin(
	const char *path, const struct image_file *want, struct image_check *ret, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int r;

	*ret = (struct image_check)IMAGE_CHECK_EMPTY;
	if (fd < 0)
		return err_errno(err, -errno, "opening %s", path);
	r = start_child(&ret->pid, &ret->pidfd, err);
	if (r < 0)
		return r;
	if (r == 0)
		_exit(hash_file(fd, want));
	ret->fd = TAKE_FD(fd);
	return 0;
}

int image_check_end(struct image_check *c, struct err *err)
{
	int status = end_child(c->pid, &c->pidfd);

	if (status == CHILD_GOOD)
		return 0;
	fd_close(&c->fd);
	return err_set(err, -EUCLEAN, "%s",
		status == CHILD_DIFFERS ? "the memory image was changed since it was made"
					: "the memory image could not be read");
}

void image_check_done(struct image_check *c)
{
	kill_child(c->pid, &c->pidfd);
	fd_close(&c->fd);
}

/* ---- saving ---- */

struct saving {
	int in, out;
	struct image_sum sum;
};

static ssize_t read_pipe(void *arg, void *buf, size_t n)
{
	const struct saving *s = arg;
	ssize_t k;

	do
		k = read(s->in, buf, n);
	while (k < 0 && errno == EINTR);
	return k < 0 ? -errno : k;
}

static int write_file(void *arg, const void *p, size_t n)
{
	struct saving *s = arg;
	int r = image_sum_add(&s->sum, p, n);

	return r < 0 ? r : fd_write_all(s->out, p, n);
}

/* "0 SIZE HASH" or "ERRNO". */
static void say(int fd, int r, const struct image_file *file)
{
	char line[128];
	int n;

	if (r < 0)
		n = snprintf(line, sizeof(line), "%d", r);
	else
		n = snprintf(line, sizeof(line), "0 %llu %s", (unsigned long long)file->size,
			file->hash);
	(void)!fd_write_all(fd, line, (size_t)n);
}

static void __attribute__((noreturn)) save(int in, int out, int result)
{
	struct saving s = {.in = in, .out = out};
	struct stream_io io = {.read = read_pipe, .write = write_file, .arg = &s};
	struct stream_stats stats;
	struct image_file file;
	int r = image_sum_begin(&s.sum);

	if (r == 0)
		r = stream_pack(&io, &stats);
	if (r == 0)
		r = image_sum_end(&s.sum, &file);
	if (r == 0 && fsync(out) < 0)
		r = -errno;
	say(result, r, &file);
	_exit(r < 0 ? CHILD_FAILED : CHILD_GOOD);
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

int image_save_begin(const char *path, struct image_save *ret, int *ret_fd, struct err *err)
{
	AUTO_CLOSE int out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	AUTO_CLOSE int rd = -1, wr = -1, result_rd = -1, result_wr = -1;
	int r;

	*ret = (struct image_save)IMAGE_SAVE_EMPTY;
	if (out < 0)
		return err_errno(err, -errno, "making %s", path);
	r = make_pipe(&rd, &wr);
	if (r == 0)
		r = make_pipe(&result_rd, &result_wr);
	if (r < 0)
		return err_errno(err, r, "making a pipe");
	(void)fcntl(wr, F_SETPIPE_SZ, PIPE_BYTES);
	r = start_child(&ret->pid, &ret->pidfd, err);
	if (r < 0)
		return r;
	if (r == 0) {
		fd_close(&wr);
		save(rd, out, result_wr);
	}
	ret->result_fd = TAKE_FD(result_rd);
	*ret_fd = TAKE_FD(wr);
	return 0;
}

static bool is_hash(const char *s)
{
	return strspn(s, "0123456789abcdef") == IMAGE_HASH_HEX && !s[IMAGE_HASH_HEX];
}

int image_save_end(struct image_save *s, struct image_file *ret, struct err *err)
{
	char line[128] = "", hash[80] = "";
	unsigned long long size = 0;
	ssize_t n = read(s->result_fd, line, sizeof(line) - 1);
	int code = -EIO, status = end_child(s->pid, &s->pidfd);

	fd_close(&s->result_fd);
	line[n > 0 ? n : 0] = '\0';
	if (sscanf(line, "%d %llu %79s", &code, &size, hash) == 3 && code == 0 && is_hash(hash) &&
		status == CHILD_GOOD) {
		ret->size = size;
		memcpy(ret->hash, hash, sizeof(ret->hash));
		return 0;
	}
	code = code < 0 ? code : -EIO;
	return err_errno(err, code, "writing the memory image");
}

void image_save_done(struct image_save *s)
{
	kill_child(s->pid, &s->pidfd);
	fd_close(&s->result_fd);
}
