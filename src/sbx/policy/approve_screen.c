/* SPDX-License-Identifier: Apache-2.0 */
#include "approve_screen.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hold_answer.h"
#include "hold_text.h"
#include "lib/base/mem.h"
#include "lib/client/api/api.h"
#include "lib/client/tui/tui.h"

static const struct tui_bind binds[] = {{'o', "approve once"}, {'t', "approve for 30 minutes"},
	{'a', "approve always"}, {'x', "refuse"}, {0, NULL}};

static const struct choice {
	char key;
	const char *word, *verb, *rest; /* "Approve ID once?" */
	uint64_t seconds;
} choices[] = {
	{'o', "once", "Approve", " once", 0},
	{'t', "for", "Approve", " and all equal requests for 30 minutes", HOLD_ANSWER_FOR_S},
	{'a', "always", "Approve", " and all equal requests until the next stop or policy change",
		0},
	{'x', "no", "Refuse", "", 0},
};

struct screen_hold {
	json_t *hold;
	char *line;
	bool is_gone;
};

struct approve_screen {
	struct screen_hold *v;
	size_t n;
	char *text; /* of the selected one */
	size_t n_text;
	size_t asked;		     /* item of the question */
	const struct choice *choice; /* NULL: no question */
	struct tui_source *src;
};

static void screen_done(struct approve_screen *s)
{
	for (size_t i = 0; i < s->n; i++) {
		json_decref(s->v[i].hold);
		free(s->v[i].line);
	}
	free(s->v);
	free(s->text);
}

/* ---- the list ---- */

static struct screen_hold *find_row(struct approve_screen *s, const json_t *hold)
{
	for (size_t i = 0; i < s->n; i++) {
		const json_t *other = s->v[i].hold;

		if (strcmp(api_str(other, "id"), api_str(hold, "id")) == 0 &&
			strcmp(api_str(other, "sandbox"), api_str(hold, "sandbox")) == 0 &&
			strcmp(api_str(other, "digest"), api_str(hold, "digest")) == 0)
			return &s->v[i];
	}
	return NULL;
}

static void set_row(struct screen_hold *row, json_t *hold)
{
	AUTO_FREE char *what = hold_text_line(hold);

	json_decref(row->hold);
	row->hold = json_incref(hold);
	free(row->line);
	row->line = xasprintf("%s %s %s", api_str(hold, "id"), api_str(hold, "sandbox"), what);
	row->is_gone = false;
}

static void read_list(struct approve_screen *s)
{
	AUTO_JSON json_t *list = NULL;
	struct problem p = {0};
	json_t *hold;
	size_t i;

	if (hold_list(&list, &p) < 0)
		return;
	for (i = 0; i < s->n; i++)
		s->v[i].is_gone = true;
	json_array_foreach (json_object_get(list, "holds"), i, hold) {
		struct screen_hold *row = find_row(s, hold);

		if (!row) {
			s->v = xrealloc(s->v, (s->n + 1) * sizeof(*s->v));
			row = &s->v[s->n++];
			*row = (struct screen_hold){0};
		}
		set_row(row, hold);
	}
	s->src->n = s->n;
}

static bool is_open(const struct screen_hold *row)
{
	return !row->is_gone && strcmp(api_str(row->hold, "state"), "open") == 0;
}

static void get_row(void *arg, size_t i, struct tui_row *ret)
{
	const struct screen_hold *row = &((struct approve_screen *)arg)->v[i];

	ret->text = slice_from_str(row->line);
	ret->mark = is_open(row) ? '*' : ' ';
	ret->style = is_open(row) ? TUI_PLAIN : TUI_DIM;
}

static struct slice get_text(void *arg, size_t i)
{
	struct approve_screen *s = arg;
	FILE *f;

	free(s->text);
	s->text = NULL;
	f = open_memstream(&s->text, &s->n_text);
	if (!f)
		abort();
	hold_text_print(f, s->v[i].hold);
	if (s->v[i].is_gone)
		(void)fputs("\nThe request was used or has expired.\n", f);
	(void)fclose(f);
	return slice_of(s->text, s->n_text);
}

static enum tui_style get_style(void *arg, struct slice line)
{
	const struct approve_screen *s = arg;

	if ((const char *)line.p == s->text)
		return TUI_BOLD;
	return line.n > 0 && line.p[0] == '|' ? TUI_DIM : TUI_PLAIN;
}

/* ---- keys ---- */

static void send_choice(struct approve_screen *s, char *status, size_t size)
{
	const struct screen_hold *row = &s->v[s->asked];
	AUTO_JSON json_t *got = NULL;
	struct problem p = {0};
	int r = hold_answer_send(row->hold, s->choice->word, s->choice->seconds, NULL, &got, &p);

	if (r < 0)
		(void)snprintf(status, size, "%s", err_text(&p.err, r));
	else
		(void)snprintf(status, size, "%s %s", api_str(row->hold, "id"),
			strcmp(s->choice->word, "no") == 0 ? "refused" : "approved");
}

static enum tui_answer press_key(void *arg, size_t i, uint32_t key, char *status, size_t size)
{
	struct approve_screen *s = arg;

	if (s->choice) {
		if (key == 'y' || key == 'Y')
			send_choice(s, status, size);
		s->choice = NULL;
		read_list(s);
		return TUI_RELOAD;
	}
	if (i >= s->n || !is_open(&s->v[i]))
		return TUI_STAY;
	for (size_t c = 0; c < ARRAY_LEN(choices); c++) {
		if ((uint32_t)choices[c].key != key)
			continue;
		s->choice = &choices[c];
		s->asked = i;
		(void)snprintf(status, size, "%s %s%s? [y/N]", choices[c].verb,
			api_str(s->v[i].hold, "id"), choices[c].rest);
		return TUI_ASK;
	}
	return TUI_STAY;
}

static size_t tick_screen(void *arg, size_t i, char *status, size_t size)
{
	struct approve_screen *s = arg;

	(void)status, (void)size;
	if (!s->choice)
		read_list(s);
	return i;
}

int approve_screen_run(struct err *err)
{
	CLEANUP(screen_done) struct approve_screen s = {0};
	struct tui_source src = {.title = " Requests that wait for approval",
		.binds = binds,
		.row = get_row,
		.text = get_text,
		.line_style = get_style,
		.press = press_key,
		.tick = tick_screen,
		.tick_ms = APPROVE_TICK_MS,
		.arg = &s};

	s.src = &src;
	read_list(&s);
	return tui_run(&src, err);
}
