/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/rules/audit/audit_known.h"
#include "lib/base/mem.h"
#include "lib/client/api/api.h"
#include "audit_cmd.h"
#include "audit_export.h"
#include "audit_logs.h"
#include "audit_text.h"
#include "lib/client/cli/form.h"
#include "lib/client/cli/table.h"
#include "lib/client/cli/when.h"

struct results {
	struct table table;
	json_t *list;
	size_t n, n_bad;
};

/* "BAD: record 12 (segment 1, byte 3210) was changed: ..." */
static char *verdict_verify(const struct audit_report *rep)
{
	char pruned[96] = "", on[WHEN_TEXT];

	when_print(rep->cut_ms, false, on);
	if (rep->cut_seq)
		(void)snprintf(pruned, sizeof(pruned), ", records 1 to %" PRIu64 " pruned on %s",
			rep->cut_seq, on);
	if (rep->bad == AUDIT_OK && rep->n_unsigned)
		return xasprintf(
			"OK, the last %" PRIu64 " not signed yet%s", rep->n_unsigned, pruned);
	if (rep->bad == AUDIT_OK)
		return xasprintf("OK%s", pruned);
	if (rep->seq == 0)
		return xasprintf("BAD: it %s", audit_bad_text(rep->bad));
	return xasprintf("BAD: record %" PRIu64 " (segment %" PRIu64 ", byte %" PRIu64 ") %s",
		rep->seq, rep->segment, rep->offset, audit_bad_text(rep->bad));
}

/* Existing files: a pruned log does not begin with the first. */
static uint64_t n_segments(const struct audit_report *rep)
{
	return rep->cut_seq && rep->segment >= rep->cut_segment
		       ? rep->segment - rep->cut_segment + 1
		       : rep->segment;
}

static json_t *to_json(const char *id, const char *name, const struct audit_report *rep)
{
	static const char *const keys[] = {"pruned", "bad", "record", "byte", NULL};
	json_t *o = json_pack("{s:s, s:o, s:b, s:I, s:I, s:I, s:I, s:I}", "id", id, "name",
		audit_text_json(slice_from_str(name)), "ok", rep->bad == AUDIT_OK, "records",
		(json_int_t)rep->n_records, "segments", (json_int_t)n_segments(rep), "heads",
		(json_int_t)rep->n_heads, "last_head_at", (json_int_t)rep->signed_ms, "unsigned",
		(json_int_t)rep->n_unsigned);

	if (rep->cut_seq)
		(void)json_object_set_new(o, "pruned",
			json_pack("{s:I, s:I, s:I}", "records", (json_int_t)rep->cut_seq,
				"pruned_at", (json_int_t)rep->cut_ms, "last_record_at",
				(json_int_t)rep->cut_until_ms));
	if (rep->bad != AUDIT_OK) {
		(void)json_object_set_new(o, "bad", json_string(audit_bad_name(rep->bad)));
		(void)json_object_set_new(o, "record", json_integer((json_int_t)rep->seq));
		(void)json_object_set_new(o, "byte", json_integer((json_int_t)rep->offset));
	}
	form_fill(o, keys);
	return o;
}

static int add_verify(void *arg, const char *id, const char *name, const struct audit_report *rep)
{
	AUTO_FREE char *result = verdict_verify(rep);
	char records[24], segments[24], head[WHEN_TEXT];
	const char *cells[] = {"-", id, records, segments, head, result};
	struct results *all = arg;

	/* Only its records are checked in an export, and the journal's records name sandboxes. */
	if (audit_logs_is_journal(id))
		name = "";
	if (name[0])
		cells[0] = name;
	(void)snprintf(records, sizeof(records), "%" PRIu64, rep->n_records);
	(void)snprintf(segments, sizeof(segments), "%" PRIu64, n_segments(rep));
	when_print(rep->signed_ms, false, head);
	table_add(&all->table, cells);
	(void)json_array_append_new(all->list, to_json(id, name, rep));
	all->n++;
	all->n_bad += rep->bad != AUDIT_OK;
	return 0;
}

static int verify_logs(const char *ref, struct results *all, struct problem *p)
{
	AUTO_LOGS struct audit_logs *l = NULL;
	AUTO_KNOWN struct audit_known known = {0};
	struct audit_pub pub;
	int r = audit_logs_open(ref, 0, &l, p);

	if (r < 0 || audit_logs_n(l) == 0)
		return r;
	audit_known_load(audit_logs_dir(l), &known);
	r = audit_pub_load(audit_logs_dir(l), &pub, &p->err);
	for (size_t i = 0; i < audit_logs_n(l) && r >= 0; i++) {
		const char *id = audit_logs_id(l, i);
		char name[AUDIT_MAX_NAME + 1];
		struct audit_report rep;

		audit_logs_name(l, i, name);
		r = audit_verify(
			audit_logs_dir(l), id, &pub, audit_known_of(&known, id), &rep, &p->err);
		if (r == 0 || r == -EBADMSG)
			r = add_verify(all, id, name, &rep);
	}
	return r;
}

static int verify_file(const char *path, const char *key, struct results *all, struct problem *p)
{
	struct audit_pub given, named;
	char hex[2 * AUDIT_KEY_LEN + 1] = "";
	FILE *f;
	int r;

	if (key && (strlen(key) != (size_t)2 * AUDIT_KEY_LEN ||
			   hex_decode(slice_from_str(key), given.b) < 0)) {
		r = err_set(&p->err, -EINVAL, "invalid --key '%s': expected 64 hex digits", key);
		return problem_usage(p, r, "audit verify");
	}
	f = fopen(path, "re");
	if (!f)
		return err_errno(&p->err, -errno, "cannot open %s", path);
	r = audit_export_check(f, key ? &given : NULL, &named, add_verify, all, &p->err);
	(void)fclose(f);
	if (r < 0)
		return err_wrap(&p->err, r, "%s", path);
	if (!key) {
		hex_encode(named.b, AUDIT_KEY_LEN, hex);
		ui_note("verified with the key in the file; to prove the origin, use --key with "
			"a key that you trust:\n"
			"%s",
			hex);
	}
	return 0;
}

static void print_verify(const struct results *all, bool json)
{
	AUTO_JSON json_t *whole = NULL;

	if (json) {
		whole = json_pack("{s:b, s:O}", "ok", all->n_bad == 0, "logs", all->list);
		api_print(whole);
	} else if (all->n == 0) {
		printf("No audit logs found\n");
	} else {
		table_print(&all->table);
	}
}

int audit_cmd_verify(struct opts *o)
{
	static const char *const heading[] = {
		"SANDBOX", "ID", "RECORDS", "SEGMENTS", "LAST-HEAD", "RESULT"};
	const char *file = opts_value(o, "file"), *key = opts_value(o, "key");
	AUTO_JSON json_t *list = json_array();
	struct results all = {.list = list};
	struct problem p = {0};
	int r;

	if ((file && o->args.n) || (key && !file)) {
		r = err_set(&p.err, -EINVAL,
			"--file cannot be combined with SANDBOX; --key requires --file");
		return ui_problem(&p, problem_usage(&p, r, "audit verify"));
	}
	table_init(&all.table, ARRAY_LEN(heading), heading);
	r = file ? verify_file(file, key, &all, &p)
		 : verify_logs(o->args.n ? o->args.v[0] : NULL, &all, &p);
	if (r >= 0)
		print_verify(&all, opts_has(o, "json"));
	table_done(&all.table);
	if (r < 0)
		return ui_problem(&p, r);
	if (all.n_bad)
		ui_error("%zu of %zu audit logs failed verification", all.n_bad, all.n);
	return all.n_bad ? EXIT_FAILED : EXIT_OK;
}
