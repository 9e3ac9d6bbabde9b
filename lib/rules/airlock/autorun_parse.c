/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include "autorun_internal.h"
#include "lib/base/mem.h"
#include "lib/base/slice.h"

#define MAX_KIND 999

static const char *const mode_names[AUTORUN_N_MODES] = {[AUTORUN_NONE] = "",
	[AUTORUN_ALLOW] = "allow",
	[AUTORUN_REPORT_TREE] = "report-tree",
	[AUTORUN_REPORT_NEW] = "report-new",
	[AUTORUN_REPORT] = "report",
	[AUTORUN_FIXED] = "fixed",
	[AUTORUN_CHECK] = "check",
	[AUTORUN_DENY] = "deny"};

/* ---- patterns ---- */

static enum autorun_step_type type_of(const char *p, size_t n)
{
	static const char magic[] = "*?[\\";
	size_t i = n > 0 && p[0] == '*';

	if (n == 2 && memcmp(p, "**", 2) == 0)
		return AUTORUN_DEEP;
	if (n == 1 && i)
		return AUTORUN_ANY;
	for (; i < n; i++)
		if (strchr(magic, p[i]))
			return AUTORUN_GLOB;
	return p[0] == '*' ? AUTORUN_SUFFIX : AUTORUN_LITERAL;
}

static int check_component(const char *p, size_t n, struct err *err)
{
	if (n == 0 || n > NAME_MAX || (n == 1 && p[0] == '.') || (n == 2 && !memcmp(p, "..", 2)))
		return err_set(err, -EINVAL, "invalid component '%.*s'", (int)MIN(n, 64U), p);
	if (n != 2 && memmem(p, n, "**", 2))
		return err_set(err, -EINVAL, "'**' must be a whole component");
	for (size_t i = 0; i < n; i++)
		if ((uint8_t)p[i] < ' ' || p[i] == 0x7f)
			return err_set(err, -EINVAL, "control character");
	return 0;
}

static int add_component(
	struct autorun_list *l, const char *p, size_t n, bool last, struct err *err)
{
	struct autorun_step *s = &l->steps[l->n_steps];
	int r = check_component(p, n, err);

	if (r < 0)
		return r;
	if (l->n_steps == AUTORUN_MAX_STEPS)
		return err_set(err, -E2BIG, "more than %d components", AUTORUN_MAX_STEPS);
	*s = (struct autorun_step){.type = type_of(p, n),
		.row = (uint16_t)l->n_rows,
		.next_first = AUTORUN_NO_STEP,
		.last = last};
	s->n = n - (s->type == AUTORUN_SUFFIX);
	s->text = xstrndup(p + n - s->n, s->n);
	l->n_steps++;
	return 0;
}

static void add_first(struct autorun_list *l, size_t i, bool from_root)
{
	struct autorun_step *s = &l->steps[i];
	bool by_byte = s->type == AUTORUN_LITERAL ||
		       (s->type == AUTORUN_GLOB && !strchr("*?[\\", s->text[0]));
	uint16_t *head = by_byte ? &l->first[(uint8_t)s->text[0]] : &l->first_other;

	if (from_root) {
		autorun_add_step(l, &l->root, i);
		return;
	}
	s->next_first = *head;
	*head = (uint16_t)i;
}

static void add_masks(struct autorun_list *l, size_t from, enum autorun_mode mode)
{
	for (int level = GUARD_DEFAULT; level < GUARD_N_LEVELS; level++) {
		enum autorun_mode m = autorun_effective(mode, (enum guard_level)level);

		for (size_t i = from; i < l->n_steps; i++) {
			uint64_t bit = UINT64_C(1) << i % 64;

			if (m >= AUTORUN_FIXED)
				l->refuses[level].bits[i / 64] |= bit;
			if (m >= AUTORUN_FIXED || m == AUTORUN_ALLOW)
				l->differs[level].bits[i / 64] |= bit;
		}
	}
}

static int add_pattern(
	struct autorun_list *l, const char *pattern, enum autorun_mode mode, struct err *err)
{
	const char *p = pattern + (pattern[0] == '/');
	size_t from = l->n_steps;
	int r = 0;

	/* Each pattern holds anywhere. */
	while (pattern[0] != '/' && strncmp(p, "**/", 3) == 0)
		p += 3;
	for (bool more = true; r == 0 && more;) {
		size_t n = strcspn(p, "/");

		more = p[n] == '/';
		r = add_component(l, p, n, !more, err);
		p += n + more;
	}
	if (r < 0)
		return err_wrap(err, r, "pattern '%.64s'", pattern);
	/* A lone `**` would be every name in every place. */
	if (pattern[0] != '/' && l->steps[from].type == AUTORUN_DEEP)
		return err_set(err, -EINVAL, "pattern '%.64s' matches everything", pattern);
	add_first(l, from, pattern[0] == '/');
	add_masks(l, from, mode);
	return 0;
}

/* `dir/` and two stars as a tree is the directory. */
static char *steps_of(const struct autorun_row *row)
{
	size_t n = strlen(row->pattern);
	bool below = n > 3 && strcmp(row->pattern + n - 3, "/**") == 0;

	return xstrndup(row->pattern, row->mode == AUTORUN_REPORT_TREE && below ? n - 3 : n);
}

static int add_row(struct autorun_list *l, const struct autorun_row *row, struct err *err)
{
	AUTO_FREE char *steps = steps_of(row);
	int r;

	if (l->n_rows == AUTORUN_MAX_ROWS)
		return err_set(err, -E2BIG, "more than %d rows", AUTORUN_MAX_ROWS);
	r = add_pattern(l, steps, row->mode, err);
	if (r < 0)
		return r;
	l->rows[l->n_rows++] = (struct autorun_row){.kind = row->kind,
		.mode = row->mode,
		.pattern = xstrdup(row->pattern),
		.program = xstrdup(row->program)};
	return 0;
}

/* ---- lines ---- */

static struct slice next_column(struct slice *line)
{
	struct slice column;

	while (line->n && (line->p[0] == ' ' || line->p[0] == '\t'))
		*line = slice_of(line->p + 1, line->n - 1);
	column = slice_of(line->p, 0);
	while (line->n && line->p[0] != ' ' && line->p[0] != '\t') {
		column.n++;
		*line = slice_of(line->p + 1, line->n - 1);
	}
	return column;
}

static int mode_of(struct slice word, enum autorun_mode *ret)
{
	for (int m = AUTORUN_ALLOW; m < AUTORUN_N_MODES; m++)
		if (slice_eq_str(word, mode_names[m])) {
			*ret = (enum autorun_mode)m;
			return 0;
		}
	return -EINVAL;
}

static int kind_of(struct slice word, unsigned *ret)
{
	unsigned kind = 0;

	for (size_t i = 0; i < word.n; i++) {
		if (word.p[i] < '0' || word.p[i] > '9' || kind > MAX_KIND)
			return -EINVAL;
		kind = kind * 10 + (unsigned)(word.p[i] - '0');
	}
	*ret = kind;
	return kind > 0 && kind <= MAX_KIND ? 0 : -EINVAL;
}

static int parse_line(struct autorun_list *l, struct slice line, struct err *err)
{
	struct slice kind = next_column(&line), mode = next_column(&line);
	struct slice pattern = next_column(&line);
	AUTO_FREE char *text = NULL;
	AUTO_FREE char *program = NULL;
	struct autorun_row row = {0};

	if (kind.n == 0 || kind.p[0] == '#')
		return 0;
	while (line.n && (line.p[0] == ' ' || line.p[0] == '\t'))
		line = slice_of(line.p + 1, line.n - 1);
	if (kind_of(kind, &row.kind) < 0)
		return err_set(err, -EINVAL, "the kind is a number from 1 to %d", MAX_KIND);
	if (mode_of(mode, &row.mode) < 0)
		return err_set(err, -EINVAL, "unknown mode");
	if (pattern.n == 0 || (line.n == 0 && row.mode != AUTORUN_ALLOW))
		return err_set(err, -EINVAL, "a row is KIND MODE PATTERN PROGRAM");
	text = xstrndup((const char *)pattern.p, pattern.n);
	program = xstrndup((const char *)line.p, line.n);
	row.pattern = text;
	row.program = program;
	return add_row(l, &row, err);
}

static struct autorun_list *new_list(void)
{
	struct autorun_list *l = xcalloc(1, sizeof(*l));

	memset(l->first, 0xff, sizeof(l->first));
	l->first_other = AUTORUN_NO_STEP;
	return l;
}

int autorun_parse(const char *text, size_t n, struct autorun_list **ret, struct err *err)
{
	AUTO_AUTORUN struct autorun_list *l = new_list();
	unsigned number = 0;
	int r;

	if (n > AUTORUN_MAX_TEXT || memchr(text, '\0', n))
		return err_set(err, -EINVAL, "the list is too long or has a NUL");
	for (size_t at = 0; at < n;) {
		const char *end = memchr(text + at, '\n', n - at);
		size_t len = end ? (size_t)(end - text) - at : n - at;

		number++;
		r = parse_line(l, slice_of(text + at, len), err);
		if (r < 0)
			return err_wrap(err, r, "line %u", number);
		at += len + 1;
	}
	*ret = TAKE(l);
	return 0;
}

int autorun_except(struct autorun_list *l, const char *glob, struct err *err)
{
	AUTO_FREE char *pattern = xasprintf("/%s", glob[0] == '/' ? glob + 1 : glob);
	const struct autorun_row row = {
		.mode = AUTORUN_ALLOW, .pattern = pattern, .program = (char *)""};

	return add_row(l, &row, err);
}

bool autorun_is_typed(const char *path)
{
	size_t n =
		strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-");

	return n > 0 && n <= AUTORUN_MAX_TYPED && !path[n] && path[0] != '-' && path[0] != '/' &&
	       !strstr(path, "..");
}

const struct autorun_row *autorun_kind(const struct autorun_list *l, unsigned kind)
{
	for (size_t i = 0; i < l->n_rows; i++)
		if (l->rows[i].kind == kind && l->rows[i].mode != AUTORUN_ALLOW)
			return &l->rows[i];
	return NULL;
}

void autorun_free(struct autorun_list **l)
{
	if (!*l)
		return;
	for (size_t i = 0; i < (*l)->n_rows; i++) {
		free((*l)->rows[i].pattern);
		free((*l)->rows[i].program);
	}
	for (size_t i = 0; i < (*l)->n_steps; i++)
		free((*l)->steps[i].text);
	free(*l);
	*l = NULL;
}
