#include <stdio.h>

#include "lib/base/str.h"
#include "sandbox.h"
#include "verb.h"

#define MAX_TIMEOUT_S 600

static const struct opt_def opts[] = {
	{'t', "timeout", "SECONDS", "how long it may take to end by itself; 0 kills at once"},
	{0},
};

static int stop_one(const char *ref, const json_t *body, unsigned timeout_ms)
{
	struct problem p = {0};
	int r;

	ui_busy("stopping");
	r = sandbox_call("POST", ref, "/stop", (json_t *)body, timeout_ms, NULL, &p);
	ui_progress_end();
	if (r < 0)
		return ui_problem(&p, r);
	printf("Sandbox '%s' stopped, its state is kept. To start it again: sbx run --name %s\n",
		ref, ref);
	return EXIT_OK;
}

static int run(struct opts *o)
{
	const char *text = opts_value(o, "timeout");
	AUTO_JSON json_t *body = NULL;
	unsigned wait_ms = SANDBOX_STOP_MS;
	int status = EXIT_OK;
	uint64_t seconds;

	if (text && str_to_u64(text, 0, MAX_TIMEOUT_S, &seconds) < 0) {
		ui_error(
			"sbx stop: '%s' is no number of seconds from 0 to %d", text, MAX_TIMEOUT_S);
		return EXIT_USAGE;
	}
	if (text) {
		body = json_pack("{s:I}", "timeout_ms", (json_int_t)(seconds * 1000));
		wait_ms += (unsigned)seconds * 1000;
	}
	for (size_t i = 0; i < o->args.n; i++)
		if (stop_one(o->args.v[i], body, wait_ms) != EXIT_OK)
			status = EXIT_FAILED;
	return status;
}

const struct verb verb_stop = {
	.name = "stop",
	.group = "sandboxes",
	.args = "SANDBOX...",
	.summary = "stop sandboxes and keep their state",
	.about = "Asks each sandbox to end, and kills it when it does not within its time (10 "
		 "seconds,\n"
		 "setting stop.timeout). Its disk stays; run, exec and cp start it again.",
	.examples = "  sbx stop demo\n  sbx stop --timeout 0 stuck\n  sbx ls -q | xargs sbx stop\n",
	.opts = opts,
	.min = 1,
	.max = 1024,
	.first = VERB_SANDBOX,
	.others = VERB_SANDBOX,
	.run = run,
};
