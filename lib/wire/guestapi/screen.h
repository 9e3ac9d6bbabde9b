/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen - the state of a terminal that the next client needs.
 *
 * How      Follows the escape sequences of a program's output: which modes are on (other screen,
 *          mouse, pasting, cursor, keys), and whether a sequence is incomplete. The guest follows
 *          the bytes that leave a session's ring, so that a replay begins with the state at that
 *          point; the client follows its output, so that a detach leaves a usable terminal. A
 *          replay omits sequences that a terminal answers (the answers would be typed into the
 *          program a second time) or that change the clipboard.
 * Trust    Parses untrusted bytes of a program. Runs in sbx-guest and in sbx.
 * Limits   SCREEN_MAX_SEQ bytes of a sequence are held; a longer one passes unread. SCREEN_KEYS
 *          levels of the keyboard protocol.
 * Never    I/O, heap memory, a copy of the screen: programs redraw it themselves.
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
	bool drop; /* the passing long string is omitted */
	size_t n_seq;
	uint8_t seq[SCREEN_MAX_SEQ];
	uint32_t changed; /* bit i: mode i of the table is not the default */
	bool keypad;
	uint8_t n_keys;
	uint16_t keys[SCREEN_KEYS];
};

/* All zero is a fresh one. */
void screen_track(struct screen *s, struct slice bytes);
/* An escape sequence is incomplete. */
bool screen_is_inside(const struct screen *s);
/* As screen_track, and gives on what may be shown again; never more than came, plus what was
 * held. */
void screen_replay(struct screen *s, struct slice bytes, struct bufq *q);
/* Sets another terminal to this state: an empty screen, the modes, an incomplete sequence. */
void screen_put_start(const struct screen *s, struct bufq *q);
/* Resets a terminal in this state for a shell; empty if nothing is to be reset. */
void screen_put_undo(const struct screen *s, struct bufq *q);
