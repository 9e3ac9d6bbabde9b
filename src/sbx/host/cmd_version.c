/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "lib/client/api/api.h"
#include "host.h"

static const struct opt_def opts[] = {
	{0, "json", NULL, "print JSON"},
	{0},
};

static int run_version(struct opts *o)
{
	AUTO_JSON json_t *server = NULL, *whole = NULL;
	struct problem p = {0};
	int r = api_peek("GET", "/v1/version", API_TIMEOUT_MS, &server, &p);

	if (opts_has(o, "json")) {
		whole = json_pack("{s:s, s:O?}", "version", SBX_VERSION, "daemon", server);
		api_print(whole);
		return EXIT_OK;
	}
	printf("sbx version: %s\n", SBX_VERSION);
	if (r == 0) {
		printf("sbxd version: ");
		ui_put(api_str(server, "version"));
		printf(" (process %lld)\n", api_int(server, "pid"));
	} else if (r == -ECONNREFUSED) {
		printf("sbxd version: not running (started on demand)\n");
	} else {
		printf("sbxd version: unknown, %s\n", p.err.text);
	}
	return EXIT_OK;
}

const struct verb verb_version = {
	.name = "version",
	.group = "other",
	.args = "",
	.summary = "show versions",
	.about = "Shows the versions of sbx and of the running sbxd.",
	.examples = "  sbx version\n  sbx version --json\n",
	.opts = opts,
	.run = run_version,
};
