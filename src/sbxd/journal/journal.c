/* SPDX-License-Identifier: Apache-2.0 */
#include "journal.h"

#include <errno.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"

static int open_log(struct journal *j, struct err *err)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "audit");
	struct audit_options o = {.dir = dir, .sandbox = JOURNAL_ID, .name = ""};
	int r = j->key ? 0 : audit_key_load(dir, &j->key, err);

	if (r < 0)
		return r;
	o.key = j->key;
	return audit_open(&o, &j->audit, err);
}

int journal_open(struct sbxd *d, struct err *err)
{
	return d->journal->audit ? 0 : open_log(d->journal, err);
}

static void set_timer(struct sbxd *d)
{
	int ms = audit_due_ms(d->journal->audit);

	if (ms < 0)
		loop_timer_clear(&d->loop, &d->journal->timer);
	else
		loop_timer_set(&d->loop, &d->journal->timer, clock_mono_ms() + (uint64_t)ms,
			(struct loop_key){.kind = SBXD_EV_JOURNAL});
}

static struct slice text_slice(const char *s)
{
	return slice_from_str(s ? s : "");
}

int journal_append(struct sbxd *d, const struct journal_entry *e, struct err *err)
{
	struct journal *j = d->journal;
	struct audit_event ev = {.kind = e->kind,
		.action = text_slice(e->action),
		.op = text_slice(e->op),
		.rule = text_slice(e->rule),
		.reason = text_slice(e->reason),
		.count = e->count};
	int r = journal_open(d, err);

	if (r == 0)
		r = audit_set_name(j->audit, e->sandbox ? e->sandbox : "");
	if (r == 0)
		r = audit_append(j->audit, &ev, NULL, err);
	if (r < 0) {
		/* The next append opens the log again, which also repairs it if possible. */
		(void)audit_close(TAKE(j->audit), NULL);
		loop_timer_clear(&d->loop, &j->timer);
		return err_wrap(err, r, "nothing was changed: cannot write to the audit log");
	}
	set_timer(d);
	return 0;
}

int journal_sync(struct sbxd *d, struct err *err)
{
	int r = d->journal->audit ? audit_sync(d->journal->audit, err) : 0;

	if (d->journal->audit)
		set_timer(d);
	return r;
}

void journal_on_timer(struct sbxd *d)
{
	struct err err = {0};

	if (!d->journal->audit)
		return;
	if (audit_sync(d->journal->audit, &err) < 0)
		log_error("%s", err.text);
	set_timer(d);
}

void journal_done(struct sbxd *d)
{
	struct err err = {0};

	if (audit_close(TAKE(d->journal->audit), &err) < 0)
		log_error("%s", err.text);
	loop_timer_clear(&d->loop, &d->journal->timer);
	audit_key_free(TAKE(d->journal->key));
}
