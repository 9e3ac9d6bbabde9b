/* SPDX-License-Identifier: Apache-2.0 */
#include "audit.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "audit_internal.h"

static int finish_line(struct audit *a, struct audit_record *rec, struct wr *wr, size_t from)
{
	int r;

	if (rec->ev.kind == AUDIT_KIND_HEAD) {
		r = audit_sign(a->key, slice_of(wr->p + from, wr->n - from), rec->sig);
		if (r < 0)
			return r;
	}
	r = audit_record_encode_sig(wr, rec);
	if (r < 0)
		return r;
	audit_hash_of(&a->hash, slice_of(wr->p + from, wr->n - from), rec->hash);
	return audit_record_encode_hash(wr, rec);
}

int audit_seal(struct audit *a, struct audit_record *rec, struct audit_tip *tip, struct wr *wr)
{
	size_t from = wr->n;
	int r;

	rec->seq = tip->next_seq;
	rec->time_ms = clock_wall_ms();
	rec->sandbox = slice_from_str(a->sandbox);
	rec->name = slice_from_str(a->name);
	memcpy(rec->log, a->log, sizeof(rec->log));
	memcpy(rec->prev, tip->last, sizeof(rec->prev));
	r = audit_record_encode(wr, rec);
	if (r < 0)
		return r;
	r = finish_line(a, rec, wr, from);
	if (r < 0)
		return r;
	memcpy(tip->last, rec->hash, sizeof(tip->last));
	tip->next_seq++;
	tip->n_unsigned = rec->ev.kind == AUDIT_KIND_HEAD ? 0 : tip->n_unsigned + 1;
	return 0;
}

int audit_seal_head(struct audit *a, struct audit_tip *tip, struct wr *wr)
{
	struct audit_record rec = {.ev.kind = AUDIT_KIND_HEAD};
	size_t from = wr->n;
	int r;

	r = audit_seal(a, &rec, tip, wr);
	if (r < 0)
		return r;
	tip->head_at = from;
	tip->n_head = wr->n - from;
	assert(tip->n_head <= sizeof(a->head));
	return 0;
}

/* A failed write leaves no byte behind: the rest would look like a torn record, or worse like a
 * record that was refused. */
static int remove_torn(struct audit *a, struct err *err)
{
	if (!a->is_torn)
		return 0;
	if (ftruncate(a->fd, (off_t)a->size) < 0)
		return err_errno(
			err, -errno, "cannot remove a half-written audit record of %s", a->sandbox);
	a->is_torn = false;
	a->allocated = 0;
	return 0;
}

/* Only what is written becomes the state: until then a failure has changed nothing. */
static void commit_audit(struct audit *a, struct slice bytes, const struct audit_tip *tip)
{
	if (!a->tip.n_unsigned)
		a->unsigned_since_ms = clock_mono_ms();
	a->tip = *tip;
	a->size += bytes.n;
	a->used += bytes.n;
	if (tip->n_head) {
		memcpy(a->head, bytes.p + tip->head_at, tip->n_head);
		a->n_head = tip->n_head;
		a->is_sync_due = true;
	}
	a->tip.n_head = 0;
}

int audit_put(struct audit *a, struct slice bytes, const struct audit_tip *tip, struct err *err)
{
	ssize_t n;
	int r;

	do
		n = write(a->fd, bytes.p, bytes.n);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)bytes.n) {
		r = n < 0 ? -errno : -ENOSPC;
		a->is_torn = true;
		(void)remove_torn(a, NULL);
		return err_errno(err, r, "cannot write the audit log of %s", a->sandbox);
	}
	commit_audit(a, bytes, tip);
	return 0;
}

/* The log first: a kept head must never be ahead of what the disk has. */
static int keep_head(struct audit *a, struct err *err)
{
	int r;

	a->must_sync = true;
	if (fdatasync(a->fd) < 0) {
		/* The kernel may have dropped the pages: a second try would lie. */
		a->failed = -errno;
		return err_errno(err, a->failed, "cannot sync the audit log of %s", a->sandbox);
	}
	r = file_save(a->kept_path, slice_of(a->head, a->n_head), err);
	if (audit_is_no_space(r) && audit_room_keep_head(a) == 0)
		r = 0;
	if (r < 0)
		return r;
	a->is_sync_due = a->must_sync = false;
	a->synced_ms = clock_mono_ms();
	return 0;
}

static int check_usable(struct audit *a, struct err *err)
{
	int r;

	if (a->failed)
		return err_errno(
			err, a->failed, "cannot sync the audit log of %s: reopen it", a->sandbox);
	r = remove_torn(a, err);
	if (r < 0)
		return r;
	return a->must_sync ? keep_head(a, err) : 0;
}

static int put_head(struct audit *a, struct err *err)
{
	UNINITIALIZED uint8_t buf[AUDIT_MAX_RECORD];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct audit_tip tip = a->tip;
	int r;

	r = audit_seal_head(a, &tip, &wr);
	if (r < 0)
		return err_errno(err, r, "cannot sign a head of the audit log of %s", a->sandbox);
	return audit_put(a, slice_of(buf, wr.n), &tip, err);
}

int audit_sync(struct audit *a, struct err *err)
{
	int r;

	r = check_usable(a, err);
	if (r == 0 && a->tip.n_unsigned)
		r = put_head(a, err);
	if (r == 0 && a->is_sync_due)
		r = keep_head(a, err);
	a->tried_ms = r < 0 ? clock_mono_ms() : 0;
	return r;
}

static int rotate_audit(struct audit *a, struct err *err)
{
	int r;

	if (a->size < a->segment_bytes)
		return 0;
	/* Each segment ends with a kept head, so a missing one is seen from either side. */
	r = audit_sync(a, err);
	return r < 0 ? r : audit_begin_segment(a, a->segment + 1, err);
}

static bool is_head_due(const struct audit *a, const struct audit_tip *tip)
{
	if (tip->n_unsigned >= a->head_records)
		return true;
	return a->tip.n_unsigned && clock_mono_ms() - a->unsigned_since_ms >= a->head_ms;
}

/* What a guest can cause as often as it likes. */
static bool is_bounded(enum audit_kind kind)
{
	return kind != AUDIT_KIND_POLICY_CHANGE && kind != AUDIT_KIND_LIFECYCLE &&
	       kind != AUDIT_KIND_WORKER_VIOLATION;
}

/* In a log that an older sbx began. Its last record is a head then: no head is due. */
static int seal_format(struct audit *a, struct audit_tip *tip, struct wr *wr)
{
	struct audit_record rec = {.ev.kind = AUDIT_KIND_FORMAT, .version = AUDIT_FORMAT};

	return a->format < AUDIT_FORMAT ? audit_seal(a, &rec, tip, wr) : 0;
}

/* The record and, in the same write, the head that is due after it. */
static int put_event(
	struct audit *a, const struct audit_event *ev, uint64_t *ret_seq, struct err *err)
{
	UNINITIALIZED uint8_t buf[3 * AUDIT_MAX_RECORD];
	struct wr wr = wr_init(buf, sizeof(buf));
	UNINITIALIZED struct audit_record rec;
	struct audit_tip tip = a->tip;
	int r;

	memset(&rec, 0, offsetof(struct audit_record, text));
	rec.ev = *ev;
	audit_record_trim(&rec);
	r = seal_format(a, &tip, &wr);
	if (ret_seq)
		*ret_seq = tip.next_seq;
	if (r == 0)
		r = audit_seal(a, &rec, &tip, &wr);
	if (r == 0 && is_head_due(a, &tip))
		r = audit_seal_head(a, &tip, &wr);
	if (r < 0)
		return err_errno(err, r, "cannot encode an audit record of %s", a->sandbox);
	r = audit_room_take(a, wr.n);
	if (r < 0 && is_bounded(ev->kind))
		return err_errno(err, r, "cannot write the audit log of %s", a->sandbox);
	r = audit_put(a, slice_of(buf, wr.n), &tip, err);
	if (r == 0)
		a->format = AUDIT_FORMAT;
	return r;
}

/* The reader of the log must see that from here on refusals are missing. */
static void say_full(struct audit *a, const char *size)
{
	char why[128];
	struct audit_event ev = {
		.kind = AUDIT_KIND_LIFECYCLE, .action = slice_from_str("log-full")};

	if (a->is_full_said)
		return;
	(void)snprintf(why, sizeof(why),
		"the log has reached audit.max-size (%s): further requests are denied without a record",
		size);
	ev.reason = slice_from_str(why);
	a->is_full_said = put_event(a, &ev, NULL, NULL) == 0;
}

static int refuse_full(struct audit *a, struct err *err)
{
	uint64_t mib = (2 * a->max_bytes + (1 << 20) - 1) >> 20;
	char size[32];

	while (mib << 20 <= a->used)
		mib *= 2;
	str_from_size(a->max_bytes, size, sizeof(size));
	say_full(a, size);
	return err_set(err, -EDQUOT,
		"the log has reached audit.max-size (%s); to increase it: sbx settings set audit.max-size %llu%c",
		size, (unsigned long long)(mib % 1024 ? mib : mib / 1024), mib % 1024 ? 'm' : 'g');
}

/* Of a full log segments may have been pruned meanwhile, by another process. */
static void count_again(struct audit *a)
{
	uint64_t now = clock_mono_ms(), used;

	if (now - a->counted_ms < AUDIT_RETRY_MS || access(a->cut_path, F_OK) < 0)
		return;
	a->counted_ms = now;
	if (audit_count_bytes(a->dir, &used, NULL) < 0)
		return;
	a->used = used;
	a->is_full_said = a->is_full_said && audit_is_full(a);
}

int audit_append(struct audit *a, const struct audit_event *ev, uint64_t *ret_seq, struct err *err)
{
	int r;

	assert(ev->kind >= AUDIT_KIND_DECISION && ev->kind < AUDIT_N_KINDS);
	r = check_usable(a, err);
	if (r < 0)
		return r;
	if (is_bounded(ev->kind) && audit_is_full(a))
		count_again(a);
	if (is_bounded(ev->kind) && audit_is_full(a))
		return refuse_full(a, err);
	r = rotate_audit(a, err);
	/* What the host does goes into this segment then: there is room in it. */
	if (audit_is_no_space(r) && a->room && !a->must_sync && !is_bounded(ev->kind))
		r = 0;
	if (r < 0)
		return r;
	r = put_event(a, ev, ret_seq, err);
	if (r < 0)
		return r;
	/* The record was written, so this is not its failure; the next append stops here. */
	if (a->is_sync_due && clock_mono_ms() - a->synced_ms >= AUDIT_SYNC_MS)
		(void)keep_head(a, NULL);
	return 0;
}

int audit_set_name(struct audit *a, const char *name)
{
	char copy[sizeof(a->name)];
	int r;

	r = str_copy(copy, sizeof(copy), name);
	if (r == 0)
		memcpy(a->name, copy, sizeof(copy));
	return r;
}

static int rest_of(uint64_t since, uint64_t bound)
{
	uint64_t gone = clock_mono_ms() - since;

	return gone >= bound ? 0 : (int)(bound - gone);
}

int audit_due_ms(const struct audit *a)
{
	int due = -1;

	if (a->tip.n_unsigned)
		due = rest_of(a->unsigned_since_ms, a->head_ms);
	if (a->is_sync_due) {
		int sync = rest_of(a->synced_ms, AUDIT_SYNC_MS);

		due = due < 0 ? sync : MIN(due, sync);
	}
	/* A full disk must not make the caller's loop spin. */
	return due >= 0 && a->tried_ms ? MAX(due, rest_of(a->tried_ms, AUDIT_RETRY_MS)) : due;
}

void audit_set_max_bytes(struct audit *a, uint64_t max_bytes)
{
	a->max_bytes = max_bytes;
	a->is_full_said = a->is_full_said && audit_is_full(a);
}

bool audit_is_full(const struct audit *a)
{
	return a->max_bytes && a->used >= a->max_bytes;
}

bool audit_is_failed(const struct audit *a)
{
	return a->failed;
}

void audit_free(struct audit *a)
{
	if (!a)
		return;
	fd_close(&a->fd);
	fd_close(&a->lock);
	audit_hash_done(&a->hash);
	free(a->dir);
	free(a->kept_path);
	free(a->cut_path);
	free(a);
}

int audit_close(struct audit *a, struct err *err)
{
	int r = a ? audit_sync(a, err) : 0;

	if (a)
		audit_room_done(a);
	audit_free(a);
	return r;
}
