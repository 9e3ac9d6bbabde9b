/* SPDX-License-Identifier: Apache-2.0 */
#include "top_screen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "lib/base/mem.h"
#include "lib/client/api/api.h"
#include "lib/client/tui/tui.h"
#include "src/sbx/policy/policy.h"
#include "top_list.h"
#include "top_pane.h"
#include "top_row.h"

static const struct tui_bind binds[] = {{'a', "attach"}, {'s', "stop"}, {'z', "suspend"},
	{'u', "start"}, {'d', "rm"}, {'r', "review"}, {'+', "port"}, {0, NULL}};

static const char more_help[] =
	"\n"
	"  i, l, h, e         the text below: sandbox, policy log, approvals, sessions\n"
	"  1 to 9             policy log: allow a denied host for 30 minutes\n"
	"                     sessions: attach to a session\n"
	"  o, t, x            approvals: approve once, for 30 minutes, refuse\n"
	"  ], [               approvals: next and previous request\n";

#define NAME_PLACE "SANDBOX" /* in the arguments of a command */
#define TYPED_PLACE "TYPED"

/* What a key does: a command of sbx. */
struct action {
	char key;		/* 0: a number of a pane */
	const char *verb;	/* of the label and of the question */
	const char *question;	/* after the name; NULL: it is not confirmed */
	const char *prompt;	/* text to type, before the name; NULL: none */
	bool is_shown, is_kept; /* on the terminal; until Enter */
	const char *args[JOB_MAX_ARGS];
};

static const struct action actions[] = {
	{'a', "attach", NULL, NULL, true, false, {"run", "--name", NAME_PLACE}},
	{'r', "review", NULL, NULL, true, true, {"review", NAME_PLACE}},
	{'u', "start", NULL, NULL, false, false, {"start", NAME_PLACE}},
	{'s', "stop", "and end its programs", NULL, false, false, {"stop", NAME_PLACE}},
	{'z', "suspend", "to disk", NULL, false, false, {"stop", "--suspend", NAME_PLACE}},
	{'d', "remove", "and its disks", NULL, false, false, {"rm", "--force", NAME_PLACE}},
	{'+', "publish a port of", NULL, "Publish [HOST_PORT:]PORT of", false, false,
		{"ports", NAME_PLACE, "-p", TYPED_PLACE}},
};

/* Of a sandbox whose changes are in the workspace already. */
static const struct action review_guard = {
	'r', "review", NULL, NULL, true, true, {"review", NAME_PLACE, "--guard"}};
static const struct action allow_host = {0, "allow a host for", "for 30 minutes", NULL, false,
	false,
	{"policy", "allow", "network", TYPED_PLACE, "--sandbox", NAME_PLACE, "--for", "30m"}};
static const struct action attach_session = {
	0, "attach", NULL, NULL, true, false, {"attach", NAME_PLACE, "--session", TYPED_PLACE}};

static const struct action open_link = {0, "open", NULL, NULL, true, true, {"open", TYPED_PLACE}};

/* Answers to a request for approval. */
static const struct answer {
	char key;
	const char *word, *verb, *rest; /* "Approve ID once" */
	uint64_t seconds;
} answers[] = {
	{'o', "once", "Approve", " once", 0},
	{'t', "for", "Approve", " and all equal requests for 30 minutes", HOLD_ANSWER_FOR_S},
	{'x', "no", "Refuse", "", 0},
};

struct top_screen {
	struct top_list list;
	struct top_panes panes;
	struct jobs jobs;
	char title[160];
	char *row, *heading, *text;
	size_t n_text;
	/* The question: one of them, or none. */
	const struct action *asked;
	const struct answer *answer;
	json_t *asked_hold; /* of the answer: as it was printed */
	char asked_name[64], typed[TOP_LOG_HOST];
	struct tui_source *src;
};

static void screen_done(struct top_screen *s)
{
	top_list_done(&s->list);
	top_panes_done(&s->panes);
	jobs_done(&s->jobs);
	json_decref(s->asked_hold);
	free(s->row);
	free(s->heading);
	free(s->text);
}

/* ---- the list ---- */

static void set_title(struct top_screen *s)
{
	size_t n_running = 0, n_holds = 0;

	for (size_t i = 0; i < s->list.n; i++) {
		n_running += top_box_is_running(&s->list.v[i]);
		n_holds += s->list.v[i].n_holds;
	}
	if (s->list.n == 0) {
		(void)snprintf(s->title, sizeof(s->title),
			" sbx: no sandboxes. Create one with: sbx run claude");
		return;
	}
	(void)snprintf(s->title, sizeof(s->title), " sbx: %zu sandbox%s, %zu running%s", s->list.n,
		s->list.n == 1 ? "" : "es", n_running,
		n_holds ? ", requests wait for approval" : "");
}

static void read_boxes(struct top_screen *s)
{
	top_list_read(&s->list);
	s->src->n = s->list.n;
	set_title(s);
}

static enum tui_style style_of(const struct top_box *b)
{
	if (b->n_holds || api_int(b->object, "guard_changed"))
		return TUI_YELLOW;
	return top_box_is_running(b) ? TUI_PLAIN : TUI_DIM;
}

static void get_row(void *arg, size_t i, struct tui_row *ret)
{
	struct top_screen *s = arg;

	free(s->row);
	s->row = top_row_text(&s->list.v[i], ret->width);
	ret->text = slice_from_str(s->row);
	ret->style = style_of(&s->list.v[i]);
	ret->mark = s->list.v[i].n_holds ? '*' : ' ';
}

static void get_heading(void *arg, struct tui_row *ret)
{
	struct top_screen *s = arg;

	free(s->heading);
	s->heading = top_row_heading(ret->width);
	ret->text = slice_from_str(s->heading);
}

static struct slice get_text(void *arg, size_t i)
{
	struct top_screen *s = arg;
	FILE *f;

	free(s->text);
	s->text = NULL;
	f = open_memstream(&s->text, &s->n_text);
	if (!f)
		abort();
	top_pane_print(f, &s->panes, &s->list, &s->list.v[i]);
	(void)fclose(f);
	return slice_of(s->text, s->n_text);
}

static enum tui_style get_style(void *arg, struct slice line)
{
	const struct top_screen *s = arg;

	if ((const char *)line.p == s->text)
		return TUI_BOLD;
	return s->panes.pane == TOP_HOLDS && line.n > 0 && line.p[0] == '|' ? TUI_DIM : TUI_PLAIN;
}

/* ---- commands ---- */

static void run_action(struct top_screen *s, char *status, size_t size)
{
	const struct action *a = s->asked;
	const char *args[JOB_MAX_ARGS + 1] = {NULL};
	AUTO_FREE char *label = xasprintf("%s %s", a->verb, s->asked_name);
	struct err err = {0};
	int r;

	for (size_t i = 0; i < JOB_MAX_ARGS && a->args[i]; i++)
		args[i] = strcmp(a->args[i], NAME_PLACE) == 0	 ? s->asked_name
			  : strcmp(a->args[i], TYPED_PLACE) == 0 ? s->typed
								 : a->args[i];
	if (a->is_shown)
		r = job_run(args, a->is_kept, &err);
	else
		r = job_start(&s->jobs, label, args, &err);
	if (r < 0)
		(void)snprintf(status, size, "%s", err_text(&err, r));
	else if (r > 0)
		(void)snprintf(status, size, "%s: exit status %d", label, r);
	else if (!a->is_shown)
		(void)snprintf(status, size, "%s ...", label);
}

static void send_answer(struct top_screen *s, char *status, size_t size)
{
	AUTO_JSON json_t *got = NULL;
	struct problem p = {0};
	int r = hold_answer_send(
		s->asked_hold, s->answer->word, s->answer->seconds, NULL, &got, &p);

	(void)snprintf(status, size, "%s%s%s", api_str(s->asked_hold, "id"), r < 0 ? ": " : " ",
		r < 0				     ? err_text(&p.err, r)
		: strcmp(s->answer->word, "no") == 0 ? "refused"
						     : "approved");
}

static void put_question(const struct top_screen *s, char *status, size_t size)
{
	const struct action *a = s->asked;

	if (s->answer) {
		AUTO_FREE char *what = hold_text_line(s->asked_hold);

		(void)snprintf(status, size, "%s %s%s? [y/N]  %s", s->answer->verb,
			api_str(s->asked_hold, "id"), s->answer->rest, what);
	} else if (a->prompt) {
		(void)snprintf(status, size, "%s %s: %s_   (Enter, Esc)", a->prompt, s->asked_name,
			s->typed);
	} else if (a == &allow_host) {
		(void)snprintf(status, size, "Allow %s for %s %s? [y/N]", s->typed, s->asked_name,
			a->question);
	} else {
		(void)snprintf(status, size, "%c%s %s %s? [y/N]", a->verb[0] - 'a' + 'A',
			a->verb + 1, s->asked_name, a->question);
	}
}

static void end_question(struct top_screen *s)
{
	s->asked = NULL;
	s->answer = NULL;
	json_decref(s->asked_hold);
	s->asked_hold = NULL;
}

/* A key of a text that is typed. */
static enum tui_answer press_typed(struct top_screen *s, uint32_t key, char *status, size_t size)
{
	size_t n = strlen(s->typed);

	if (key == '\n' || key == '\r' || key == 033) {
		if (key != 033 && n)
			run_action(s, status, size);
		end_question(s);
		return TUI_RELOAD;
	}
	if ((key == 0x7f || key == '\b' || key == TUI_KEY_BACKSPACE) && n)
		s->typed[n - 1] = '\0';
	else if (key > ' ' && key < 0x7f && n < TOP_MAX_TYPED) {
		s->typed[n] = (char)key;
		s->typed[n + 1] = '\0';
	}
	put_question(s, status, size);
	return TUI_ASK;
}

static enum tui_answer press_answer(struct top_screen *s, uint32_t key, char *status, size_t size)
{
	if (s->asked && s->asked->prompt)
		return press_typed(s, key, status, size);
	if ((key == 'y' || key == 'Y') && s->answer) {
		send_answer(s, status, size);
		read_boxes(s);
	} else if (key == 'y' || key == 'Y') {
		run_action(s, status, size);
	}
	end_question(s);
	return TUI_RELOAD;
}

/* Runs the command, or puts its question. */
static enum tui_answer begin_action(struct top_screen *s, const struct action *a, const char *name,
	const char *typed, char *status, size_t size)
{
	s->asked = a;
	(void)snprintf(s->asked_name, sizeof(s->asked_name), "%s", name);
	(void)snprintf(s->typed, sizeof(s->typed), "%s", typed);
	if (a->question || a->prompt) {
		put_question(s, status, size);
		return TUI_ASK;
	}
	run_action(s, status, size);
	end_question(s);
	return TUI_RELOAD;
}

/* ---- keys ---- */

static bool press_pane(struct top_screen *s, uint32_t key)
{
	static const char keys[] = {
		[TOP_INFO] = 'i', [TOP_LOG] = 'l', [TOP_HOLDS] = 'h', [TOP_SESSIONS] = 'e'};

	for (size_t i = 0; i < sizeof(keys); i++) {
		if ((uint32_t)keys[i] != key)
			continue;
		s->panes.pane = (enum top_pane)i;
		s->panes.hold_at = 0;
		s->src->text_title = top_pane_title(&s->panes);
		return true;
	}
	if (s->panes.pane != TOP_HOLDS || (key != ']' && key != '['))
		return false;
	if (key == ']')
		s->panes.hold_at++;
	else if (s->panes.hold_at > 0)
		s->panes.hold_at--;
	return true;
}

/* Keys about the request for approval that the text shows. */
static enum tui_answer press_hold(struct top_screen *s, uint32_t key, char *status, size_t size)
{
	const json_t *hold = s->panes.shown.hold;

	if (strcmp(api_str(hold, "state"), "open") != 0)
		return TUI_STAY;
	if (top_pane_is_link(hold) && key == 'o') {
		AUTO_FREE char *ref =
			xasprintf("%s/%s", api_str(hold, "sandbox"), api_str(hold, "id"));

		return begin_action(s, &open_link, s->panes.shown.name, ref, status, size);
	}
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		if ((uint32_t)answers[i].key != key || (top_pane_is_link(hold) && key == 't'))
			continue;
		s->answer = &answers[i];
		s->asked_hold = json_incref(s->panes.shown.hold);
		put_question(s, status, size);
		return TUI_ASK;
	}
	return TUI_STAY;
}

/* Keys about what the text shows. */
static enum tui_answer press_shown(struct top_screen *s, uint32_t key, char *status, size_t size)
{
	const struct top_shown *shown = &s->panes.shown;

	if (shown->hold)
		return press_hold(s, key, status, size);
	if (key >= '1' && key - '1' < shown->choices.n)
		return begin_action(s, s->panes.pane == TOP_LOG ? &allow_host : &attach_session,
			shown->name, shown->choices.v[key - '1'], status, size);
	return TUI_STAY;
}

static const struct action *find_action(const struct top_box *b, uint32_t key)
{
	if (key == 'r' && !json_is_true(json_object_get(b->object, "staged")))
		return &review_guard;
	for (size_t a = 0; a < ARRAY_LEN(actions); a++)
		if ((uint32_t)actions[a].key == key)
			return &actions[a];
	return NULL;
}

static enum tui_answer press_key(void *arg, size_t i, uint32_t key, char *status, size_t size)
{
	struct top_screen *s = arg;
	const struct action *a;

	if (s->asked || s->answer)
		return press_answer(s, key, status, size);
	if (press_pane(s, key))
		return TUI_RELOAD;
	if (i >= s->list.n)
		return TUI_STAY;
	a = find_action(&s->list.v[i], key);
	if (a)
		return begin_action(s, a, top_box_name(&s->list.v[i]), "", status, size);
	/* Another one was selected, and its text is not shown yet. */
	if (strcmp(s->panes.shown.id, s->list.v[i].id) != 0)
		return TUI_STAY;
	return press_shown(s, key, status, size);
}

static size_t tick_screen(void *arg, size_t i, char *status, size_t size)
{
	struct top_screen *s = arg;
	char id[TOP_ID] = "", done[1024];
	bool is_asking = s->asked || s->answer;

	if (i < s->list.n)
		memcpy(id, s->list.v[i].id, sizeof(id));
	read_boxes(s);
	if (!is_asking && job_poll(&s->jobs, done, sizeof(done)))
		(void)snprintf(status, size, "%s", done);
	else if (!is_asking && s->list.fault[0])
		(void)snprintf(status, size, "%s", s->list.fault);
	/* The next one takes the place of a sandbox that was removed. */
	return top_list_find(&s->list, id) < s->list.n ? top_list_find(&s->list, id) : i;
}

int top_screen_run(struct err *err)
{
	CLEANUP(screen_done) struct top_screen s = {0};
	struct tui_source src = {.title = s.title,
		.binds = binds,
		.more_help = more_help,
		.row = get_row,
		.text = get_text,
		.line_style = get_style,
		.press = press_key,
		.tick = tick_screen,
		.tick_ms = TOP_TICK_MS,
		.heading = get_heading,
		.text_title = top_pane_title(&s.panes),
		.arg = &s};

	s.src = &src;
	read_boxes(&s);
	if (!s.list.is_read)
		return err_set(err, -EIO, "%s", s.list.fault);
	return tui_run(&src, err);
}
