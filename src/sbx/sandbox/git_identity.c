/* SPDX-License-Identifier: Apache-2.0 */
#include "git_identity.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/client/cli/follow.h"
#include "lib/base/mem.h"
#include "lib/rules/settings/settings.h"
#include "lib/client/cli/ui.h"

#define GIT "/usr/bin/git"
#define READ_MS 5000

void git_identity_done(struct git_identity *g)
{
	free(TAKE(g->name));
	free(TAKE(g->email));
}

/* follow.h has cleaned the lines; of several, git uses the last. */
static void take_line(void *arg, char *line)
{
	char **value = arg;

	free(*value);
	*value = xstrdup(line);
}

static char *read_value(const char *key)
{
	const char *argv[] = {
		GIT, "-C", "/", "config", "--global", "--includes", "--get", key, NULL};
	char *value = NULL;
	const struct follow f = {.argv = argv,
		.lines = 1,
		.in_fd = -1,
		.out_fd = -1,
		.max_ms = READ_MS,
		.fn = take_line,
		.arg = &value};

	if (follow_run(&f, NULL) != 0)
		free(TAKE(value));
	return value;
}

static bool is_value(const char *text)
{
	size_t n = text ? strlen(text) : 0;

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f || strchr("<>", text[i]))
			return false;
	return n > 0 && n <= GIT_MAX_VALUE;
}

static void put_quoted(FILE *out, const char *key, const char *value)
{
	fprintf(out, "\t%s = \"", key);
	for (; *value; value++) {
		if (strchr("\\\"", *value))
			fputc('\\', out);
		fputc(*value, out);
	}
	fputs("\"\n", out);
}

char *git_identity_file(const struct git_identity *g)
{
	char *text = NULL;
	size_t n;
	FILE *out;

	if (!is_value(g->name) || !is_value(g->email) || strchr(g->email, ' '))
		return NULL;
	out = open_memstream(&text, &n);
	if (!out)
		return NULL;
	fputs("[user]\n", out);
	put_quoted(out, "name", g->name);
	put_quoted(out, "email", g->email);
	return fclose(out) == 0 ? text : NULL;
}

/* Returns yes, no or ask. */
static char *read_setting(void)
{
	AUTO_SETTINGS struct settings s = {0};
	struct err err = {0};

	if (settings_load(&s, &err) < 0)
		return xstrdup("no"); /* the caller that uses the settings reports the error */
	return xstrdup(settings_get(&s, SETTINGS_GIT_IDENTITY));
}

static bool ask_once(const struct git_identity *g)
{
	struct err err = {0};
	bool yes = ui_confirm(
		"Use your git identity %s <%s> for commits in sandboxes?", g->name, g->email);
	int r = settings_change(SETTINGS_GIT_IDENTITY, yes ? "yes" : "no", &err);

	if (r < 0)
		ui_warning("%s", err_text(&err, r));
	else
		ui_note("Change this with: sbx settings set git.identity %s", yes ? "no" : "yes");
	return yes;
}

void git_identity_get(struct git_identity *ret)
{
	AUTO_FREE char *setting = read_setting(), *file = NULL;
	bool ask = strcmp(setting, "ask") == 0, wanted = strcmp(setting, "yes") == 0;

	if ((!wanted && !(ask && ui_can_ask())) || access(GIT, X_OK) < 0)
		return;
	ret->name = read_value("user.name");
	ret->email = read_value("user.email");
	file = git_identity_file(ret);
	if (!file || (ask && !ask_once(ret)))
		git_identity_done(ret);
}
