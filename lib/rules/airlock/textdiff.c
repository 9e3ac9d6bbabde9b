/* SPDX-License-Identifier: Apache-2.0 */
#include "textdiff.h"

#include <stdio.h>
#include "lib/base/mem.h"
#include "lib/base/text/text.h"

#define CONTEXT 3

struct diff_line {
	struct slice text; /* with its newline, so that a missing one is a difference */
	uint64_t hash;
};

struct diff_text {
	struct diff_line *line;
	bool *is_changed;
	size_t n;
};

struct diff_out {
	textdiff_put *put;
	void *arg;
};

/* ---- output ---- */

static void put_string(const struct diff_out *out, const char *s)
{
	out->put(out->arg, s, strlen(s));
}

/* Plain runs as they are, everything else escaped. */
static void put_escaped(const struct diff_out *out, struct slice s, bool takes_tab)
{
	size_t run = 0;

	while (run < s.n) {
		struct slice rest = slice_of(s.p + run, s.n - run);
		bool is_ascii = s.p[run] >= 0x20 && s.p[run] < 0x7f;
		uint32_t v = s.p[run];
		size_t n = is_ascii ? 1 : text_character(rest, &v);
		char escape[TEXT_ESCAPE_SIZE];

		if (n && (is_ascii || text_is_visible(v) || (v == '\t' && takes_tab))) {
			run += n;
			continue;
		}
		out->put(out->arg, (const char *)s.p, run);
		n = text_escape(rest, escape);
		put_string(out, escape);
		s = slice_of(rest.p + n, rest.n - n);
		run = 0;
	}
	out->put(out->arg, (const char *)s.p, run);
}

static void put_name(const struct diff_out *out, const char *name)
{
	put_escaped(out, slice_from_str(name), false);
}

static void put_line(const struct diff_out *out, const char *mark, struct slice text)
{
	bool ends = text.n && text.p[text.n - 1] == '\n';

	put_string(out, mark);
	put_escaped(out, slice_of(text.p, text.n - (ends ? 1 : 0)), true);
	put_string(out, ends ? "\n" : "\n\\ No newline at end of file\n");
}

/* "binary files OLD and NEW differ" */
static void put_verdict(const struct diff_out *out, const struct textdiff_side *old,
	const struct textdiff_side *new, const char *head, const char *tail)
{
	put_string(out, head);
	put_name(out, old->name);
	put_string(out, " and ");
	put_name(out, new->name);
	put_string(out, tail);
}

/* ---- lines ---- */

/* FNV-1a; equal hashes are followed by a comparison of the bytes. */
static uint64_t hash_bytes(struct slice s)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < s.n; i++)
		h = (h ^ s.p[i]) * 0x100000001b3u;
	return h;
}

static size_t count_lines(struct slice text)
{
	size_t n = text.n && text.p[text.n - 1] != '\n';

	for (size_t i = 0; i < text.n; i++)
		n += text.p[i] == '\n';
	return n;
}

static void split_lines(struct slice text, struct diff_text *ret)
{
	ret->n = count_lines(text);
	ret->line = xcalloc(ret->n + 1, sizeof(*ret->line));
	ret->is_changed = xcalloc(ret->n + 1, sizeof(*ret->is_changed));
	for (size_t i = 0; i < ret->n; i++) {
		const uint8_t *end = memchr(text.p, '\n', text.n);

		ret->line[i].text = slice_take(&text, end ? (size_t)(end - text.p) + 1 : text.n);
		ret->line[i].hash = hash_bytes(ret->line[i].text);
	}
}

static void free_lines(struct diff_text *t)
{
	free(t->line);
	free(t->is_changed);
}

static bool is_same_line(const struct diff_line *a, const struct diff_line *b)
{
	return a->hash == b->hash && slice_eq(a->text, b->text);
}

/* ---- the algorithm of Myers (1986), greedy ---- */

/* The part of both texts between the common beginning and the common end. */
struct diff_part {
	struct diff_text *a, *b;
	long from, n, m; /* lines of a and b from `from` on */
};

static bool matches_at(const struct diff_part *p, long x, long y)
{
	return x < p->n && y < p->m &&
	       is_same_line(&p->a->line[p->from + x], &p->b->line[p->from + y]);
}

/* reach[k + d] of round d: how far down a the furthest path on diagonal k = x - y comes with d
 * edits. Round d has 2 d + 1 of them, at rounds + d * d. */
static int32_t *round_of(int32_t *rounds, long d)
{
	return rounds + d * d + d;
}

/* Whether the best path to diagonal k of round d comes from k + 1: a line of b is added. */
static bool comes_from_above(const int32_t *before, long d, long k)
{
	return k == -d || (k != d && before[k - 1] < before[k + 1]);
}

/* One round; true when the end was reached. */
static bool run_round(const struct diff_part *p, int32_t *rounds, long d)
{
	int32_t *now = round_of(rounds, d);
	const int32_t *before = d ? round_of(rounds, d - 1) : NULL;

	for (long k = -d; k <= d; k += 2) {
		long x = 0;

		if (d)
			x = comes_from_above(before, d, k) ? before[k + 1] : before[k - 1] + 1;
		while (matches_at(p, x, x - k))
			x++;
		now[k] = (int32_t)x;
		if (x >= p->n && x - k >= p->m)
			return true;
	}
	return false;
}

/* Walks back from the end and marks the lines that a path removes and adds. */
static void mark_path(const struct diff_part *p, int32_t *rounds, long d)
{
	long x = p->n, y = p->m;

	for (; d > 0; d--) {
		const int32_t *before = round_of(rounds, d - 1);
		long k = x - y;
		bool above = comes_from_above(before, d, k);
		long from = above ? before[k + 1] : before[k - 1];

		if (above)
			p->b->is_changed[p->from + from - k - 1] = true;
		else
			p->a->is_changed[p->from + from] = true;
		x = from;
		y = from - (above ? k + 1 : k - 1);
	}
}

static void mark_all(const struct diff_part *p)
{
	for (long i = 0; i < p->n; i++)
		p->a->is_changed[p->from + i] = true;
	for (long i = 0; i < p->m; i++)
		p->b->is_changed[p->from + i] = true;
}

static struct diff_part find_part(struct diff_text *a, struct diff_text *b)
{
	struct diff_part p = {.a = a, .b = b, .n = (long)a->n, .m = (long)b->n};

	while (matches_at(&p, 0, 0)) {
		p.from++;
		p.n--;
		p.m--;
	}
	while (p.n && p.m && matches_at(&p, p.n - 1, p.m - 1)) {
		p.n--;
		p.m--;
	}
	return p;
}

static void mark_changes(struct diff_text *a, struct diff_text *b)
{
	struct diff_part p = find_part(a, b);
	long max = MIN(p.n + p.m, TEXTDIFF_MAX_EDITS), d = 0;
	/* up to a MiB, not cleared: a round reads only what the one before it has written */
	AUTO_FREE int32_t *rounds = xmalloc((size_t)((max + 1) * (max + 1)) * sizeof(*rounds));

	while (d <= max && !run_round(&p, rounds, d))
		d++;
	if (d <= max)
		mark_path(&p, rounds, d);
	else
		mark_all(&p);
}

/* ---- hunks ---- */

struct diff_at {
	size_t i, j; /* lines of a and b */
};

/* Skips lines that both texts have. Returns the end after the last change. */
static struct diff_at next_change(
	const struct diff_text *a, const struct diff_text *b, struct diff_at at)
{
	while (at.i < a->n && at.j < b->n && !a->is_changed[at.i] && !b->is_changed[at.j]) {
		at.i++;
		at.j++;
	}
	return at;
}

static struct diff_at skip_change(
	const struct diff_text *a, const struct diff_text *b, struct diff_at at)
{
	while (at.i < a->n && a->is_changed[at.i])
		at.i++;
	while (at.j < b->n && b->is_changed[at.j])
		at.j++;
	return at;
}

/* "12,3"; one line is "12", none is "11,0", the line before. */
static void put_range(const struct diff_out *out, const char *mark, size_t from, size_t to)
{
	char buf[64];

	if (to - from == 1)
		(void)snprintf(buf, sizeof(buf), "%s%zu", mark, from + 1);
	else
		(void)snprintf(buf, sizeof(buf), "%s%zu,%zu", mark, to > from ? from + 1 : from,
			to - from);
	put_string(out, buf);
}

/* The lines from `at` to `end`: in each change what is removed first. */
static void put_lines(const struct diff_out *out, const struct diff_text *a,
	const struct diff_text *b, struct diff_at at, struct diff_at end)
{
	while (at.i < end.i || at.j < end.j) {
		if (at.i < end.i && a->is_changed[at.i]) {
			put_line(out, "-", a->line[at.i++].text);
		} else if (at.j < end.j && b->is_changed[at.j]) {
			put_line(out, "+", b->line[at.j++].text);
		} else {
			put_line(out, " ", a->line[at.i++].text);
			at.j++;
		}
	}
}

/* Where the hunk with the change at `at` ends: changes with at most twice the context between them
 * are in the same one. */
static struct diff_at end_of_hunk(
	const struct diff_text *a, const struct diff_text *b, struct diff_at at)
{
	for (;;) {
		struct diff_at end = skip_change(a, b, at);

		at = next_change(a, b, end);
		if ((at.i == a->n && at.j == b->n) || at.i - end.i > 2 * (size_t)CONTEXT) {
			size_t n = MIN(at.i - end.i, (size_t)CONTEXT);

			return (struct diff_at){end.i + n, end.j + n};
		}
	}
}

static void put_hunks(
	const struct diff_out *out, const struct diff_text *a, const struct diff_text *b)
{
	struct diff_at at = next_change(a, b, (struct diff_at){0});

	while (at.i < a->n || at.j < b->n) {
		size_t n = MIN(MIN(at.i, at.j), (size_t)CONTEXT);
		struct diff_at from = {at.i - n, at.j - n}, end = end_of_hunk(a, b, at);

		put_range(out, "@@ -", from.i, end.i);
		put_range(out, " +", from.j, end.j);
		put_string(out, " @@\n");
		put_lines(out, a, b, from, end);
		at = next_change(a, b, end);
	}
}

static bool has_nul(struct slice s)
{
	return s.n && memchr(s.p, '\0', s.n);
}

static bool is_too_large(struct slice s)
{
	return s.n > TEXTDIFF_MAX_BYTES || count_lines(s) > TEXTDIFF_MAX_LINES;
}

static void put_diff(const struct diff_out *out, const struct textdiff_side *old,
	const struct textdiff_side *new)
{
	CLEANUP(free_lines) struct diff_text a = {0}, b = {0};

	split_lines(old->text, &a);
	split_lines(new->text, &b);
	mark_changes(&a, &b);
	put_string(out, "--- ");
	put_name(out, old->name);
	put_string(out, "\n+++ ");
	put_name(out, new->name);
	put_string(out, "\n");
	put_hunks(out, &a, &b);
}

enum textdiff_result textdiff_write(const struct textdiff_side *old,
	const struct textdiff_side *new, textdiff_put *put, void *arg)
{
	struct diff_out out = {.put = put, .arg = arg};

	if (slice_eq(old->text, new->text))
		return TEXTDIFF_SAME;
	if (has_nul(old->text) || has_nul(new->text)) {
		put_verdict(&out, old, new, "binary files ", " differ\n");
		return TEXTDIFF_BINARY;
	}
	if (is_too_large(old->text) || is_too_large(new->text)) {
		put_verdict(&out, old, new, "files ", " differ: too large for a diff\n");
		return TEXTDIFF_TOO_LARGE;
	}
	put_diff(&out, old, new);
	return TEXTDIFF_WRITTEN;
}
