/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log - one line on stderr, with the program's name and a level.
 *
 * How      Programs call log_init once; libraries only ever log at debug. The level comes from
 *          SBX_LOG (error, warn, info, debug), info when unset. After log_limit, lines above the
 *          limit are skipped, and the next written line is preceded by their number.
 * Trust    Every program. Control characters in the text are replaced, so that a peer's name
 *          cannot forge a line.
 * See      log_test.c
 */
#pragma once

#include <stdint.h>
#include "attr.h"

enum log_level { LOG_LVL_ERROR, LOG_LVL_WARN, LOG_LVL_INFO, LOG_LVL_DEBUG };

void log_init(const char *program);
/* At most `most` lines in a burst and `most` lines a minute, without lines of level debug: for
 * programs whose log is a file and whose lines a guest can cause. most 0: no limit (default). */
void log_limit(uint32_t most, uint32_t per_minute);
void log_at(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);

#define log_error(...) log_at(LOG_LVL_ERROR, __VA_ARGS__)
#define log_warn(...) log_at(LOG_LVL_WARN, __VA_ARGS__)
#define log_info(...) log_at(LOG_LVL_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_LVL_DEBUG, __VA_ARGS__)

/* Cannot start: logs and exits with 1. Only in src/<program>/main.c before the loop. */
void die(const char *fmt, ...) PRINTF_LIKE(1, 2) __attribute__((noreturn));
