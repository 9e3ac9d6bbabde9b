/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of git's config.c. Texts that versions of git read differently are rejected: bare
 * carriage returns, NUL, tabs between the words of an unquoted value, [a.b "c"]. */
#include <errno.h>
#include "gitconfig_internal.h"
#include "lib/base/mem.h"

struct config_reader {
	struct slice text;
	size_t at;
	unsigned line;
	struct gitconfig *to;
	struct gitconfig_entry section; /* its section and sub are those of the next entry */
	const char *problem;
};

#define END_OF_TEXT (-1)

/* The next byte; "\r\n" counts as "\n". */
static int next_byte(struct config_reader *r)
{
	int c;

	if (r->at == r->text.n)
		return END_OF_TEXT;
	c = r->text.p[r->at++];
	if (c == '\r' && r->at < r->text.n && r->text.p[r->at] == '\n')
		c = r->text.p[r->at++];
	if (c == '\n')
		r->line++;
	return c;
}

static bool is_blank(int c)
{
	return c == ' ' || c == '\t';
}

static bool is_end_of_line(int c)
{
	return c == '\n' || c == END_OF_TEXT;
}

static bool is_letter(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_key_byte(int c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || c == '-';
}

static uint8_t lower_byte(int c)
{
	return (uint8_t)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* Each byte that is kept comes from a byte of the text or more, so there is always room. */
static void keep_byte(struct config_reader *r, int c)
{
	r->to->bytes[r->to->n_bytes++] = (uint8_t)c;
}

static struct slice kept_since(const struct config_reader *r, size_t begin)
{
	return slice_of(r->to->bytes + begin, r->to->n_bytes - begin);
}

static int bad_text(struct config_reader *r, const char *problem)
{
	r->problem = problem;
	return -EBADMSG;
}

static int add_entry(struct config_reader *r, const struct gitconfig_entry *e)
{
	if (r->to->n == GITCONFIG_MAX_ENTRIES) {
		r->problem = "too many entries";
		return -E2BIG;
	}
	r->to->entry[r->to->n++] = *e;
	return 0;
}

/* After '#' or ';' at the beginning of a line, which are part of it. */
static int read_comment(struct config_reader *r, bool whole_line)
{
	size_t begin = r->to->n_bytes;
	struct gitconfig_entry e = r->section;
	int c;

	for (c = r->text.p[r->at - 1]; !is_end_of_line(c); c = next_byte(r))
		keep_byte(r, c);
	e.value = kept_since(r, begin);
	return whole_line ? add_entry(r, &e) : 0;
}

/* The escapes of a quoted subsection: a backslash and any byte is that byte. */
static int read_subsection(struct config_reader *r)
{
	size_t begin = r->to->n_bytes;
	int c;

	for (c = next_byte(r); c != '"'; c = next_byte(r)) {
		if (c == '\\')
			c = next_byte(r);
		if (is_end_of_line(c))
			return bad_text(r, "unterminated subsection");
		keep_byte(r, c);
	}
	if (next_byte(r) != ']')
		return bad_text(r, "missing ']'");
	r->section.sub = kept_since(r, begin);
	r->section.has_sub = true;
	return 0;
}

/* [name.sub], the old form: a subsection in lower case. */
static int divide_section(struct config_reader *r, struct slice name)
{
	const uint8_t *dot = memchr(name.p, '.', name.n);

	r->section.section = name;
	if (dot) {
		r->section.section = slice_take(&name, (size_t)(dot - name.p));
		r->section.sub = slice_of(name.p + 1, name.n - 1);
		r->section.has_sub = true;
	}
	if (!r->section.section.n || (dot && !r->section.sub.n))
		return bad_text(r, "empty section name");
	return 0;
}

/* After '['. */
static int read_section(struct config_reader *r)
{
	size_t begin = r->to->n_bytes;
	struct slice name;
	int c, result;

	r->section = (struct gitconfig_entry){0};
	for (c = next_byte(r); is_key_byte(c) || c == '.'; c = next_byte(r))
		keep_byte(r, lower_byte(c));
	name = kept_since(r, begin);
	result = divide_section(r, name);
	if (result < 0 || c == ']')
		return result;
	if (!is_blank(c) || r->section.has_sub)
		return bad_text(r, "invalid section name");
	while (is_blank(c))
		c = next_byte(r);
	return c == '"' ? read_subsection(r) : bad_text(r, "invalid section name");
}

/* After a backslash in a value. A continued line adds nothing. */
static int read_escape(struct config_reader *r)
{
	int c = next_byte(r);

	switch (c) {
	case '\n':
		return r->at < r->text.n ? 0 : bad_text(r, "backslash at the end");
	case 't':
		keep_byte(r, '\t');
		return 0;
	case 'n':
		keep_byte(r, '\n');
		return 0;
	case 'b':
		keep_byte(r, '\b');
		return 0;
	case '\\':
	case '"':
		keep_byte(r, c);
		return 0;
	default:
		return bad_text(r, "invalid escape in a value");
	}
}

struct value_state {
	size_t begin, spaces;
	bool is_quoted, has_tab; /* a tab among the spaces */
};

/* Blanks inside an unquoted value are kept, those at its ends are not. */
static int flush_spaces(struct config_reader *r, struct value_state *v)
{
	if (v->spaces && v->has_tab)
		return bad_text(r, "unquoted tab in a value");
	for (; v->spaces; v->spaces--)
		keep_byte(r, ' ');
	v->has_tab = false;
	return 0;
}

static int take_value_byte(struct config_reader *r, struct value_state *v, int c)
{
	int result;

	if (is_blank(c) && !v->is_quoted) {
		v->spaces += r->to->n_bytes > v->begin;
		v->has_tab |= c == '\t' && v->spaces;
		return 0;
	}
	result = flush_spaces(r, v);
	if (result < 0)
		return result;
	if (c == '\\')
		return read_escape(r);
	if (c == '"')
		v->is_quoted = !v->is_quoted;
	else
		keep_byte(r, c);
	return 0;
}

/* After '='. */
static int read_value(struct config_reader *r, struct slice *ret)
{
	struct value_state v = {.begin = r->to->n_bytes};
	int c, result;

	for (c = next_byte(r); !is_end_of_line(c); c = next_byte(r)) {
		if (!v.is_quoted && (c == '#' || c == ';')) {
			*ret = kept_since(r, v.begin);
			return read_comment(r, false);
		}
		result = take_value_byte(r, &v, c);
		if (result < 0)
			return result;
	}
	if (v.is_quoted)
		return bad_text(r, "unterminated quote");
	*ret = kept_since(r, v.begin);
	return 0;
}

/* `c` is the first byte of the key. */
static int read_entry(struct config_reader *r, int c)
{
	struct gitconfig_entry e = r->section;
	size_t begin = r->to->n_bytes;
	int result = 0;

	if (!e.section.n)
		return bad_text(r, "a key outside of a section");
	for (; is_key_byte(c); c = next_byte(r))
		keep_byte(r, lower_byte(c));
	e.key = kept_since(r, begin);
	while (is_blank(c))
		c = next_byte(r);
	if (c == '=') {
		e.has_value = true;
		result = read_value(r, &e.value);
	} else if (!is_end_of_line(c)) {
		return bad_text(r, "invalid key");
	}
	return result < 0 ? result : add_entry(r, &e);
}

/* What begins at a byte that is not blank. */
static int read_item(struct config_reader *r, int c, bool at_start)
{
	if (c == '#' || c == ';')
		return read_comment(r, at_start);
	if (c == '[')
		return read_section(r);
	return is_letter(c) ? read_entry(r, c) : bad_text(r, "invalid line");
}

static int read_config(struct config_reader *r)
{
	bool at_start = true; /* nothing but blanks on this line so far */
	int c, result = 0;

	for (c = next_byte(r); c != END_OF_TEXT; c = next_byte(r)) {
		if (c == '\n') {
			at_start = true;
		} else if (!is_blank(c)) {
			result = read_item(r, c, at_start);
			/* A section header leaves the rest of its line; the others end with it. */
			at_start = c != '[';
		}
		if (result < 0)
			return result;
	}
	return 0;
}

/* Bytes that are valid nowhere: NUL, and a carriage return without a newline. */
static bool has_odd_bytes(struct slice text)
{
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] == '\0' ||
			(text.p[i] == '\r' && (i + 1 == text.n || text.p[i + 1] != '\n')))
			return true;
	return false;
}

int gitconfig_parse(struct slice text, struct gitconfig *ret, struct err *err)
{
	static const char mark[] = "\xef\xbb\xbf";
	struct config_reader r = {.text = text, .line = 1, .to = ret};
	int result;

	if (text.n > GITCONFIG_MAX_BYTES)
		return err_set(err, -E2BIG, "larger than %d bytes", GITCONFIG_MAX_BYTES);
	if (has_odd_bytes(text))
		return err_set(err, -EBADMSG, "NUL or bare carriage return");
	if (text.n >= 3 && !memcmp(text.p, mark, 3))
		r.at = 3;
	ret->bytes = xmalloc(text.n + 1);
	/* An entry or comment and its newline are two bytes or more. */
	ret->entry = xcalloc(MIN(text.n / 2 + 2, GITCONFIG_MAX_ENTRIES), sizeof(*ret->entry));
	result = read_config(&r);
	return result < 0 ? err_set(err, result, "line %u: %s", r.line, r.problem) : 0;
}

void gitconfig_done(struct gitconfig *c)
{
	free(c->bytes);
	free(c->entry);
	*c = (struct gitconfig){0};
}
