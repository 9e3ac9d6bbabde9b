/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include "lib/base/conf.h"
#include "lib/base/mem.h"
#include "lib/rules/policy/netrule.h"
#include "lib/secret/service/shape.h"
#include "agent.h"
#include "clean.h"

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* ---- small texts ---- */

/* Cuts the first word off *s; "" if there is none. On the heap. */
static char *next_word(struct slice *s)
{
	struct slice word = conf_word(s);

	return word.n ? xstrndup((const char *)word.p, word.n) : xstrdup("");
}

static bool has_only(const char *s, const char *allowed, size_t max)
{
	size_t n = strlen(s);

	return n > 0 && n <= max && strspn(s, allowed) == n;
}

static bool is_name(const char *s)
{
	size_t n = strlen(s);

	return has_only(s, LOWER DIGITS "-", AGENT_MAX_NAME) && n >= 2 && s[0] != '-' &&
	       s[n - 1] != '-';
}

/* Below the home directory: parts of letters, digits and a few signs; none is "." or "..". */
static bool is_path(const char *s, bool folder)
{
	size_t n = strlen(s);

	if (!has_only(s, LOWER UPPER DIGITS "._-/", AGENT_MAX_WORD) || (s[n - 1] == '/' && !folder))
		return false;
	for (;;) {
		size_t part = strcspn(s, "/");

		if (part == 0 || (part == 1 && s[0] == '.') ||
			(part == 2 && s[0] == '.' && s[1] == '.'))
			return false;
		s += part;
		if (!*s++ || !*s)
			return true;
	}
}

/* ---- one function for each word that begins a line ---- */

/* A word, and the member of struct agent that its line fills: a text, or a list. */
struct word {
	const char *name;
	int (*take)(struct agent *a, const struct word *w, struct slice rest, struct err *err);
	size_t at;
};

static void *place_of(struct agent *a, const struct word *w)
{
	return (char *)a + w->at;
}

static int add_parse(struct agent_list *l, char *a, char *b, struct err *err)
{
	if (l->n == AGENT_MAX_LIST) {
		free(a);
		free(b);
		return err_set(err, -E2BIG, "more than %d lines with this keyword", AGENT_MAX_LIST);
	}
	l->v[l->n++] = (struct agent_pair){.a = a, .b = b};
	return 0;
}

static const struct agent_pair *find_parse(const struct agent_list *l, const char *a)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->v[i].a, a) == 0)
			return &l->v[i];
	return NULL;
}

static int take_text(struct agent *a, const struct word *w, struct slice rest, struct err *err)
{
	char **place = place_of(a, w);

	if (*place || rest.n == 0 || rest.n > AGENT_MAX_TEXT)
		return err_set(err, -EINVAL, "expected '%s TEXT' of at most %d bytes, once",
			w->name, AGENT_MAX_TEXT);
	*place = xstrndup((const char *)rest.p, rest.n);
	return 0;
}

static int take_name(struct agent *a, const struct word *w, struct slice rest, struct err *err)
{
	int r = take_text(a, w, rest, err);

	if (r == 0 && (!is_name(a->name) || strcmp(a->name, "debian") == 0))
		return err_set(err, -EINVAL,
			"invalid name: use 2 to %d lowercase letters, digits and hyphens, not debian",
			AGENT_MAX_NAME);
	return r;
}

static int take_template(struct agent *a, const struct word *w, struct slice rest, struct err *err)
{
	int r = take_text(a, w, rest, err);

	if (r == 0 && !has_only(a->base, LOWER UPPER DIGITS "-.", 63))
		return err_set(err, -EINVAL, "invalid template name '%s'", a->base);
	return r;
}

static int take_node(struct agent *a, const struct word *w, struct slice rest, struct err *err)
{
	int r = take_text(a, w, rest, err);

	if (r == 0 && !agent_is_version(a->node))
		return err_set(err, -EINVAL,
			"expected 'node VERSION' with an exact version such as 22.1.0");
	return r;
}

static int take_command(struct agent *a, const struct word *w, struct slice rest, struct err *err)
{
	int r = take_text(a, w, rest, err);

	if (r == 0 && (!has_only(a->command, LOWER UPPER DIGITS "._-/", AGENT_MAX_WORD) ||
			      a->command[0] == '-'))
		return err_set(
			err, -EINVAL, "'command' must be the name or the path of one program");
	return r;
}

static int take_flags(struct agent *a, const struct word *w, struct slice rest, struct err *err)
{
	int r = rest.n ? 0 : err_set(err, -EINVAL, "'flags' requires at least one argument");

	while (r == 0 && rest.n) {
		char *word = next_word(&rest);

		if (strlen(word) > AGENT_MAX_WORD || strpbrk(word, "'\"\\`$")) {
			free(word);
			return err_set(err, -EINVAL, "an argument must be a word without quotes");
		}
		r = add_parse(&a->flag, word, NULL, err);
	}
	return r;
}

static int take_npm(struct agent *a, const struct word *w, struct slice rest, struct err *err)
{
	AUTO_FREE char *package = next_word(&rest), *version = next_word(&rest);

	if (!agent_is_package(package) || !agent_is_version(version) || rest.n)
		return err_set(err, -EINVAL,
			"expected 'npm PACKAGE VERSION' with an exact version, such as npm @example/agent 1.2.3");
	if (find_parse(&a->package, package))
		return err_set(err, -EEXIST, "duplicate package '%s'", package);
	return add_parse(&a->package, TAKE(package), TAKE(version), err);
}

static int take_integrity(struct agent *a, const struct word *w, struct slice rest, struct err *err)
{
	AUTO_FREE char *package = next_word(&rest), *digest = next_word(&rest);

	if (!agent_is_package(package) || !agent_is_digest(digest) || rest.n)
		return err_set(err, -EINVAL, "expected 'integrity PACKAGE sha512-DIGEST'");
	if (find_parse(&a->pin, package))
		return err_set(err, -EEXIST, "duplicate package '%s'", package);
	return add_parse(&a->pin, TAKE(package), TAKE(digest), err);
}

static int take_env(struct agent *a, const struct word *w, struct slice rest, struct err *err)
{
	AUTO_FREE char *name = next_word(&rest);

	if (!has_only(name, UPPER DIGITS "_", AGENT_MAX_WORD) || strchr(DIGITS, name[0]) ||
		rest.n == 0 || rest.n > AGENT_MAX_TEXT)
		return err_set(err, -EINVAL, "expected 'env NAME VALUE' with an uppercase name");
	if (shape_has_secret(rest))
		return err_set(err, -EPERM, "the value of %s looks like a credential", name);
	if (find_parse(&a->env, name))
		return err_set(err, -EEXIST, "duplicate variable %s", name);
	return add_parse(&a->env, TAKE(name), xstrndup((const char *)rest.p, rest.n), err);
}

static int take_service(struct agent *a, const struct word *w, struct slice rest, struct err *err)
{
	AUTO_FREE char *name = next_word(&rest);

	if (!has_only(name, LOWER DIGITS "-", AGENT_MAX_WORD) || rest.n ||
		find_parse(&a->service, name))
		return err_set(err, -EINVAL, "expected 'service NAME', each name once");
	return add_parse(&a->service, TAKE(name), NULL, err);
}

/* One name, written out, with one port: what is shown to a person is what is opened. */
static int check_host(const char *text, struct err *err)
{
	struct netrule nr = {0};
	bool exact;
	int r = netrule_parse(slice_from_str(text), &nr, err);

	if (r < 0)
		return r;
	exact = nr.form == NETRULE_NAME && !nr.deep && !nr.n_glob && nr.ports.lo &&
		nr.ports.lo == nr.ports.hi;
	netrule_done(&nr);
	return exact ? 0
		     : err_set(err, -EINVAL,
			       "invalid host '%.100s': expected one name with one port, such as api.example.com:443",
			       text);
}

static int take_place(struct agent *a, const struct word *w, struct slice rest, struct err *err)
{
	struct agent_list *l = place_of(a, w);
	AUTO_FREE char *host = next_word(&rest);
	int r = check_host(host, err);

	if (r < 0)
		return r;
	if (rest.n == 0 || rest.n > AGENT_MAX_TEXT)
		return err_set(err, -EINVAL, "missing reason after '%s'", host);
	if (find_parse(l, host))
		return err_set(err, -EEXIST, "duplicate host '%s'", host);
	return add_parse(l, TAKE(host), xstrndup((const char *)rest.p, rest.n), err);
}

static int take_history(struct agent *a, const struct word *w, struct slice rest, struct err *err)
{
	AUTO_FREE char *path = next_word(&rest);

	if (!is_path(path, false) || rest.n || find_parse(&a->history, path))
		return err_set(err, -EINVAL,
			"expected 'history DIRECTORY', a path below the home directory, once");
	return add_parse(&a->history, TAKE(path), NULL, err);
}

static int take_import(struct agent *a, const struct word *w, struct slice rest, struct err *err)
{
	AUTO_FREE char *path = next_word(&rest);

	if (!is_path(path, true) || rest.n || find_parse(&a->import, path))
		return err_set(err, -EINVAL,
			"expected 'import PATH', a path below the home directory, once");
	if (clean_is_secret_name(path))
		return err_set(err, -EPERM, "'%s' has the name of a credential file", path);
	return add_parse(&a->import, TAKE(path), NULL, err);
}

static int take_drop(struct agent *a, const struct word *w, struct slice rest, struct err *err)
{
	AUTO_FREE char *path = next_word(&rest), *key = next_word(&rest);

	if (!find_parse(&a->import, path) || !key[0] || rest.n || strlen(key) > AGENT_MAX_WORD)
		return err_set(err, -EINVAL,
			"expected 'drop PATH KEY' with the PATH of an 'import' above");
	return add_parse(&a->drop, TAKE(path), TAKE(key), err);
}

static int take_seed(struct agent *a, const struct word *w, struct slice rest, struct err *err)
{
	AUTO_FREE char *path = next_word(&rest);

	if (!is_path(path, false) || rest.n == 0 || rest.n > AGENT_MAX_TEXT)
		return err_set(err, -EINVAL,
			"expected 'seed PATH TEXT' with a path below the home directory");
	return add_parse(place_of(a, w), TAKE(path), xstrndup((const char *)rest.p, rest.n), err);
}

/* ---- the whole ---- */

#define AT(m) offsetof(struct agent, m)

static const struct word words[] = {
	{"name", take_name, AT(name)},
	{"title", take_text, AT(title)},
	{"about", take_text, AT(about)},
	{"template", take_template, AT(base)},
	{"npm", take_npm, 0},
	{"publisher", take_text, AT(publisher)},
	{"integrity", take_integrity, 0},
	{"unavailable", take_text, AT(unavailable)},
	{"node", take_node, AT(node)},
	{"command", take_command, AT(command)},
	{"flags", take_flags, 0},
	{"env", take_env, 0},
	{"service", take_service, 0},
	{"host", take_place, AT(host)},
	{"setup-host", take_place, AT(setup_host)},
	{"history", take_history, 0},
	{"import", take_import, 0},
	{"drop", take_drop, 0},
	{"seed", take_seed, AT(seed)},
	{"key-seed", take_seed, AT(key_seed)},
};

static int take_word(struct agent *a, const char *word, struct slice rest, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(word, words[i].name) == 0)
			return words[i].take(a, &words[i], rest, err);
	return err_set(err, -EINVAL, "unknown keyword '%.40s' of an agent", word);
}

/* Whether one is in the other, or both are equal. */
static bool meet_parse(const char *a, const char *b)
{
	size_t n = MIN(strlen(a), strlen(b));

	if (n && a[n - 1] == '/')
		n--;
	return strncmp(a, b, n) == 0 && (!a[n] || a[n] == '/') && (!b[n] || b[n] == '/');
}

/* What is kept on the host is the agent's alone: nothing is written there before it runs. */
static int check_seeds(const char *path, const struct agent_list *l, struct err *err)
{
	for (size_t k = 0; k < l->n; k++)
		if (meet_parse(path, l->v[k].a))
			return err_set(err, -EINVAL, "history '%s' and seed '%s' overlap", path,
				l->v[k].a);
	return 0;
}

static int check_history(const struct agent *a, struct err *err)
{
	for (size_t i = 0; i < a->history.n; i++) {
		const char *path = a->history.v[i].a;

		for (size_t k = 0; k < i; k++)
			if (meet_parse(path, a->history.v[k].a))
				return err_set(err, -EINVAL,
					"history '%s' overlaps another history", path);
		for (size_t k = 0; k < a->import.n; k++)
			if (meet_parse(path, a->import.v[k].a))
				return err_set(err, -EINVAL, "history '%s' and import '%s' overlap",
					path, a->import.v[k].a);
		if (check_seeds(path, &a->seed, err) < 0 ||
			check_seeds(path, &a->key_seed, err) < 0)
			return -EINVAL;
	}
	return 0;
}

static int check_unavailable(const struct agent *a, struct err *err)
{
	if (!a->name || !a->title || !a->about || a->base || a->command || a->package.n ||
		a->host.n || a->seed.n || a->import.n)
		return err_set(err, -EINVAL,
			"an agent with 'unavailable' has a name, a title and a line 'about', nothing else");
	return 0;
}

static int check_whole(const struct agent *a, struct err *err)
{
	if (a->unavailable)
		return check_unavailable(a, err);
	if (!a->name || !a->title || !a->about || !a->base || !a->command)
		return err_set(err, -EINVAL,
			"an agent requires a name, a title, a line 'about', a template and a command");
	if (strcmp(a->base, a->name) == 0)
		return err_set(err, -EINVAL, "the template of the agent is based on itself");
	if (a->pin.n && !a->package.n)
		return err_set(err, -EINVAL, "'integrity' without 'npm'");
	return check_history(a, err);
}

int agent_parse(struct slice text, const char *name, struct agent *ret, struct err *err)
{
	static const struct conf_form form = {.what = "an agent",
		.first = "agent 1",
		.max_bytes = AGENT_MAX_BYTES,
		.max_line = AGENT_MAX_LINE,
		.has_inner_hash = true};
	struct agent a = {0};
	struct conf c;
	int r = conf_init(&c, &form, text, name, err);

	if (r < 0)
		return r;
	while ((r = conf_next(&c, &text, err)) > 0) {
		AUTO_FREE char *word = next_word(&text);

		r = take_word(&a, word, text, err);
		if (r < 0)
			break;
	}
	if (r == 0)
		r = check_whole(&a, err);
	if (r < 0) {
		agent_done(&a);
		return conf_fail(&c, r, err);
	}
	*ret = a;
	return 0;
}
