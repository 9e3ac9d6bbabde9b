/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_internal - the form of a line, for log.c and trace.c.
 *
 * How      log_format writes `TIME PROGRAM[PID] WORD: TEXT` and a newline, cleaned and truncated.
 * Trust    As log.h.
 * Limits   LOG_MAX_LINE.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include "attr.h"

#define LOG_MAX_LINE 1024

/* Returns the length of the line. */
size_t log_format(char line[LOG_MAX_LINE], const char *word, const char *fmt, va_list ap)
	PRINTF_LIKE(3, 0);
