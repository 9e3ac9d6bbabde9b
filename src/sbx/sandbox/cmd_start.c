/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "lib/client/api/sandbox.h"
#include "sandbox.h"

static const struct opt_def start_opts[] = {
	{0, "accel", "KIND", "auto, kvm or tcg; tcg is not an isolation boundary"},
	{0, "cold", NULL, "boot instead of restoring a snapshot"},
	{0},
};

static const struct opt_def restart_opts[] = {{0}};

/* Options that apply only to a start must not be ignored. */
static int check_running(const char *ref, const json_t *s, const char *accel, bool cold)
{
	const char *has = api_str(s, "accel");
	bool differs = accel && strcmp(accel, "auto") != 0 && strcmp(accel, has) != 0;

	if (!cold && !differs) {
		printf("Sandbox '%s' is already running\n", ref);
		return EXIT_OK;
	}
	ui_error("sandbox '%s' is already running with %s: --%s has no effect", ref, has,
		differs ? "accel" : "cold");
	ui_hint("sbx stop --cold %s && sbx start%s%s%s %s", ref, cold ? " --cold" : "",
		differs ? " --accel " : "", differs ? accel : "", ref);
	return EXIT_FAILED;
}

static int start_one(const char *ref, const char *accel, bool cold)
{
	struct problem p = {0};
	AUTO_JSON json_t *s = NULL;
	int r = sandbox_get(ref, &s, &p);

	if (r == 0 && sandbox_is(s, "running"))
		return check_running(ref, s, accel, cold);
	if (r == 0)
		r = sandbox_start(ref, accel, NULL, &p);
	if (r < 0)
		return ui_problem(&p, r);
	printf("Started sandbox '%s'. Open a session with: sbx run --name %s\n", ref, ref);
	return EXIT_OK;
}

static int run_start(struct opts *o)
{
	int status = EXIT_OK;

	if (opts_has(o, "cold"))
		sandbox_want_cold();
	for (size_t i = 0; i < o->args.n; i++)
		if (start_one(o->args.v[i], opts_value(o, "accel"), opts_has(o, "cold")) != EXIT_OK)
			status = EXIT_FAILED;
	return status;
}

static int stop_one(const char *ref, struct problem *p)
{
	int r;

	ui_busy("stopping");
	r = sandbox_call("POST", ref, "/stop", NULL, SANDBOX_STOP_MS, NULL, p);
	ui_progress_end();
	return r;
}

static int run_restart(struct opts *o)
{
	int status = EXIT_OK;

	for (size_t i = 0; i < o->args.n; i++) {
		struct problem p = {0};
		int r = stop_one(o->args.v[i], &p);

		if (r < 0)
			(void)ui_problem(&p, r);
		if (r < 0 || start_one(o->args.v[i], NULL, false) != EXIT_OK)
			status = EXIT_FAILED;
	}
	return status;
}

const struct verb verb_start = {
	.name = "start",
	.group = "sandboxes",
	.args = "SANDBOX...",
	.summary = "start sandboxes",
	.about =
		"Starts each sandbox and waits until it is ready. A suspended sandbox resumes from its\n"
		"snapshot. run, exec and cp also start a stopped sandbox.",
	.examples = "  sbx start demo\n",
	.opts = start_opts,
	.min = 1,
	.max = 1024,
	.first = VERB_SANDBOX,
	.others = VERB_SANDBOX,
	.run = run_start,
};

const struct verb verb_restart = {
	.name = "restart",
	.group = "sandboxes",
	.args = "SANDBOX...",
	.summary = "stop sandboxes and start them again",
	.about =
		"Shuts each sandbox down and boots it again. Processes in it exit, also those of a\n"
		"suspended sandbox; its disks are kept.",
	.examples = "  sbx restart demo\n",
	.opts = restart_opts,
	.min = 1,
	.max = 1024,
	.first = VERB_SANDBOX,
	.others = VERB_SANDBOX,
	.run = run_restart,
};
