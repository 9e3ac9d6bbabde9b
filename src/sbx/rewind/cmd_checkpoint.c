/* SPDX-License-Identifier: Apache-2.0 */
/* sbx checkpoint: create, list and remove checkpoints through sbxd. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/sandbox.h"
#include "lib/client/cli/form.h"
#include "lib/client/cli/table.h"
#include "lib/client/cli/when.h"
#include "lib/rules/spec/spec.h"
#include "merge.h"
#include "rewind.h"

#define CHECKPOINT_MS 70000
#define MEMORY_MS 310000

static const struct opt_def opts[] = {
	{0, "ls", NULL, "list the checkpoints of the sandbox"},
	{0, "rm", "LABEL", "remove a checkpoint of a stopped sandbox and merge its layers"},
	{0, "memory", NULL, "keep the memory too: a rewind resumes the programs"},
	{0, "json", NULL, "print JSON"},
	{0},
};

static void print_list(const json_t *list)
{
	static const char *const heading[] = {
		"LABEL", "CREATED", "SIZE", "PAUSE", "AUDIT", "KIND", "MEMORY"};
	CLEANUP(table_done) struct table t;
	const json_t *c;
	size_t i;

	table_init(&t, ARRAY_LEN(heading), heading);
	json_array_foreach (list, i, c) {
		AUTO_FREE char *pause = xasprintf("%lld ms", api_int(c, "pause_ms"));
		AUTO_FREE char *seq = xasprintf("%lld", api_int(c, "seq"));
		char when[WHEN_TEXT], size[32];
		const char *cells[] = {api_str(c, "label"), when, size, pause, seq,
			json_is_true(json_object_get(c, "auto")) ? "auto" : "manual",
			json_is_true(json_object_get(c, "with_memory")) ? "yes" : "no"};

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

static char interrupt_text[SPEC_MAX_NAME + 128];

/* sbxd and the sandbox go on. */
static void on_interrupt(int sig)
{
	(void)!write(STDERR_FILENO, interrupt_text, strlen(interrupt_text));
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
}

static void catch_interrupt(const char *ref)
{
	(void)snprintf(interrupt_text, sizeof(interrupt_text),
		"\nerror: interrupted: the checkpoint may still be created\n"
		"  try: sbx checkpoint --ls %.*s\n",
		SPEC_MAX_NAME, ref);
	(void)signal(SIGINT, on_interrupt);
}

static int create_one(const char *ref, const char *label, bool memory, bool json, struct problem *p)
{
	AUTO_JSON json_t *body = json_pack("{s:s*, s:b}", "label", label, "with_memory", memory);
	AUTO_JSON json_t *answer = NULL;
	char size[32];
	int r;

	if (!body)
		return err_set(&p->err, -EINVAL, "invalid label: it is not UTF-8");
	catch_interrupt(ref);
	ui_busy(memory ? "saving the disks and the memory" : "freezing the disks");
	r = sandbox_call(
		"POST", ref, "/checkpoints", body, memory ? MEMORY_MS : CHECKPOINT_MS, &answer, p);
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

static int run_checkpoint(struct opts *o)
{
	const char *ref = o->args.v[0], *label = o->args.n == 2 ? o->args.v[1] : NULL;
	const char *rm = opts_value(o, "rm");
	bool json = opts_has(o, "json"), memory = opts_has(o, "memory");
	struct problem p = {0};
	int r;

	if ((opts_has(o, "ls") || rm) && (label || memory || (opts_has(o, "ls") && rm))) {
		(void)err_set(&p.err, -EINVAL, "--ls and --rm LABEL take only SANDBOX");
		return ui_problem(&p, problem_usage(&p, -EINVAL, "checkpoint"));
	}
	if (rm)
		r = remove_one(ref, rm, &p);
	else
		r = opts_has(o, "ls") ? list_all(ref, json, &p)
				      : create_one(ref, label, memory, json, &p);
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
		"later. Default for LABEL: c1, c2 and so on. Workspaces are not part of it, and memory only\n"
		"with --memory: a rewind then resumes the programs of that time.",
	.examples = "  sbx checkpoint demo before-upgrade\n"
		    "  sbx checkpoint demo ready --memory\n"
		    "  sbx checkpoint --ls demo\n"
		    "  sbx checkpoint --rm before-upgrade demo\n",
	.opts = opts,
	.min = 1,
	.max = 2,
	.first = VERB_SANDBOX,
	.run = run_checkpoint,
};
