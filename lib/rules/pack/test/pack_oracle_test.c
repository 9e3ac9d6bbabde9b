/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random packs against a naive matcher that knows only what a single segment matches: every path
 * of up to five segments over a small alphabet is a request, and the set of requests of a row is
 * found by trying. Two rows compete if they share a request and neither set is within the other.
 * The argument is the number of packs.
 */
#include "lib/rules/pack/pack_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/base/text/star.h"
#include "lib/rules/pack/pack_match.h"
#include "lib/rules/pack/pack_path.h"

#define MAX_LEN 5
#define MAX_REQUESTS 32768
#define MAX_ROWS 4
#define WORD_LEN 16

/* The last word is a slash at the end. 8, z and @z are in no row. */
static const char *const alphabet[] = {"a", "@a", "@z", "7", "8", "z", "y%2Fz", ""};
#define N_WORDS (ARRAY_LEN(alphabet) - 1)

static char requests[MAX_REQUESTS][MAX_LEN * WORD_LEN];
static size_t n_requests;
static uint64_t seed = 1, rounds = 250;

static unsigned draw(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 33) % n;
}

static void list_requests(char *text, size_t len)
{
	size_t n = strlen(text);

	for (size_t i = 0; i <= N_WORDS; i++) {
		(void)snprintf(text + n, MAX_LEN * WORD_LEN - n, "/%s", alphabet[i]);
		assert_true(n_requests < MAX_REQUESTS);
		memcpy(requests[n_requests++], text, MAX_LEN * WORD_LEN);
		if (i < N_WORDS && len + 1 < MAX_LEN)
			list_requests(text, len + 1);
		text[n] = '\0';
	}
}

/* ---- the naive matcher: texts of rows and requests ---- */

static size_t word_len(const char *s)
{
	size_t n = 0;

	while (s[n] && (s[n] != '/' || (n > 0 && s[n + 1] == '}')))
		n++;
	return n;
}

static bool naive_word(const char *row, size_t n, const char *word, size_t m)
{
	bool coded = m == 5; /* y%2Fz */

	if (row[0] == '@' && row[1] == '{')
		return *word == '@';
	if (row[0] != '{' && row[0] != '*')
		return n == m && strncmp(row, word, n) == 0;
	if (row[n - 2] == '#')
		return m == 1 && strchr("78", *word);
	return m > 0 && (!coded || (n > 2 && row[n - 2] == '/'));
}

/* Both texts begin with a slash or are over. */
static bool naive_match(const char *row, const char *req)
{
	size_t n, m;

	if (!*row || !*req)
		return !*row && !*req;
	n = word_len(++row);
	m = word_len(++req);
	if (!naive_word(row, n, req, m))
		return false;
	if (n >= 2 && strstr(row, "**") && strstr(row, "**") < row + n &&
		naive_match(row - 1, req + m))
		return true;
	return naive_match(row + n, req + m);
}

/* ---- random packs ---- */

static int draw_word(char *at, size_t i)
{
	switch (draw(9)) {
	case 6:
		return sprintf(at, "@{a%zu}", i);
	case 7:
		return sprintf(at, "@a");
	case 4:
		return sprintf(at, "{n%zu#}", i);
	case 0:
	case 1:
		return sprintf(at, "a");
	case 2:
		return sprintf(at, "7");
	case 3:
		return sprintf(at, "{p%zu}", i);
	}
	return sprintf(at, "{c%zu/}", i);
}

static void draw_path(char *ret)
{
	size_t n = 1 + draw(4), many = draw(3) ? n : draw((unsigned)n);
	bool named = draw(2);
	char *at = ret;

	for (size_t i = 0; i < n; i++) {
		at += sprintf(at, "/");
		if (i == many && (i + 1 == n || named))
			at += sprintf(at, named ? "{m**}" : "**");
		else if (i + 1 == n && i > 0 && draw(8) == 0)
			break; /* a slash at the end */
		else
			at += draw_word(at, i);
	}
}

/* Another path with one segment changed: such rows meet far more often than two random ones. */
static void change_path(char *ret, const char *from)
{
	size_t n = 0, at = 0, i = 0;

	for (const char *c = from; *c; c += 1 + word_len(c + 1))
		n++;
	for (at = draw((unsigned)n); at > 0; at--)
		i += 1 + word_len(from + i + 1);
	memcpy(ret, from, i + 1);
	(void)sprintf(ret + i + 1 + draw_word(ret + i + 1, 9), "%s",
		from + i + 1 + word_len(from + i + 1));
}

struct rows {
	char path[MAX_ROWS][64];
	bool *matches[MAX_ROWS]; /* by request */
	size_t n;
};

static void draw_rows(struct rows *rows, struct pack *p)
{
	static const struct pack_path none = {0};

	*rows = (struct rows){.n = 0};
	for (size_t want = 2 + draw(MAX_ROWS - 1); rows->n < want;) {
		char *path = rows->path[rows->n];
		struct pack_row *row = &p->row[rows->n];

		if (rows->n > 0 && draw(3))
			change_path(path, rows->path[rows->n - 1]);
		else
			draw_path(path);
		*row = (struct pack_row){
			.method = slice_from_str("GET"), .line = (unsigned)rows->n + 1};
		if (pack_path_parse(slice_from_str(path), &none, &row->path, NULL) < 0)
			continue;
		rows->matches[rows->n] = xcalloc(n_requests, sizeof(bool));
		for (size_t i = 0; i < n_requests; i++)
			rows->matches[rows->n][i] = naive_match(path, requests[i]);
		rows->n++;
	}
	p->n_rows = rows->n;
}

static bool is_subset(const bool *a, const bool *b)
{
	for (size_t i = 0; i < n_requests; i++)
		if (a[i] && !b[i])
			return false;
	return true;
}

static bool compete(const bool *a, const bool *b)
{
	bool meet = false;

	for (size_t i = 0; i < n_requests; i++)
		meet = meet || (a[i] && b[i]);
	return meet && is_subset(a, b) == is_subset(b, a);
}

static bool any_compete(const struct rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		for (size_t k = i + 1; k < rows->n; k++)
			if (compete(rows->matches[i], rows->matches[k]))
				return true;
	return false;
}

/* The row whose set is within the sets of all others that match; 0: none. */
static unsigned naive_best(const struct rows *rows, size_t request)
{
	size_t best = rows->n;

	for (size_t i = 0; i < rows->n; i++)
		if (rows->matches[i][request] &&
			(best == rows->n || is_subset(rows->matches[i], rows->matches[best])))
			best = i;
	return best < rows->n ? (unsigned)best + 1 : 0;
}

static void compare_requests(const struct rows *rows, const struct pack *p)
{
	for (size_t i = 0; i < n_requests; i++) {
		struct pack_request req = {.method = slice_from_str("GET"),
			.path = slice_from_str(requests[i]),
			.odd = CANON_ODD_CODED_SLASH};
		unsigned expected = naive_best(rows, i);
		struct pack_effect e;

		pack_match(p, &req, &e);
		if (expected != (e.row ? e.row->line : 0))
			fail_msg("%s: row %u, naive %u (%s, %s, %s, %s)", requests[i],
				e.row ? e.row->line : 0, expected, rows->path[0], rows->path[1],
				rows->path[2], rows->path[3]);
	}
}

static void random_packs_agree(void **state)
{
	size_t n_clash = 0, n_fine = 0, n = rounds;

	for (size_t round = 0; round < n; round++) {
		struct pack_row row[MAX_ROWS];
		struct pack p = {.row = row, .n_objects = 1};
		struct rows rows;
		struct err err = {0};
		bool clash;

		p.object[0] = (struct pack_object){slice_from_str("all"), slice_from_str("all")};
		draw_rows(&rows, &p);
		clash = pack_sort_rows(&p, &err) < 0;
		if (clash != any_compete(&rows))
			fail_msg("%s: %s, %s, %s, %s", clash ? err.text : "no clash", rows.path[0],
				rows.path[1], rows.path[2], rows.path[3]);
		if (!clash)
			compare_requests(&rows, &p);
		n_clash += clash;
		n_fine += !clash;
		for (size_t i = 0; i < rows.n; i++) {
			free(rows.matches[i]);
			pack_path_done(&row[i].path);
		}
	}
	assert_true(n_clash > n / 10 && n_fine > n / 10);
}

/* ---- patterns of conditions ---- */

static bool naive_glob(const char *glob, const char *text)
{
	if (!*glob)
		return !*text;
	if (*glob == '*')
		return naive_glob(glob + 1, text) || (*text && naive_glob(glob, text + 1));
	return *glob == *text && naive_glob(glob + 1, text + 1);
}

static void draw_glob(char ret[6])
{
	size_t n = draw(5);

	for (size_t i = 0; i < n; i++)
		ret[i] = "ab*"[draw(3)];
	ret[n] = '\0';
}

/* The texts of at most nine letters; the shortest that two patterns of four letters share has at
 * most eight. */
static void patterns_agree(void **state)
{
	for (unsigned round = 0; round < 2000; round++) {
		char a[6], b[6], text[10];
		bool meet = false;

		draw_glob(a);
		draw_glob(b);
		for (unsigned len = 0; len <= 8; len++)
			for (unsigned bits = 0; bits < 1u << len; bits++) {
				bool in_a, in_b;

				for (unsigned i = 0; i < len; i++)
					text[i] = bits >> i & 1 ? 'a' : 'b';
				text[len] = '\0';
				in_a = naive_glob(a, text);
				in_b = naive_glob(b, text);
				assert_int_equal(
					star_match(slice_from_str(a), slice_from_str(text), false),
					in_a);
				meet = meet || (in_a && in_b);
			}
		if (pack_glob_meets(slice_from_str(a), slice_from_str(b)) != meet)
			fail_msg("'%s' and '%s': %d", a, b, meet);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_packs_agree),
		cmocka_unit_test(patterns_agree),
	};
	char text[MAX_LEN * WORD_LEN] = "";

	if (argc > 1)
		rounds = strtoul(argv[1], NULL, 10);
	list_requests(text, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
