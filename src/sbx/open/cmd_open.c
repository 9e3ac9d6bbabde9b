/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "browser.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/client/api/api.h"
#include "lib/client/cli/form.h"
#include "lib/client/cli/table.h"
#include "link.h"
#include "open.h"
#include "src/sbx/policy/policy.h"

static const struct opt_def open_opts[] = {
	{0, "print", NULL, "print the link instead of starting a browser"},
	{0, "json", NULL, "print JSON and do not prompt"},
	{0},
};

/* ---- the list ---- */

static bool is_link(const json_t *hold)
{
	return strcmp(api_str(hold, "kind"), "link") == 0;
}

static json_t *links_of(const json_t *holds)
{
	json_t *list = json_array();
	json_t *hold;
	size_t i;

	json_array_foreach (json_object_get(holds, "holds"), i, hold)
		if (is_link(hold))
			json_array_append(list, hold);
	return json_pack("{s:o}", "links", list);
}

static void print_table(const json_t *links)
{
	static const char *const heading[] = {"ID", "SANDBOX", "STATE", "LEFT", "LINK"};
	CLEANUP(table_done) struct table t = {0};
	const json_t *hold;
	size_t i;

	table_init(&t, ARRAY_LEN(heading), heading);
	json_array_foreach (links, i, hold) {
		AUTO_FREE char *what = hold_text_line(hold);
		char left[32];

		hold_text_left(hold, left, sizeof(left));
		table_add(&t, (const char *const[]){api_str(hold, "id"), api_str(hold, "sandbox"),
				      api_str(hold, "state"), left, what});
	}
	if (i > 0)
		table_print(&t);
	else
		ui_note("No links wait to be opened");
}

static int print_list(const struct opts *o)
{
	AUTO_JSON json_t *holds = NULL, *links = NULL;
	struct problem p = {0};
	int r = hold_list(&holds, &p);

	if (r < 0)
		return ui_problem(&p, r);
	links = links_of(holds);
	if (opts_has(o, "json")) {
		form_times(links);
		api_print(links);
	} else {
		print_table(json_object_get(links, "links"));
	}
	return EXIT_OK;
}

/* ---- one link ---- */

static int send_answer(const struct link *l, const char *word, struct problem *p)
{
	AUTO_JSON json_t *got = NULL;

	return hold_answer_send(l->hold, word, 0, NULL, &got, p);
}

/* False: the user has to open the link. */
static bool start_browser(const struct link *l, const struct browser *b)
{
	struct err err = {0};
	int r = browser_start(b, &err);

	if (r < 0)
		ui_warning("%s", err_text(&err, r));
	else
		ui_done("Opened the link of sandbox '%s' with %s", api_str(l->hold, "sandbox"),
			b->argv[0]);
	return r == 0;
}

/* Prints the link if no browser can be started. */
static void show_link(const struct opts *o, const struct link *l)
{
	CLEANUP(browser_done) struct browser b = {0};

	if (!opts_has(o, "print") &&
		browser_choose(&b, getenv("BROWSER"), browser_has_display(), l->url.text) &&
		start_browser(l, &b))
		return;
	ui_note("Open this link in a browser:");
	printf("%s\n", l->url.text);
	(void)fflush(stdout);
}

static int receive_callback(const struct link *l, int listener)
{
	struct problem p = {0};
	int r;

	ui_note("Waiting for the browser at http://localhost:%u, for 10 minutes (Ctrl-C to stop)",
		l->callback.at.port);
	r = callback_wait(&l->callback, listener, api_str(l->hold, "sandbox"), &p);
	if (r < 0)
		return ui_problem(&p, r);
	ui_done("Passed the callback into the sandbox '%s'", api_str(l->hold, "sandbox"));
	return EXIT_OK;
}

/* The user has said yes. */
static int open_link(const struct opts *o, const struct link *l)
{
	AUTO_CLOSE int listener = -1;
	struct problem p = {0};
	int r = link_check_address(l, &p.err);

	if (r < 0)
		return ui_problem(&p, problem_hint(&p, r, "sbx refuse %s", api_str(l->hold, "id")));
	if (l->has_callback) {
		listener = callback_listen(&l->callback, &p.err);
		if (listener < 0)
			return ui_problem(&p, problem_hint(&p, listener, "ss -tlnp 'sport = %u'",
						      l->callback.at.port));
	}
	r = send_answer(l, "open", &p);
	if (r < 0)
		return ui_problem(&p, r);
	show_link(o, l);
	return l->has_callback ? receive_callback(l, TAKE_FD(listener)) : EXIT_OK;
}

static int refuse_link(const struct link *l)
{
	struct problem p = {0};
	int r = send_answer(l, "no", &p);

	if (r < 0)
		return ui_problem(&p, r);
	ui_done("Refused link %s", api_str(l->hold, "id"));
	return EXIT_OK;
}

static int prompt_for(const struct opts *o, const struct link *l)
{
	char line[16];

	if (!ui_ask(line, sizeof(line), "The sandbox chose this link. %s? [y]es, [n]o, [q]uit: ",
		    opts_has(o, "print") ? "Print it for your browser" : "Open it in your browser"))
		return EXIT_FAILED;
	switch (line[0]) {
	case 'y':
	case 'Y':
		return open_link(o, l);
	case 'n':
	case 'N':
		return refuse_link(l);
	default:
		ui_note("The link still waits");
		return EXIT_OK;
	}
}

static int run_one(const struct opts *o)
{
	AUTO_JSON json_t *hold = NULL;
	static struct link l;
	struct problem p = {0};
	int r = hold_get(o->args.v[0], &hold, &p);

	if (r == 0)
		r = link_read(hold, &l, &p);
	if (r < 0)
		return ui_problem(&p, r);
	link_ask_policy(&l);
	if (opts_has(o, "json")) {
		AUTO_JSON json_t *out = link_to_json(&l);

		form_times(out);
		api_print(out);
		return EXIT_OK;
	}
	link_print(stdout, &l);
	(void)fflush(stdout);
	if (strcmp(api_str(hold, "state"), "open") != 0)
		return EXIT_OK;
	if (ui_can_ask())
		return prompt_for(o, &l);
	ui_note("A link is opened only after a prompt: run this command on a terminal");
	return EXIT_OK;
}

static int run_open(struct opts *o)
{
	struct problem p = {0};
	int r = 0;

	if (opts_has(o, "print") && opts_has(o, "json"))
		r = err_set(&p.err, -EINVAL, "--print and --json are mutually exclusive");
	else if (opts_has(o, "print") && o->args.n == 0)
		r = err_set(&p.err, -EINVAL, "missing ID");
	if (r < 0)
		return ui_problem(&p, problem_usage(&p, r, "open"));
	return o->args.n == 0 ? print_list(o) : run_one(o);
}

const struct verb verb_open = {
	.name = "open",
	.group = "network and credentials",
	.args = "[ID]",
	.summary = "open links that a sandbox requests",
	.about =
		"Programs in a sandbox request links with xdg-open, open or $BROWSER. Without ID,\n"
		"lists the links that wait. With ID, prints the whole link, its host and whether the\n"
		"policy allows the host, and prompts on a terminal. Only http and https links to\n"
		"hosts of the public Internet are accepted. The link is opened by $BROWSER, else by\n"
		"xdg-open; without a display it is printed. If two sandboxes have the same ID, use\n"
		"SANDBOX/ID.",
	.examples = "  sbx open\n"
		    "  sbx open K7QD\n",
	.opts = open_opts,
	.max = 1,
	.first = VERB_HOLD,
	.run = run_open,
};
