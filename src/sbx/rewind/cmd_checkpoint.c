/* SPDX-License-Identifier: Apache-2.0 */
/* sbx checkpoint: create, list and remove checkpoints through sbxd. */
#include <errno.h>
#include <stdio.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/sandbox.h"
#include "lib/client/cli/form.h"
#include "lib/client/cli/table.h"
#include "lib/client/cli/when.h"
#include "merge.h"
#include "rewind.h"

#define CHECKPOINT_MS 70000

static const struct opt_def opts[] = {
	{0, "ls", NULL, "list the checkpoints of the sandbox"},
	{0, "rm", "LABEL", "remove a checkpoint of a stopped sandbox and merge its layers"},
	{0, "memory", NULL, "not supported: fails, since checkpoints contain disks only"},
	{0, "json", NULL, "print JSON"},
	{0},
};

static void print_list(const json_t *list)
{
	static const char *const heading[] = {"LABEL", "CREATED", "SIZE", "PAUSE", "AUDIT", "KIND"};
	CLEANUP(table_done) struct table t;
	const json_t *c;
	size_t i;

	table_init(&t, ARRAY_LEN(heading), heading);
	json_array_foreach (list, i, c) {
		AUTO_FREE char *pause = xasprintf("%lld ms", api_int(c, "pause_ms"));
		AUTO_FREE char *seq = xasprintf("%lld", api_int(c, "seq"));
		char when[WHEN_TEXT], size[32];
		const char *cells[] = {api_str(c, "label"), when, size, pause, seq,
			json_is_true(json_object_get(c, "auto")) ? "auto" : "manual"};

		when_print((uint64_t)api_int(c, "created_at"), false, when);
		str_from_size((uint64_t)api_int(c, "bytes"), size, sizeof(size));
		table_add(&t, cells);
	}
	table_print(&t);
}

static int list_all(const char *ref, bool json, struct problem *p)
{
	static const char *const keys[] = {"aside", NULL};
	AUTO_JSON json_t *answer = NULL;
	int r = sandbox_call("GET", ref, "/checkpoints", NULL, API_TIMEOUT_MS, &answer, p);
	const json_t *list = json_object_get(answer, "checkpoints");

	if (r < 0)
		return r;
	form_fill(answer, keys);
	if (json)
		api_print(answer);
	else if (json_array_size(list) == 0)
		printf("No checkpoints\n");
	else
		print_list(list);
	return 0;
}

static int create_one(const char *ref, const char *label, bool json, struct problem *p)
{
	AUTO_JSON json_t *body = label ? json_pack("{s:s}", "label", label) : NULL;
	AUTO_JSON json_t *answer = NULL;
	char size[32];
	int r;

	if (label && !body)
		return err_set(&p->err, -EINVAL, "invalid label: it is not UTF-8");
	ui_busy("freezing the disks");
	r = sandbox_call("POST", ref, "/checkpoints", body, CHECKPOINT_MS, &answer, p);
	ui_progress_end();
	if (r < 0)
		return r;
	str_from_size((uint64_t)api_int(answer, "bytes"), size, sizeof(size));
	if (json)
		api_print(answer);
	else
		printf("Checkpoint '%s' of sandbox '%s' created (%s, paused for %lld ms)\n",
			api_str(answer, "label"), ref, size, api_int(answer, "pause_ms"));
	return 0;
}

static int remove_one(const char *ref, const char *label, struct problem *p)
{
	AUTO_FREE char *quoted = api_quote(label);
	AUTO_FREE char *tail = xasprintf("/checkpoints?label=%s", quoted);
	AUTO_JSON json_t *answer = NULL;
	int r = sandbox_call("DELETE", ref, tail, NULL, API_TIMEOUT_MS, &answer, p);

	if (r == 0)
		r = merge_layers(answer, p);
	ui_progress_end();
	if (r == 0)
		printf("Checkpoint '%s' of sandbox '%s' removed\n", label, ref);
	return r;
}

/* An error and not a checkpoint without memory: the user relies on programs that would be lost. */
static int refuse_memory(const char *ref, struct problem *p)
{
	(void)err_set(&p->err, -EOPNOTSUPP, "--memory: a checkpoint contains disks, not memory");
	return problem_hint(p, -EOPNOTSUPP, "sbx stop --suspend %s", ref);
}

static int run_checkpoint(struct opts *o)
{
	const char *ref = o->args.v[0], *label = o->args.n == 2 ? o->args.v[1] : NULL;
	const char *rm = opts_value(o, "rm");
	bool json = opts_has(o, "json");
	struct problem p = {0};
	int r;

	if ((opts_has(o, "ls") || rm) && (label || (opts_has(o, "ls") && rm))) {
		(void)err_set(&p.err, -EINVAL, "--ls and --rm LABEL take only SANDBOX");
		return ui_problem(&p, problem_usage(&p, -EINVAL, "checkpoint"));
	}
	if (opts_has(o, "memory"))
		r = refuse_memory(ref, &p);
	else if (rm)
		r = remove_one(ref, rm, &p);
	else
		r = opts_has(o, "ls") ? list_all(ref, json, &p) : create_one(ref, label, json, &p);
	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}

const struct verb verb_checkpoint = {
	.name = "checkpoint",
	.group = "sandboxes",
	.args = "SANDBOX [LABEL]",
	.summary = "create, list or remove checkpoints of a sandbox",
	.about =
		"Keeps the current contents of the disks as a checkpoint. The file systems are consistent,\n"
		"and the sandbox keeps running. A checkpoint uses disk space only for data that is changed\n"
		"later. Default for LABEL: c1, c2 and so on. Memory and workspaces are not part of it.",
	.examples = "  sbx checkpoint demo before-upgrade\n"
		    "  sbx checkpoint --ls demo\n"
		    "  sbx checkpoint --rm before-upgrade demo\n",
	.opts = opts,
	.min = 1,
	.max = 2,
	.first = VERB_SANDBOX,
	.run = run_checkpoint,
};
