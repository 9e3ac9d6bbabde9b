/* SPDX-License-Identifier: Apache-2.0 */
#include "imageenv.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include "lib/base/mem.h"

static bool is_assignment(const char *line, size_t n)
{
	const char *eq = memchr(line, '=', n);

	if (!eq || eq == line || isdigit((unsigned char)line[0]))
		return false;
	for (const char *p = line; p < eq; p++)
		if (!isalnum((unsigned char)*p) && *p != '_')
			return false;
	return true;
}

static void put_line(struct env *e, const char *line, size_t n, const char *first)
{
	AUTO_FREE char *text = xstrndup(line, n);
	AUTO_FREE char *path = NULL;

	if (strncmp(text, "PATH=", 5) == 0 && first) {
		path = xasprintf("PATH=%s:%s", first, text + 5);
		env_put(e, path);
	} else {
		env_put(e, text);
	}
}

void imageenv_put(struct env *e, const char *text, const char *first)
{
	for (unsigned i = 0; *text && i < IMAGEENV_MAX; i++) {
		size_t n = strcspn(text, "\n");

		if (is_assignment(text, n))
			put_line(e, text, n, first);
		text += n + (text[n] == '\n');
	}
}

void imageenv_load(struct env *e, const char *first)
{
	AUTO_FREE char *text = NULL;

	if (file_read(IMAGEENV_FILE, &text) == 0)
		imageenv_put(e, text, first);
}
