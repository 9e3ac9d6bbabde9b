/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen - what a terminal has been told, as far as it matters to whoever looks at it next.
 *
 * How      Follows the escape sequences of a program's output: which modes are on (other screen,
 *          mouse, pasting, cursor, keys), and whether a sequence is half said. The guest follows
 *          what falls out of a session's ring, so that a replay begins as the terminal stood
 *          there; the client follows what it shows, so that a detach leaves a usable terminal.
 *          A replay leaves out what makes a terminal answer (the answers would be typed into the
 *          program a second time) or changes the clipboard.
 * Trust    Eats a program's bytes, which may be anything. Runs in sbx-guest and in sbx.
 * Limits   SCREEN_MAX_SEQ bytes of a sequence are held; a longer one passes unread. SCREEN_KEYS
 *          levels of the keyboard protocol.
 * Never    I/O, memory of its own, a copy of the picture: programs redraw that themselves.
 * See      screen_test.c, screen_fuzz.c
 */
#pragma once

#include "lib/base/bufq.h"
#include "lib/base/slice.h"

#define SCREEN_MAX_SEQ 256
#define SCREEN_KEYS 8
/* Bytes that screen_put_start and screen_put_undo write at most. */
#define SCREEN_MAX_START 1024

struct screen {
	uint8_t state;
	bool drop; /* the long string that passes is left out */
	size_t n_seq;
	uint8_t seq[SCREEN_MAX_SEQ];
	uint32_t changed; /* bit i: mode i of the table is not as it is by itself */
	bool keypad;
	uint8_t n_keys;
	uint16_t keys[SCREEN_KEYS];
};

/* All zero is a fresh one. */
void screen_track(struct screen *s, struct slice bytes);
/* As screen_track, and gives on what may be shown again; never more than came, plus what was
 * held. */
void screen_replay(struct screen *s, struct slice bytes, struct bufq *q);
/* Makes another terminal stand as this one: an empty picture, the modes, what is half said. */
void screen_put_start(const struct screen *s, struct bufq *q);
/* Puts a terminal that stands as this one back to how a shell wants it; nothing when it does. */
void screen_put_undo(const struct screen *s, struct bufq *q);
