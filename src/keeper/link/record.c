/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record - the keeper as the writer of its sandbox's audit log.
 *
 * How      The log is opened while QEMU boots and closed at exit; a timer signs and syncs records.
 *          lib/rules/gate writes decisions, this file the rest. If the log cannot be opened or its
 *          disk failed, the sandbox keeps running, but its network is denied; the next request
 *          tries the log again. A full log denies it too, until audit.max-size is raised.
 * Trust    The user's own state directory; the reasons of violations come from a compromised
 *          worker.
 * Owns     The key and the log.
 */
#include "link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "lib/rules/gate/gate.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"

static int open_log(struct keeper *k, struct err *err)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "audit");
	struct audit_options o = {.dir = dir,
		.sandbox = k->spec.id,
		.name = k->spec.name,
		.room = AUDIT_ROOM,
		.max_bytes = k->record->max_bytes};
	int r = 0;

	if (!k->record->key) {
		r = audit_key_load(dir, &k->record->key, err);
		/* The supervisor of hidden names is a fork of the keeper. */
		if (r == 0)
			audit_key_keep_from_children(k->record->key);
	}
	o.key = k->record->key;
	return r < 0 ? r : audit_open(&o, &k->record->audit, err);
}

static void open_record(struct keeper *k)
{
	struct err err = {0};
	int r = open_log(k, &err);

	k->record->tried_ms = clock_mono_ms();
	if (r < 0)
		log_error("all traffic is denied: %s", err_text(&err, r));
	gate_set_audit(k->gate, k->record->audit, err_text(&err, r));
}

void record_begin(struct keeper *k)
{
	if (k->record->audit)
		return;
	open_record(k);
	record_life(k, "start", "");
}

void record_set_max_bytes(struct keeper *k, uint64_t max_bytes)
{
	k->record->max_bytes = max_bytes;
	if (k->record->audit)
		audit_set_max_bytes(k->record->audit, max_bytes);
}

static void check_full(struct record *rec)
{
	bool was_full = rec->is_full;

	rec->is_full = audit_is_full(rec->audit);
	if (rec->is_full && !was_full)
		log_error("all traffic is denied: the audit log has reached audit.max-size");
}

void record_check(struct keeper *k)
{
	struct record *rec = k->record;

	if (rec->audit && !audit_is_failed(rec->audit)) {
		check_full(rec);
		return;
	}
	if (clock_mono_ms() - rec->tried_ms < KEEPER_RECORD_MS)
		return;
	/* The error requires that the log is opened again. */
	(void)audit_close(TAKE(rec->audit), NULL);
	open_record(k);
}

static void append_record(struct keeper *k, const struct audit_event *ev)
{
	struct err err = {0};
	int r = k->record->audit ? audit_append(k->record->audit, ev, NULL, &err) : 0;

	if (r < 0)
		log_warn("%s", err_text(&err, r));
}

void record_life(struct keeper *k, const char *action, const char *why)
{
	struct audit_event ev = {.kind = AUDIT_KIND_LIFECYCLE,
		.action = slice_from_str(action),
		.reason = slice_from_str(why)};

	append_record(k, &ev);
}

int record_checkpoint(
	struct keeper *k, const char *label, const char *layers, uint64_t *ret_seq, struct err *err)
{
	struct audit_event ev = {.kind = AUDIT_KIND_LIFECYCLE,
		.action = slice_from_str("checkpoint"),
		.op = slice_from_str(label),
		.reason = slice_from_str(layers)};

	if (!k->record->audit)
		return err_set(err, -EIO, "the audit log is not open: see `sbx logs`");
	return audit_append(k->record->audit, &ev, ret_seq, err);
}

void record_decision(struct keeper *k, const struct audit_event *ev)
{
	append_record(k, ev);
}

int record_approval(struct keeper *k, const struct audit_event *ev)
{
	struct err err = {0};
	int r = -EIO;

	if (k->record->audit)
		r = audit_append(k->record->audit, ev, NULL, &err);
	if (r < 0)
		log_warn("cannot record an approval: %s", err_text(&err, r));
	return r;
}

void record_violation(struct keeper *k, const char *program, const char *what)
{
	char reason[256];
	struct audit_event ev = {
		.kind = AUDIT_KIND_WORKER_VIOLATION, .action = slice_from_str("kill")};

	(void)snprintf(reason, sizeof(reason), "%s %.200s", program, what);
	ev.reason = slice_from_str(reason);
	append_record(k, &ev);
}

void record_arm(struct keeper *k)
{
	struct record *rec = k->record;
	int due;

	if (!rec->audit || rec->timer.pos || audit_is_failed(rec->audit))
		return;
	due = audit_due_ms(rec->audit);
	if (due >= 0)
		loop_timer_set(&k->loop, &rec->timer, clock_mono_ms() + (uint64_t)due,
			(struct loop_key){.kind = EV_TIMER_RECORD});
}

void record_on_timer(struct keeper *k)
{
	struct err err = {0};
	int r = 0;

	/* A later record may already have synced everything. */
	if (k->record->audit && audit_due_ms(k->record->audit) == 0)
		r = audit_sync(k->record->audit, &err);
	if (r < 0 && !k->record->is_bad)
		log_error("all traffic is denied: %s", err_text(&err, r));
	k->record->is_bad = r < 0;
}

void record_close(struct keeper *k)
{
	struct record *rec = k->record;
	struct err err = {0};
	int r;

	loop_timer_clear(&k->loop, &rec->timer);
	if (k->gate)
		gate_set_audit(k->gate, NULL, "the sandbox is stopping");
	r = audit_close(TAKE(rec->audit), &err);
	if (r < 0)
		log_error("cannot close the audit log: %s", err_text(&err, r));
	audit_key_free(TAKE(rec->key));
}
