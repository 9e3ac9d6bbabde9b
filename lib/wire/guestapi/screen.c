/* SPDX-License-Identifier: Apache-2.0 */
#include "screen.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/mem.h"

#define ESC 0x1b
#define BEL 0x07
#define CAN 0x18
#define SUB 0x1a

enum { GROUND, ESCAPE, CSI, STRING, STRING_ESC, LONG, LONG_ESC };

/* Private modes that outlive a program's line of output; `on` is the default of a terminal. */
static const struct {
	uint16_t number;
	bool on;
} modes[] = {
	{47, false},
	{1047, false},
	{1049, false},
	{1, false},
	{7, true},
	{25, true},
	{1000, false},
	{1002, false},
	{1003, false},
	{1004, false},
	{1005, false},
	{1006, false},
	{1015, false},
	{1016, false},
	{2004, false},
};
#define N_OTHER_SCREEN 3 /* the first ones show another screen */

static_assert(ARRAY_LEN(modes) <= 32, "a bit each");

static void reset_modes(struct screen *s)
{
	s->changed = 0;
	s->keypad = false;
	s->n_keys = 0;
}

static void set_mode(struct screen *s, unsigned number, bool on)
{
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		if (modes[i].number != number)
			continue;
		if (on == modes[i].on)
			s->changed &= ~(1u << i);
		else
			s->changed |= 1u << i;
	}
}

/* The numbers of a CSI sequence from byte `at`, split by ';' (and ':'). */
static size_t numbers_screen(const struct screen *s, size_t at, unsigned *ret, size_t max)
{
	size_t n = 0;

	ret[0] = 0;
	for (; at + 1 < s->n_seq; at++) {
		uint8_t c = s->seq[at];

		if (c >= '0' && c <= '9' && ret[n] < 100000)
			ret[n] = ret[n] * 10 + (c - '0');
		else if (c == ';' && n + 1 < max)
			ret[++n] = 0;
	}
	return n + 1;
}

static void private_modes(struct screen *s, bool on)
{
	unsigned v[16];
	size_t n = numbers_screen(s, 3, v, ARRAY_LEN(v));

	for (size_t i = 0; i < n; i++)
		set_mode(s, v[i], on);
}

static void keyboard_screen(struct screen *s, uint8_t mark)
{
	unsigned v[2];

	(void)numbers_screen(s, 3, v, ARRAY_LEN(v));
	if (mark == '>' && s->n_keys < SCREEN_KEYS)
		s->keys[s->n_keys++] = (uint16_t)MIN(v[0], 0xffffu);
	else if (mark == '<')
		s->n_keys -= (uint8_t)MIN(v[0] ? v[0] : 1u, (unsigned)s->n_keys);
	else if (mark == '=' && s->n_keys)
		s->keys[s->n_keys - 1] = (uint16_t)MIN(v[0], 0xffffu);
}

/* A whole CSI sequence: ESC [ ... final. True when a terminal answers it. */
static bool take_csi(struct screen *s)
{
	uint8_t last = s->seq[s->n_seq - 1], mark = s->seq[2], mid = s->seq[s->n_seq - 2];

	if ((last == 'h' || last == 'l') && mark == '?')
		private_modes(s, last == 'h');
	if (last == 'u' && (mark == '>' || mark == '<' || mark == '='))
		keyboard_screen(s, mark);
	if (last == 'p' && mid == '!')
		reset_modes(s);
	switch (last) {
	case 'c': /* what are you */
	case 'n': /* where is the cursor, what is your state */
	case 'x':
		return true;
	case 'p': /* is this mode on */
		return mid == '$';
	case 'q': /* which version */
		return mark == '>';
	case 'u': /* which keyboard */
		return mark == '?';
	case 't': { /* sizes and titles */
		unsigned v[4];

		(void)numbers_screen(s, 2, v, ARRAY_LEN(v));
		return v[0] >= 11 && v[0] <= 21;
	}
	default:
		return false;
	}
}

/* A string sequence, whole or as far as it was collected. True if a replay omits it. */
static bool take_string(const struct screen *s)
{
	const char *p = (const char *)s->seq + 2;
	size_t n = s->n_seq - 2;

	if (s->seq[1] == ']') /* queries colors; the clipboard */
		return memmem(p, n, ";?", 2) || (n >= 3 && !memcmp(p, "52;", 3));
	if (s->seq[1] == 'P') /* queries settings and capabilities */
		return n >= 2 && (!memcmp(p, "$q", 2) || !memcmp(p, "+q", 2));
	return s->seq[1] == '_' && n >= 1 && p[0] == 'G'; /* pictures are answered */
}

/* ESC and one byte, with intermediate bytes before it. */
static bool take_escape(struct screen *s)
{
	uint8_t last = s->seq[s->n_seq - 1];

	if (s->n_seq > 2)
		return false;
	if (last == 'c')
		reset_modes(s);
	if (last == '=' || last == '>')
		s->keypad = last == '=';
	return last == 'Z';
}

static void give_screen(struct bufq *q, const uint8_t *p, size_t n)
{
	if (q && n)
		(void)bufq_put(q, slice_of(p, n));
}

static void end_sequence(struct screen *s, bool left_out, struct bufq *q)
{
	if (!left_out)
		give_screen(q, s->seq, s->n_seq);
	s->n_seq = 0;
	s->state = GROUND;
}

static void take_long(struct screen *s, uint8_t c, struct bufq *q)
{
	bool over = c == BEL || c == CAN || c == SUB || (s->state == LONG_ESC && c == '\\');

	if (!s->drop)
		give_screen(q, &c, 1);
	s->state = over ? GROUND : c == ESC ? LONG_ESC : LONG;
}

/* The sequence is longer than what is held: the rest passes, or is omitted with it. */
static void go_long(struct screen *s, uint8_t c, struct bufq *q)
{
	bool string = s->state == STRING || s->state == STRING_ESC;

	s->drop = string && take_string(s);
	if (!s->drop)
		give_screen(q, s->seq, s->n_seq);
	s->n_seq = 0;
	s->state = s->state == STRING_ESC ? LONG_ESC : string ? LONG : GROUND;
	if (string)
		take_long(s, c, q);
	else
		give_screen(q, &c, 1);
}

static void begin_screen(struct screen *s, uint8_t c)
{
	s->seq[0] = c;
	s->n_seq = 1;
	s->state = ESCAPE;
}

static void in_escape(struct screen *s, uint8_t c, struct bufq *q)
{
	if (c == '[' && s->n_seq == 2)
		s->state = CSI;
	else if (s->n_seq == 2 && c && strchr("]P_^X", c))
		s->state = STRING;
	else if (c >= 0x30 && c <= 0x7e)
		end_sequence(s, take_escape(s), q);
	else if (c < 0x20 || c > 0x7e)
		end_sequence(s, false, q);
}

static void in_csi(struct screen *s, uint8_t c, struct bufq *q)
{
	if (c >= 0x40 && c <= 0x7e)
		end_sequence(s, take_csi(s), q);
	else if (c > 0x7e)
		end_sequence(s, false, q);
}

static void in_string(struct screen *s, uint8_t c, struct bufq *q)
{
	if (c == BEL || (s->state == STRING_ESC && c == '\\'))
		end_sequence(s, take_string(s), q);
	else
		s->state = c == ESC ? STRING_ESC : STRING;
}

static void take_byte(struct screen *s, uint8_t c, struct bufq *q)
{
	if (s->state == LONG || s->state == LONG_ESC) {
		take_long(s, c, q);
		return;
	}
	/* ESC inside a short sequence begins another one; CAN and SUB end any. */
	if (c == ESC && s->state != STRING && s->state != STRING_ESC) {
		end_sequence(s, false, q);
		begin_screen(s, c);
		return;
	}
	if (s->n_seq == SCREEN_MAX_SEQ) {
		go_long(s, c, q);
		return;
	}
	s->seq[s->n_seq++] = c;
	if (c == CAN || c == SUB)
		end_sequence(s, true, q);
	else if (s->state == ESCAPE)
		in_escape(s, c, q);
	else if (s->state == CSI)
		in_csi(s, c, q);
	else
		in_string(s, c, q);
}

void screen_replay(struct screen *s, struct slice bytes, struct bufq *q)
{
	for (size_t i = 0; i < bytes.n; i++) {
		const uint8_t *p = bytes.p + i;

		if (s->state == GROUND) {
			const uint8_t *esc = memchr(p, ESC, bytes.n - i);
			size_t n = esc ? (size_t)(esc - p) : bytes.n - i;

			give_screen(q, p, n);
			i += n;
			if (!esc)
				return;
			begin_screen(s, ESC);
			continue;
		}
		take_byte(s, *p, q);
	}
}

bool screen_is_inside(const struct screen *s)
{
	return s->state != GROUND;
}

void screen_track(struct screen *s, struct slice bytes)
{
	screen_replay(s, bytes, NULL);
}

static void put_text(struct bufq *q, const char *text)
{
	(void)bufq_put(q, slice_from_str(text));
}

static void put_mode(struct bufq *q, size_t i, bool on)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "\033[?%u%c", modes[i].number, on ? 'h' : 'l');
	put_text(q, text);
}

static bool shows_other(const struct screen *s)
{
	return s->changed & ((1u << N_OTHER_SCREEN) - 1);
}

void screen_put_start(const struct screen *s, struct bufq *q)
{
	put_text(q, "\033[0m\033[H\033[2J");
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		if (s->changed & 1u << i)
			put_mode(q, i, !modes[i].on);
	if (s->keypad)
		put_text(q, "\033=");
	for (size_t i = 0; i < s->n_keys; i++) {
		char text[16];

		(void)snprintf(text, sizeof(text), "\033[>%uu", s->keys[i]);
		put_text(q, text);
	}
	if (shows_other(s))
		put_text(q, "\033[H\033[2J");
	give_screen(q, s->seq, s->n_seq);
}

void screen_put_undo(const struct screen *s, struct bufq *q)
{
	char text[16];

	/* A sequence that was cut must not swallow what comes now. */
	if (s->state != GROUND)
		put_text(q, "\030");
	if (s->n_keys) {
		(void)snprintf(text, sizeof(text), "\033[<%uu", s->n_keys);
		put_text(q, text);
	}
	if (s->keypad)
		put_text(q, "\033>");
	for (size_t i = ARRAY_LEN(modes); i-- > 0;)
		if (s->changed & 1u << i)
			put_mode(q, i, modes[i].on);
	put_text(q, "\033[0m");
}
