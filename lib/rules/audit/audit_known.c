/* SPDX-License-Identifier: Apache-2.0 */
#include "audit_known.h"

#include <string.h>
#include "audit_list.h"
#include "audit_read.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"

static struct audit_known_log *find_known(const struct audit_known *k, struct slice id)
{
	for (size_t i = 0; i < k->n; i++)
		if (slice_eq_str(id, k->v[i].id))
			return &k->v[i];
	return NULL;
}

/* "ID:LOG"; false when it is something else. */
static bool split_known(struct slice rule, struct slice *ret_id, uint8_t ret_log[AUDIT_LOG_LEN])
{
	size_t n_log = (size_t)2 * AUDIT_LOG_LEN;

	if (rule.n < n_log + 2 || rule.n > n_log + 1 + AUDIT_MAX_WORD)
		return false;
	*ret_id = slice_of(rule.p, rule.n - n_log - 1);
	return rule.p[ret_id->n] == ':' &&
	       hex_decode(slice_of(rule.p + rule.n - n_log, n_log), ret_log) == 0;
}

static struct audit_known_log *add_known(struct audit_known *k, struct slice id)
{
	struct audit_known_log *log;

	if (k->n == AUDIT_LIST_MAX)
		return NULL;
	if (k->n % 64 == 0)
		k->v = xrealloc(k->v, (k->n + 64) * sizeof(*k->v));
	log = &k->v[k->n++];
	*log = (struct audit_known_log){0};
	memcpy(log->id, id.p, id.n);
	return log;
}

/* The last pruning counts, and with it the log that it was of. */
static int on_record(void *arg, const struct audit_record *rec, struct slice line)
{
	struct audit_mark mark = {.seq = rec->ev.count};
	struct audit_known *k = arg;
	struct audit_known_log *log;
	struct slice id;

	(void)line;
	if (rec->ev.kind != AUDIT_KIND_LIFECYCLE || !slice_eq_str(rec->ev.action, "audit-pruned") ||
		!split_known(rec->ev.rule, &id, mark.log))
		return 0;
	log = find_known(k, id);
	if (!log)
		log = add_known(k, id);
	if (log)
		log->mark = mark;
	return 0;
}

/* What cannot be read is not known; the check of sbxd's own log reports the reason. */
void audit_known_load(const char *dir, struct audit_known *ret)
{
	struct audit_expect expect = {.flags = AUDIT_CHAIN_PLAIN, .fn = on_record, .arg = ret};
	struct audit_reader *rd = NULL;

	if (audit_reader_open(dir, "sbxd", &expect, &rd, NULL) == 0)
		(void)!audit_reader_pump(rd, NULL);
	audit_reader_close(rd);
}

const struct audit_mark *audit_known_of(const struct audit_known *k, const char *id)
{
	const struct audit_known_log *log = find_known(k, slice_from_str(id));

	return log ? &log->mark : NULL;
}

void audit_known_free(struct audit_known *k)
{
	free(k->v);
	*k = (struct audit_known){0};
}
