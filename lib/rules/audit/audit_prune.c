/* SPDX-License-Identifier: Apache-2.0 */
#include "audit_prune.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "audit_internal.h"
#include "audit_list.h"

#define BARE_BYTES 4096 /* more than two records without a text */

struct prune {
	const struct audit_prune_options *o;
	char *dir;	 /* of the log */
	struct audit *a; /* while this process is the writer */
	bool is_written;
	uint64_t first, last, keep; /* existing segments; the first to keep */
	uint64_t old_seq;	    /* pruned before */
	uint8_t *buf;		    /* AUDIT_END_BYTES */
	struct audit_record *rec;
};

static void prune_done(struct prune *p)
{
	free(p->dir);
	free(p->buf);
	free(p->rec);
	(void)audit_close(p->a, NULL);
}

static int refuse_prune(const struct prune *p, struct err *err)
{
	return err_set(err, -EBADMSG,
		"cannot prune the audit log of %s: it is corrupt, and nothing was removed\n"
		"  try: sbx audit verify %s",
		p->o->sandbox, p->o->sandbox);
}

static int load_first(struct prune *p, struct err *err)
{
	AUTO_FREE char *line = NULL;
	struct audit_cut cut;
	size_t n = 0;
	int r = audit_cut_load(p->o->dir, p->o->sandbox, &line, &n, err);

	p->first = 1;
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r == -EFBIG ? refuse_prune(p, err) : r;
	if (audit_cut_check(slice_of(line, n), audit_key_pub(p->o->key), &cut) < 0)
		return refuse_prune(p, err);
	p->first = cut.segment;
	p->old_seq = cut.seq;
	return 0;
}

/* Opening also repairs what a crash left. It would create a missing log. */
static int take_log(struct prune *p, struct err *err)
{
	char name[AUDIT_MAX_NAME + 1] = "";
	struct audit_options o = {
		.dir = p->o->dir, .sandbox = p->o->sandbox, .name = name, .key = p->o->key};
	int r = access(p->dir, F_OK) < 0 ? -errno : 0;

	if (r < 0)
		return err_set(err, r, "the audit log of %s does not exist", p->o->sandbox);
	if (p->o->is_dry) {
		AUTO_FREE char *lock = xasprintf("%s/lock", p->dir);

		p->is_written = file_is_locked(lock);
		return 0;
	}
	if (audit_last_name(p->o->dir, p->o->sandbox, name) < 0)
		name[0] = '\0';
	r = audit_open(&o, &p->a, err);
	p->is_written = r == -EBUSY;
	return p->is_written ? 0 : r;
}

static int size_of(const struct prune *p, uint64_t number, uint64_t *ret, struct err *err)
{
	AUTO_FREE char *path = audit_segment_path(p->dir, number);
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? refuse_prune(p, err)
				       : err_errno(err, -errno, "cannot read %s", path);
	*ret = (uint64_t)st.st_size;
	return 0;
}

static int sum_sizes(
	const struct prune *p, uint64_t from, uint64_t to, uint64_t *ret, struct err *err)
{
	uint64_t size;
	int r = 0;

	*ret = 0;
	for (uint64_t i = from; i < to && r == 0; i++) {
		r = size_of(p, i, &size, err);
		*ret += r == 0 ? size : 0;
	}
	return r;
}

/* The last record of a segment, in p->rec. */
static int read_last(struct prune *p, uint64_t number, struct slice *ret_line, struct err *err)
{
	AUTO_FREE char *path = audit_segment_path(p->dir, number);

	return audit_read_last(path, p->buf, p->rec, ret_line) < 0 ? refuse_prune(p, err) : 0;
}

/* Whether to remove a segment; it and later segments have `left` bytes. */
static int is_due(struct prune *p, uint64_t number, uint64_t left, struct err *err)
{
	struct slice line;
	int r;

	if (!p->o->before_ms)
		return left > p->o->keep_bytes;
	r = read_last(p, number, &line, err);
	return r < 0 ? r : p->rec->time_ms < p->o->before_ms;
}

/* With its newline, if it has one. */
static struct slice first_line(struct slice s)
{
	const uint8_t *end = s.n ? memchr(s.p, '\n', s.n) : NULL;

	return end ? slice_of(s.p, (size_t)(end - s.p) + 1) : s;
}

/* What a pruning leaves of a log: the beginning of a segment and its head. */
static bool is_bare(struct prune *p)
{
	AUTO_FREE char *path = audit_segment_path(p->dir, p->last);
	AUTO_FREE char *text = NULL;
	struct slice line;
	size_t n = 0;

	if (p->last == 1 || file_load(path, BARE_BYTES, &text, &n, NULL) < 0)
		return false;
	line = first_line(slice_of(text, n));
	if (line.n == n)
		return true;
	line = slice_of(line.p + line.n, n - line.n);
	return first_line(line).n == line.n && audit_record_decode(line, p->rec) == 0 &&
	       p->rec->ev.kind == AUDIT_KIND_HEAD;
}

static int choose_prune(struct prune *p, struct err *err)
{
	uint64_t left, size;
	int r = sum_sizes(p, p->first, p->last + 1, &left, err);

	if (r < 0)
		return r;
	for (p->keep = p->first; p->keep < p->last; p->keep++) {
		r = is_due(p, p->keep, left, err);
		if (r <= 0)
			return r;
		r = size_of(p, p->keep, &size, err);
		if (r < 0)
			return r;
		left -= MIN(size, left);
	}
	if (p->is_written || is_bare(p))
		return 0;
	r = is_due(p, p->last, left, err);
	p->keep += r > 0;
	return r < 0 ? r : 0;
}

static int begin_bare(struct prune *p, struct err *err)
{
	int r = audit_sync(p->a, err);

	if (r == 0)
		r = audit_begin_segment(p->a, p->keep, err);
	if (r == 0)
		r = audit_sync(p->a, err);
	if (r == 0)
		p->last = p->keep;
	return r;
}

static bool is_hash_right(struct slice line, const struct audit_record *rec)
{
	uint8_t hash[AUDIT_HASH_LEN];
	struct audit_hash h = {0};

	audit_hash_init(&h);
	audit_hash_of(&h, slice_of(line.p, rec->n_hashed), hash);
	audit_hash_done(&h);
	return memcmp(hash, rec->hash, sizeof(hash)) == 0;
}

/* The head that ends the last segment to go. */
static int read_end_of(struct prune *p, struct audit_cut *cut, struct err *err)
{
	const struct audit_record *rec = p->rec;
	struct slice line;
	int r = read_last(p, p->keep - 1, &line, err);

	if (r < 0)
		return r;
	if (rec->ev.kind != AUDIT_KIND_HEAD || !is_hash_right(line, rec) ||
		!slice_eq_str(rec->sandbox, p->o->sandbox) || rec->seq <= p->old_seq)
		return refuse_prune(p, err);
	if (audit_check(audit_key_pub(p->o->key), slice_of(line.p, rec->n_signed), rec->sig) < 0)
		return refuse_prune(p, err);
	cut->segment = p->keep;
	cut->seq = rec->seq;
	cut->until_ms = rec->time_ms;
	cut->time_ms = clock_wall_ms();
	memcpy(cut->hash, rec->hash, sizeof(cut->hash));
	memcpy(cut->log, rec->log, sizeof(cut->log));
	(void)snprintf(cut->sandbox, sizeof(cut->sandbox), "%s", p->o->sandbox);
	return 0;
}

/* The first segment to keep must continue it, and be on the disk before others are removed. */
static int check_begin_of(struct prune *p, const struct audit_cut *cut, struct err *err)
{
	AUTO_FREE char *path = audit_segment_path(p->dir, p->keep);
	AUTO_CLOSE int fd = file_open(path, err);
	const struct audit_record *rec = p->rec;
	struct slice line;
	ssize_t n;

	if (fd < 0)
		return fd == -ENOENT ? refuse_prune(p, err) : fd;
	n = fd_read_full(fd, p->buf, AUDIT_MAX_RECORD);
	if (n < 0 || fsync(fd) < 0)
		return err_errno(err, n < 0 ? (int)n : -errno, "cannot read %s", path);
	line = first_line(slice_of(p->buf, (size_t)n));
	if (audit_record_decode(line, p->rec) < 0 || !is_hash_right(line, rec) ||
		rec->ev.kind != AUDIT_KIND_SEGMENT || rec->segment != p->keep ||
		rec->seq != cut->seq + 1 || memcmp(rec->prev, cut->hash, sizeof(cut->hash)) != 0 ||
		memcmp(rec->log, cut->log, sizeof(cut->log)) != 0)
		return refuse_prune(p, err);
	return 0;
}

static int save_cut(const struct prune *p, struct audit_cut *cut, struct err *err)
{
	AUTO_FREE char *path = audit_cut_path(p->o->dir, p->o->sandbox);
	AUTO_FREE char *cuts = xasprintf("%s/cuts", p->o->dir);
	uint8_t buf[AUDIT_MAX_CUT];
	struct wr wr = wr_init(buf, sizeof(buf));
	int r = paths_make(cuts, err);

	if (r < 0)
		return r;
	r = audit_cut_encode(&wr, cut, p->o->key);
	return r < 0 ? err_errno(err, r, "cannot sign the pruning of the audit log of %s",
			       p->o->sandbox)
		     : file_save(path, slice_of(buf, wr.n), err);
}

static bool is_there(const struct prune *p, uint64_t number)
{
	AUTO_FREE char *path = audit_segment_path(p->dir, number);

	return access(path, F_OK) == 0;
}

/* The oldest first: what a kill leaves is found from `keep` downwards by the next call. */
static int remove_before(const struct prune *p, uint64_t keep, struct err *err)
{
	uint64_t from = keep;
	int r;

	while (from > 1 && is_there(p, from - 1))
		from--;
	if (from == keep)
		return 0;
	for (; from < keep; from++) {
		AUTO_FREE char *path = audit_segment_path(p->dir, from);

		if (unlink(path) < 0)
			return err_errno(err, -errno, "cannot remove %s", path);
	}
	r = audit_sync_folder(p->dir);
	return r < 0 ? err_errno(err, r, "cannot sync %s", p->dir) : 0;
}

/* With the first segment to keep on the disk, from the check to the removal. */
static int cut_there(struct prune *p, struct audit_pruned *ret, struct err *err)
{
	struct audit_cut cut = {0};
	int r = sum_sizes(p, p->first, p->keep, &ret->bytes, err);

	if (r == 0)
		r = read_end_of(p, &cut, err);
	if (r == 0 && p->keep <= p->last)
		r = check_begin_of(p, &cut, err);
	if (r < 0)
		return r;
	ret->segments = p->keep - p->first;
	ret->records = cut.seq - p->old_seq;
	ret->seq = cut.seq;
	ret->until_ms = cut.until_ms;
	memcpy(ret->log, cut.log, sizeof(ret->log));
	if (p->o->is_dry)
		return 0;
	r = p->o->record ? p->o->record(p->o->arg, &cut, err) : 0;
	if (r == 0)
		r = save_cut(p, &cut, err);
	return r < 0 ? r : remove_before(p, p->keep, err);
}

/* A writer that found the disk full leaves an empty file after its last segment. */
static int find_last(struct prune *p, struct err *err)
{
	uint64_t size = 0;
	int r = audit_last_segment(p->dir, &p->last, err);

	if (r < 0)
		return r;
	if (p->last < p->first)
		return refuse_prune(p, err);
	r = size_of(p, p->last, &size, err);
	p->last -= r == 0 && size == 0 && p->last > p->first;
	return r;
}

static int run_prune(struct prune *p, struct audit_pruned *ret, struct err *err)
{
	int r = load_first(p, err);

	if (r == 0)
		r = take_log(p, err);
	if (r == 0)
		r = find_last(p, err);
	if (r == 0)
		r = choose_prune(p, err);
	if (r < 0)
		return r;
	ret->is_written = p->is_written;
	if (p->keep == p->first)
		return p->o->is_dry ? 0 : remove_before(p, p->first, err);
	if (p->keep > p->last && !p->o->is_dry)
		r = begin_bare(p, err);
	return r < 0 ? r : cut_there(p, ret, err);
}

int audit_prune(const struct audit_prune_options *o, struct audit_pruned *ret, struct err *err)
{
	CLEANUP(prune_done) struct prune p = {.o = o};

	*ret = (struct audit_pruned){0};
	if (!audit_is_word(slice_from_str(o->sandbox)))
		return err_set(err, -ENOENT, "the audit log '%s' does not exist", o->sandbox);
	p.dir = xasprintf("%s/%s", o->dir, o->sandbox);
	p.buf = xmalloc(AUDIT_END_BYTES);
	p.rec = xcalloc(1, sizeof(*p.rec));
	return run_prune(&p, ret, err);
}
