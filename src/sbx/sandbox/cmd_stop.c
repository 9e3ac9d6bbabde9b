/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "lib/base/str.h"
#include "lib/client/api/sandbox.h"
#include "sandbox.h"

#define MAX_TIMEOUT_S 600

static const struct opt_def opts[] = {
	{0, "suspend", NULL, "save the memory, so that programs resume at the next start"},
	{0, "cold", NULL, "shut down; discard the memory of a suspended sandbox"},
	{0, "all", NULL, "stop all running sandboxes"},
	{'t', "timeout", "SECONDS",
		"time to wait for a clean shutdown; 0 kills immediately (implies --cold)"},
	{0},
};

/* What is sent, and how long its answer may take. */
struct wish {
	json_t *body;
	unsigned wait_ms;
	bool suspend;
};

static int stop_one(const char *ref, const struct wish *w)
{
	struct problem p = {0};
	AUTO_JSON json_t *s = NULL;
	char size[32];
	int r;

	ui_busy(w->suspend ? "suspending" : "stopping");
	r = sandbox_call("POST", ref, "/stop", w->body, w->wait_ms, &s, &p);
	ui_progress_end();
	if (r < 0)
		return ui_problem(&p, r);
	if (sandbox_is(s, "suspended")) {
		str_from_size((uint64_t)api_int(s, "suspended_bytes"), size, sizeof(size));
		printf("Suspended sandbox '%s' (snapshot: %s). Resume it with: sbx run --name %s\n",
			ref, size, ref);
		return EXIT_OK;
	}
	printf("Stopped sandbox '%s'. Start it again with: sbx run --name %s\n", ref, ref);
	return EXIT_OK;
}

static int stop_all(const struct wish *w)
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
		if (stop_one(api_str(s, "name"), w) != EXIT_OK)
			status = EXIT_FAILED;
	}
	if (n == 0)
		printf("No running sandboxes\n");
	return status;
}

static int check_usage(const struct opts *o, uint64_t *ret_seconds)
{
	const char *text = opts_value(o, "timeout");

	if (opts_has(o, "all") != (o->args.n == 0)) {
		ui_error("sbx stop: missing SANDBOX or --all");
		ui_hint("sbx ls");
		return EXIT_USAGE;
	}
	if (text && str_to_u64(text, 0, MAX_TIMEOUT_S, ret_seconds) < 0) {
		ui_error("sbx stop: invalid --timeout '%s': expected 0 to %d seconds", text,
			MAX_TIMEOUT_S);
		return EXIT_USAGE;
	}
	if (opts_has(o, "suspend") && (text || opts_has(o, "cold"))) {
		ui_error("sbx stop: --%s and --suspend are mutually exclusive",
			text ? "timeout" : "cold");
		return EXIT_USAGE;
	}
	return EXIT_OK;
}

static int run_stop(struct opts *o)
{
	struct wish w = {.wait_ms = SANDBOX_STOP_MS, .suspend = opts_has(o, "suspend")};
	AUTO_JSON json_t *body = NULL;
	uint64_t seconds = 0;
	int status = check_usage(o, &seconds);

	if (status != EXIT_OK)
		return status;
	if (opts_value(o, "timeout")) {
		body = json_pack("{s:I}", "timeout_ms", (json_int_t)(seconds * 1000));
		w.wait_ms += (unsigned)seconds * 1000;
	} else if (!opts_has(o, "cold")) {
		body = json_pack("{s:b}", w.suspend ? "suspend" : "suspend_idle", 1);
		w.wait_ms += SANDBOX_SUSPEND_MS;
	}
	w.body = body;
	if (opts_has(o, "all"))
		return stop_all(&w);
	for (size_t i = 0; i < o->args.n; i++)
		if (stop_one(o->args.v[i], &w) != EXIT_OK)
			status = EXIT_FAILED;
	return status;
}

const struct verb verb_stop = {
	.name = "stop",
	.group = "sandboxes",
	.args = "SANDBOX... | --all",
	.summary = "stop sandboxes and keep their state",
	.about =
		"Suspends each sandbox that no session uses: its memory is kept on the disk, and its\n"
		"processes continue at the next start. Shuts down other sandboxes, and sandboxes whose\n"
		"memory is not in a file (setting vm.memory-backing). --cold and the setting stop.suspend\n"
		"select a shutdown. A shutdown that takes longer than the timeout (10 seconds, setting\n"
		"stop.timeout) kills the sandbox. Disks are kept; run, exec and cp start it again.",
	.examples = "  sbx stop demo\n  sbx stop --cold demo\n  sbx stop --suspend demo\n"
		    "  sbx stop --timeout 0 stuck\n  sbx stop --all\n",
	.opts = opts,
	.min = 0,
	.max = 1024,
	.first = VERB_SANDBOX,
	.others = VERB_SANDBOX,
	.run = run_stop,
};
