/* SPDX-License-Identifier: Apache-2.0 */
/* sbx rewind: lists what stays, from the audit log, and requests the rewind of sbxd. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lasting.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/client/api/sandbox.h"
#include "lib/client/cli/table.h"
#include "lib/client/cli/when.h"
#include "lib/os/ipc/keeper_chan.h"
#include "moved.h"
#include "rewind.h"
#include "src/sbx/audit/audit.h"
#include "src/sbx/stage/stage.h"

#define REWIND_MS 30000

static const struct opt_def opts[] = {
	{0, "to", "LABEL|TIME", "checkpoint, or the last one before a time such as 10m or 2h ago"},
	{0, "undo", NULL, "undo the last rewind"},
	{0, "dry-run", NULL, "only print what is not taken back"},
	{0},
};

/* The moment to return to, and the checkpoint. */
struct target {
	const char *label; /* NULL: undo */
	uint64_t seq;	   /* records above are later; 0: by time */
	uint64_t time_ms;
	bool has_memory;
};

/* ---- the checkpoint ---- */

static void take_checkpoint(const json_t *c, struct target *ret)
{
	ret->label = api_str(c, "label");
	ret->seq = (uint64_t)api_int(c, "seq");
	ret->time_ms = (uint64_t)api_int(c, "created_at");
	ret->has_memory = json_is_true(json_object_get(c, "with_memory"));
}

/* A label first: a label such as `d` is not a duration. */
static int find_checkpoint(
	const json_t *list, const char *to, const char *ref, struct target *ret, struct problem *p)
{
	struct err ignored = {0};
	uint64_t ms = 0;
	const json_t *c;
	size_t i;

	json_array_foreach (list, i, c) {
		if (strcmp(api_str(c, "label"), to) == 0) {
			take_checkpoint(c, ret);
			return 0;
		}
	}
	if (when_parse(to, clock_wall_ms(), &ms, &ignored) == 0)
		json_array_foreach (list, i, c)
			if ((uint64_t)api_int(c, "created_at") <= ms)
				take_checkpoint(c, ret);
	if (ret->label)
		return 0;
	(void)err_set(&p->err, -ENOENT, ms ? "no checkpoint before %s" : "no checkpoint '%s'", to);
	return problem_hint(p, -ENOENT, "sbx checkpoint --ls %s", ref);
}

static int find_undo(const json_t *answer, const char *ref, struct target *ret, struct problem *p)
{
	const json_t *aside = json_object_get(answer, "aside");

	if (!aside) {
		(void)err_set(&p->err, -ENOENT, "there is no rewind to undo");
		return problem_hint(p, -ENOENT, "sbx checkpoint --ls %s", ref);
	}
	ret->time_ms = (uint64_t)api_int(aside, "set_aside_at");
	return 0;
}

/* ---- what is not taken back ---- */

#define MAX_NAMES 16

struct search {
	const struct target *target;
	const char *id;
	/* Names that the sandbox had since then, by its own records. */
	char names[MAX_NAMES][AUDIT_MAX_NAME + 1];
	size_t n_names;
	struct lasting *ret;
};

static bool is_name(const struct search *s, struct slice name)
{
	for (size_t i = 0; i < s->n_names; i++)
		if (slice_eq_str(name, s->names[i]))
			return true;
	return false;
}

static void add_name(struct search *s, struct slice name)
{
	if (name.n && s->n_names < MAX_NAMES && !is_name(s, name) &&
		slice_to_cstr(name, s->names[s->n_names], sizeof(s->names[0])) == 0)
		s->n_names++;
}

static int see_record(void *arg, const struct audit_record *rec, struct slice line)
{
	struct search *s = arg;
	bool is_later =
		s->target->seq ? rec->seq > s->target->seq : rec->time_ms >= s->target->time_ms;

	(void)line;
	if (is_later && slice_eq_str(rec->sandbox, s->id)) {
		add_name(s, rec->name);
		lasting_add(s->ret, &rec->ev);
	}
	return 0;
}

/* sbxd's own log, which has other numbers: what the user did with the sandbox. */
static int see_journal(void *arg, const struct audit_record *rec, struct slice line)
{
	struct search *s = arg;

	(void)line;
	if (rec->time_ms >= s->target->time_ms && is_name(s, rec->name))
		lasting_add(s->ret, &rec->ev);
	return 0;
}

static int read_log(
	const json_t *sandbox, const struct target *t, struct lasting *ret, struct problem *p)
{
	struct search s = {.target = t, .id = api_str(sandbox, "id"), .ret = ret};
	AUTO_LOGS struct audit_logs *l = NULL, *journal = NULL;
	struct problem other = {0};
	int r = audit_logs_open(s.id, 0, &l, p), k;

	add_name(&s, slice_from_str(api_str(sandbox, "name")));
	if (r == 0)
		r = audit_logs_read(l, see_record, &s, p);
	/* Even if the sandbox's log is damaged. */
	k = audit_logs_open(AUDIT_LOGS_SBXD, 0, &journal, &other);
	if (k == 0)
		k = audit_logs_read(journal, see_journal, &s, &other);
	if (r == 0 && k < 0)
		*p = other;
	return r < 0 ? r : k;
}

static void print_rows(const struct lasting *l)
{
	static const char *const heading[] = {"KIND", "TARGET", "OPERATION", "COUNT"};
	CLEANUP(table_done) struct table t;

	table_init(&t, ARRAY_LEN(heading), heading);
	for (int kind = LASTING_NONE + 1; kind < LASTING_N_KINDS; kind++)
		for (size_t i = 0; i < l->n; i++) {
			const struct lasting_row *r = &l->rows[i];
			AUTO_FREE char *count = xasprintf("%llu", (unsigned long long)r->count);
			const char *cells[] = {lasting_word(r->kind),
				r->target[0] ? r->target : "-", r->what[0] ? r->what : "-", count};

			if ((int)r->kind == kind)
				table_add(&t, cells);
		}
	table_print(&t);
	if (l->more)
		printf("%llu more are not listed\n", (unsigned long long)l->more);
}

/* Files of one writable workspace; returns their number. */
static uint64_t print_workspace(const json_t *w, uint64_t since_ms)
{
	const char *dir = api_str(w, "host");
	AUTO_MOVED struct moved m = {0};

	if (json_is_true(json_object_get(w, "ro")))
		return 0;
	moved_find(dir, since_ms, &m);
	if (!m.n)
		return 0;
	printf("%s%llu file%s in %s changed on the host since then:", m.is_cut ? "at least " : "",
		(unsigned long long)m.n, m.n == 1 ? "" : "s", dir);
	for (size_t i = 0; i < m.n_examples; i++) {
		ui_clean(m.examples[i]);
		printf("%s %s", i ? "," : "", m.examples[i]);
	}
	printf("%s\n", m.n > m.n_examples ? " ..." : "");
	return m.n;
}

static uint64_t print_workspaces(const json_t *sandbox, uint64_t since_ms)
{
	static const char *const fields[] = {"workspaces", "mounts"};
	uint64_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		const json_t *w;
		size_t k;

		json_array_foreach (json_object_get(sandbox, fields[i]), k, w)
			n += print_workspace(w, since_ms);
	}
	return n;
}

/* The log of a sandbox can be damaged: then the list may be incomplete, which is printed. */
static void print_lasting(const json_t *sandbox, const struct target *t)
{
	AUTO_LASTING struct lasting l = {0};
	struct problem p = {0};
	int r = read_log(sandbox, t, &l, &p);
	uint64_t n;

	if (r < 0)
		ui_warning("the list may be incomplete: %s", err_text(&p.err, r));
	if (l.n)
		printf("A rewind does not take these back:\n");
	if (l.n)
		print_rows(&l);
	n = print_workspaces(sandbox, t->time_ms);
	if (r == 0 && !l.n && !n)
		printf("No effect outside the sandbox is recorded since then\n");
	(void)fflush(stdout);
}

/* ---- the command ---- */

static int stop_sandbox(const char *ref, struct problem *p)
{
	int r;

	ui_busy("stopping");
	r = sandbox_call("POST", ref, "/stop", NULL, SANDBOX_STOP_MS, NULL, p);
	ui_progress_end();
	return r;
}

/* If sbxd cannot use the files, the keeper does not know that there was memory. */
static void check_resumed(const json_t *s)
{
	const char *why = api_str(s, "cold_why");
	AUTO_FREE char *log = paths_get(PATHS_STATE, "sbxd.log");

	if (strcmp(api_str(s, "start"), "resumed") == 0)
		return;
	if (!why[0] || strcmp(why, KEEPER_COLD_OWN) == 0)
		ui_warning(
			"the programs of the checkpoint were not resumed: its memory cannot be read (see %s)",
			log);
	else
		ui_warning("the programs of the checkpoint were not resumed: %s", why);
}

static int rewind_sandbox(const char *ref, const struct target *t, struct problem *p)
{
	AUTO_JSON json_t *body =
		t->label ? json_pack("{s:s}", "label", t->label) : json_pack("{s:b}", "undo", 1);
	AUTO_JSON json_t *s = NULL;
	int r = sandbox_call("POST", ref, "/rewind", body, REWIND_MS, NULL, p);

	if (r == 0)
		r = sandbox_start(ref, NULL, &s, p);
	if (r == 0 && t->has_memory)
		check_resumed(s);
	return r;
}

static void say_done(const char *ref, const struct target *t)
{
	char when[WHEN_TEXT];

	when_print(t->time_ms, false, when);
	if (t->label)
		printf("Sandbox '%s' is at checkpoint '%s' of %s. Undo with: sbx rewind %s "
		       "--undo\n",
			ref, t->label, when, ref);
	else
		printf("Undid the rewind of sandbox '%s' of %s\n", ref, when);
}

static int rewind_to(struct opts *o, const char *ref, struct problem *p)
{
	AUTO_JSON json_t *sandbox = NULL, *answer = NULL;
	AUTO_CLOSE int lock = -1;
	struct target t = {0};
	int r = sandbox_get(ref, &sandbox, p);

	if (r == 0)
		r = sandbox_call("GET", ref, "/checkpoints", NULL, API_TIMEOUT_MS, &answer, p);
	if (r == 0)
		r = opts_has(o, "undo") ? find_undo(answer, ref, &t, p)
					: find_checkpoint(json_object_get(answer, "checkpoints"),
						  opts_value(o, "to"), ref, &t, p);
	if (r == 0 && !opts_has(o, "dry-run"))
		r = stage_begin_rewind(sandbox, &lock, p);
	if (r == 0 && !opts_has(o, "dry-run"))
		r = stop_sandbox(ref, p);
	if (r < 0)
		return r;
	print_lasting(sandbox, &t);
	if (opts_has(o, "dry-run"))
		return 0;
	r = rewind_sandbox(ref, &t, p);
	if (r == 0)
		say_done(ref, &t);
	return r;
}

static int run_rewind(struct opts *o)
{
	struct problem p = {0};
	int r;

	if (opts_has(o, "undo") == (opts_value(o, "to") != NULL)) {
		(void)err_set(&p.err, -EINVAL, "expected one of --to and --undo");
		return ui_problem(&p, problem_usage(&p, -EINVAL, "rewind"));
	}
	r = rewind_to(o, o->args.v[0], &p);
	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}

const struct verb verb_rewind = {
	.name = "rewind",
	.group = "sandboxes",
	.args = "SANDBOX",
	.summary = "return the disks of a sandbox to a checkpoint",
	.about =
		"Stops the sandbox, returns its disks to a checkpoint and starts it again. The programs of\n"
		"a checkpoint with memory are resumed. Later data is set aside until the next rewind, and\n"
		"--undo exchanges it with the current data. Prints what a rewind does not take back, from\n"
		"the audit log: requests that write, git pushes, connections whose content sbx does not\n"
		"see, applied files, and changed files of workspaces. The audit log itself is never\n"
		"rewound.",
	.examples = "  sbx rewind demo --to before-upgrade\n"
		    "  sbx rewind demo --to 10m --dry-run\n"
		    "  sbx rewind demo --undo\n",
	.opts = opts,
	.min = 1,
	.max = 1,
	.first = VERB_SANDBOX,
	.run = run_rewind,
};
