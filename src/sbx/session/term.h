/* SPDX-License-Identifier: Apache-2.0 */
/*
 * term - the user's terminal in raw mode or without echo, always restored.
 *
 * How      term_raw and term_hide save the settings and switch; term_restore restores them and is
 *          also run at exit and by the handlers of deadly signals, so that no exit leaves a raw
 *          terminal.
 * Trust    The user's own terminal.
 * Owns     One static copy of the settings: there is one terminal.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/err.h"

int term_raw(int fd, struct err *err) MUST_CHECK;
/* Keys are read one by one and not shown; signal keys still work. */
int term_hide(int fd, struct err *err) MUST_CHECK;
void term_restore(void);
/* Rows and columns; 24 by 80 if unknown. */
void term_size(int fd, uint16_t *ret_rows, uint16_t *ret_cols);
