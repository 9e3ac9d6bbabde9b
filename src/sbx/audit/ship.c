/* SPDX-License-Identifier: Apache-2.0 */
#include "ship.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/client/cli/ui.h"
#include "lib/rules/audit/audit_cut.h"
#include "audit_export.h"
#include "ship_run.h"

/* How far a log was passed on, and how far it is in the batch. */
struct place {
	char id[AUDIT_MAX_WORD + 1];
	uint8_t log[AUDIT_LOG_LEN];
	uint64_t passed, seq;
};

struct ship {
	struct ship_options o;
	int lock;
	struct place *place;
	size_t n_places, last;
	char *batch;
	size_t n, room, n_records;
	bool is_begun; /* the line with the key was passed on */
	struct err err;
};

/* ---- the position ---- */

static struct place *find_place(struct ship *s, struct slice id)
{
	if (s->last < s->n_places && slice_eq_str(id, s->place[s->last].id))
		return &s->place[s->last];
	for (s->last = 0; s->last < s->n_places; s->last++)
		if (slice_eq_str(id, s->place[s->last].id))
			return &s->place[s->last];
	return NULL;
}

static struct place *add_place(struct ship *s, struct slice id)
{
	struct place *p;

	s->place = xrealloc(s->place, (s->n_places + 1) * sizeof(*s->place));
	p = &s->place[s->n_places++];
	*p = (struct place){0};
	(void)!slice_to_cstr(id, p->id, sizeof(p->id));
	return p;
}

static int read_place(struct ship *s, const char *id, const json_t *o)
{
	const char *hex = json_string_value(json_object_get(o, "log"));
	json_int_t seq = json_integer_value(json_object_get(o, "seq"));
	struct place *p;

	if (!audit_is_word(slice_from_str(id)) || !hex || seq < 1)
		return -EBADMSG;
	p = add_place(s, slice_from_str(id));
	p->passed = p->seq = (uint64_t)seq;
	return strlen(hex) == sizeof(p->log) * 2 ? hex_decode(slice_from_str(hex), p->log)
						 : -EBADMSG;
}

static int read_position(struct ship *s, struct err *err)
{
	AUTO_FREE char *text = NULL;
	json_t *whole, *o;
	const char *id;
	size_t n = 0;
	int r = file_load(s->o.position, SHIP_MAX_FILE, &text, &n, err);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	whole = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	if (json_integer_value(json_object_get(whole, "sbx_audit_position")) != 1)
		r = -EBADMSG;
	json_object_foreach (json_object_get(whole, "logs"), id, o)
		if (r == 0)
			r = read_place(s, id, o);
	json_decref(whole);
	s->is_begun = r == 0;
	return r < 0 ? err_set(err, -EBADMSG,
			       "%s is not a position of sbx audit export: to export all records "
			       "again, remove it",
			       s->o.position)
		     : 0;
}

static int save_position(struct ship *s, struct err *err)
{
	json_t *logs = json_object(), *whole;
	char *text;
	int r;

	for (size_t i = 0; i < s->n_places; i++) {
		const struct place *p = &s->place[i];
		char hex[2 * AUDIT_LOG_LEN + 1];

		hex_print(p->log, sizeof(p->log), hex);
		(void)json_object_set_new(logs, p->id,
			json_pack("{s:s, s:I}", "log", hex, "seq", (json_int_t)p->passed));
	}
	whole = json_pack("{s:i, s:o}", "sbx_audit_position", 1, "logs", logs);
	text = json_dumps(whole, JSON_COMPACT);
	json_decref(whole);
	r = text ? file_save(s->o.position, slice_from_str(text), err) : -ENOMEM;
	free(text);
	return r;
}

/* ---- the batch ---- */

static void put_batch(struct ship *s, struct slice bytes)
{
	while (s->room - s->n < bytes.n) {
		s->room = s->room ? 2 * s->room : 65536;
		s->batch = xrealloc(s->batch, s->room);
	}
	memcpy(s->batch + s->n, bytes.p, bytes.n);
	s->n += bytes.n;
}

static void put_key(struct ship *s)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		abort();
	audit_export_print_key(s->o.pub, f);
	if (fclose(f) != 0)
		abort();
	put_batch(s, slice_of(text, n));
	free(text);
	s->is_begun = true;
}

/* Records before this one were pruned, and none of them was passed on: the signed cut says so. */
static void put_cut(struct ship *s, const struct place *p)
{
	AUTO_FREE char *line = NULL;
	size_t n = 0;

	if (p->seq)
		ui_warning("records of the audit log of %s were pruned before they were exported",
			p->id);
	if (audit_cut_load(s->o.dir, p->id, &line, &n, NULL) == 0)
		put_batch(s, slice_of(line, n));
}

/* SIGTERM and Ctrl-C come after the save: what was accepted is not passed on again. */
static void block_signals(const struct ship *s, sigset_t *old)
{
	static const int late[] = {SIGTERM, SIGINT, SIGHUP};
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; s->o.position && i < ARRAY_LEN(late); i++)
		(void)sigaddset(&set, late[i]);
	(void)sigprocmask(SIG_BLOCK, &set, old);
}

static int pass_once(struct ship *s, struct err *err)
{
	if (s->o.argv)
		return ship_run(s->o.argv, slice_of(s->batch, s->n), SHIP_RUN_S, err);
	if (fwrite(s->batch, 1, s->n, stdout) != s->n || fflush(stdout) != 0)
		return err_set(err, -EPIPE, "stdout is closed");
	return 0;
}

static int take_batch(struct ship *s, struct err *err)
{
	s->n = s->n_records = 0;
	for (size_t i = 0; i < s->n_places; i++)
		s->place[i].passed = s->place[i].seq;
	return s->o.position ? save_position(s, err) : 0;
}

/* One try. 1: it was not accepted. */
static int try_batch(struct ship *s, struct err *err)
{
	sigset_t old;
	int r;

	block_signals(s, &old);
	r = pass_once(s, err);
	if (r == 0)
		r = take_batch(s, err);
	else if (s->o.argv && r != -ENOENT && r != -EACCES)
		r = 1;
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	return r;
}

int ship_pass(void *ship)
{
	struct ship *s = ship;
	unsigned wait = 1;
	int r = 0;

	if (s->n == 0)
		return 0;
	for (;;) {
		struct err err = {0};

		r = try_batch(s, &err);
		s->err = err;
		if (r <= 0)
			return r;
		ui_warning("%s: the records stay in the logs, next attempt in %u s",
			err_text(&err, -EIO), wait);
		(void)sleep(wait);
		wait = MIN(2 * wait, (unsigned)SHIP_MAX_WAIT_S);
	}
}

int ship_record(void *ship, const struct audit_record *rec, struct slice line)
{
	struct ship *s = ship;
	struct place *p = find_place(s, rec->sandbox);
	enum audit_kind kind = rec->ev.kind;

	if (!p)
		p = add_place(s, rec->sandbox);
	/* The first record that is read of a log names it: another log of this sandbox is new. */
	if (kind <= AUDIT_KIND_HEAD && memcmp(p->log, rec->log, sizeof(p->log)) != 0) {
		memcpy(p->log, rec->log, sizeof(p->log));
		p->seq = p->passed = 0;
	}
	if (rec->seq <= p->seq)
		return 0;
	if (!s->is_begun)
		put_key(s);
	if (rec->seq > p->seq + 1)
		put_cut(s, p);
	p->seq = rec->seq;
	if (s->o.heads && kind != AUDIT_KIND_HEAD)
		return 0;
	put_batch(s, line);
	s->n_records++;
	return s->n >= SHIP_MAX_BYTES || s->n_records >= SHIP_MAX_RECORDS ? ship_pass(s) : 0;
}

const struct err *ship_error(const struct ship *s)
{
	return &s->err;
}

/* ---- opening ---- */

static int lock_position(struct ship *s, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s.lock", s->o.position);

	s->lock = file_lock(path, 0, err);
	if (s->lock == -EBUSY)
		return err_set(
			err, -EBUSY, "another process exports with the position %s", s->o.position);
	return MIN(s->lock, 0);
}

void ship_close(struct ship *s)
{
	if (!s)
		return;
	fd_close(&s->lock);
	free(s->place);
	free(s->batch);
	free(s);
}

int ship_open(const struct ship_options *o, struct ship **ret, struct err *err)
{
	struct ship *s = xcalloc(1, sizeof(*s));
	int r = 0;

	s->o = *o;
	s->lock = -1;
	if (o->position)
		r = lock_position(s, err);
	if (r == 0 && o->position)
		r = read_position(s, err);
	if (r < 0) {
		ship_close(s);
		return r;
	}
	*ret = s;
	return 0;
}
