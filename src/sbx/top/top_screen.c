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
#include "top_list.h"
#include "top_row.h"
#include "top_text.h"

static const struct tui_bind binds[] = {{'a', "attach"}, {'s', "stop"}, {'z', "suspend"},
	{'u', "start"}, {'d', "rm"}, {'r', "review"}, {'+', "port"}, {0, NULL}};

#define NAME_PLACE "SANDBOX" /* in the arguments of a command */
#define TYPED_PLACE "TYPED"

/* What a key does. */
struct action {
	char key;
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

struct top_screen {
	struct top_list list;
	struct jobs jobs;
	char title[160];
	char *row, *heading, *text;
	size_t n_text;
	const struct action *asked; /* NULL: no question */
	char asked_name[64], typed[TOP_MAX_TYPED];
	struct tui_source *src;
};

static void screen_done(struct top_screen *s)
{
	top_list_done(&s->list);
	jobs_done(&s->jobs);
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
	top_text_print(f, &s->list.v[i]);
	(void)fclose(f);
	return slice_of(s->text, s->n_text);
}

static enum tui_style get_style(void *arg, struct slice line)
{
	const struct top_screen *s = arg;

	return (const char *)line.p == s->text ? TUI_BOLD : TUI_PLAIN;
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
	else if (!a->is_shown)
		(void)snprintf(status, size, "%s ...", label);
}

static void put_question(const struct top_screen *s, char *status, size_t size)
{
	const struct action *a = s->asked;

	if (a->prompt)
		(void)snprintf(status, size, "%s %s: %s_   (Enter, Esc)", a->prompt, s->asked_name,
			s->typed);
	else
		(void)snprintf(status, size, "%c%s %s %s? [y/N]", a->verb[0] - 'a' + 'A',
			a->verb + 1, s->asked_name, a->question);
}

/* A key of a text that is typed. */
static enum tui_answer press_typed(struct top_screen *s, uint32_t key, char *status, size_t size)
{
	size_t n = strlen(s->typed);

	if (key == '\n' || key == '\r' || key == 033) {
		if (key != 033 && n)
			run_action(s, status, size);
		s->asked = NULL;
		return TUI_RELOAD;
	}
	if ((key == 0x7f || key == '\b' || key == TUI_KEY_BACKSPACE) && n)
		s->typed[n - 1] = '\0';
	else if (key > ' ' && key < 0x7f && n + 1 < sizeof(s->typed)) {
		s->typed[n] = (char)key;
		s->typed[n + 1] = '\0';
	}
	put_question(s, status, size);
	return TUI_ASK;
}

static enum tui_answer press_answer(struct top_screen *s, uint32_t key, char *status, size_t size)
{
	if (s->asked->prompt)
		return press_typed(s, key, status, size);
	if (key == 'y' || key == 'Y')
		run_action(s, status, size);
	s->asked = NULL;
	return TUI_RELOAD;
}

static enum tui_answer press_key(void *arg, size_t i, uint32_t key, char *status, size_t size)
{
	struct top_screen *s = arg;

	if (s->asked)
		return press_answer(s, key, status, size);
	for (size_t a = 0; a < ARRAY_LEN(actions) && i < s->list.n; a++) {
		if ((uint32_t)actions[a].key != key)
			continue;
		s->asked = &actions[a];
		s->typed[0] = '\0';
		(void)snprintf(
			s->asked_name, sizeof(s->asked_name), "%s", top_box_name(&s->list.v[i]));
		if (actions[a].question || actions[a].prompt) {
			put_question(s, status, size);
			return TUI_ASK;
		}
		run_action(s, status, size);
		s->asked = NULL;
		return TUI_RELOAD;
	}
	return TUI_STAY;
}

static size_t tick_screen(void *arg, size_t i, char *status, size_t size)
{
	struct top_screen *s = arg;
	char id[TOP_ID] = "", done[1024];

	if (i < s->list.n)
		memcpy(id, s->list.v[i].id, sizeof(id));
	read_boxes(s);
	if (job_poll(&s->jobs, done, sizeof(done)) && !s->asked)
		(void)snprintf(status, size, "%s", done);
	else if (s->list.fault[0] && !s->asked)
		(void)snprintf(status, size, "%s", s->list.fault);
	/* The next one takes the place of a sandbox that was removed. */
	return top_list_find(&s->list, id) < s->list.n ? top_list_find(&s->list, id) : i;
}

int top_screen_run(struct err *err)
{
	CLEANUP(screen_done) struct top_screen s = {0};
	struct tui_source src = {.title = s.title,
		.binds = binds,
		.row = get_row,
		.text = get_text,
		.line_style = get_style,
		.press = press_key,
		.tick = tick_screen,
		.tick_ms = TOP_TICK_MS,
		.heading = get_heading,
		.text_title = "Sandbox",
		.arg = &s};

	s.src = &src;
	read_boxes(&s);
	if (!s.list.is_read)
		return err_set(err, -EIO, "%s", s.list.fault);
	return tui_run(&src, err);
}
