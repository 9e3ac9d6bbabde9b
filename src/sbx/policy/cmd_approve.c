/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "approve_screen.h"
#include "hold_answer.h"
#include "hold_text.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/api.h"
#include "lib/client/cli/form.h"
#include "lib/client/cli/table.h"
#include "lib/client/tui/tui.h"
#include "policy.h"

static const struct opt_def approve_opts[] = {
	{0, "show", NULL, "print the request and the commands that answer it"},
	{0, "watch", NULL, "show the requests full-screen, as they come"},
	{0, "once", NULL, "approve one request; requires --digest"},
	{0, "for", "DURATION", "approve all equal requests for DURATION; requires --digest"},
	{0, "always", NULL, "approve all equal requests without a time limit; requires --digest"},
	{0, "digest", "HEX", "digest of the request that you have read"},
	{'q', "quiet", NULL, "without ID: print only the IDs"},
	{0, "json", NULL, "print JSON"},
	{0},
};

static const struct opt_def refuse_opts[] = {
	{0, "reason", "TEXT", "reason that the sandbox gets"},
	{0},
};

static bool is_withdrawn(const json_t *hold)
{
	return strcmp(api_str(hold, "state"), "withdrawn") == 0;
}

/* ---- the list ---- */

static void print_ids(const json_t *holds)
{
	const json_t *hold;
	size_t i;

	json_array_foreach (holds, i, hold) {
		if (is_withdrawn(hold))
			continue;
		ui_put(api_str(hold, "id"));
		printf("\n");
	}
}

static int print_list(const struct opts *o)
{
	static const char *const heading[] = {"ID", "SANDBOX", "STATE", "LEFT", "REQUEST"};
	CLEANUP(table_done) struct table t = {0};
	AUTO_JSON json_t *list = NULL;
	struct problem p = {0};
	const json_t *hold;
	size_t i, n = 0;
	int r = hold_list(&list, &p);

	if (r < 0)
		return ui_problem(&p, r);
	if (opts_has(o, "json")) {
		form_times(list);
		api_print(list);
		return EXIT_OK;
	}
	if (opts_has(o, "quiet")) {
		print_ids(json_object_get(list, "holds"));
		return EXIT_OK;
	}
	table_init(&t, ARRAY_LEN(heading), heading);
	json_array_foreach (json_object_get(list, "holds"), i, hold) {
		AUTO_FREE char *what = hold_text_line(hold);
		char left[32];

		if (is_withdrawn(hold))
			continue;
		n++;
		hold_text_left(hold, left, sizeof(left));
		table_add(&t, (const char *const[]){api_str(hold, "id"), api_str(hold, "sandbox"),
				      api_str(hold, "state"), left, what});
	}
	if (n > 0)
		table_print(&t);
	else
		ui_note("No requests wait for approval");
	return EXIT_OK;
}

/* ---- an answer ---- */

struct answer {
	const char *choice; /* NULL: none was given */
	uint64_t seconds;
};

static int take_choice(const struct opts *o, struct answer *ret, struct problem *p)
{
	static const char *const words[] = {"once", "for", "always"};
	const char *duration = opts_value(o, "for");
	size_t n = 0;

	*ret = (struct answer){0};
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (!opts_has(o, words[i]))
			continue;
		ret->choice = words[i];
		n++;
	}
	if (n > 1)
		return err_set(
			&p->err, -EINVAL, "--once, --for and --always are mutually exclusive");
	if (!ret->choice != !opts_has(o, "digest"))
		return err_set(&p->err, -EINVAL,
			"--digest and one of --once, --for and --always require each other");
	if (ret->choice && (opts_has(o, "show") || opts_has(o, "watch")))
		return err_set(&p->err, -EINVAL, "--%s cannot be combined with --show or --watch",
			ret->choice);
	if (duration && (str_to_seconds(duration, &ret->seconds) < 0 || ret->seconds == 0))
		return err_set(&p->err, -EINVAL,
			"invalid --for '%s': use a form such as 90s, 30m, 8h or 7d", duration);
	if (opts_has(o, "digest") && !hex_is(opts_value(o, "digest"), 64))
		return err_set(
			&p->err, -EINVAL, "invalid --digest: expected 64 hexadecimal digits");
	return 0;
}

static void print_answered(const json_t *hold, const struct answer *a)
{
	ui_done("Approved request %s of sandbox '%s'", api_str(hold, "id"),
		api_str(hold, "sandbox"));
	if (strcmp(a->choice, "always") == 0)
		ui_note("Equal requests pass until the sandbox stops or the policy changes");
}

static int send_answer(const struct opts *o, const json_t *hold, const struct answer *a)
{
	AUTO_JSON json_t *got = NULL;
	struct problem p = {0};
	int r = hold_answer_send(hold, a->choice, a->seconds, NULL, &got, &p);

	if (r < 0)
		return ui_problem(&p, r);
	if (strcmp(a->choice, "no") == 0)
		ui_done("Refused request %s", api_str(hold, "id"));
	else if (opts_has(o, "json"))
		api_print(got);
	else
		print_answered(hold, a);
	return EXIT_OK;
}

/* The digest is the one of the text above the prompt. */
static int prompt_for(const struct opts *o, const json_t *hold)
{
	char line[16];
	struct answer a = {0};

	if (!ui_ask(line, sizeof(line),
		    "Approve? [o]nce, [t] for 30 minutes, [a]lways, [n]o, [q]uit: "))
		return EXIT_FAILED;
	switch (line[0]) {
	case 'o':
		a.choice = "once";
		break;
	case 't':
		a.choice = "for";
		a.seconds = HOLD_ANSWER_FOR_S;
		break;
	case 'a':
		a.choice = "always";
		break;
	case 'n':
		a.choice = "no";
		break;
	default:
		ui_note("The request still waits");
		return EXIT_OK;
	}
	return send_answer(o, hold, &a);
}

/* What to type next. A sandbox and an ID need no quotes. */
static void print_command(const char *label, const char *verb, const json_t *hold)
{
	printf("%-9s sbx %s ", label, verb);
	ui_put(api_str(hold, "sandbox"));
	printf("/");
	ui_put(api_str(hold, "id"));
}

static void print_commands(const json_t *hold)
{
	printf("\n");
	print_command("approve", "approve", hold);
	printf(" --once --digest ");
	ui_put(api_str(hold, "digest"));
	printf("\n");
	print_command("refuse", "refuse", hold);
	printf("\n");
}

static int run_one(const struct opts *o, const struct answer *a)
{
	bool is_open;
	AUTO_JSON json_t *hold = NULL;
	struct problem p = {0};
	int r = hold_get(o->args.v[0], &hold, &p);

	if (r == 0 && strcmp(api_str(hold, "kind"), "link") == 0) {
		r = err_set(&p.err, -EINVAL, "%s is a link", api_str(hold, "id"));
		r = problem_hint(&p, r, "sbx open %s", o->args.v[0]);
	}
	if (r == 0 && is_withdrawn(hold) && !opts_has(o, "show") && !opts_has(o, "json")) {
		r = err_set(&p.err, -ECANCELED,
			"request %s of sandbox '%s' was withdrawn: the client left before an "
			"answer. It cannot be approved",
			api_str(hold, "id"), api_str(hold, "sandbox"));
		r = problem_hint(&p, r, "sbx approve");
	}
	if (r < 0)
		return ui_problem(&p, r);
	if (a->choice) {
		json_object_set_new(hold, "digest", json_string(opts_value(o, "digest")));
		return send_answer(o, hold, a);
	}
	if (opts_has(o, "json")) {
		form_times(hold);
		api_print(hold);
		return EXIT_OK;
	}
	is_open = strcmp(api_str(hold, "state"), "open") == 0;
	hold_text_print(stdout, hold);
	if (is_open && (opts_has(o, "show") || !ui_can_ask()))
		print_commands(hold);
	(void)fflush(stdout);
	if (opts_has(o, "show") || !ui_can_ask() || !is_open)
		return EXIT_OK;
	return prompt_for(o, hold);
}

static int run_watch(void)
{
	struct problem p = {0};
	int r;

	if (!tui_is_usable()) {
		r = err_set(&p.err, -ENOTTY, "--watch requires a terminal");
		return ui_problem(&p, problem_hint(&p, r, "sbx approve --json"));
	}
	r = approve_screen_run(&p.err);
	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}

static int run_approve(struct opts *o)
{
	struct answer a;
	struct problem p = {0};
	int r = take_choice(o, &a, &p);

	if (r == 0 && o->args.n == 0 && (a.choice || opts_has(o, "show")))
		r = err_set(&p.err, -EINVAL, "missing ID");
	if (r == 0 && opts_has(o, "watch") && (o->args.n > 0 || opts_has(o, "json")))
		r = err_set(&p.err, -EINVAL, "--watch cannot be combined with ID or --json");
	if (r < 0)
		return ui_problem(&p, problem_usage(&p, r, "approve"));
	if (opts_has(o, "watch"))
		return run_watch();
	return o->args.n == 0 ? print_list(o) : run_one(o, &a);
}

static int run_refuse(struct opts *o)
{
	AUTO_JSON json_t *hold = NULL, *got = NULL;
	struct problem p = {0};
	int r = hold_get(o->args.v[0], &hold, &p);

	if (r == 0)
		r = hold_answer_send(hold, "no", 0, opts_value(o, "reason"), &got, &p);
	if (r < 0)
		return ui_problem(&p, r);
	ui_done("Refused request %s of sandbox '%s'", api_str(hold, "id"),
		api_str(hold, "sandbox"));
	return EXIT_OK;
}

const struct verb verb_approve = {
	.name = "approve",
	.group = "network and credentials",
	.args = "[ID]",
	.summary = "approve requests that a rule holds for you",
	.about =
		"Without ID, lists the requests that wait for approval. With ID, prints the request,\n"
		"and prompts for an answer on a terminal. An answer applies to the request that was\n"
		"printed: its digest must be the same. An approval is valid for one request and for\n"
		"15 minutes, until the policy changes. --for approves all equal requests for a\n"
		"time. --always approves all equal requests of this sandbox until the sandbox stops\n"
		"or the policy changes. If two sandboxes have the same ID, use SANDBOX/ID.",
	.examples = "  sbx approve\n"
		    "  sbx approve K7QD\n"
		    "  sbx approve --watch\n",
	.opts = approve_opts,
	.max = 1,
	.first = VERB_HOLD,
	.run = run_approve,
};

const struct verb verb_refuse = {
	.name = "refuse",
	.group = "network and credentials",
	.args = "ID",
	.summary = "refuse a request that waits for approval",
	.about = "The request fails in the sandbox with the reason. Equal requests fail for 15\n"
		 "minutes without a prompt, or until the policy changes.",
	.examples = "  sbx refuse K7QD --reason 'use a branch'\n",
	.opts = refuse_opts,
	.min = 1,
	.max = 1,
	.first = VERB_HOLD,
	.run = run_refuse,
};
