/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "prune.h"
#include "lib/client/api/sandbox.h"
#include "sandbox.h"
#include "src/sbx/clone/clone.h"

static const struct opt_def opts[] = {
	{0, "dry-run", NULL, "list what would be removed, and remove nothing"},
	{0, "filter", "until=WHEN",
		"only sandboxes stopped before WHEN: 24h, RFC 3339 or Unix seconds"},
	{'f', "force", NULL, "do not prompt for confirmation"},
	{0, "json", NULL, "print JSON"},
	{0},
};

static void print_names(const char *heading, const json_t *go)
{
	const json_t *s;
	size_t i;

	if (json_array_size(go) == 0)
		printf("No stopped sandboxes to remove\n");
	else
		printf("%s\n", heading);
	json_array_foreach (go, i, s)
		printf("  %s\n", api_str(s, "name"));
	(void)fflush(stdout);
}

static int remove_them(const json_t *go, bool json)
{
	AUTO_JSON json_t *removed = json_array(), *whole = NULL;
	int status = EXIT_OK;
	const json_t *s;
	size_t i;

	json_array_foreach (go, i, s) {
		struct problem p = {0};
		int r = clone_keep(s, &p);

		if (r == 0)
			r = sandbox_remove(api_str(s, "id"), false, &p);
		if (r == 0)
			clone_forget(s);
		if (r < 0)
			status = ui_problem(&p, r);
		else
			(void)json_array_append(removed, json_object_get(s, "name"));
		if (r == 0 && !json)
			printf("Sandbox '%s' removed\n", api_str(s, "name"));
	}
	whole = json_pack("{s:O}", "removed", removed);
	if (json)
		api_print(whole);
	return status;
}

static int act_prune(const struct opts *o, const json_t *go, const json_t *unknown)
{
	bool json = opts_has(o, "json");
	AUTO_JSON json_t *whole = NULL;

	if (opts_has(o, "dry-run") && json) {
		whole = json_pack(
			"{s:O, s:O}", "would_remove", go, "skipped_unknown_stop", unknown);
		api_print(whole);
		return EXIT_OK;
	}
	if (!json)
		print_names(opts_has(o, "dry-run") ? "Would remove:" : "To remove:", go);
	if (opts_has(o, "dry-run"))
		return EXIT_OK;
	if (json_array_size(go) > 0 && !opts_has(o, "force") && !ui_can_ask()) {
		ui_error(
			"refusing to remove sandboxes without confirmation: stdin is not a terminal");
		ui_hint("sbx prune --force");
		return EXIT_FAILED;
	}
	if (json_array_size(go) > 0 && !opts_has(o, "force") &&
		!ui_confirm("Remove %zu stopped sandboxes and their disks?", json_array_size(go)))
		return EXIT_FAILED;
	return json_array_size(go) > 0 || json ? remove_them(go, json) : EXIT_OK;
}

static int run_prune(struct opts *o)
{
	AUTO_JSON json_t *list = NULL, *go = json_array(), *unknown = json_array();
	const char *filter = opts_value(o, "filter");
	uint64_t until_ms = UINT64_MAX;
	struct problem p = {0};
	int r = 0;

	if (filter && prune_parse_until(filter, clock_wall_ms(), &until_ms, &p.err) < 0)
		r = problem_usage(&p, -EINVAL, "prune");
	if (r == 0)
		r = sandbox_list(&list, &p);
	if (r < 0)
		return ui_problem(&p, r);
	prune_choose(list, filter != NULL, until_ms, go, unknown);
	return act_prune(o, go, unknown);
}

const struct verb verb_prune = {
	.name = "prune",
	.group = "sandboxes",
	.args = "",
	.summary = "remove stopped sandboxes",
	.about =
		"Removes all stopped sandboxes and their disks, also those that sbx stop has suspended.\n"
		"Other suspended and running sandboxes are not affected.\n"
		"Prompts for confirmation; use --force if stdin is not a terminal.",
	.examples = "  sbx prune --dry-run\n  sbx prune --force --filter until=168h\n",
	.opts = opts,
	.run = run_prune,
};
