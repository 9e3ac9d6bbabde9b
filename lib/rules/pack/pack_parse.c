/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include "lib/base/conf.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/policy/host.h"
#include "pack_internal.h"
#include "pack_path.h"

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define PRINT(s) (int)(s).n, (s).p

struct reader {
	struct pack *p;
	struct pack_path base;
	size_t rows_room, fields_room, cases_room;
	unsigned line;
};

static void reader_done(struct reader *rd)
{
	pack_path_done(&rd->base);
}

/* ---- words ---- */

static bool is_made_of(struct slice s, const char *bytes)
{
	for (size_t i = 0; i < s.n; i++)
		if (!s.p[i] || !strchr(bytes, s.p[i]))
			return false;
	return s.n > 0 && s.n <= PACK_MAX_WORD;
}

/* Lower-case words with hyphens, and for a verb one dot in the middle. */
static bool is_verb(struct slice s)
{
	const uint8_t *dot = s.n ? memchr(s.p, '.', s.n) : NULL;
	size_t at = dot ? (size_t)(dot - s.p) : 0;

	return at > 0 && is_made_of(s, LOWER DIGITS "-.") &&
	       is_made_of(slice_of(dot + 1, s.n - at - 1), LOWER DIGITS "-");
}

static int read_risk(struct slice word, enum pack_risk *ret, struct err *err)
{
	for (*ret = 0; *ret < PACK_N_RISKS; (*ret)++)
		if (slice_eq_str(word, pack_risk_name(*ret)))
			return 0;
	return err_set(err, -EINVAL,
		"unknown risk '%.*s': expected read, write, danger, money, credential, send or admin",
		PRINT(word));
}

/* Cuts NAME=VALUE; a value in quotes may contain blanks. */
static int cut_pair(struct slice word, struct slice *ret_name, struct slice *ret_value)
{
	const uint8_t *sign = word.n ? memchr(word.p, '=', word.n) : NULL;
	size_t n = sign ? (size_t)(sign - word.p) : 0;

	if (n == 0 || n + 1 == word.n)
		return -EINVAL;
	*ret_name = slice_of(word.p, n);
	*ret_value = slice_of(sign + 1, word.n - n - 1);
	return 0;
}

/* ---- one function for each word that begins a line ---- */

static int take_service(struct reader *rd, struct slice rest, struct err *err)
{
	if (rd->p->name || !is_made_of(rest, LOWER DIGITS "-") || rest.n > PACK_MAX_NAME)
		return err_set(err, -EINVAL,
			"expected 'service NAME' once, with at most %d lower-case letters, digits and hyphens",
			PACK_MAX_NAME);
	rd->p->name = xstrndup((const char *)rest.p, rest.n);
	return 0;
}

static int take_about(struct reader *rd, struct slice rest, struct err *err)
{
	if (rd->p->about.n || rest.n == 0)
		return err_set(err, -EINVAL, "expected 'about TEXT', once");
	rd->p->about = rest;
	return 0;
}

static int take_version(struct reader *rd, struct slice rest, struct err *err)
{
	if (rd->p->version.n || !is_made_of(rest, LOWER DIGITS UPPER "-. "))
		return err_set(err, -EINVAL, "expected 'version TEXT', once");
	rd->p->version = rest;
	return 0;
}

static int take_host(struct reader *rd, struct slice rest, struct err *err)
{
	struct pack *p = rd->p;
	struct slice name, plain;
	struct host host;
	uint16_t port;
	bool is_wild;
	int r = host_split(rest, &name, &port, err);

	if (r < 0)
		return r;
	if (port == 0)
		return err_set(err, -EINVAL, "expected 'host HOST:PORT'");
	is_wild = name.n > 2 && name.p[0] == '*' && name.p[1] == '.';
	plain = is_wild ? slice_of(name.p + 2, name.n - 2) : name;
	r = host_from_wire(plain, &host, err);
	if (r < 0)
		return r;
	if (pack_has_host(p, name, port))
		return err_set(err, -EEXIST, "duplicate host '%.*s'", PRINT(rest));
	if (p->n_hosts == PACK_MAX_HOSTS)
		return err_set(err, -E2BIG, "more than %d hosts", PACK_MAX_HOSTS);
	if (host.is_addr || !is_made_of(plain, LOWER DIGITS "-.") || !memchr(plain.p, '.', plain.n))
		return err_set(err, -EINVAL,
			"a host must be a name in lower case with a dot, also after '*.'");
	p->host[p->n_hosts++] = (struct pack_host){.name = name, .port = port};
	return 0;
}

static int take_graphql(struct reader *rd, struct slice rest, struct err *err)
{
	static const struct pack_path none = {0};
	struct pack_path path;
	bool is_fixed = true;
	int r;

	if (rd->p->graphql.n)
		return err_set(err, -EINVAL, "expected 'graphql PATH', once");
	r = pack_path_parse(rest, &none, &path, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < path.n; i++)
		is_fixed = is_fixed && path.seg[i].kind == PACK_LITERAL && path.seg[i].text.n > 0;
	pack_path_done(&path);
	if (!is_fixed)
		return err_set(err, -EINVAL, "the path of graphql must be fixed");
	rd->p->graphql = rest;
	return 0;
}

static int take_override(struct reader *rd, struct slice rest, struct err *err)
{
	if (rd->p->has_override || !slice_eq_str(rest, "form"))
		return err_set(err, -EINVAL, "expected 'override form', once");
	rd->p->has_override = true;
	return 0;
}

static int take_base(struct reader *rd, struct slice rest, struct err *err)
{
	static const struct pack_path none = {0};
	struct pack_path path;
	int r;

	pack_path_done(&rd->base);
	if (slice_eq_str(rest, "/"))
		return 0;
	r = pack_path_parse(rest, &none, &path, err);
	if (r < 0)
		return r;
	if (path.many < path.n || path.seg[path.n - 1].text.n == 0) {
		pack_path_done(&path);
		return err_set(
			err, -EINVAL, "a base must not contain ** and must not end with '/'");
	}
	rd->base = path;
	return 0;
}

/* Braces are paired and not empty. */
static bool has_paired_braces(struct slice s)
{
	bool is_open = false;

	for (size_t i = 0; i < s.n; i++) {
		if ((s.p[i] == '{' && is_open) || (s.p[i] == '}' && !is_open) ||
			(s.p[i] == '}' && s.p[i - 1] == '{'))
			return false;
		is_open = s.p[i] == '{' || (is_open && s.p[i] != '}');
	}
	return !is_open;
}

static int take_object(struct reader *rd, struct slice rest, struct err *err)
{
	struct pack *p = rd->p;
	struct slice name = conf_word(&rest), text = conf_word(&rest);

	if (!is_made_of(name, LOWER DIGITS "-") || !has_paired_braces(text) ||
		!is_made_of(text, LOWER UPPER DIGITS "-_./{}:@") ||
		(rest.n && !slice_eq_str(rest, "fold")))
		return err_set(err, -EINVAL, "expected 'object NAME TEXT [fold]'");
	for (size_t i = 0; i < p->n_objects; i++)
		if (slice_eq(p->object[i].name, name))
			return err_set(err, -EEXIST, "duplicate object '%.*s'", PRINT(name));
	if (p->n_objects == PACK_MAX_OBJECTS)
		return err_set(err, -E2BIG, "more than %d objects", PACK_MAX_OBJECTS);
	p->object[p->n_objects++] =
		(struct pack_object){.name = name, .text = text, .is_folded = rest.n > 0};
	return 0;
}

/* ---- rows ---- */

static int read_source(struct slice word, enum pack_source *ret, struct err *err)
{
	static const char *const words[] = {[PACK_FROM_PATH] = "path",
		[PACK_FROM_QUERY] = "query",
		[PACK_FROM_HEADER] = "header",
		[PACK_FROM_JSON] = "json",
		[PACK_FROM_ARG] = "arg"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (slice_eq_str(word, words[i])) {
			*ret = (enum pack_source)i;
			return 0;
		}
	return err_set(err, -EINVAL,
		"unknown source '%.*s': expected path, query, header, json or arg", PRINT(word));
}

static int check_place(
	const struct pack_row *row, enum pack_source source, struct slice at, struct err *err)
{
	if (source == PACK_FROM_PATH && !pack_path_has(&row->path, at))
		return err_set(err, -EINVAL, "the path has no placeholder '%.*s'", PRINT(at));
	if ((source == PACK_FROM_ARG) != (row->field.n > 0))
		return err_set(err, -EINVAL,
			"a field of graphql has the source arg, and other rows do not have it");
	if ((source == PACK_FROM_JSON || source == PACK_FROM_ARG) &&
		(at.n < 2 || at.p[0] != '/' || at.p[at.n - 1] == '/'))
		return err_set(err, -EINVAL, "expected a JSON pointer such as /title");
	if (source == PACK_FROM_HEADER && !is_made_of(at, LOWER DIGITS "-"))
		return err_set(err, -EINVAL, "a header name must be in lower case");
	return at.n <= PACK_MAX_WORD ? 0 : err_set(err, -E2BIG, "'%.*s' is too long", PRINT(at));
}

/* NAME=SOURCE:PLACE */
static int take_show(struct pack_row *row, struct slice word, struct err *err)
{
	struct pack_show *show = &row->show[row->n_shows];
	struct slice value;
	const uint8_t *colon;
	int r;

	if (row->n_shows == PACK_MAX_SHOWS)
		return err_set(err, -E2BIG, "more than %d values to show", PACK_MAX_SHOWS);
	if (cut_pair(word, &show->name, &value) < 0 || !is_made_of(show->name, LOWER DIGITS "_") ||
		pack_path_has(&row->path, show->name))
		return err_set(err, -EINVAL, "expected a new NAME=SOURCE, not '%.*s'", PRINT(word));
	colon = memchr(value.p, ':', value.n);
	if (!colon)
		return err_set(err, -EINVAL, "expected SOURCE:PLACE, not '%.*s'", PRINT(value));
	r = read_source(slice_of(value.p, (size_t)(colon - value.p)), &show->source, err);
	show->at = slice_of(colon + 1, value.n - (size_t)(colon - value.p) - 1);
	if (r == 0)
		r = check_place(row, show->source, show->at, err);
	row->n_shows += r == 0;
	return r;
}

static int take_say(struct pack_row *row, struct slice *rest, struct err *err)
{
	const uint8_t *end =
		rest->n > 2 && rest->p[0] == '"' ? memchr(rest->p + 1, '"', rest->n - 1) : NULL;

	if (!end || end == rest->p + 1 || row->say.n)
		return err_set(err, -EINVAL, "expected 'say \"TEXT\"', once");
	row->say = slice_of(rest->p + 1, (size_t)(end - rest->p) - 1);
	*rest = slice_trim(slice_of(end + 1, rest->n - row->say.n - 2));
	return has_paired_braces(row->say) ? 0 : err_set(err, -EINVAL, "the braces are not paired");
}

static int take_when(struct pack_row *row, struct slice *rest, struct err *err)
{
	struct pack_when *when = &row->when[row->n_whens];
	int r = read_source(conf_word(rest), &when->source, err);

	if (r < 0)
		return r;
	if (row->n_whens == PACK_MAX_WHENS)
		return err_set(err, -E2BIG, "more than %d conditions", PACK_MAX_WHENS);
	if (when->source == PACK_FROM_PATH || when->source == PACK_FROM_ARG ||
		cut_pair(conf_word(rest), &when->at, &when->glob) < 0)
		return err_set(err, -EINVAL,
			"expected 'when query NAME=GLOB', 'when header NAME=GLOB' or 'when json /POINTER=GLOB'");
	if (when->glob.n > PACK_MAX_WORD)
		return err_set(err, -E2BIG, "the pattern is too long");
	row->n_whens++;
	return check_place(row, when->source, when->at, err);
}

/* What stands after the path: on, show, say, when. */
static int take_options(struct reader *rd, struct pack_row *row, struct slice rest, struct err *err)
{
	struct slice word = conf_word(&rest), name = conf_word(&rest);
	int r = 0;

	while (row->object < rd->p->n_objects && !slice_eq(rd->p->object[row->object].name, name))
		row->object++;
	if (!slice_eq_str(word, "on") || row->object == rd->p->n_objects)
		return err_set(err, -EINVAL, "expected 'on OBJECT' with an object line above");
	while (r == 0 && rest.n) {
		word = conf_word(&rest);
		if (slice_eq_str(word, "say"))
			r = take_say(row, &rest, err);
		else if (slice_eq_str(word, "when"))
			do {
				r = take_when(row, &rest, err);
			} while (r == 0 && rest.n);
		else if (slice_eq_str(word, "show") || row->n_shows > 0)
			r = take_show(row, row->n_shows ? word : conf_word(&rest), err);
		else
			r = err_set(err, -EINVAL, "unexpected '%.*s': expected show, say or when",
				PRINT(word));
	}
	return r;
}

static bool has_name(const struct pack_row *row, struct slice name)
{
	for (size_t i = 0; i < row->n_shows; i++)
		if (slice_eq(row->show[i].name, name))
			return true;
	return pack_path_has(&row->path, name);
}

/* Every {name} of a text is a placeholder of the path or a value to show. */
static int check_names(const struct pack_row *row, struct slice text, struct err *err)
{
	for (size_t i = 0, from = 0; i < text.n; i++) {
		struct slice name = slice_of(text.p + from, i - from);

		if (text.p[i] == '{')
			from = i + 1;
		if (text.p[i] == '}' && !has_name(row, name))
			return err_set(err, -EINVAL, "no placeholder or value is named '%.*s'",
				PRINT(name));
	}
	return 0;
}

static int check_row(const struct reader *rd, const struct pack_row *row, struct err *err)
{
	const struct pack_path *path = &row->path;
	bool is_rest = path->many < path->n && path->seg[path->many].text.n == 0;
	int r;

	if (is_rest && (row->risk != PACK_READ || !slice_eq_str(row->method, "GET")))
		return err_set(err, -EINVAL, "a row with ** must have the risk read and GET");
	r = check_names(row, rd->p->object[row->object].text, err);
	return r < 0 ? r : check_names(row, row->say, err);
}

/* query NAME, mutation NAME or subscription NAME instead of a method and a path. */
static int read_field(
	const struct reader *rd, struct slice name, struct pack_row *row, struct err *err)
{
	bool is_any = slice_eq_str(name, "*");

	row->field = name;
	if (!rd->p->graphql.n)
		return err_set(err, -EINVAL, "expected 'graphql PATH' above");
	if (!is_any && !is_made_of(name, LOWER UPPER DIGITS "_"))
		return err_set(err, -EINVAL, "invalid field '%.*s'", PRINT(name));
	if (is_any && (row->risk != PACK_READ || !slice_eq_str(row->method, "query")))
		return err_set(err, -EINVAL, "a row with * must have the risk read and query");
	for (size_t i = 0; i < rd->p->n_fields; i++)
		if (slice_eq(rd->p->field[i].field, name) &&
			slice_eq(rd->p->field[i].method, row->method))
			return err_set(err, -EEXIST, "duplicate field '%.*s'", PRINT(name));
	return 0;
}

static bool is_field(struct slice method)
{
	return slice_eq_str(method, "query") || slice_eq_str(method, "mutation") ||
	       slice_eq_str(method, "subscription");
}

static int read_row(struct reader *rd, struct slice rest, struct pack_row *row, struct err *err)
{
	int r = read_risk(conf_word(&rest), &row->risk, err);

	if (r < 0)
		return r;
	row->verb = conf_word(&rest);
	row->method = conf_word(&rest);
	if (!is_verb(row->verb))
		return err_set(err, -EINVAL, "invalid verb '%.*s': use a form such as issue.create",
			PRINT(row->verb));
	if (is_field(row->method)) {
		r = read_field(rd, conf_word(&rest), row, err);
		if (r == 0)
			r = take_options(rd, row, rest, err);
		return r < 0 ? r : check_row(rd, row, err);
	}
	if (!is_made_of(row->method, UPPER))
		return err_set(err, -EINVAL, "invalid method '%.*s'", PRINT(row->method));
	if (slice_eq_str(row->method, "HEAD"))
		return err_set(err, -EINVAL, "a row for GET matches HEAD too");
	r = pack_path_parse(conf_word(&rest), &rd->base, &row->path, err);
	if (r == 0)
		r = take_options(rd, row, rest, err);
	return r < 0 ? r : check_row(rd, row, err);
}

static void add_row(struct pack_row **list, size_t *n, size_t *room, const struct pack_row *row)
{
	if (*n == *room) {
		*room = MAX(*room * 2, 16u);
		*list = xrealloc(*list, *room * sizeof(*row));
	}
	(*list)[(*n)++] = *row;
}

static int take_op(struct reader *rd, struct slice rest, struct err *err)
{
	struct pack *p = rd->p;
	struct pack_row row = {.line = rd->line};
	int r;

	if (p->n_rows == PACK_MAX_ROWS || p->n_fields == PACK_MAX_FIELDS)
		return err_set(err, -E2BIG, "more than %d rows, or %d rows of graphql",
			PACK_MAX_ROWS, PACK_MAX_FIELDS);
	r = read_row(rd, rest, &row, err);
	if (r < 0) {
		pack_path_done(&row.path);
		return r;
	}
	if (row.field.n)
		add_row(&p->field, &p->n_fields, &rd->fields_room, &row);
	else
		add_row(&p->row, &p->n_rows, &rd->rows_room, &row);
	return 0;
}

/* ---- cases ---- */

/* The text before the last " = ", and what follows it. */
static bool cut_effect(struct slice text, struct slice *ret_request, struct slice *ret_effect)
{
	for (size_t i = text.n; i-- > 1;) {
		if (i + 1 >= text.n || text.p[i] != '=' || text.p[i - 1] != ' ' ||
			text.p[i + 1] != ' ')
			continue;
		*ret_request = slice_trim(slice_of(text.p, i));
		*ret_effect = slice_trim(slice_of(text.p + i + 1, text.n - i - 1));
		return true;
	}
	return false;
}

static int take_case(struct reader *rd, struct slice rest, struct err *err)
{
	struct pack *p = rd->p;
	struct pack_case c = {.line = rd->line};
	struct slice word;

	if (p->n_cases == PACK_MAX_CASES)
		return err_set(err, -E2BIG, "more than %d cases", PACK_MAX_CASES);
	if (!cut_effect(rest, &rest, &c.effect))
		return err_set(err, -EINVAL,
			"expected 'case METHOD TARGET [header NAME=VALUE] [body TEXT] = EFFECT'");
	c.method = conf_word(&rest);
	c.target = conf_word(&rest);
	word = conf_word(&rest);
	if (slice_eq_str(word, "header")) {
		if (cut_pair(conf_word(&rest), &c.header, &c.value) < 0)
			return err_set(err, -EINVAL, "expected 'header NAME=VALUE'");
		word = conf_word(&rest);
	}
	c.has_body = slice_eq_str(word, "body");
	c.body = rest;
	if (!c.target.n || (word.n && !c.has_body) || (c.has_body && !rest.n))
		return err_set(err, -EINVAL,
			"expected 'case METHOD TARGET [header NAME=VALUE] [body TEXT] = EFFECT'");
	if (p->n_cases == rd->cases_room) {
		rd->cases_room = MAX(rd->cases_room * 2, 16u);
		p->cases = xrealloc(p->cases, rd->cases_room * sizeof(c));
	}
	p->cases[p->n_cases++] = c;
	return 0;
}

/* ---- the whole ---- */

static int take_line(struct reader *rd, struct slice line, struct err *err)
{
	static const struct {
		const char *word;
		int (*take)(struct reader *rd, struct slice rest, struct err *err);
	} words[] = {
		{"service", take_service},
		{"about", take_about},
		{"version", take_version},
		{"host", take_host},
		{"override", take_override},
		{"graphql", take_graphql},
		{"base", take_base},
		{"object", take_object},
		{"op", take_op},
		{"case", take_case},
	};
	struct slice word = conf_word(&line);

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (slice_eq_str(word, words[i].word))
			return words[i].take(rd, line, err);
	return err_set(err, -EINVAL, "unknown keyword '%.*s'",
		PRINT(slice_of(word.p, MIN(word.n, PACK_MAX_WORD))));
}

static int check_pack(struct pack *p, struct err *err)
{
	int r;

	if (!p->name || !p->about.n || p->n_hosts == 0 || p->n_rows == 0)
		return err_set(
			err, -EINVAL, "the lines service, about, host and op must be present");
	if (p->graphql.n && p->n_fields == 0)
		return err_set(err, -EINVAL, "graphql has no row");
	r = pack_sort_rows(p, err);
	return r < 0 ? r : pack_run_cases(p, err);
}

static int read_lines(struct slice text, const char *name, struct pack *p, struct err *err)
{
	static const struct conf_form form = {.what = "an API pack",
		.first = "api 1",
		.max_bytes = PACK_MAX_BYTES,
		.max_line = PACK_MAX_LINE,
		.has_inner_hash = true};
	CLEANUP(reader_done) struct reader rd = {.p = p};
	struct slice line;
	struct conf c;
	int r = conf_init(&c, &form, text, name, err);

	if (r < 0)
		return r;
	p->text = xmalloc(text.n + 1);
	memcpy(p->text, text.n ? (const char *)text.p : "", text.n);
	p->text[text.n] = '\0';
	c.rest = slice_of(p->text, text.n);
	while ((r = conf_next(&c, &line, err)) == 1) {
		rd.line = c.line;
		r = take_line(&rd, line, err);
		if (r < 0)
			break;
	}
	return r < 0 ? conf_fail(&c, r, err) : 0;
}

int pack_parse(struct slice text, const char *name, struct pack *ret, struct err *err)
{
	AUTO_PACK struct pack p = {0};
	int r = read_lines(text, name, &p, err);

	if (r < 0)
		return r;
	r = check_pack(&p, err);
	if (r < 0)
		return err_wrap(err, r, "%s", name);
	*ret = p;
	p = (struct pack){0};
	return 0;
}

int pack_parse_calls(struct slice text, const char *name, struct pack *ret, struct err *err)
{
	AUTO_PACK struct pack p = {0};
	int r = read_lines(text, name, &p, err);

	if (r < 0)
		return r;
	if (!p.name || !p.graphql.n)
		return err_set(err, -EINVAL, "%s: it has no GraphQL", name);
	for (size_t i = 0; i < p.n_rows; i++)
		pack_path_done(&p.row[i].path);
	p.n_rows = 0;
	*ret = p;
	p = (struct pack){0};
	return 0;
}
