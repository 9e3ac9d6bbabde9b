/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "audit_internal.h"

static void free_audit(struct audit **a)
{
	audit_free(*a);
}

int audit_sync_folder(const char *dir)
{
	AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

/* An empty file may be there from a try that found the disk full. */
static int open_segment(struct audit *a, uint64_t number, struct err *err)
{
	AUTO_FREE char *path = audit_segment_path(a->dir, number);
	AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, -errno, "cannot open %s", path);
	if (!S_ISREG(st.st_mode) || st.st_size != 0)
		return err_set(err, -EEXIST, "%s already exists and is not empty", path);
	r = audit_sync_folder(a->dir);
	return r < 0 ? err_errno(err, r, "cannot sync %s", a->dir) : TAKE_FD(fd);
}

/* The log's first record with its head, or the first record of another segment. */
static int put_first(struct audit *a, uint64_t number, struct err *err)
{
	uint8_t buf[2 * AUDIT_MAX_RECORD];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct audit_record rec = {.ev.kind = number == 1 ? AUDIT_KIND_OPEN : AUDIT_KIND_SEGMENT};
	struct audit_tip tip = a->tip;
	int r;

	rec.version = AUDIT_FORMAT;
	if (number != 1)
		rec.segment = number;
	memcpy(rec.key, audit_key_pub(a->key)->b, sizeof(rec.key));
	r = audit_seal(a, &rec, &tip, &wr);
	if (r == 0 && number == 1)
		r = audit_seal_head(a, &tip, &wr);
	if (r < 0)
		return err_errno(err, r, "cannot begin the audit log of %s", a->sandbox);
	return audit_put(a, slice_of(buf, wr.n), &tip, err);
}

int audit_begin_segment(struct audit *a, uint64_t number, struct err *err)
{
	AUTO_FREE char *path = audit_segment_path(a->dir, number);
	int fd, old = a->fd, r;
	uint64_t size = a->size;

	fd = open_segment(a, number, err);
	if (fd < 0)
		return fd;
	a->fd = fd;
	a->size = 0;
	r = put_first(a, number, err);
	if (r < 0) {
		/* Nothing of it may stay. Truncated it is the same file for who follows the log. */
		if (a->is_torn)
			(void)unlink(path);
		a->is_torn = false;
		a->fd = old;
		a->size = size;
		fd_close(&fd);
		return r;
	}
	if (old >= 0)
		audit_room_give_back(a, old, size);
	fd_close(&old);
	a->segment = number;
	a->format = AUDIT_FORMAT;
	return 0;
}

static int begin_log(struct audit *a, struct err *err)
{
	int r;

	if (getrandom(a->log, sizeof(a->log), 0) != sizeof(a->log))
		return err_set(err, -EIO, "cannot generate the id of a log");
	a->tip = (struct audit_tip){.next_seq = 1};
	r = audit_begin_segment(a, 1, err);
	return r < 0 ? r : audit_sync(a, err);
}

/* Evidence is never deleted: bytes that do not belong to the chain are moved to another file. */
static int copy_tail(struct audit *a, uint64_t number, int fd, uint64_t from, struct err *err)
{
	AUTO_FREE char *path = xasprintf(
		"%s/cut-%08" PRIu64 "-%" PRIu64 "-%" PRIu64, a->dir, number, from, clock_wall_ms());
	AUTO_CLOSE int out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	uint8_t buf[16384];
	ssize_t n;
	int r = out < 0 ? -errno : 0;

	if (lseek(fd, (off_t)from, SEEK_SET) < 0)
		r = -errno;
	while (r == 0 && (n = fd_read_full(fd, buf, sizeof(buf))) != 0)
		r = n < 0 ? (int)n : fd_write_all(out, buf, (size_t)n);
	if (r == 0 && fsync(out) < 0)
		r = -errno;
	return r < 0 ? err_errno(err, r, "cannot move the incomplete end of a log to %s", path) : 0;
}

static int cut_tail(
	struct audit *a, uint64_t number, uint64_t from, uint64_t *ret_cut, struct err *err)
{
	AUTO_FREE char *path = audit_segment_path(a->dir, number);
	AUTO_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, -errno, "cannot access %s", path);
	*ret_cut = (uint64_t)st.st_size - from;
	if (*ret_cut == 0)
		return 0;
	r = copy_tail(a, number, fd, from, err);
	if (r == 0 && (ftruncate(fd, (off_t)from) < 0 || fdatasync(fd) < 0))
		r = err_errno(err, -errno, "cannot truncate %s", path);
	return r;
}

static int put_recovered(struct audit *a, uint64_t cut, struct err *err)
{
	uint8_t buf[2 * AUDIT_MAX_RECORD];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct audit_record rec = {.ev.kind = AUDIT_KIND_RECOVERED};
	struct audit_tip tip = a->tip;
	char why[128];
	int r;

	(void)snprintf(why, sizeof(why),
		"the log was not closed: %u records were not signed, %" PRIu64
		" bytes were incomplete",
		tip.n_unsigned, cut);
	rec.ev.reason = slice_from_str(why);
	rec.ev.count = cut;
	r = audit_seal(a, &rec, &tip, &wr);
	if (r == 0)
		r = audit_seal_head(a, &tip, &wr);
	if (r == 0)
		r = audit_put(a, slice_of(buf, wr.n), &tip, err);
	if (r < 0)
		return err_wrap(err, r, "cannot repair the audit log of %s", a->sandbox);
	return audit_sync(a, err);
}

static int refuse_open(
	const struct audit *a, const struct audit_report *rep, enum audit_bad bad, struct err *err)
{
	bool is_cut = access(a->cut_path, F_OK) == 0;

	return err_set(err, -EBADMSG,
		"the audit log of %s cannot be continued: record %" PRIu64 " in segment %" PRIu64
		" %s\n  try: sbx audit verify; then move %s and %s%s%s away",
		a->sandbox, rep->seq, rep->segment, audit_bad_text(bad), a->dir, a->kept_path,
		is_cut ? " and " : "", is_cut ? a->cut_path : "");
}

/* Walks segment `number` and leaves in c how far it is good; the file becomes a->fd. */
static int walk_open(
	struct audit *a, uint64_t number, struct slice kept, struct audit_chain *c, struct err *err)
{
	AUTO_FREE char *path = audit_segment_path(a->dir, number);
	struct audit_expect expect = {.pub = audit_key_pub(a->key),
		.sandbox = a->sandbox,
		.kept_head = kept,
		.flags = AUDIT_CHAIN_ALONE | (number > 1 ? AUDIT_CHAIN_MIDDLE : 0)};
	int r;

	fd_close(&a->fd);
	a->fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
	if (a->fd < 0)
		return err_errno(err, -errno, "cannot open %s", path);
	audit_chain_init(c, &expect);
	r = audit_chain_segment(c, number);
	if (r == 0)
		r = audit_feed(c, a->fd);
	if (r == 0)
		r = audit_chain_end(c);
	if (r < 0 && r != -EBADMSG)
		return err_errno(err, r, "cannot read %s", path);
	return 0;
}

static void take_tip(struct audit *a, const struct audit_chain *c)
{
	a->tip.next_seq = c->next_seq;
	memcpy(a->tip.last, c->last, sizeof(a->tip.last));
	a->tip.n_unsigned = (unsigned)c->report.n_unsigned;
	memcpy(a->log, c->log, sizeof(a->log));
	a->format = c->format;
	a->unsigned_since_ms = clock_mono_ms();
}

/* What was kept must be there; what came after it is all that a crash may have harmed. */
static int check_kept(
	const struct audit *a, const struct audit_chain *c, bool is_there, struct err *err)
{
	struct audit_report rep = c->report;
	enum audit_bad bad = AUDIT_OK;

	/* The first two records are kept at once; before that there may be none. */
	if (is_there ? !c->has_kept : c->next_seq > 3)
		bad = AUDIT_BAD_KEPT_HEAD;
	else if (c->has_kept && c->next_seq <= c->kept_seq)
		bad = rep.bad ? rep.bad : AUDIT_ROLLBACK;
	if (bad == AUDIT_OK)
		return 0;
	if (!rep.bad)
		rep.seq = c->next_seq;
	return refuse_open(a, &rep, bad, err);
}

/* A segment without a complete record continues the segment before it. */
static int continue_before(struct audit *a, struct slice kept, struct err *err)
{
	AUTO_CHAIN struct audit_chain c = {0};
	uint64_t number = a->segment, cut;
	int r;

	r = walk_open(a, number - 1, kept, &c, err);
	if (r < 0)
		return r;
	if (c.report.bad != AUDIT_OK)
		return refuse_open(a, &c.report, c.report.bad, err);
	r = check_kept(a, &c, kept.n > 0, err);
	if (r == 0)
		r = cut_tail(a, number, 0, &cut, err);
	if (r < 0)
		return r;
	take_tip(a, &c);
	a->segment = number - 1;
	r = audit_begin_segment(a, number, err);
	return r < 0 || !cut ? r : put_recovered(a, cut, err);
}

static int recover_open(struct audit *a, struct slice kept, struct err *err)
{
	AUTO_CHAIN struct audit_chain c = {0};
	uint64_t cut = 0;
	int r;

	r = walk_open(a, a->segment, kept, &c, err);
	if (r < 0)
		return r;
	if (!c.is_begun && a->segment > 1)
		return continue_before(a, kept, err);
	r = check_kept(a, &c, kept.n > 0, err);
	if (r < 0)
		return r;
	if (!c.is_begun) {
		r = cut_tail(a, 1, 0, &cut, err);
		return r < 0 ? r : begin_log(a, err);
	}
	take_tip(a, &c);
	r = cut_tail(a, a->segment, c.offset, &cut, err);
	if (r < 0)
		return r;
	a->size = c.offset;
	return cut || a->tip.n_unsigned || !kept.n ? put_recovered(a, cut, err) : 0;
}

static int open_or_begin(struct audit *a, struct err *err)
{
	AUTO_FREE char *kept = NULL;
	struct audit_report rep = {.seq = 1, .segment = 1};
	size_t n = 0;
	int r;

	r = audit_load_kept(a->kept_path, &kept, &n, err);
	if (r < 0 && r != -ENOENT)
		return r;
	r = audit_last_segment(a->dir, &a->segment, err);
	if (r < 0)
		return r;
	if (a->segment)
		return recover_open(a, slice_of(kept, n), err);
	return kept ? refuse_open(a, &rep, AUDIT_ROLLBACK, err) : begin_log(a, err);
}

static int lock_log(struct audit *a, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/lock", a->dir);

	a->lock = file_lock(path, 0, err);
	if (a->lock == -EBUSY)
		return err_set(
			err, -EBUSY, "another process is writing the audit log of %s", a->sandbox);
	return MIN(a->lock, 0);
}

static int check_options(const struct audit_options *o, struct err *err)
{
	struct slice id = slice_from_str(o->sandbox);

	if (!audit_is_word(id) || memchr(id.p, '.', id.n) || memchr(id.p, ':', id.n) ||
		slice_eq_str(id, "heads") || slice_eq_str(id, "cuts") || slice_eq_str(id, "key"))
		return err_set(err, -EINVAL, "invalid audit log name \"%s\"", o->sandbox);
	if (strlen(o->name) > AUDIT_MAX_NAME || o->head_records > AUDIT_HEAD_RECORDS)
		return err_set(err, -EINVAL, "a name or number of the audit log is too large");
	return 0;
}

static struct audit *make_open(const struct audit_options *o)
{
	struct audit *a = xcalloc(1, sizeof(*a));

	a->lock = a->fd = -1;
	a->dir = xasprintf("%s/%s", o->dir, o->sandbox);
	a->kept_path = xasprintf("%s/heads/%s", o->dir, o->sandbox);
	a->cut_path = audit_cut_path(o->dir, o->sandbox);
	a->key = o->key;
	a->max_bytes = o->max_bytes;
	a->room = o->room;
	a->segment_bytes = o->segment_bytes ? o->segment_bytes : AUDIT_SEGMENT_BYTES;
	a->head_records = o->head_records ? o->head_records : AUDIT_HEAD_RECORDS;
	a->head_ms = o->head_ms ? o->head_ms : AUDIT_HEAD_MS;
	(void)snprintf(a->sandbox, sizeof(a->sandbox), "%s", o->sandbox);
	(void)snprintf(a->name, sizeof(a->name), "%s", o->name);
	a->synced_ms = clock_mono_ms();
	audit_hash_init(&a->hash);
	return a;
}

int audit_open(const struct audit_options *o, struct audit **ret, struct err *err)
{
	CLEANUP(free_audit) struct audit *a = NULL;
	AUTO_FREE char *heads = xasprintf("%s/heads", o->dir);
	int r;

	r = check_options(o, err);
	if (r < 0)
		return r;
	a = make_open(o);
	r = paths_make(a->dir, err);
	if (r == 0)
		r = paths_make(heads, err);
	if (r == 0)
		r = lock_log(a, err);
	if (r == 0)
		r = open_or_begin(a, err);
	if (r == 0)
		r = audit_count_bytes(a->dir, &a->used, err);
	if (r < 0)
		return r;
	(void)!audit_room_take(a, 0); /* tried again with each record */
	*ret = TAKE(a);
	return 0;
}
