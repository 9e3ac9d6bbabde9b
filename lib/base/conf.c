/* SPDX-License-Identifier: Apache-2.0 */
#include "conf.h"

#include <errno.h>

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t';
}

int conf_init(struct conf *c, const struct conf_form *form, struct slice text, const char *name,
	struct err *err)
{
	*c = (struct conf){.form = form, .name = name, .rest = text};
	return text.n <= form->max_bytes
		       ? 0
		       : err_set(err, -E2BIG, "%s: larger than %zu bytes", name, form->max_bytes);
}

static int check_bytes(const struct conf *c, struct slice line, struct err *err)
{
	if (line.n >= c->form->max_line)
		return err_set(err, -E2BIG, "longer than %zu bytes", c->form->max_line - 1);
	for (size_t i = 0; i < line.n; i++)
		if ((line.p[i] < 0x20 && line.p[i] != '\t') || line.p[i] == 0x7f)
			return err_set(
				err, -EINVAL, "contains the control character 0x%02x", line.p[i]);
	return 0;
}

/* A '#' begins a comment at the start of a line and, in most forms, after a blank. */
static struct slice cut_comment(struct conf *c, struct slice line)
{
	line = slice_trim(line);
	c->comment = slice_of(NULL, 0);
	for (size_t i = 0; i < line.n; i++) {
		if (line.p[i] != '#' ||
			(i > 0 && (c->form->has_inner_hash || !is_blank(line.p[i - 1]))))
			continue;
		c->comment = slice_trim(slice_of(line.p + i + 1, line.n - i - 1));
		return slice_trim(slice_of(line.p, i));
	}
	return line;
}

/* Returns 1 if the line belongs to the caller, 0 if it is the first or the last one. */
static int take_frame(struct conf *c, struct slice line, struct err *err)
{
	if (c->where == CONF_BEHIND)
		return err_set(err, -EINVAL, "unexpected text after 'end'");
	if (c->where == CONF_BEFORE) {
		c->where = CONF_INSIDE;
		c->is_second = c->form->second && slice_eq_str(line, c->form->second);
		if (c->is_second)
			return 0;
		return slice_eq_str(line, c->form->first)
			       ? 0
			       : err_set(err, -EINVAL, "%s must begin with the line '%s'",
					 c->form->what, c->form->first);
	}
	if (!slice_eq_str(line, "end"))
		return 1;
	c->where = CONF_BEHIND;
	return 0;
}

int conf_next(struct conf *c, struct slice *ret, struct err *err)
{
	while (c->rest.n > 0) {
		struct slice line = slice_next_line(&c->rest);
		int r;

		c->line++;
		r = check_bytes(c, line, err);
		if (r < 0)
			return r;
		line = cut_comment(c, line);
		r = line.n > 0 ? take_frame(c, line, err) : 0;
		if (r != 0) {
			*ret = line;
			return r;
		}
	}
	return c->where == CONF_BEHIND
		       ? 0
		       : err_set(err, -EINVAL,
				 "the line 'end' is missing: the file may be truncated");
}

int conf_fail(const struct conf *c, int r, struct err *err)
{
	return err_wrap(err, r, "%s: line %u", c->name, c->line);
}

struct slice conf_word(struct slice *s)
{
	size_t n = 0;
	struct slice word;

	*s = slice_trim(*s);
	while (n < s->n && !is_blank(s->p[n]))
		n++;
	word = slice_of(s->p, n);
	*s = slice_trim(slice_of(s->p + n, s->n - n));
	return word;
}
