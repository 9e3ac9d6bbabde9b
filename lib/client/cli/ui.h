/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ui - output for people: messages, colors, a progress bar, prompts.
 *
 * How      Results go to stdout, everything else to stderr. Colours and progress only when that is
 *          a terminal and NO_COLOR is not set (for colours). Prompts need stdin and stderr to be
 *          terminals; ui_can_ask checks that.
 * Trust    Texts may come from sbxd and, through it, from a guest: ui_clean makes control
 *          characters and escape sequences harmless before they are printed.
 * Owns     One static struct: whether there is a terminal, what the bar shows.
 * See      ui_test.c
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/err.h"

/* Exit statuses of sbx; `run` and `exec` otherwise return the status of the command. */
enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_OURS = 125, /* of run, exec and prove: sbx failed, not the command */
};

/* A sentence about what went wrong and one about what to type next. */
struct problem {
	struct err err;
	char hint[256];
	char code[32]; /* sbxd's: "not-found", "busy" ...; empty for our own */
};

#define PROBLEM_USAGE "usage" /* the code of a mistake in the arguments */

void ui_init(void);
void ui_set_debug(bool on);
bool ui_is_debug(void);
bool ui_is_terminal(void); /* stderr */
bool ui_can_ask(void);

/* "error: ..." on stderr; the bar is taken away first. */
void ui_error(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* "  try: ..." on stderr. */
void ui_hint(const char *fmt, ...) PRINTF_LIKE(1, 2);
void ui_warning(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* A line on stderr. */
void ui_note(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* The same, for something done, with the mark in front. */
void ui_done(const char *fmt, ...) PRINTF_LIKE(1, 2);
void ui_debug(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* Error and hint; gives EXIT_FAILED, or EXIT_USAGE for PROBLEM_USAGE. */
int ui_problem(const struct problem *p, int r);
/* Fills the hint and gives r back. */
int problem_hint(struct problem *p, int r, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Marks it as a mistake in the arguments of a verb; gives r back. */
int problem_usage(struct problem *p, int r, const char *verb);

/* Draws the bar when stderr is a terminal, else nothing. */
void ui_progress(unsigned percent, const char *text);
/* The same place without a bar, when the end is not known. */
void ui_busy(const char *text);
void ui_progress_end(void);
/* The last call of main: writes what is left for stdout. Returns `status`, or EXIT_FAILED instead
 * of EXIT_OK if that fails. */
int ui_finish(int status);
/* "Sure? (y/N) " and the answer. Only when ui_can_ask(). */
bool ui_confirm(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Puts a question and gives the line that is typed, without blanks around it; false at the end
 * of the input. Only when ui_can_ask(). */
bool ui_ask(char *answer, size_t size, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Makes text harmless for a terminal and its reader, in place: control characters, characters
 * that are invisible or change the direction of text, and what is not UTF-8 become '?', byte by
 * byte. */
void ui_clean(char *text);
/* Prints a string to stdout, cleaned. */
void ui_put(const char *text);
/* The mark in front of something done, green on a terminal. */
const char *ui_tick(void);
/* And of something that failed, red. */
const char *ui_cross(void);
