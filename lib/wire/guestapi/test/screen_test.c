/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "lib/wire/guestapi/screen.h"
#include "lib/base/mem.h"

#define START "\033[0m\033[H\033[2J"

/* What a replay of `in` shows, and what the terminal of somebody who comes then is told first. */
struct row {
	const char *name, *in, *shown, *start;
};

static const struct row rows[] = {
	{"text", "hello\r\n", "hello\r\n", START},
	{"colours", "\033[31mred\033[0m", "\033[31mred\033[0m", START},
	{"other screen", "\033[?1049h", "\033[?1049h", START "\033[?1049h\033[H\033[2J"},
	{"and back", "\033[?1049h\033[?1049l", "\033[?1049h\033[?1049l", START},
	{"hidden cursor", "\033[?25l", "\033[?25l", START "\033[?25l"},
	{"two at once", "\033[?1000;1006h", "\033[?1000;1006h", START "\033[?1000h\033[?1006h"},
	{"unknown mode", "\033[?9999h", "\033[?9999h", START},
	{"a mode that is not private", "\033[25l", "\033[25l", START},
	{"keypad", "\033=", "\033=", START "\033="},
	{"reset", "\033=\033[?25l\033c", "\033=\033[?25l\033c", START},
	{"soft reset", "\033[?2004h\033[!p", "\033[?2004h\033[!p", START},
	{"keyboard", "\033[>1u\033[>3u\033[<u", "\033[>1u\033[>3u\033[<u", START "\033[>1u"},
	{"popped too often", "\033[>1u\033[<9u", "\033[>1u\033[<9u", START},
	/* What makes a terminal answer is not said twice. */
	{"cursor report", "a\033[6nb", "ab", START},
	{"device", "a\033[cb\033[>cc\033[=cd", "abcd", START},
	{"identify", "a\033Zb", "ab", START},
	{"mode report", "a\033[?2026$pb", "ab", START},
	{"version", "a\033[>qb", "ab", START},
	{"cursor shape is no question", "a\033[2 qb", "a\033[2 qb", START},
	{"keyboard report", "a\033[?ub", "ab", START},
	{"restore cursor is no question", "a\033[ub", "a\033[ub", START},
	{"window sizes", "a\033[18tb\033[22;0tc", "ab\033[22;0tc", START},
	{"colour report", "a\033]11;?\033\\b\033]10;?\007c", "abc", START},
	{"title", "\033]0;name\007x", "\033]0;name\007x", START},
	{"clipboard", "a\033]52;c;aGk=\007b", "ab", START},
	{"capability", "a\033P+q544e\033\\b", "ab", START},
	{"sixel", "a\033Pq#0\033\\b", "a\033Pq#0\033\\b", START},
	{"picture", "a\033_Gi=1;AA\033\\b", "ab", START},
	/* Cut in the middle: it goes on where the replay begins. */
	{"half", "a\033[3", "a", START "\033[3"},
	{"half string", "a\033]0;na", "a", START "\033]0;na"},
	{"cancelled", "a\033[3\030b", "ab", START},
	{"begun anew", "\033[3\033[1m", "\033[3\033[1m", START},
};

static char *text_of(struct bufq *q)
{
	size_t n = bufq_len(q);
	char *s = xcalloc(n + 1, 1);

	assert_int_equal(bufq_take(q, s, n), n);
	return s;
}

static void check(const struct row *r, size_t step)
{
	struct screen s = {0}, t = {0};
	AUTO_FREE char *shown = NULL;
	AUTO_FREE char *start = NULL;
	struct bufq q;
	size_t n = strlen(r->in);

	bufq_init(&q, 4096);
	for (size_t i = 0; i < n; i += step) {
		screen_replay(&s, slice_of(r->in + i, MIN(step, n - i)), &q);
		screen_track(&t, slice_of(r->in + i, MIN(step, n - i)));
	}
	shown = text_of(&q);
	screen_put_start(&t, &q);
	start = text_of(&q);
	if (strcmp(shown, r->shown) || strcmp(start, r->start))
		fail_msg("%s, step %zu: shown \"%s\", start \"%s\"", r->name, step, shown + 0,
			start + 0);
	bufq_done(&q);
}

static void test_rows(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t step = 1; step <= strlen(rows[i].in); step++)
			check(&rows[i], step);
}

/* Longer than what is held: a title passes whole, the clipboard is left out whole. */
static void test_long_strings(void **state)
{
	static const struct {
		const char *head;
		bool shown;
	} kinds[] = {{"\033]0;", true}, {"\033]52;c;", false}, {"\033[", true}};
	AUTO_FREE char *body = xcalloc(1, 4 * SCREEN_MAX_SEQ + 1);

	memset(body, '1', 4 * SCREEN_MAX_SEQ);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		AUTO_FREE char *in = xasprintf("a%s%s\007b", kinds[i].head, body);
		AUTO_FREE char *out = NULL;
		struct screen s = {0};
		struct bufq q;

		bufq_init(&q, 8192);
		screen_replay(&s, slice_from_str(in), &q);
		out = text_of(&q);
		assert_string_equal(out, kinds[i].shown ? in : "ab");
		bufq_done(&q);
	}
}

static void test_undo(void **state)
{
	AUTO_FREE char *text = NULL;
	struct screen s = {0};
	struct bufq q;

	bufq_init(&q, SCREEN_MAX_START);
	screen_track(&s, slice_from_str("\033[?1049h\033[?25l\033[>1u\033=\033[3"));
	screen_put_undo(&s, &q);
	text = text_of(&q);
	assert_string_equal(text, "\030\033[<1u\033>\033[?25h\033[?1049l\033[0m");
	bufq_done(&q);
}

/* ESC NUL begins no string: the mode change after it is undone. */
static void test_escape_nul_hides_nothing(void **state)
{
	static const char in[] = "\033\0\033[?25l";
	AUTO_FREE char *text = NULL;
	struct screen s = {0};
	struct bufq q;

	bufq_init(&q, SCREEN_MAX_START);
	screen_track(&s, slice_of(in, sizeof(in) - 1));
	screen_put_undo(&s, &q);
	text = text_of(&q);
	assert_string_equal(text, "\033[?25h\033[0m");
	bufq_done(&q);
}

/* Everything on at once stays within what is promised. */
static void test_start_is_bounded(void **state)
{
	struct screen s = {.keypad = true, .changed = ~0u, .n_keys = SCREEN_KEYS};
	struct bufq q;

	for (size_t i = 0; i < SCREEN_KEYS; i++)
		s.keys[i] = 0xffff;
	s.n_seq = SCREEN_MAX_SEQ;
	bufq_init(&q, SCREEN_MAX_START);
	screen_put_start(&s, &q);
	assert_true(bufq_space(&q) > 0);
	bufq_done(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_long_strings),
		cmocka_unit_test(test_undo),
		cmocka_unit_test(test_escape_nul_hides_nothing),
		cmocka_unit_test(test_start_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
