#include "audit_known.h"

#include <string.h>

#include "lib/audit/audit_list.h"
#include "lib/audit/audit_read.h"
#include "lib/base/mem.h"

static struct audit_known_log *find(const struct audit_known *k, struct slice id)
{
	for (size_t i = 0; i < k->n; i++)
		if (slice_eq_str(id, k->v[i].id))
			return &k->v[i];
	return NULL;
}

static int on_record(void *arg, const struct audit_record *rec, struct slice line)
{
	struct audit_known *k = arg;
	struct audit_known_log *log;

	(void)line;
	if (rec->ev.kind != AUDIT_KIND_LIFECYCLE || !slice_eq_str(rec->ev.action, "audit-pruned") ||
		rec->ev.rule.n > AUDIT_MAX_WORD)
		return 0;
	log = find(k, rec->ev.rule);
	if (!log && k->n < AUDIT_LIST_MAX) {
		if (k->n % 64 == 0)
			k->v = xrealloc(k->v, (k->n + 64) * sizeof(*k->v));
		log = &k->v[k->n++];
		*log = (struct audit_known_log){0};
		memcpy(log->id, rec->ev.rule.p, rec->ev.rule.n);
	}
	if (log)
		log->seq = MAX(log->seq, rec->ev.count);
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

uint64_t audit_known_seq(const struct audit_known *k, const char *id)
{
	const struct audit_known_log *log = find(k, slice_from_str(id));

	return log ? log->seq : 0;
}

void audit_known_free(struct audit_known *k)
{
	free(k->v);
	*k = (struct audit_known){0};
}
