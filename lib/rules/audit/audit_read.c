/* SPDX-License-Identifier: Apache-2.0 */
#include "audit_read.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "audit_internal.h"

struct audit_reader {
	char *dir, *cut_path;
	int fd;
	uint64_t segment; /* the one that fd is, or the next to open */
	bool is_ended;
	struct audit_chain chain;
};

char *audit_segment_path(const char *dir, uint64_t number)
{
	return xasprintf(AUDIT_SEGMENT_NAME, dir, (unsigned long long)number);
}

static uint64_t segment_number(const char *name)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++) {
		if (name[i] < '0' || name[i] > '9')
			return 0;
		v = v * 10 + (uint64_t)(name[i] - '0');
	}
	return strcmp(name + 8, ".jsonl") == 0 ? v : 0;
}

int audit_last_segment(const char *dir, uint64_t *ret, struct err *err)
{
	AUTO_DIR DIR *d = opendir(dir);
	struct dirent *e;
	uint64_t last = 0;

	if (!d && errno != ENOENT)
		return err_errno(err, -errno, "cannot read %s", dir);
	while ((e = dir_next(d)))
		last = MAX(last, segment_number(e->d_name));
	*ret = last;
	return 0;
}

int audit_count_bytes(const char *dir, uint64_t *ret, struct err *err)
{
	AUTO_DIR DIR *d = opendir(dir);
	struct dirent *e;
	struct stat st;
	uint64_t sum = 0;

	if (!d)
		return err_errno(err, -errno, "cannot read %s", dir);
	while ((e = dir_next(d)))
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(st.st_mode))
			sum += (uint64_t)st.st_size;
	*ret = sum;
	return 0;
}

int audit_load_kept(const char *path, char **ret, size_t *ret_n, struct err *err)
{
	return file_load(path, AUDIT_MAX_RECORD, ret, ret_n, err);
}

int audit_feed(struct audit_chain *c, int fd)
{
	AUTO_FREE uint8_t *buf = xmalloc(AUDIT_READ_BYTES);
	ssize_t n;
	int r;

	for (;;) {
		n = fd_read_full(fd, buf, AUDIT_READ_BYTES);
		if (n <= 0)
			return (int)n;
		r = audit_chain_eat(c, slice_of(buf, (size_t)n));
		if (r < 0)
			return r;
	}
}

/* A file with an impossible size exists, but is not a valid cut. */
static int load_cut(const char *path, char **ret, size_t *ret_n, struct err *err)
{
	int r = file_load(path, AUDIT_MAX_CUT, ret, ret_n, err);

	if (r == -EFBIG) {
		*ret = xstrdup("too large");
		*ret_n = 0;
	}
	return r == -EFBIG || r == -ENOENT ? 0 : r;
}

static struct audit_reader *make_read(
	const char *dir, const char *sandbox, const struct audit_expect *expect)
{
	struct audit_reader *rd = xcalloc(1, sizeof(*rd));

	rd->dir = xasprintf("%s/%s", dir, sandbox);
	rd->cut_path = audit_cut_path(dir, sandbox);
	rd->fd = -1;
	audit_chain_init(&rd->chain, expect);
	rd->chain.expect.sandbox = NULL; /* the chain has its copy; the caller's may go */
	rd->segment = audit_chain_first(&rd->chain);
	return rd;
}

/* The head before the cut: then it is not newer than the records that the cut leaves. */
int audit_reader_open(const char *dir, const char *sandbox, const struct audit_expect *expect,
	struct audit_reader **ret, struct err *err)
{
	AUTO_FREE char *kept_path = xasprintf("%s/heads/%s", dir, sandbox);
	AUTO_FREE char *cut_path = audit_cut_path(dir, sandbox);
	AUTO_FREE char *kept = NULL, *cut = NULL;
	struct audit_expect own = *expect;
	size_t n = 0, n_cut = 0;
	int r;

	if (!audit_is_word(slice_from_str(sandbox)))
		return err_set(err, -ENOENT, "audit log \"%s\" not found", sandbox);
	r = audit_load_kept(kept_path, &kept, &n, err);
	if (r < 0 && r != -ENOENT && r != -EFBIG)
		return r;
	r = load_cut(cut_path, &cut, &n_cut, err);
	if (r < 0)
		return r;
	own.sandbox = sandbox;
	own.kept_head = slice_of(kept, n);
	own.cut = slice_of(cut, n_cut);
	*ret = make_read(dir, sandbox, &own);
	return 0;
}

/* A file that is missing may have been pruned since the cut was read. */
static int skip_pruned(struct audit_reader *rd, struct err *err)
{
	AUTO_FREE char *line = NULL;
	struct audit_cut cut;
	size_t n = 0;
	int r = load_cut(rd->cut_path, &line, &n, err);

	if (r < 0 || !line || audit_cut_decode(slice_of(line, n), &cut) < 0 ||
		cut.segment <= rd->segment)
		return r;
	if (!(rd->chain.expect.flags & AUDIT_CHAIN_PLAIN))
		return err_set(err, -ESTALE, "the log was pruned while it was read");
	audit_chain_skip(&rd->chain, cut.segment);
	rd->segment = cut.segment;
	return 1;
}

void audit_reader_close(struct audit_reader *rd)
{
	if (!rd)
		return;
	fd_close(&rd->fd);
	audit_chain_done(&rd->chain);
	free(rd->dir);
	free(rd->cut_path);
	free(rd);
}

const struct audit_report *audit_reader_report(const struct audit_reader *rd)
{
	return &rd->chain.report;
}

static int open_file(struct audit_reader *rd, struct err *err)
{
	AUTO_FREE char *path = audit_segment_path(rd->dir, rd->segment);

	rd->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return rd->fd < 0 && errno != ENOENT ? err_errno(err, -errno, "cannot open %s", path) : 0;
}

/* 1: open, 0: it does not exist yet, < 0: it is missing, or a call failed. */
static int open_current(struct audit_reader *rd, uint64_t last, struct err *err)
{
	int r;

	if (rd->fd >= 0)
		return 1;
	if (last < rd->segment)
		return 0;
	r = open_file(rd, err);
	if (r == 0 && rd->fd < 0 && !rd->chain.is_cut_bad) {
		r = skip_pruned(rd, err);
		if (r == 1)
			r = open_file(rd, err);
	}
	if (r < 0)
		return r;
	/* There are later ones: with a number too far the chain names the missing one. */
	r = audit_chain_segment(&rd->chain, rd->fd < 0 ? rd->segment + 1 : rd->segment);
	return r < 0 ? r : 1;
}

/* The directory is read before the file: what it shows then has begun after this file was whole. */
static int pump_one(struct audit_reader *rd, bool *ret_more, struct err *err)
{
	uint64_t last;
	int r;

	*ret_more = false;
	r = audit_last_segment(rd->dir, &last, err);
	if (r == 0)
		r = open_current(rd, last, err);
	if (r <= 0)
		return r;
	r = audit_feed(&rd->chain, rd->fd);
	if (r == 0 && last > rd->segment) {
		fd_close(&rd->fd);
		rd->segment++;
		*ret_more = true;
	}
	return r;
}

int audit_reader_pump(struct audit_reader *rd, struct err *err)
{
	bool more = true;
	int r = 0;

	if (rd->is_ended)
		return -ESHUTDOWN;
	while (r == 0 && more)
		r = pump_one(rd, &more, err);
	rd->is_ended = r < 0 && r != -EBADMSG;
	return r;
}

static int say_read(const char *sandbox, const struct audit_report *rep, struct err *err)
{
	if (rep->seq == 0)
		return err_set(
			err, -EBADMSG, "the audit log of %s %s", sandbox, audit_bad_text(rep->bad));
	return err_set(err, -EBADMSG,
		"the audit log of %s is not valid: record %" PRIu64 " (segment %" PRIu64
		", byte %" PRIu64 ") %s",
		sandbox, rep->seq, rep->segment, rep->offset, audit_bad_text(rep->bad));
}

static int verify_once(const char *dir, const char *sandbox, const struct audit_expect *expect,
	struct audit_report *ret, struct err *err)
{
	struct audit_reader *rd = NULL;
	int r;

	r = audit_reader_open(dir, sandbox, expect, &rd, err);
	if (r < 0)
		return r;
	r = audit_reader_pump(rd, err);
	/* The end of a record that is being written comes in no time, or never. */
	for (int i = 0; i < 5 && r == 0 && rd->chain.n_line; i++) {
		(void)poll(NULL, 0, 10);
		r = audit_reader_pump(rd, err);
	}
	if (r == 0 && !rd->chain.is_begun && !rd->chain.has_kept && access(rd->dir, F_OK) < 0 &&
		access(rd->cut_path, F_OK) < 0)
		r = err_set(err, -ENOENT, "the audit log of %s does not exist", sandbox);
	if (r == 0)
		r = audit_chain_end(&rd->chain);
	*ret = rd->chain.report;
	if (r == -EBADMSG)
		r = say_read(sandbox, ret, err);
	audit_reader_close(rd);
	return r;
}

int audit_verify(const char *dir, const char *sandbox, const struct audit_pub *pub,
	const struct audit_mark *pruned, struct audit_report *ret, struct err *err)
{
	struct audit_expect expect = {.pub = pub, .pruned = pruned};
	int r = -ESTALE;

	for (int i = 0; i < 3 && r == -ESTALE; i++)
		r = verify_once(dir, sandbox, &expect, ret, err);
	return r;
}
