/* SPDX-License-Identifier: Apache-2.0 */
#include "ui.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/text/text.h"

#define BAR_CELLS 24

static struct {
	bool err_tty, ask, colour, out_colour, debug, bar;
} ui;

static bool colours_wanted(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return !(no && no[0]) && term && strcmp(term, "dumb") != 0;
}

void ui_init(void)
{
	ui.err_tty = isatty(STDERR_FILENO);
	ui.ask = ui.err_tty && isatty(STDIN_FILENO);
	ui.colour = ui.err_tty && colours_wanted();
	ui.out_colour = isatty(STDOUT_FILENO) && colours_wanted();
}

void ui_set_debug(bool on)
{
	ui.debug = on;
}

bool ui_is_debug(void)
{
	return ui.debug;
}

bool ui_is_terminal(void)
{
	return ui.err_tty;
}

bool ui_can_ask(void)
{
	return ui.ask;
}

void ui_clean(char *text)
{
	struct slice s = slice_from_str(text);

	while (s.n > 0) {
		uint32_t v = 0;
		size_t n = text_character(s, &v);

		if (n == 0 || !text_is_plain(v))
			memset(text, '?', MAX(n, (size_t)1));
		n = MAX(n, (size_t)1);
		text += n;
		s = slice_of(s.p + n, s.n - n);
	}
}

void ui_put(const char *text)
{
	AUTO_FREE char *copy = xstrdup(text);

	ui_clean(copy);
	(void)fputs(copy, stdout);
}

const char *ui_tick(void)
{
	return ui.out_colour ? "\033[32m✓\033[0m" : "✓";
}

const char *ui_cross(void)
{
	return ui.out_colour ? "\033[31m✗\033[0m" : "✗";
}

PRINTF_LIKE(3, 0)
static void line_ui(const char *colour, const char *label, const char *fmt, va_list ap)
{
	char text[2048];

	ui_progress_end();
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	ui_clean(text);
	if (ui.colour && colour)
		(void)fprintf(stderr, "\033[%sm%s\033[0m%s\n", colour, label, text);
	else
		(void)fprintf(stderr, "%s%s\n", label, text);
}

#define LINE(colour, label)                      \
	do {                                     \
		va_list ap;                      \
		va_start(ap, fmt);               \
		line_ui(colour, label, fmt, ap); \
		va_end(ap);                      \
	} while (0)

void ui_error(const char *fmt, ...)
{
	LINE("31", "error: ");
}

void ui_hint(const char *fmt, ...)
{
	LINE("36", "  try: ");
}

void ui_warning(const char *fmt, ...)
{
	LINE("33", "warning: ");
}

void ui_note(const char *fmt, ...)
{
	LINE(NULL, "");
}

void ui_done(const char *fmt, ...)
{
	LINE("32", "✓ ");
}

void ui_debug(const char *fmt, ...)
{
	if (ui.debug)
		LINE("2", "debug: ");
}

int ui_problem(const struct problem *p, int r)
{
	ui_error("%s", err_text(&p->err, r));
	if (p->hint[0])
		ui_hint("%s", p->hint);
	return strcmp(p->code, PROBLEM_USAGE) == 0 ? EXIT_USAGE : EXIT_FAILED;
}

int problem_usage(struct problem *p, int r, const char *verb)
{
	(void)snprintf(p->code, sizeof(p->code), "%s", PROBLEM_USAGE);
	if (!p->hint[0])
		(void)snprintf(p->hint, sizeof(p->hint), "sbx help %s", verb);
	return r;
}

int problem_hint(struct problem *p, int r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(p->hint, sizeof(p->hint), fmt, ap);
	va_end(ap);
	return r;
}

static int screen_width(void)
{
	struct winsize ws;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0 ? ws.ws_col : 80;
}

void ui_progress(unsigned percent, const char *text)
{
	char bar[BAR_CELLS + 1], copy[256];
	unsigned full = MIN(percent, 100u) * BAR_CELLS / 100;
	int room = screen_width() - BAR_CELLS - 10;

	if (!ui.err_tty)
		return;
	memset(bar, '-', BAR_CELLS);
	memset(bar, '#', full);
	bar[BAR_CELLS] = '\0';
	(void)snprintf(copy, sizeof(copy), "%s", text);
	ui_clean(copy);
	(void)fprintf(
		stderr, "\r[%s] %3u%% %.*s\033[K", bar, MIN(percent, 100u), MAX(room, 0), copy);
	(void)fflush(stderr);
	ui.bar = true;
}

void ui_busy(const char *text)
{
	if (!ui.err_tty)
		return;
	(void)fprintf(stderr, "\r%.*s\033[K", MAX(screen_width() - 1, 0), text);
	(void)fflush(stderr);
	ui.bar = true;
}

void ui_progress_end(void)
{
	if (!ui.bar)
		return;
	(void)fputs("\r\033[K", stderr);
	(void)fflush(stderr);
	ui.bar = false;
}

int ui_finish(int status)
{
	ui_progress_end();
	/* A full disk behind stdout must not look like success. */
	if ((fflush(stdout) == 0 && !ferror(stdout)) || errno == EPIPE || status != EXIT_OK)
		return status;
	ui_error("cannot write the output: %s", strerror(errno));
	return EXIT_FAILED;
}

bool ui_confirm(const char *fmt, ...)
{
	char question[512], answer[16] = "";
	va_list ap;

	ui_progress_end();
	va_start(ap, fmt);
	(void)vsnprintf(question, sizeof(question), fmt, ap);
	va_end(ap);
	ui_clean(question);
	(void)fprintf(stderr, "%s [y/N] ", question);
	(void)fflush(stderr);
	if (!ui.ask || !fgets(answer, sizeof(answer), stdin))
		return false;
	return answer[0] == 'y' || answer[0] == 'Y';
}

bool ui_ask(char *answer, size_t size, const char *fmt, ...)
{
	char *end;
	va_list ap;

	ui_progress_end();
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fflush(stderr);
	if (!ui.ask || !fgets(answer, (int)size, stdin))
		return false;
	end = answer + strlen(answer);
	while (end > answer && (unsigned char)end[-1] <= ' ')
		*--end = '\0';
	memmove(answer, answer + strspn(answer, " \t"), strlen(answer + strspn(answer, " \t")) + 1);
	return true;
}
