/* SPDX-License-Identifier: Apache-2.0 */
#include "hold_text.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/text/text.h"
#include "lib/client/api/api.h"

/* Cut after HOLD_TEXT_LINE bytes, with the number of bytes that follow. */
static void put_escaped(FILE *f, const char *text)
{
	struct slice s = slice_from_str(text);
	size_t cut = s.n > HOLD_TEXT_LINE ? s.n - HOLD_TEXT_LINE : 0;

	while (s.n > cut) {
		char code[TEXT_ESCAPE_SIZE];
		uint32_t v;
		size_t n = text_character(s, &v);

		if (n && text_is_visible(v)) {
			(void)fwrite(s.p, 1, n, f);
		} else {
			n = text_escape(s, code);
			(void)fputs(code, f);
		}
		s = slice_of(s.p + n, s.n - n);
	}
	if (s.n)
		(void)fprintf(f, " ... %zu more bytes", s.n);
}

char *hold_text_line(const json_t *hold)
{
	const json_t *effects = json_object_get(hold, "effects");
	const char *first = json_string_value(json_array_get(effects, 0));
	size_t size = 0, n = json_array_size(effects);
	char *text = NULL;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		abort();
	put_escaped(f, first ? first : "");
	if (n > 1)
		(void)fprintf(f, " and %zu more", n - 1);
	(void)fclose(f);
	return text;
}

void hold_text_left(const json_t *hold, char *buf, size_t size)
{
	long long left = api_int(hold, "expires_at") - (long long)clock_wall_ms();

	left = left < 0 ? 0 : left / 1000;
	if (json_is_null(json_object_get(hold, "expires_at")))
		(void)snprintf(buf, size, "no time limit");
	else if (left < 120)
		(void)snprintf(buf, size, "%lld s left", left);
	else
		(void)snprintf(buf, size, "%lld min left", left / 60);
}

static void print_lines(FILE *f, const json_t *lines, const char *before, size_t max)
{
	const json_t *line;
	size_t i;

	json_array_foreach (lines, i, line) {
		if (i == max) {
			(void)fprintf(f, "... %zu more lines\n", json_array_size(lines) - max);
			return;
		}
		(void)fputs(before, f);
		put_escaped(f, json_string_value(line) ? json_string_value(line) : "");
		(void)fputc('\n', f);
	}
}

static void print_field(FILE *f, const char *label, const char *value)
{
	(void)fprintf(f, "%-9s ", label);
	put_escaped(f, value);
	(void)fputc('\n', f);
}

void hold_text_print(FILE *f, const json_t *hold)
{
	const json_t *preview = json_object_get(hold, "preview");
	char left[32];

	hold_text_left(hold, left, sizeof(left));
	(void)fputs("Request ", f);
	put_escaped(f, api_str(hold, "id"));
	(void)fputs(" of sandbox ", f);
	put_escaped(f, api_str(hold, "sandbox"));
	(void)fprintf(f, ": %s, %s\n\n", api_str(hold, "state"), left);
	/* All of them: a person approves every line. */
	print_lines(f, json_object_get(hold, "effects"), "    ", SIZE_MAX);
	(void)fputc('\n', f);
	if (json_array_size(preview) > 0) {
		(void)fputs("Text of the request:\n", f);
		print_lines(f, preview, "| ", HOLD_TEXT_LINES);
		(void)fputc('\n', f);
	}
	print_field(f, "rule", api_str(hold, "rule"));
	print_field(f, "digest", api_str(hold, "digest"));
}
