/* SPDX-License-Identifier: Apache-2.0 */
/* Part of change.h: dependencies and scripts in manifests. Texts of the guest, no I/O. */
#include <ctype.h>

#include "change_internal.h"
#include "lib/base/json/jtext.h"

static const struct slice none = {0};

static bool starts_with(struct slice s, const char *word)
{
	return s.n >= strlen(word) && memcmp(s.p, word, strlen(word)) == 0;
}

static bool ends_with(struct slice s, const char *word)
{
	return s.n >= strlen(word) && memcmp(s.p + s.n - strlen(word), word, strlen(word)) == 0;
}

static struct slice skip_bytes(struct slice s, size_t n)
{
	(void)slice_take(&s, n);
	return s;
}

static size_t find_byte(struct slice s, char c)
{
	const uint8_t *p = s.n ? memchr(s.p, c, s.n) : NULL;

	return p ? (size_t)(p - s.p) : s.n;
}

/* Up to the first byte of `set`. */
static struct slice take_until(struct slice *rest, const char *set)
{
	size_t n = 0;

	while (n < rest->n && !strchr(set, rest->p[n]))
		n++;
	return slice_take(rest, n);
}

/* Without quotes of either kind around it. */
static struct slice strip_quotes(struct slice s)
{
	s = slice_trim(s);
	if (s.n >= 2 && (s.p[0] == '"' || s.p[0] == '\'') && s.p[s.n - 1] == s.p[0])
		return slice_of(s.p + 1, s.n - 2);
	return s;
}

/* A value that names where something comes from; a version does not. */
static struct slice source_of(struct slice value)
{
	return find_byte(value, ':') < value.n || find_byte(value, '/') < value.n ? value : none;
}

/* The next text in quotes; false at the end. */
static bool take_quoted(struct slice *rest, struct slice *ret)
{
	uint8_t quote;

	(void)take_until(rest, "\"'");
	if (rest->n < 2) {
		*rest = none;
		return false;
	}
	quote = rest->p[0];
	(void)slice_take(rest, 1);
	*ret = slice_take(rest, find_byte(*rest, (char)quote));
	(void)slice_take(rest, 1);
	return true;
}

/* ---- package.json ---- */

static const char *const package_parts[] = {"dependencies", "devDependencies",
	"optionalDependencies", "peerDependencies", "overrides", "resolutions"};

static bool has_dependencies(struct slice key)
{
	for (size_t i = 0; i < ARRAY_LEN(package_parts); i++)
		if (slice_eq_str(key, package_parts[i]))
			return true;
	return false;
}

void change_read_package(struct slice text, struct change_list *ret)
{
	struct jtext_walk walk;
	struct jtext_member m;
	bool deps = false, scripts = false;
	int r;

	if (starts_with(text, "\357\273\277")) /* npm skips a byte order mark */
		text = skip_bytes(text, 3);
	if (slice_trim(text).n == 0)
		return;
	walk = jtext_begin(text, JTEXT_MAX_DEPTH);
	while ((r = jtext_next(&walk, &m)) > 0) {
		if (m.depth == 1) {
			/* A key can be written with escapes: it counts as all of them. */
			bool hidden = find_byte(m.key, '\\') < m.key.n;

			deps = hidden || has_dependencies(m.key);
			scripts = hidden || slice_eq_str(m.key, "scripts");
		} else if (deps) {
			change_add(ret, CHANGE_DEPENDENCY, m.key, source_of(m.value));
		}
		if (m.depth == 2 && scripts)
			change_add(ret, CHANGE_SCRIPT, m.key, m.value);
	}
	ret->is_bad = r < 0;
}

/* ---- TOML ---- */

struct toml {
	struct slice section;
	bool in_array; /* the lines are requirements until ']' */
	struct change_list *list;
};

/* "requests[socks]>=2" -> "requests" */
static struct slice requirement_name(struct slice s)
{
	size_t n = 0;

	s = slice_trim(s);
	while (n < s.n && (isalnum(s.p[n]) || strchr("._-", s.p[n])))
		n++;
	return slice_of(s.p, n);
}

static void add_requirement(struct change_list *l, struct slice s)
{
	change_add(l, CHANGE_DEPENDENCY, requirement_name(s), source_of(s));
}

/* Up to ']' or the end of the line. */
static void read_array(struct toml *t, struct slice line)
{
	struct slice word;

	t->in_array = true;
	while (line.n) {
		(void)take_until(&line, "\"'#]");
		if (line.n && line.p[0] == ']')
			t->in_array = false;
		if (line.n && (line.p[0] == ']' || line.p[0] == '#'))
			return;
		if (take_quoted(&line, &word))
			add_requirement(t->list, word);
	}
}

/* [dependencies], [target.x.dev-dependencies], [tool.poetry.group.x.dependencies] */
static bool is_dependency_table(struct slice name)
{
	return ends_with(name, "dependencies") || slice_eq_str(name, "dependency-groups") ||
	       starts_with(name, "patch.") || slice_eq_str(name, "replace") ||
	       ends_with(name, "uv.sources");
}

static void read_section(struct toml *t, struct slice line)
{
	struct slice name = line;

	while (name.n && name.p[0] == '[')
		name = skip_bytes(name, 1);
	name = slice_of(name.p, find_byte(name, ']'));
	t->section = slice_trim(name);
	/* [dependencies.NAME] */
	for (size_t i = 0; i < name.n; i++)
		if (name.p[i] == '.' && ends_with(slice_of(name.p, i), "dependencies"))
			change_add(t->list, CHANGE_DEPENDENCY,
				strip_quotes(slice_of(name.p + i + 1, name.n - i - 1)), none);
}

/* { a = "1", b = { git = "..." } }: each key, those of the inner tables too. */
static void read_inline(struct toml *t, struct slice value)
{
	while (value.n) {
		struct slice part = take_until(&value, "{},");
		size_t n = find_byte(part, '=');

		if (n < part.n)
			change_add(t->list, CHANGE_DEPENDENCY, strip_quotes(slice_of(part.p, n)),
				source_of(skip_bytes(part, n + 1)));
		(void)slice_take(&value, 1);
	}
}

static void read_key(struct toml *t, struct slice line)
{
	size_t n = find_byte(line, '=');
	struct slice key = strip_quotes(slice_of(line.p, n)), value;
	bool in_table = is_dependency_table(t->section);

	if (n == line.n)
		return;
	value = slice_trim(skip_bytes(line, n + 1));
	if (value.n && value.p[0] == '[' &&
		(in_table || slice_eq_str(key, "requires") || ends_with(key, "dependencies"))) {
		read_array(t, value);
	} else if (in_table) {
		change_add(t->list, CHANGE_DEPENDENCY,
			strip_quotes(slice_of(key.p, find_byte(key, '.'))), source_of(value));
	} else if (ends_with(key, "dependencies") && value.n && value.p[0] == '{') {
		read_inline(t, value);
	} else {
		for (size_t i = 0; i < key.n; i++)
			if (key.p[i] == '.' && ends_with(slice_of(key.p, i), "dependencies"))
				change_add(t->list, CHANGE_DEPENDENCY, skip_bytes(key, i + 1),
					source_of(value));
	}
}

void change_read_toml(struct slice text, struct change_list *ret)
{
	struct toml t = {.list = ret};

	while (text.n) {
		struct slice line = slice_trim(slice_next_line(&text));

		if (t.in_array)
			read_array(&t, line);
		else if (line.n && line.p[0] == '[')
			read_section(&t, line);
		else if (line.n && line.p[0] != '#')
			read_key(&t, line);
	}
}

/* ---- lines ---- */

void change_read_requirements(struct slice text, struct change_list *ret)
{
	while (text.n) {
		struct slice line = slice_trim(slice_next_line(&text));

		if (line.n == 0 || line.p[0] == '#')
			continue;
		/* -r, -e, --index-url, URLs and paths: the whole line. */
		if (line.p[0] == '-' || source_of(slice_of(line.p, find_byte(line, ' '))).n)
			change_add(ret, CHANGE_DEPENDENCY, line, none);
		else
			add_requirement(ret, line);
	}
}

void change_read_gomod(struct slice text, struct change_list *ret)
{
	bool in_block = false;

	while (text.n) {
		struct slice line = slice_trim(slice_next_line(&text));
		bool single = starts_with(line, "require ") || starts_with(line, "replace ") ||
			      starts_with(line, "tool ");

		if (single && ends_with(line, "(")) {
			in_block = true;
		} else if (line.n && line.p[0] == ')') {
			in_block = false;
		} else if ((single || in_block) && !starts_with(line, "//")) {
			struct slice rest =
				single ? skip_bytes(line, find_byte(line, ' ') + 1) : line;
			bool replaces = memmem(rest.p, rest.n, "=>", 2);

			rest = slice_trim(rest);
			change_add(ret, CHANGE_DEPENDENCY,
				replaces ? rest : slice_of(rest.p, find_byte(rest, ' ')), none);
		}
	}
}

void change_read_gemfile(struct slice text, struct change_list *ret)
{
	static const char *const words[] = {
		"gem ", "gem(", "source ", "source(", "git ", "git_source"};

	while (text.n) {
		struct slice line = slice_trim(slice_next_line(&text)), name;

		/* spec.add_dependency, add_development_dependency */
		for (size_t i = 0; i < ARRAY_LEN(words); i++) {
			struct slice rest = line;

			if (starts_with(line, words[i]) && take_quoted(&rest, &name))
				change_add(ret, CHANGE_DEPENDENCY, name, source_of(rest));
		}
		if (memmem(line.p, line.n, "_dependency", 11) && take_quoted(&line, &name))
			change_add(ret, CHANGE_DEPENDENCY, name, none);
	}
}

/* <groupId>a</groupId> ... <artifactId>b</artifactId>: "b" with a as its value. */
void change_read_pom(struct slice text, struct change_list *ret)
{
	struct slice group = none;

	while (text.n) {
		struct slice tag;

		(void)take_until(&text, "<");
		(void)slice_take(&text, 1);
		tag = take_until(&text, ">");
		(void)slice_take(&text, 1);
		if (slice_eq_str(tag, "groupId"))
			group = take_until(&text, "<");
		else if (slice_eq_str(tag, "artifactId"))
			change_add(ret, CHANGE_DEPENDENCY, take_until(&text, "<"), group);
		else if (slice_eq_str(tag, "url"))
			change_add(ret, CHANGE_DEPENDENCY, take_until(&text, "<"), none);
	}
}

/* "group:name:version" without the version. */
static struct slice coordinate_of(struct slice s)
{
	size_t n = find_byte(s, ':');

	if (n == s.n || find_byte(s, '/') < s.n || find_byte(s, ' ') < s.n)
		return none;
	return slice_of(s.p, n + 1 + find_byte(skip_bytes(s, n + 1), ':'));
}

void change_read_gradle(struct slice text, struct change_list *ret)
{
	while (text.n) {
		struct slice line = slice_trim(slice_next_line(&text)), word;
		bool names = starts_with(line, "id ") || starts_with(line, "id(") ||
			     starts_with(line, "url") || starts_with(line, "maven");

		while (!starts_with(line, "//") && take_quoted(&line, &word)) {
			change_add(
				ret, CHANGE_DEPENDENCY, names ? word : coordinate_of(word), none);
			names = false;
		}
	}
}
