/* SPDX-License-Identifier: Apache-2.0 */
#include "project_file.h"

#include <errno.h>
#include <string.h>

#include "lib/base/conf.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/policy/netrule.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define MAX_NAME 63

static void list_done(struct project_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].text);
		free(l->v[i].why);
	}
}

void project_file_done(struct project_file *f)
{
	free(f->template);
	list_done(&f->path);
	list_done(&f->host);
	list_done(&f->port);
	*f = (struct project_file){0};
}

static char *next_word(struct slice *s)
{
	struct slice word = conf_word(s);

	return word.n ? xstrndup((const char *)word.p, word.n) : xstrdup("");
}

static int add_row(struct project_list *l, struct project_row row, struct err *err)
{
	bool is_twice = false;

	for (size_t i = 0; i < l->n; i++)
		is_twice = is_twice || strcmp(l->v[i].text, row.text) == 0;
	if (!is_twice && l->n < PROJECT_MAX_LIST) {
		l->v[l->n++] = row;
		return 0;
	}
	free(row.text);
	free(row.why);
	return is_twice ? err_set(err, -EEXIST, "duplicate line")
			: err_set(err, -E2BIG, "more than %d lines with this keyword",
				  PROJECT_MAX_LIST);
}

static int take_template(struct project_file *f, struct slice rest, struct err *err)
{
	AUTO_FREE char *name = next_word(&rest);
	size_t n = strlen(name);

	if (f->template || rest.n || n == 0 || n > MAX_NAME || name[0] == '-' || name[0] == '.' ||
		name[strspn(name, LETTERS DIGITS "-.")])
		return err_set(err, -EINVAL, "expected 'template NAME', once");
	f->template = TAKE(name);
	return 0;
}

/* "../NAME" or "../NAME/DIRECTORY": next to the project, in letters that need no quotes. */
static bool is_sibling(const char *s)
{
	if (!str_starts(s, "../") || s[strspn(s, LETTERS DIGITS "._-/")] || str_ends(s, "/"))
		return false;
	for (s += 3;; s++) {
		size_t n = strcspn(s, "/");

		if (n == 0 || (n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.'))
			return false;
		s += n;
		if (!*s)
			return true;
	}
}

static int take_path(struct project_file *f, struct slice rest, struct err *err)
{
	struct project_row row = {.text = next_word(&rest)};
	size_t n = strlen(row.text);

	row.is_writable = str_ends(row.text, ":rw");
	if (row.is_writable || str_ends(row.text, ":ro"))
		row.text[n - 3] = '\0';
	if (n < PROJECT_MAX_TEXT && is_sibling(row.text) && !rest.n)
		return add_row(&f->path, row, err);
	free(row.text);
	return err_set(
		err, -EINVAL, "expected 'path ../DIRECTORY', with :rw if the sandbox may write it");
}

/* One name, written out, with one port: what is displayed is what is allowed. */
static bool is_host(const char *text)
{
	struct netrule nr = {0};
	struct err ignored = {0};
	bool ok;

	if (netrule_parse(slice_from_str(text), &nr, &ignored) < 0)
		return false;
	ok = nr.form == NETRULE_NAME && !nr.deep && !nr.n_glob && nr.ports.lo &&
	     nr.ports.lo == nr.ports.hi;
	netrule_done(&nr);
	return ok;
}

static int take_host(struct project_file *f, struct slice rest, struct err *err)
{
	struct project_row row = {.text = next_word(&rest)};

	if (is_host(row.text) && rest.n && rest.n <= PROJECT_MAX_TEXT) {
		row.why = xstrndup((const char *)rest.p, rest.n);
		return add_row(&f->host, row, err);
	}
	free(row.text);
	return err_set(err, -EINVAL,
		"expected 'host NAME:PORT REASON', such as host api.example.com:443 tests");
}

/* "3000" or "8080:3000": no address, so that it is loopback. */
static bool is_port(const char *text)
{
	const char *colon = strchr(text, ':');
	uint64_t v;

	if (text[strspn(text, DIGITS ":")])
		return false;
	if (colon) {
		AUTO_FREE char *first = xstrndup(text, (size_t)(colon - text));

		if (str_to_u64(first, 1, UINT16_MAX, &v) < 0)
			return false;
		text = colon + 1;
	}
	return str_to_u64(text, 1, UINT16_MAX, &v) == 0;
}

static int take_port(struct project_file *f, struct slice rest, struct err *err)
{
	struct project_row row = {.text = next_word(&rest)};

	if (is_port(row.text) && !rest.n)
		return add_row(&f->port, row, err);
	free(row.text);
	return err_set(err, -EINVAL, "expected 'port PORT' or 'port HOST-PORT:PORT'");
}

static int take_word(struct project_file *f, const char *word, struct slice rest, struct err *err)
{
	static const struct {
		const char *name;
		int (*take)(struct project_file *f, struct slice rest, struct err *err);
	} words[] = {{"template", take_template}, {"path", take_path}, {"host", take_host},
		{"port", take_port}};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(word, words[i].name) == 0)
			return words[i].take(f, rest, err);
	return err_set(err, -EINVAL,
		"unknown keyword '%.40s': expected template, path, host or port", word);
}

int project_parse(struct slice text, const char *name, struct project_file *ret, struct err *err)
{
	static const struct conf_form form = {.what = "a project",
		.first = "sandbox 1",
		.max_bytes = PROJECT_MAX_BYTES,
		.max_line = PROJECT_MAX_LINE,
		.has_inner_hash = true};
	struct project_file f = {0};
	struct conf c;
	int r = conf_init(&c, &form, text, name, err);

	if (r < 0)
		return r;
	while ((r = conf_next(&c, &text, err)) > 0) {
		AUTO_FREE char *word = next_word(&text);

		r = take_word(&f, word, text, err);
		if (r < 0)
			break;
	}
	if (r < 0) {
		project_file_done(&f);
		return conf_fail(&c, r, err);
	}
	*ret = f;
	return 0;
}
