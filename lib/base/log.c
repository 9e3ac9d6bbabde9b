/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "clock.h"
#include "log_internal.h"
#include "text/text.h"

/* Each line is paid with the time in which a minute's share brings one; so much may be owed. */
static struct {
	uint64_t cost_ms, most_ms, spent_ms;
	uint64_t n_left_out;
} limit;

static const char *program_name = "sbx";
static enum log_level max_level = LOG_LVL_INFO;

static const char *const level_names[] = {
	[LOG_LVL_ERROR] = "error",
	[LOG_LVL_WARN] = "warn",
	[LOG_LVL_INFO] = "info",
	[LOG_LVL_DEBUG] = "debug",
};

void log_init(const char *program)
{
	const char *want = getenv("SBX_LOG");

	program_name = program;
	for (size_t i = 0; want && i < ARRAY_LEN(level_names); i++)
		if (strcmp(want, level_names[i]) == 0)
			max_level = (enum log_level)i;
}

/* What is not a plain character becomes '?': a log is read on a terminal. */
static void clean_line(char *p, size_t n)
{
	for (size_t i = 0; i < n;) {
		uint32_t v = 0;
		size_t len = text_character(slice_of(p + i, n - i), &v);

		if (len == 0 || !text_is_plain(v)) {
			memset(p + i, '?', MAX(len, (size_t)1));
			len = MAX(len, (size_t)1);
		}
		i += len;
	}
}

size_t log_format(char line[LOG_MAX_LINE], const char *word, const char *fmt, va_list ap)
{
	struct timespec ts;
	int n, k;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	n = snprintf(line, LOG_MAX_LINE, "%lld.%03ld %.32s[%d] %.32s: ", (long long)ts.tv_sec,
		ts.tv_nsec / 1000000, program_name, (int)getpid(), word);
	k = vsnprintf(line + n, LOG_MAX_LINE - (size_t)n - 1, fmt, ap);
	k = MIN(MAX(k, 0), LOG_MAX_LINE - n - 2);
	clean_line(line + n, (size_t)k);
	line[n + k] = '\n';
	return (size_t)(n + k + 1);
}

PRINTF_LIKE(2, 0)
static void write_line(enum log_level level, const char *fmt, va_list ap)
{
	char line[LOG_MAX_LINE];
	size_t n = log_format(line, level_names[level], fmt, ap);

	(void)!write(STDERR_FILENO, line, n);
}

void log_limit(uint32_t most, uint32_t per_minute)
{
	limit.cost_ms = MAX(60000 / MAX(per_minute, 1u), 1u);
	limit.most_ms = limit.cost_ms * most;
	limit.spent_ms = limit.n_left_out = 0;
}

PRINTF_LIKE(2, 3)
static void write_one(enum log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_line(level, fmt, ap);
	va_end(ap);
}

static bool is_too_much(void)
{
	uint64_t now = clock_mono_ms();

	if (limit.most_ms == 0)
		return false;
	limit.spent_ms = MAX(limit.spent_ms, now);
	if (limit.spent_ms - now + limit.cost_ms > limit.most_ms) {
		limit.n_left_out++;
		return true;
	}
	limit.spent_ms += limit.cost_ms;
	return false;
}

void log_at(enum log_level level, const char *fmt, ...)
{
	va_list ap;

	if (level > max_level || (level < LOG_LVL_DEBUG && is_too_much()))
		return;
	if (limit.n_left_out)
		write_one(LOG_LVL_WARN, "%llu lines were skipped: too many lines per second",
			(unsigned long long)limit.n_left_out);
	limit.n_left_out = 0;
	va_start(ap, fmt);
	write_line(level, fmt, ap);
	va_end(ap);
}

void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_line(LOG_LVL_ERROR, fmt, ap);
	va_end(ap);
	exit(1);
}
