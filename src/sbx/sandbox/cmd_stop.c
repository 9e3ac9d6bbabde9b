/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "lib/base/str.h"
#include "lib/client/api/sandbox.h"
#include "sandbox.h"

#define MAX_TIMEOUT_S 600

static const struct opt_def opts[] = {
	{0, "suspend", NULL, "save the memory, so that programs resume at the next start"},
	{0, "all", NULL, "stop all running sandboxes"},
	{'t', "timeout", "SECONDS", "time to wait for a clean shutdown; 0 kills immediately"},
	{0},
};

static int stop_one(const char *ref, const json_t *body, unsigned timeout_ms, bool suspend)
{
	struct problem p = {0};
	AUTO_JSON json_t *s = NULL;
	char size[32];
	int r;

	ui_busy(suspend ? "suspending" : "stopping");
	r = sandbox_call("POST", ref, "/stop", (json_t *)body, timeout_ms, &s, &p);
	ui_progress_end();
	if (r < 0)
		return ui_problem(&p, r);
	if (suspend) {
		str_from_size((uint64_t)api_int(s, "suspended_bytes"), size, sizeof(size));
		printf("Suspended sandbox '%s' (snapshot: %s). Resume it with: sbx run --name %s\n",
			ref, size, ref);
		return EXIT_OK;
	}
	printf("Stopped sandbox '%s'. Start it again with: sbx run --name %s\n", ref, ref);
	return EXIT_OK;
}

static int stop_all(const json_t *body, unsigned timeout_ms, bool suspend)
{
	AUTO_JSON json_t *list = NULL;
	struct problem p = {0};
	int r = sandbox_list(&list, &p), status = EXIT_OK;
	const json_t *s;
	size_t i, n = 0;

	if (r < 0)
		return ui_problem(&p, r);
	json_array_foreach (list, i, s) {
		if (sandbox_is(s, "stopped") || sandbox_is(s, "suspended"))
			continue;
		n++;
		if (stop_one(api_str(s, "name"), body, timeout_ms, suspend) != EXIT_OK)
			status = EXIT_FAILED;
	}
	if (n == 0)
		printf("No running sandboxes\n");
	return status;
}

static int run_stop(struct opts *o)
{
	const char *text = opts_value(o, "timeout");
	AUTO_JSON json_t *body = NULL;
	bool suspend = opts_has(o, "suspend");
	unsigned wait_ms = SANDBOX_STOP_MS;
	int status = EXIT_OK;
	uint64_t seconds;

	if (opts_has(o, "all") != (o->args.n == 0)) {
		ui_error("sbx stop: missing SANDBOX or --all");
		ui_hint("sbx ls");
		return EXIT_USAGE;
	}
	if (text && str_to_u64(text, 0, MAX_TIMEOUT_S, &seconds) < 0) {
		ui_error("sbx stop: invalid --timeout '%s': expected 0 to %d seconds", text,
			MAX_TIMEOUT_S);
		return EXIT_USAGE;
	}
	if (text && suspend) {
		ui_error("sbx stop: --timeout and --suspend are mutually exclusive");
		return EXIT_USAGE;
	}
	if (text) {
		body = json_pack("{s:I}", "timeout_ms", (json_int_t)(seconds * 1000));
		wait_ms += (unsigned)seconds * 1000;
	}
	if (suspend) {
		body = json_pack("{s:b}", "suspend", 1);
		wait_ms = SANDBOX_SUSPEND_MS;
	}
	if (opts_has(o, "all"))
		return stop_all(body, wait_ms, suspend);
	for (size_t i = 0; i < o->args.n; i++)
		if (stop_one(o->args.v[i], body, wait_ms, suspend) != EXIT_OK)
			status = EXIT_FAILED;
	return status;
}

const struct verb verb_stop = {
	.name = "stop",
	.group = "sandboxes",
	.args = "SANDBOX... | --all",
	.summary = "stop sandboxes and keep their state",
	.about =
		"Shuts each sandbox down and kills it if that takes longer than the timeout (10 seconds,\n"
		"setting stop.timeout). Its disks are kept; run, exec and cp start it again. --suspend\n"
		"also saves its memory, and its processes continue at the next start. Stopping a suspended\n"
		"sandbox without --suspend deletes the saved memory.",
	.examples = "  sbx stop demo\n  sbx stop --suspend demo\n  sbx stop --timeout 0 stuck\n  "
		    "sbx stop --all\n",
	.opts = opts,
	.min = 0,
	.max = 1024,
	.first = VERB_SANDBOX,
	.others = VERB_SANDBOX,
	.run = run_stop,
};
