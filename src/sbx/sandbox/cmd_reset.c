/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/vm/template/template.h"
#include "lib/client/api/daemon.h"
#include "lib/client/api/policy_api.h"
#include "lib/client/api/sandbox.h"
#include "src/sbx/secret/secret.h"
#include "src/sbx/disk/disk.h"
#include "sandbox.h"
#include "src/sbx/clone/clone.h"

#define WORD "reset" /* confirmation to type */
#define MAX_FDS 16   /* of one walk */

static const struct opt_def opts[] = {
	{'f', "force", NULL, "do not prompt for confirmation"},
	{0, "all", NULL, "also remove the network policy, audit logs and credentials"},
	{0},
};

static void say_what(const json_t *sandboxes, const json_t *templates, bool all)
{
	const json_t *s;
	size_t i;

	ui_note("sbx reset stops and removes %zu sandboxes and their disks, and %zu templates:",
		json_array_size(sandboxes), json_array_size(templates));
	json_array_foreach (sandboxes, i, s)
		ui_note("  sandbox   %s (%s)", api_str(s, "name"), api_str(s, "status"));
	json_array_foreach (templates, i, s)
		ui_note("  template  %s", api_str(s, "name"));
	if (all)
		ui_note("The network policy, audit logs and credentials are removed as well.");
	else
		ui_note("The network policy, audit logs and credentials are kept (--all removes "
			"them).");
	ui_note("Workspaces, settings and the agents' histories are kept.");
}

static bool is_wanted(bool force, bool all)
{
	char answer[32];

	if (force)
		return true;
	if (!ui_can_ask()) {
		ui_error(
			"refusing to remove all sandboxes without confirmation: stdin is not a terminal");
		ui_hint("sbx reset --force%s", all ? " --all" : "");
		return false;
	}
	if (ui_ask(answer, sizeof(answer), "Type the word " WORD " to continue: ") &&
		strcmp(answer, WORD) == 0)
		return true;
	ui_note("Nothing was removed.");
	return false;
}

static int remove_sandboxes(const json_t *list)
{
	int status = EXIT_OK;
	const json_t *s;
	size_t i;

	json_array_foreach (list, i, s) {
		struct problem p = {0};
		int r = clone_keep(s, &p);

		if (r == 0)
			r = sandbox_remove(api_str(s, "id"), true, &p);
		if (r == 0)
			clone_forget(s);
		if (r < 0)
			status = ui_problem(&p, r);
		else
			printf("Sandbox '%s' removed\n", api_str(s, "name"));
		(void)fflush(stdout);
	}
	return status;
}

static int remove_templates(const json_t *list)
{
	int status = EXIT_OK, r;
	struct problem last = {0};
	const json_t *m;
	size_t i;

	json_array_foreach (list, i, m) {
		AUTO_FREE char *quoted = api_quote(api_str(m, "name"));
		AUTO_FREE char *path = xasprintf("/v1/templates/%s", quoted);
		struct problem p = {0};

		r = api_call("DELETE", path, NULL, API_TIMEOUT_MS, NULL, &p);
		if (r < 0)
			status = ui_problem(&p, r);
		else
			printf("Template '%s' removed\n", api_str(m, "name"));
	}
	r = template_collect_unused(&last);
	return r < 0 ? ui_problem(&last, r) : status;
}

static int remove_secrets(struct problem *p)
{
	AUTO_JSON json_t *answer = NULL;
	const json_t *s;
	size_t i;
	int r = secret_list(&answer, p);

	json_array_foreach (json_object_get(answer, "secrets"), i, s) {
		AUTO_FREE char *quoted = api_quote(api_str(s, "name"));
		AUTO_FREE char *path = xasprintf("/v1/secrets/%s", quoted);

		if (r == 0)
			r = api_call("DELETE", path, NULL, SECRET_TIMEOUT_MS, NULL, p);
	}
	if (r == 0)
		printf("%zu credentials removed\n",
			json_array_size(json_object_get(answer, "secrets")));
	return r;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

/* sbxd has its own log open: it is stopped first, and the next command starts it again. */
static int remove_audit(struct problem *p)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "audit");
	int r = daemon_stop(p);

	if (r < 0)
		return r;
	if (nftw(dir, remove_entry, MAX_FDS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) != 0 &&
		errno != ENOENT)
		return err_errno(&p->err, -errno, "cannot remove %s", dir);
	printf("Audit logs removed\n");
	return 0;
}

/* Files of single sandboxes were removed with them. */
static int remove_rest(void)
{
	struct problem p = {0};
	int r = remove_secrets(&p);

	if (r == 0 && policy_is_there()) {
		r = api_call("DELETE", "/v1/policy", NULL, POLICY_TIMEOUT_MS, NULL, &p);
		if (r == 0)
			printf("Network policy removed\n");
	}
	if (r == 0)
		r = remove_audit(&p);
	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}

static int run_reset(struct opts *o)
{
	AUTO_JSON json_t *sandboxes = NULL, *templates = NULL;
	bool all = opts_has(o, "all");
	struct problem p = {0};
	int r = sandbox_list(&sandboxes, &p), status, more;

	if (r < 0)
		return ui_problem(&p, r);
	templates = template_list();
	say_what(sandboxes, templates, all);
	if (!is_wanted(opts_has(o, "force"), all))
		return EXIT_FAILED;
	status = remove_sandboxes(sandboxes);
	more = remove_templates(templates);
	status = more ? more : status;
	/* The log of an existing sandbox is still written. */
	if (all && status == EXIT_OK)
		status = remove_rest();
	return status;
}

const struct verb verb_reset = {
	.name = "reset",
	.group = "sandboxes",
	.args = "",
	.summary = "stop and remove all sandboxes and templates",
	.about =
		"Stops and removes all sandboxes and their disks, and all templates, after you type the\n"
		"word reset. Use --force if stdin is not a terminal. The network policy, audit logs and\n"
		"credentials are kept unless --all is given. Workspaces, settings and the agents' histories\n"
		"are always kept.",
	.examples = "  sbx reset\n  sbx reset --force --all\n",
	.opts = opts,
	.run = run_reset,
};
