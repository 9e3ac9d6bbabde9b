/* SPDX-License-Identifier: Apache-2.0 */
/* First byte: which share of the rest is the old text. The output is plain text, and if nothing
 * had to be escaped, it makes the new text from the old one. */
#include <stdio.h>
#include <stdlib.h>
#include "lib/base/mem.h"
#include "lib/base/text/text.h"
#include "lib/rules/airlock/textdiff.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct text_sink {
	char *p;
	size_t n;
};

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void put_into(void *arg, const char *text, size_t n)
{
	struct text_sink *sink = arg;

	sink->p = xrealloc(sink->p, sink->n + n + 1);
	if (n)
		memcpy(sink->p + sink->n, text, n);
	sink->n += n;
	sink->p[sink->n] = '\0';
}

/* Newlines and tabs apart. */
static bool is_plain(struct slice s)
{
	while (s.n) {
		uint32_t v = 0;
		size_t n = text_character(s, &v);

		if (n == 0 || (!text_is_plain(v) && v != '\n' && v != '\t'))
			return false;
		s = slice_of(s.p + n, s.n - n);
	}
	return true;
}

static struct slice take_line(struct slice *rest)
{
	const uint8_t *end = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;

	return slice_take(rest, end ? (size_t)(end - rest->p) + 1 : rest->n);
}

/* Copies the old lines before a hunk. */
static void begin_hunk(const char *line, struct slice *old, size_t *at, struct text_sink *to)
{
	size_t from = 0, n = 1;

	must(sscanf(line, "@@ -%zu,%zu", &from, &n) >= 1);
	for (from -= n > 0; *at < from; (*at)++) {
		struct slice s = take_line(old);

		put_into(to, (const char *)s.p, s.n);
	}
}

static void apply_line(struct slice line, struct slice *old, size_t *at, struct text_sink *to)
{
	if (line.p[0] == '@') {
		begin_hunk((const char *)line.p, old, at, to);
	} else {
		if (line.p[0] != '+') {
			(void)take_line(old);
			(*at)++;
		}
		if (line.p[0] != '-')
			put_into(to, (const char *)line.p + 1, line.n - 1);
	}
}

/* Only for texts that end with a newline. */
static void apply_diff(struct slice diff, struct slice old, struct slice new)
{
	struct text_sink to = {0};
	size_t at = 0;

	(void)take_line(&diff);
	(void)take_line(&diff);
	while (diff.n)
		apply_line(take_line(&diff), &old, &at, &to);
	put_into(&to, (const char *)old.p, old.n);
	must(to.n == new.n && (!new.n || !memcmp(to.p, new.p, new.n)));
	free(to.p);
}

static bool is_closed(struct slice s)
{
	return is_plain(s) && (!s.n || s.p[s.n - 1] == '\n');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice rest = slice_of(data + 1, size ? size - 1 : 0);
	struct textdiff_side a = {"a", slice_take(&rest, size ? rest.n * data[0] / 255 : 0)},
			     b = {"b", rest};
	struct text_sink sink = {0};
	enum textdiff_result r = textdiff_write(&a, &b, put_into, &sink);

	must((r == TEXTDIFF_SAME) == slice_eq(a.text, b.text));
	must((r == TEXTDIFF_SAME) == (sink.n == 0));
	must(is_plain(slice_of(sink.p, sink.n)));
	/* An escape begins with '<', and so may a line. */
	if (r == TEXTDIFF_WRITTEN && is_closed(a.text) && is_closed(b.text) &&
		!strstr(sink.p, "<U+"))
		apply_diff(slice_of(sink.p, sink.n), a.text, b.text);
	free(sink.p);
	return 0;
}
