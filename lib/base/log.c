#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

void log_set_level(enum log_level level)
{
	max_level = level;
}

PRINTF_LIKE(2, 0)
static void write_line(enum log_level level, const char *fmt, va_list ap)
{
	char line[1024];
	struct timespec ts;
	int n, k;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	n = snprintf(line, sizeof(line), "%lld.%03ld %.32s[%d] %s: ", (long long)ts.tv_sec,
		ts.tv_nsec / 1000000, program_name, (int)getpid(), level_names[level]);
	k = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	k = MIN(MAX(k, 0), (int)sizeof(line) - n - 2);
	for (int i = n; i < n + k; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	line[n + k] = '\n';
	(void)!write(STDERR_FILENO, line, (size_t)(n + k + 1));
}

void log_at(enum log_level level, const char *fmt, ...)
{
	va_list ap;

	if (level > max_level)
		return;
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
