/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/client/api/out_place.h"
#include "lib/client/api/policy_api.h"
#include "lib/client/api/policy_file.h"
#include "policy_verbs.h"
#include "src/sbx/verb/verb.h"

const struct opt_def policy_default_opts[] = {
	{0, "lock", NULL, "with deny-all: disable all allow rules"},
	{0},
};
const struct opt_def policy_export_opts[] = {
	{0, "all", NULL, "include ids, origins and times"},
	{0},
};
const struct opt_def policy_import_opts[] = {
	{'y', "yes", NULL, "do not prompt for confirmation"},
	{0},
};
const struct opt_def policy_reset_opts[] = {
	{'y', "yes", NULL, "do not prompt for confirmation"},
	{'f', "force", NULL, "the same", .hidden = true},
	{0},
};

int policy_default_run(struct opts *o)
{
	const char *preset = o->args.v[0], *near = opt_nearest(preset, policy_preset_names);
	struct problem p = {0};
	bool known = false;
	int r;

	for (size_t i = 0; policy_preset_names[i]; i++)
		known = known || strcmp(preset, policy_preset_names[i]) == 0;
	if (!known) {
		ui_error("unknown preset '%s': expected allow-all, balanced or deny-all", preset);
		ui_hint("sbx policy set-default %s", near ? near : "balanced");
		return EXIT_USAGE;
	}
	if (opts_has(o, "lock") && strcmp(preset, "deny-all") != 0) {
		ui_error("--lock requires deny-all, not %s", preset);
		ui_hint("sbx policy set-default deny-all --lock");
		return EXIT_USAGE;
	}
	r = policy_set_preset(preset, opts_has(o, "lock"), stdout, &p);
	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}

int policy_init_run(struct opts *o)
{
	const char *preset;
	struct problem p = {0};
	int r;

	if (o->args.n > 0)
		return policy_default_run(o);
	if (!ui_can_ask()) {
		ui_error(
			"sbx policy init: missing PRESET: expected allow-all, balanced or deny-all");
		ui_hint("sbx policy init balanced");
		return EXIT_USAGE;
	}
	preset = policy_ask_preset();
	if (!preset)
		return EXIT_FAILED;
	r = policy_set_preset(preset, false, stdout, &p);
	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}

static int save_text(const char *path, const char *text, struct problem *p)
{
	AUTO_OUT_PLACE struct out_place place = {.dir = -1};
	int r = out_place_find(path, &place, p);

	return r < 0 ? r : file_save(place.path, slice_from_str(text), &p->err);
}

int policy_export_run(struct opts *o)
{
	AUTO_RULES struct rules rules = {0};
	AUTO_FREE char *text = NULL;
	struct problem p = {0};
	int r = policy_file_load(&rules, &p);

	if (r == 0) {
		text = rules_encode(&rules, opts_has(o, "all") ? RULE_PRINT_ALL : RULE_PRINT_PLAIN);
		if (o->args.n == 0 || strcmp(o->args.v[0], "-") == 0)
			(void)fputs(text, stdout);
		else
			r = save_text(o->args.v[0], text, &p);
	}
	if (r < 0)
		return ui_problem(&p, r);
	if (o->args.n > 0 && strcmp(o->args.v[0], "-") != 0)
		ui_note("Wrote %zu rules to %s", rules.n, o->args.v[0]);
	return EXIT_OK;
}

static void show_lines(const char *mark, char **line, size_t n_shown, size_t n)
{
	for (size_t i = 0; i < n_shown; i++)
		ui_note("%s %s", mark, line[i]);
	if (n > n_shown)
		ui_note("%s ... and %zu more", mark, n - n_shown);
}

/* Shows the changes; false if there are none. */
static bool show_diff(const struct rules *new)
{
	CLEANUP(policy_diff_done) struct policy_diff d = {0};
	AUTO_RULES struct rules old = {0};
	AUTO_FREE char *before = NULL, *after = rules_encode(new, RULE_PRINT_PLAIN);
	struct problem q = {0};
	int r = policy_file_load(&old, &q);

	before = rules_encode(&old, RULE_PRINT_PLAIN);
	policy_diff_make(&old, new, &d);
	if (d.n_wide)
		ui_note("Wide changes: patterns, addresses, local names, ports other than 80 "
			"and 443, and removed deny rules");
	for (size_t i = 0; i < d.n_wide; i++)
		ui_note("  %s", d.wide[i]);
	if (d.n_wide)
		ui_note("All changes:");
	show_lines("-", d.removed, d.n_shown_removed, d.n_removed);
	show_lines("+", d.added, d.n_shown_added, d.n_added);
	ui_note("%zu rules: +%zu -%zu, %zu wide", new->n, d.n_added, d.n_removed, d.n_wide);
	/* Groups and their comments are included. */
	return r < 0 || strcmp(before, after) != 0;
}

/* For a policy that is larger than the body of a call. */
static int write_for_sbxd(struct slice text, char **ret_path, struct err *err)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, NULL),
		       *path = paths_get(PATHS_STATE, "policy.import.XXXXXX");
	AUTO_CLOSE int fd = -1;
	int r = paths_make(dir, err);

	if (r < 0)
		return r;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, -errno, "cannot write %s", path);
	r = fd_write_all(fd, text.p, text.n);
	if (r < 0) {
		(void)unlink(path);
		return err_errno(err, r, "cannot write %s", path);
	}
	*ret_path = TAKE(path);
	return 0;
}

static int put_whole(struct slice text, struct problem *p)
{
	AUTO_FREE char *path = NULL;
	AUTO_JSON json_t *body = NULL, *answer = NULL;
	/* So that a starting sbxd does not remove the file. */
	int r = api_call("GET", "/v1/version", NULL, API_TIMEOUT_MS, NULL, p);

	if (r == 0)
		r = write_for_sbxd(text, &path, &p->err);
	if (r < 0)
		return r;
	body = json_pack("{s:s}", "file", strrchr(path, '/') + 1);
	r = api_call("PUT", "/v1/policy", body, POLICY_TIMEOUT_MS, &answer, p);
	(void)unlink(path);
	if (r < 0)
		return r;
	printf("%s Policy imported: %lld rules\n", ui_tick(), api_int(answer, "rules"));
	(void)fflush(stdout);
	policy_say_not_taken(answer);
	return 0;
}

/* True when it may continue. */
static bool is_wanted(const struct opts *o, const char *verb, const char *what)
{
	if (opts_has(o, "yes"))
		return true;
	if (!ui_can_ask()) {
		ui_error(
			"refusing to change the policy without confirmation: stdin is not a terminal");
		ui_hint("sbx policy %s --yes", verb);
		return false;
	}
	return ui_confirm("%s. Continue?", what);
}

int policy_import_run(struct opts *o)
{
	const char *file = o->args.v[0];
	AUTO_RULES struct rules new = {0};
	AUTO_FREE char *text = NULL, *quoted = policy_shell_word(file),
		       *command = xasprintf("import %s", quoted);
	struct problem p = {0};
	size_t n = 0;
	int r = policy_file_read(file, &text, &n, &p);

	if (r == 0)
		r = rules_decode(slice_of(text, n), file, &new, &p.err);
	if (r < 0)
		return ui_problem(&p, r);
	if (!show_diff(&new)) {
		printf("No changes: the policy is already the same.\n");
		return EXIT_OK;
	}
	if (!is_wanted(o, command, "The import replaces the policy of all sandboxes"))
		return EXIT_FAILED;
	r = put_whole(slice_of(text, n), &p);
	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}

int policy_reset_run(struct opts *o)
{
	AUTO_JSON json_t *answer = NULL;
	struct problem p = {0};
	int r;

	if (!policy_is_there()) {
		ui_error("no network policy is set");
		ui_hint("sbx policy set-default balanced");
		return EXIT_FAILED;
	}
	if (!opts_has(o, "force") &&
		!is_wanted(o, "reset",
			"The reset removes all rules, and all traffic is denied until a preset is set"))
		return EXIT_FAILED;
	r = api_call("DELETE", "/v1/policy", NULL, POLICY_TIMEOUT_MS, &answer, &p);
	if (r < 0)
		return ui_problem(&p, r);
	printf("Policy removed: %lld rules. All traffic is denied until a policy is set:\n"
	       "  sbx policy set-default balanced\n",
		api_int(answer, "removed"));
	(void)fflush(stdout);
	policy_say_not_taken(answer);
	return EXIT_OK;
}
