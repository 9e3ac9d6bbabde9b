/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include "lib/base/conf.h"
#include "lib/base/mem.h"
#include "service_internal.h"

/* ---- small texts ---- */

static bool has_only(struct slice s, const char *allowed)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] == '\0' || !strchr(allowed, s.p[i]))
			return false;
	return s.n > 0 && s.n <= SERVICE_MAX_WORD;
}

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static bool is_name(struct slice s)
{
	return has_only(s, LOWER DIGITS "-");
}

/* Printable ASCII without blanks. */
static bool is_solid(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= 0x20 || s.p[i] >= 0x7f)
			return false;
	return s.n > 0 && s.n <= SERVICE_MAX_TEXT;
}

static char *dup_slice(struct slice s)
{
	return xstrndup((const char *)s.p, s.n);
}

/* ---- one function for each word that begins a line ---- */

struct reader {
	struct service s;
	struct service_slot *slot; /* NULL: no slot has begun */
	struct conf c;
};

static int take_name(struct reader *rd, struct slice rest, struct err *err)
{
	if (rd->s.name)
		return err_set(err, -EINVAL, "duplicate service name");
	if (!is_name(rest))
		return err_set(err, -EINVAL,
			"invalid name: use 1 to %d lowercase letters, digits and hyphens",
			SERVICE_MAX_WORD);
	rd->s.name = dup_slice(rest);
	return 0;
}

static int take_about(struct reader *rd, struct slice rest, struct err *err)
{
	if (rd->s.about || rest.n == 0 || rest.n > SERVICE_MAX_TEXT)
		return err_set(err, -EINVAL, "expected 'about TEXT' of at most %d bytes, once",
			SERVICE_MAX_TEXT);
	rd->s.about = dup_slice(rest);
	return 0;
}

/* Headers that frame or route a request, or are ours, cannot carry a credential. */
static bool is_reserved(struct slice header)
{
	static const char *const list[] = {"host", "content-length", "content-type",
		"transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade",
		"expect", "date", "range"};

	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		if (slice_eq_str(header, list[i]))
			return true;
	return (header.n >= 6 && memcmp(header.p, "proxy-", 6) == 0) ||
	       (header.n >= 4 && memcmp(header.p, "sbx-", 4) == 0);
}

static int check_header(struct slice name, struct err *err)
{
	if (!has_only(name, LOWER DIGITS "-_"))
		return err_set(err, -EINVAL, "a header name must be lowercase");
	if (is_reserved(name))
		return err_set(err, -EINVAL, "header '%.*s' cannot carry a credential", (int)name.n,
			(const char *)name.p);
	return 0;
}

/* WHERE NAME of 'known' and 'pass', put into a list that has room for `max`. */
static int take_place(struct slice rest, const char *word, struct service_known *list, size_t *n,
	size_t max, struct err *err)
{
	struct slice where = conf_word(&rest);
	struct service_known known = {.where = SERVICE_IN_HEADER};
	int r = 0;

	if (*n == max)
		return err_set(err, -E2BIG, "more than %zu lines '%s'", max, word);
	if (slice_eq_str(where, "query"))
		known.where = SERVICE_IN_QUERY;
	else if (slice_eq_str(where, "cookie"))
		known.where = SERVICE_IN_COOKIE;
	else if (!slice_eq_str(where, "header"))
		return err_set(err, -EINVAL,
			"expected '%s header NAME', '%s query NAME' or '%s cookie NAME'", word,
			word, word);
	if (known.where == SERVICE_IN_HEADER)
		r = check_header(rest, err);
	else if (!has_only(rest, LOWER UPPER DIGITS "-_.$"))
		r = err_set(err, -EINVAL, "invalid name of a query field or cookie");
	if (r < 0)
		return r;
	known.name = dup_slice(rest);
	list[(*n)++] = known;
	return 0;
}

static int take_known(struct reader *rd, struct slice rest, struct err *err)
{
	return take_place(rest, "known", rd->s.known, &rd->s.n_known, SERVICE_MAX_KNOWN, err);
}

static int take_pass(struct reader *rd, struct slice rest, struct err *err)
{
	return take_place(rest, "pass", rd->s.passed, &rd->s.n_passed, SERVICE_MAX_PASSED, err);
}

/* Makes a placeholder recognizable: `proxy-managed`, or without the hyphen. */
static int check_sentinel(struct slice s, struct err *err)
{
	AUTO_FREE char *text = NULL;

	if (!is_solid(s) || s.n < 8)
		return err_set(err, -EINVAL,
			"invalid placeholder: use 8 to %d printable characters without spaces",
			SERVICE_MAX_TEXT);
	text = dup_slice(s);
	if (!strcasestr(text, "proxy-managed") && !strcasestr(text, "proxymanaged"))
		return err_set(
			err, -EINVAL, "the placeholder must contain proxy-managed or proxymanaged");
	return 0;
}

static int check_token_sentinel(struct slice s, struct err *err)
{
	const uint8_t *star = s.n ? memchr(s.p, '*', s.n) : NULL;

	if (star && star != s.p + s.n - 1)
		return err_set(
			err, -EINVAL, "the placeholder of a field can contain '*' only at its end");
	return check_sentinel(s, err);
}

static int take_env(struct reader *rd, struct slice rest, struct err *err)
{
	struct slice name = conf_word(&rest);
	int r;

	if (rd->s.n_envs == SERVICE_MAX_ENVS)
		return err_set(err, -E2BIG, "more than %d lines 'env'", SERVICE_MAX_ENVS);
	if (!has_only(name, UPPER DIGITS "_") || strchr(DIGITS, name.p[0]))
		return err_set(
			err, -EINVAL, "expected 'env NAME PLACEHOLDER' with an uppercase name");
	for (size_t i = 0; i < rd->s.n_envs; i++)
		if (slice_eq_str(name, rd->s.env[i].name))
			return err_set(err, -EEXIST, "duplicate variable %s", rd->s.env[i].name);
	r = check_sentinel(rest, err);
	if (r < 0)
		return r;
	rd->s.env[rd->s.n_envs++] =
		(struct service_env){.name = dup_slice(name), .sentinel = dup_slice(rest)};
	return 0;
}

/* Two labels written out at the end, or one address; with a port. */
static int check_host(const struct netrule *nr, struct err *err)
{
	const char *end = nr->form == NETRULE_NAME ? nr->name + nr->n_glob : NULL;

	if (nr->form == NETRULE_EVERY)
		return err_set(err, -EINVAL, "a credential cannot be used for every host");
	if (!nr->ports.lo)
		return err_set(err, -EINVAL, "a host of a service requires a port, such as :443");
	if (nr->form == NETRULE_ADDR && nr->net.prefix != nr->net.addr.n * 8)
		return err_set(err, -EINVAL, "a credential cannot be used for a network");
	if (end && (nr->n_glob || nr->deep) && !strchr(end, '.'))
		return err_set(
			err, -EINVAL, "the last two labels of a host cannot contain a wildcard");
	return 0;
}

static int parse_host(struct slice text, struct netrule *ret, struct err *err)
{
	int r = netrule_parse(text, ret, err);

	if (r < 0)
		return r;
	r = check_host(ret, err);
	if (r < 0)
		netrule_done(ret);
	return r;
}

static bool is_segment(struct slice s)
{
	return slice_eq_str(s, "*") || slice_eq_str(s, "**") || !memchr(s.p, '*', s.n);
}

/* `/a/STAR/b`: one blank-free text that begins with a slash, with whole segments as patterns. */
static int check_path(struct slice s, struct err *err)
{
	size_t begin = 1, deep = 0;

	if (!is_solid(s) || s.p[0] != '/' || memchr(s.p, '?', s.n) || memchr(s.p, '%', s.n))
		return err_set(err, -EINVAL,
			"a path must begin with '/' and not contain spaces, '?' or '%%'");
	for (size_t i = 1; i <= s.n; i++) {
		struct slice segment = slice_of(s.p + begin, i - begin);

		if (i < s.n && s.p[i] != '/')
			continue;
		deep += slice_eq_str(segment, "**");
		if (segment.n == 0 ? s.n > 1 : !is_segment(segment))
			return err_set(err, -EINVAL, "a path segment must be a text, '*' or '**'");
		begin = i + 1;
	}
	return deep > 1 ? err_set(err, -EINVAL, "a path can contain '**' only once") : 0;
}

/* ---- 'refuse' ---- */

static char *dup_lower(struct slice s)
{
	char *text = dup_slice(s);

	for (char *p = text; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	return text;
}

static int parse_refused_path(
	struct slice method, struct slice path, struct service_refusal *ret, struct err *err)
{
	bool is_every = slice_eq_str(method, "*");
	int r;

	if (!is_every && !has_only(method, UPPER))
		return err_set(err, -EINVAL,
			"expected 'refuse METHOD PATH', 'refuse header NAME VALUE' or 'refuse "
			"query NAME VALUE'");
	r = check_path(path, err);
	if (r < 0)
		return r;
	*ret = (struct service_refusal){
		.method = is_every ? NULL : dup_slice(method), .path = dup_lower(path)};
	return 0;
}

static int parse_refused_field(
	struct slice where, struct slice rest, struct service_refusal *ret, struct err *err)
{
	struct slice name = conf_word(&rest);
	size_t stars = 0;

	if (!has_only(name, LOWER UPPER DIGITS "-_.") || !is_solid(rest))
		return err_set(err, -EINVAL, "expected a name and a value without spaces");
	for (size_t i = 0; i < rest.n; i++)
		stars += rest.p[i] == '*';
	if (stars > 1 || (stars == 1 && rest.p[0] != '*' && rest.p[rest.n - 1] != '*'))
		return err_set(
			err, -EINVAL, "a value can contain one '*', at its beginning or end");
	*ret = (struct service_refusal){
		.where = slice_eq_str(where, "query") ? SERVICE_IN_QUERY : SERVICE_IN_HEADER,
		.name = dup_lower(name),
		.value = dup_lower(rest)};
	return 0;
}

/* HOST:PORT PATH, no patterns in the path */
static int parse_endpoint(struct slice rest, struct service_endpoint *ret, struct err *err)
{
	struct slice host = conf_word(&rest);
	int r = check_path(rest, err);

	if (r < 0)
		return r;
	if (memchr(rest.p, '*', rest.n))
		return err_set(err, -EINVAL, "the path of an endpoint cannot be a pattern");
	r = parse_host(host, &ret->host, err);
	if (r == 0)
		ret->path = dup_slice(rest);
	return r;
}

static int take_token(struct reader *rd, struct slice rest, struct err *err)
{
	struct service_endpoint e = {0};
	int r;

	if (rd->s.n_endpoints == SERVICE_MAX_ENDPOINTS)
		return err_set(err, -E2BIG, "more than %d lines 'token'", SERVICE_MAX_ENDPOINTS);
	r = parse_endpoint(rest, &e, err);
	if (r == 0)
		rd->s.endpoint[rd->s.n_endpoints++] = e;
	return r;
}

static int take_check(struct reader *rd, struct slice rest, struct err *err)
{
	struct service_endpoint e = {0};
	int r;

	if (rd->s.check.path)
		return err_set(err, -EINVAL, "duplicate line 'check'");
	r = parse_endpoint(rest, &e, err);
	if (r < 0)
		return r;
	if (e.host.form != NETRULE_NAME || e.host.deep || e.host.n_glob) {
		netrule_done(&e.host);
		free(e.path);
		return err_set(err, -EINVAL, "the host of 'check' cannot be a pattern");
	}
	rd->s.check = e;
	return 0;
}

static int take_refuse(struct reader *rd, struct slice rest, struct err *err)
{
	struct service_refusal *refusal = &rd->s.refusal[rd->s.n_refusals];
	struct slice line = rest, what = conf_word(&rest);
	int r;

	if (rd->s.n_refusals == SERVICE_MAX_REFUSALS)
		return err_set(err, -E2BIG, "more than %d lines 'refuse'", SERVICE_MAX_REFUSALS);
	if (slice_eq_str(what, "header") || slice_eq_str(what, "query"))
		r = parse_refused_field(what, rest, refusal, err);
	else
		r = parse_refused_path(what, rest, refusal, err);
	if (r < 0)
		return r;
	refusal->rule = dup_slice(line);
	rd->s.n_refusals++;
	return 0;
}

static int take_capture(struct reader *rd, struct slice rest, struct err *err)
{
	struct slice method = conf_word(&rest), path = conf_word(&rest);
	bool is_every = slice_eq_str(method, "*");
	int r;

	if (rd->s.n_captures == SERVICE_MAX_CAPTURES)
		return err_set(err, -E2BIG, "more than %d lines 'capture'", SERVICE_MAX_CAPTURES);
	if (!(is_every || has_only(method, UPPER)) || !has_only(rest, LOWER UPPER DIGITS "-_."))
		return err_set(err, -EINVAL, "expected 'capture METHOD PATH FIELD'");
	r = check_path(path, err);
	if (r < 0)
		return r;
	rd->s.capture[rd->s.n_captures++] =
		(struct service_capture){.method = is_every ? NULL : dup_slice(method),
			.path = dup_lower(path),
			.field = dup_slice(rest)};
	return 0;
}

static int take_field(struct reader *rd, struct slice rest, struct err *err)
{
	static const struct {
		const char *name;
		bool sentinel;
	} kinds[SERVICE_FIELD_KINDS] = {
		[SERVICE_FIELD_ACCESS] = {"access", true},
		[SERVICE_FIELD_REFRESH] = {"refresh", true},
		[SERVICE_FIELD_EXPIRES] = {"expires", false},
		[SERVICE_FIELD_UNSIGN] = {"unsign", false},
	};
	struct slice kind = conf_word(&rest), name = conf_word(&rest);
	size_t k = 0;
	int r = 0;

	while (k < ARRAY_LEN(kinds) && !slice_eq_str(kind, kinds[k].name))
		k++;
	if (k == ARRAY_LEN(kinds) || !has_only(name, LOWER UPPER DIGITS "_-"))
		return err_set(err, -EINVAL,
			"expected 'field access|refresh NAME PLACEHOLDER' or 'field expires|unsign NAME'");
	if (rd->s.n_fields == SERVICE_MAX_FIELDS)
		return err_set(err, -E2BIG, "more than %d lines 'field'", SERVICE_MAX_FIELDS);
	if (kinds[k].sentinel)
		r = check_token_sentinel(rest, err);
	else if (rest.n)
		r = err_set(err, -EINVAL, "field %s takes no placeholder", kinds[k].name);
	if (r < 0)
		return r;
	rd->s.field[rd->s.n_fields++] = (struct service_field){.kind = (enum service_field_kind)k,
		.name = dup_slice(name),
		.sentinel = kinds[k].sentinel ? dup_slice(rest) : NULL};
	return 0;
}

static int take_slot(struct reader *rd, struct slice rest, struct err *err)
{
	struct service_slot *slot = &rd->s.slot[rd->s.n_slots];

	if (rd->s.n_slots == SERVICE_MAX_SLOTS)
		return err_set(err, -E2BIG, "more than %d slots", SERVICE_MAX_SLOTS);
	if (!is_name(rest))
		return err_set(err, -EINVAL,
			"invalid slot name: use lowercase letters, digits and hyphens");
	for (size_t i = 0; i < rd->s.n_slots; i++)
		if (slice_eq_str(rest, rd->s.slot[i].name))
			return err_set(err, -EEXIST, "duplicate slot '%s'", rd->s.slot[i].name);
	slot->name = dup_slice(rest);
	slot->line = rd->c.line;
	rd->slot = slot;
	rd->s.n_slots++;
	return 0;
}

/* ---- lines of a slot ---- */

static int take_host(struct reader *rd, struct slice rest, struct err *err)
{
	struct service_slot *slot = rd->slot;

	for (;;) {
		const uint8_t *comma = rest.n ? memchr(rest.p, ',', rest.n) : NULL;
		size_t n = comma ? (size_t)(comma - rest.p) : rest.n;
		struct netrule nr = {0};
		int r = parse_host(slice_of(rest.p, n), &nr, err);

		if (r < 0)
			return err_wrap(
				err, r, "host '%.*s'", (int)MIN(n, 60), (const char *)rest.p);
		if (slot->n_hosts == SERVICE_MAX_HOSTS) {
			netrule_done(&nr);
			return err_set(
				err, -E2BIG, "more than %d hosts in one slot", SERVICE_MAX_HOSTS);
		}
		slot->host = xrealloc(slot->host, (slot->n_hosts + 1) * sizeof(slot->host[0]));
		slot->host[slot->n_hosts++] = nr;
		if (!comma)
			return 0;
		rest = slice_of(rest.p + n + 1, rest.n - n - 1);
	}
}

static int take_path(struct reader *rd, struct slice rest, struct err *err)
{
	struct service_slot *slot = rd->slot;
	int r = check_path(rest, err);

	if (r < 0)
		return r;
	if (slot->n_paths == SERVICE_MAX_PATHS)
		return err_set(err, -E2BIG, "more than %d paths in one slot", SERVICE_MAX_PATHS);
	slot->path = xrealloc(slot->path, (slot->n_paths + 1) * sizeof(slot->path[0]));
	slot->path[slot->n_paths++] = dup_slice(rest);
	return 0;
}

static int check_free(const struct service_slot *slot, struct err *err)
{
	return slot->header ? err_set(err, -EINVAL,
				      "expected 'header', 'basic' or 'signer', once in a slot")
			    : 0;
}

/* Printable, with %s once and no other '%'. */
static bool is_format(struct slice s)
{
	size_t places = 0;

	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < 0x20 || s.p[i] >= 0x7f)
			return false;
		if (s.p[i] == '%' && (i + 1 == s.n || s.p[i + 1] != 's'))
			return false;
		places += s.p[i] == '%';
	}
	return places == 1 && s.n <= SERVICE_MAX_TEXT;
}

static int take_header(struct reader *rd, struct slice rest, struct err *err)
{
	struct slice name = conf_word(&rest);
	int r = check_free(rd->slot, err);

	if (r == 0)
		r = check_header(name, err);
	if (r < 0)
		return r;
	if (!is_format(rest))
		return err_set(err, -EINVAL,
			"the format of a header must contain %%s once, and no other '%%'");
	rd->slot->how = SERVICE_HEADER;
	rd->slot->header = dup_slice(name);
	rd->slot->format = dup_slice(rest);
	return 0;
}

static int take_basic(struct reader *rd, struct slice rest, struct err *err)
{
	int r = check_free(rd->slot, err);

	if (r < 0)
		return r;
	if (rest.n && (!is_solid(rest) || rest.n > SERVICE_MAX_WORD || memchr(rest.p, ':', rest.n)))
		return err_set(
			err, -EINVAL, "expected 'basic USER' with a user without spaces and ':'");
	rd->slot->how = SERVICE_BASIC;
	rd->slot->header = xstrdup("authorization");
	rd->slot->user = rest.n ? dup_slice(rest) : NULL;
	return 0;
}

static int take_signer(struct reader *rd, struct slice rest, struct err *err)
{
	int r = check_free(rd->slot, err);

	if (r < 0)
		return r;
	if (!slice_eq_str(rest, "sigv4"))
		return err_set(err, -EINVAL, "unknown signer: expected sigv4");
	rd->slot->how = SERVICE_SIGV4;
	rd->slot->header = xstrdup("authorization");
	return 0;
}

static int take_value(struct reader *rd, struct slice rest, struct err *err)
{
	if (rd->slot->value)
		return err_set(err, -EINVAL, "duplicate line 'value' in a slot");
	if (slice_eq_str(rest, "secret"))
		rd->slot->value = SERVICE_SECRET;
	else if (slice_eq_str(rest, "access"))
		rd->slot->value = SERVICE_ACCESS;
	else
		return err_set(err, -EINVAL, "expected 'value secret' or 'value access'");
	return 0;
}

static int take_intercept(struct reader *rd, struct slice rest, struct err *err)
{
	if (rd->slot->always || !slice_eq_str(rest, "always"))
		return err_set(err, -EINVAL, "expected 'intercept always', once in a slot");
	rd->slot->always = true;
	return 0;
}

/* ---- the whole ---- */

static const struct word {
	const char *name;
	int (*take)(struct reader *rd, struct slice rest, struct err *err);
	bool in_slot;
} words[] = {
	{"name", take_name, false},
	{"about", take_about, false},
	{"env", take_env, false},
	{"known", take_known, false},
	{"pass", take_pass, false},
	{"token", take_token, false},
	{"check", take_check, false},
	{"field", take_field, false},
	{"refuse", take_refuse, false},
	{"capture", take_capture, false},
	{"host", take_host, true},
	{"path", take_path, true},
	{"header", take_header, true},
	{"basic", take_basic, true},
	{"signer", take_signer, true},
	{"value", take_value, true},
	{"intercept", take_intercept, true},
};

static int take_word(struct reader *rd, struct slice word, struct slice rest, struct err *err)
{
	if (slice_eq_str(word, "slot"))
		return take_slot(rd, rest, err);
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (!slice_eq_str(word, words[i].name))
			continue;
		if (words[i].in_slot != (rd->slot != NULL))
			return err_set(err, -EINVAL,
				words[i].in_slot ? "'%s' is only allowed in a slot"
						 : "'%s' is only allowed before the first slot",
				words[i].name);
		return words[i].take(rd, rest, err);
	}
	return err_set(err, -EINVAL, "unknown keyword '%.*s' of a service", (int)MIN(word.n, 40),
		(const char *)word.p);
}

static bool slots_meet(const struct service_slot *a, const struct service_slot *b)
{
	for (size_t i = 0; i < a->n_hosts; i++)
		for (size_t k = 0; k < b->n_hosts; k++)
			if (service_may_meet(&a->host[i], &b->host[k]))
				return true;
	return false;
}

static int check_slot(struct reader *rd, struct service_slot *slot, struct err *err)
{
	if (!slot->value)
		slot->value = SERVICE_SECRET;
	rd->c.line = slot->line;
	if (!slot->header || !slot->n_hosts)
		return err_set(err, -EINVAL,
			"slot '%s' requires a host, and a header, basic or signer", slot->name);
	if (slot->value == SERVICE_ACCESS && (!rd->s.n_endpoints || slot->how == SERVICE_SIGV4))
		return err_set(
			err, -EINVAL, "slot '%s' is for a token: missing line 'token'", slot->name);
	for (const struct service_slot *a = rd->s.slot; a < slot; a++)
		if (a->value == slot->value && !a->n_paths && slots_meet(a, slot))
			return err_set(err, -EINVAL,
				"slot '%s' is never used: slot '%s' is for the same host and comes first",
				slot->name, a->name);
	return 0;
}

/* Which fields there must be when there is a token endpoint. */
static int check_fields(const struct service *s, struct err *err)
{
	size_t access = 0;

	for (size_t i = 0; i < s->n_fields; i++)
		access += s->field[i].kind == SERVICE_FIELD_ACCESS;
	if (s->n_endpoints ? access == 0 : s->n_fields > 0)
		return err_set(err, -EINVAL, "'token' and 'field access' require each other");
	return 0;
}

static int check_whole(struct reader *rd, struct err *err)
{
	int r;

	if (!rd->s.name || !rd->s.about || !rd->s.n_slots)
		return err_set(
			err, -EINVAL, "a service requires a name, a line 'about' and a slot");
	r = check_fields(&rd->s, err);
	for (size_t i = 0; i < rd->s.n_slots && r == 0; i++)
		r = check_slot(rd, &rd->s.slot[i], err);
	return r;
}

int service_parse(struct slice text, const char *name, struct service *ret, struct err *err)
{
	static const struct conf_form form = {.what = "a service",
		.first = "service 1",
		.max_bytes = SERVICE_MAX_BYTES,
		.max_line = SERVICE_MAX_LINE};
	struct reader rd = {0};
	int r = conf_init(&rd.c, &form, text, name, err);

	if (r < 0)
		return r;
	while ((r = conf_next(&rd.c, &text, err)) > 0) {
		struct slice word = conf_word(&text);

		r = take_word(&rd, word, text, err);
		if (r < 0)
			break;
	}
	if (r == 0)
		r = check_whole(&rd, err);
	if (r < 0) {
		service_done(&rd.s);
		return conf_fail(&rd.c, r, err);
	}
	*ret = rd.s;
	return 0;
}
