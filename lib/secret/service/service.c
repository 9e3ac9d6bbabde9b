/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>
#include "lib/base/b64.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "service_match.h"
#include "shape.h"

static void slot_done(struct service_slot *slot)
{
	for (size_t i = 0; i < slot->n_hosts; i++)
		netrule_done(&slot->host[i]);
	for (size_t i = 0; i < slot->n_paths; i++)
		free(slot->path[i]);
	free(slot->host);
	free(slot->path);
	free(slot->name);
	free(slot->header);
	free(slot->format);
	free(slot->user);
}

void service_done(struct service *s)
{
	for (size_t i = 0; i < s->n_slots; i++)
		slot_done(&s->slot[i]);
	for (size_t i = 0; i < s->n_envs; i++) {
		free(s->env[i].name);
		free(s->env[i].sentinel);
	}
	for (size_t i = 0; i < s->n_known; i++)
		free(s->known[i].name);
	for (size_t i = 0; i < s->n_passed; i++)
		free(s->passed[i].name);
	for (size_t i = 0; i < s->n_endpoints; i++) {
		netrule_done(&s->endpoint[i].host);
		free(s->endpoint[i].path);
	}
	for (size_t i = 0; i < s->n_fields; i++) {
		free(s->field[i].name);
		free(s->field[i].sentinel);
	}
	for (size_t i = 0; i < s->n_refusals; i++) {
		free(s->refusal[i].rule);
		free(s->refusal[i].method);
		free(s->refusal[i].path);
		free(s->refusal[i].name);
		free(s->refusal[i].value);
	}
	for (size_t i = 0; i < s->n_captures; i++) {
		free(s->capture[i].method);
		free(s->capture[i].path);
		free(s->capture[i].field);
	}
	if (s->check.path)
		netrule_done(&s->check.host);
	free(s->check.path);
	free(s->name);
	free(s->about);
	*s = (struct service){0};
}

/* ---- which slot ---- */

bool service_may_meet(const struct netrule *a, const struct netrule *b)
{
	return a->ports.lo <= b->ports.hi && b->ports.lo <= a->ports.hi && netrule_may_meet(a, b);
}

/* A host written out is a resource like any other, and between it and a pattern meeting is
 * exact. */
static struct netrule one_host(const struct host *host, uint16_t port)
{
	struct netrule one = {.form = NETRULE_NAME,
		.ports = {port, port},
		.name = (char *)host->name,
		.n_name = host->n};

	if (host->is_addr) {
		one.form = NETRULE_ADDR;
		one.net = addr_net_of(&host->addr, (uint8_t)(host->addr.n * 8));
	}
	return one;
}

static bool is_at(const struct netrule *nr, const struct service_request *req)
{
	struct netrule one = one_host(req->host, req->port);

	return service_may_meet(&one, nr);
}

/* Removes the segment after a slash from the front of *s. */
static struct slice next_segment(struct slice *s)
{
	size_t n = 1;
	struct slice segment;

	while (n < s->n && s->p[n] != '/')
		n++;
	segment = slice_of(s->p + 1, n - 1);
	*s = slice_of(s->p + n, s->n - n);
	return segment;
}

static size_t count_segments(struct slice s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++)
		n += s.p[i] == '/';
	return n;
}

bool service_path_match(const char *pattern, struct slice path)
{
	struct slice want = slice_from_str(pattern);
	const uint8_t *query = path.n ? memchr(path.p, '?', path.n) : NULL;

	if (query)
		path.n = (size_t)(query - path.p);
	if (path.n == 0 || path.p[0] != '/')
		return false;
	while (want.n && path.n) {
		struct slice w = next_segment(&want), p = next_segment(&path);

		if (slice_eq_str(w, "**")) {
			/* The rest of the pattern matches the last segments. */
			while (count_segments(path) > count_segments(want))
				(void)next_segment(&path);
		} else if (slice_eq_str(w, "*") ? p.n == 0 : !slice_eq(w, p)) {
			return false;
		}
	}
	return want.n == 0 && path.n == 0;
}

static bool fits_path(const struct service_slot *slot, struct slice path)
{
	if (slot->n_paths == 0)
		return true;
	for (size_t i = 0; i < slot->n_paths; i++)
		if (service_path_match(slot->path[i], path))
			return true;
	return false;
}

static bool fits_host(const struct service_slot *slot, const struct service_request *req)
{
	for (size_t i = 0; i < slot->n_hosts; i++)
		if (is_at(&slot->host[i], req))
			return true;
	return false;
}

const struct service_slot *service_pick_slot(
	const struct service *s, const struct service_request *req, unsigned values)
{
	for (size_t i = 0; i < s->n_slots; i++) {
		const struct service_slot *slot = &s->slot[i];

		if ((slot->value & values) && fits_host(slot, req) && fits_path(slot, req->path))
			return slot;
	}
	return NULL;
}

bool service_is_endpoint(const struct service *s, const struct service_request *req)
{
	for (size_t i = 0; i < s->n_endpoints; i++)
		if (is_at(&s->endpoint[i].host, req) &&
			service_path_match(s->endpoint[i].path, req->path))
			return true;
	return false;
}

bool service_is_endpoint_host(const struct service *s, const struct service_request *req)
{
	for (size_t i = 0; i < s->n_endpoints; i++)
		if (is_at(&s->endpoint[i].host, req))
			return true;
	return false;
}

bool service_is_slot_host(
	const struct service *s, const struct service_request *req, bool only_always)
{
	for (size_t i = 0; i < s->n_slots; i++)
		if ((s->slot[i].always || !only_always) && fits_host(&s->slot[i], req))
			return true;
	return false;
}

bool service_guards_host(const struct service *s, const struct host *host, bool logins)
{
	struct netrule one = one_host(host, 0);

	if (host->is_addr || host_is_here(host))
		return false;
	for (size_t i = 0; i < s->n_slots; i++)
		for (size_t k = 0; s->slot[i].always && k < s->slot[i].n_hosts; k++)
			if (netrule_may_meet(&one, &s->slot[i].host[k]))
				return true;
	for (size_t i = 0; logins && service_has_login(s) && i < s->n_endpoints; i++)
		if (netrule_may_meet(&one, &s->endpoint[i].host))
			return true;
	return false;
}

bool service_has_always(const struct service *s)
{
	for (size_t i = 0; i < s->n_slots; i++)
		if (s->slot[i].always)
			return true;
	return false;
}

bool service_has_login(const struct service *s)
{
	for (size_t i = 0; i < s->n_fields && s->n_endpoints; i++) {
		const struct service_field *f = &s->field[i];

		if (f->kind == SERVICE_FIELD_REFRESH && !strchr(f->sentinel, '*'))
			return true;
	}
	return false;
}

/* ---- whose credential ---- */

/* A `*` at the end of a token's placeholder matches one or more letters and digits. */
static bool is_token_like(struct slice text, const char *sentinel)
{
	size_t n = strlen(sentinel) - 1;

	if (sentinel[n] != '*')
		return slice_eq_str(text, sentinel);
	if (text.n <= n || memcmp(text.p, sentinel, n) != 0)
		return false;
	for (size_t i = n; i < text.n; i++)
		if (!isalnum(text.p[i]))
			return false;
	return true;
}

void service_fill_sentinel(
	const struct service_env *env, const char *sandbox, char buf[SERVICE_MAX_TEXT + 1])
{
	bool upper = false;
	size_t i;

	for (i = 0; i < SERVICE_MAX_TEXT && env->sentinel[i]; i++) {
		char c = env->sentinel[i];

		if (c == '*') {
			c = *sandbox ? *sandbox++ : '0';
			buf[i] = upper ? (char)toupper((unsigned char)c) : c;
		} else {
			upper = isupper((unsigned char)c);
			buf[i] = c;
		}
	}
	buf[i] = '\0';
}

bool service_is_field_sentinel(const struct service_field *f, struct slice text)
{
	return f->sentinel && is_token_like(text, f->sentinel);
}

static bool is_sentinel(const struct service *s, struct slice text)
{
	for (size_t i = 0; i < s->n_envs; i++)
		if (slice_is_like(text, slice_from_str(s->env[i].sentinel)))
			return true;
	for (size_t i = 0; i < s->n_fields; i++)
		if (service_is_field_sentinel(&s->field[i], text))
			return true;
	return false;
}

bool service_unescape(struct slice s, uint8_t *buf, size_t size, struct slice *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++, n++) {
		int hi = -1, lo = -1;

		if (n == size)
			return false;
		if (s.p[i] == '%' && i + 2 < s.n) {
			hi = hex_digit(s.p[i + 1]);
			lo = hex_digit(s.p[i + 2]);
		}
		buf[n] = hi >= 0 && lo >= 0 ? (uint8_t)(hi << 4 | lo) : s.p[i];
		i += hi >= 0 && lo >= 0 ? 2 : 0;
	}
	*ret = slice_of(buf, n);
	return true;
}

struct slice service_field_name(struct slice s, uint8_t *buf)
{
	struct slice ret = slice_of(buf, 0);

	(void)!service_unescape(s, buf, s.n, &ret); /* always fits */
	for (size_t i = 0; i < ret.n; i++)
		if (buf[i] == '+')
			buf[i] = ' ';
	return slice_trim(ret);
}

bool service_is_word(struct slice s, const char *word)
{
	return s.n == strlen(word) && strncasecmp((const char *)s.p, word, s.n) == 0;
}

static bool is_listed(
	const struct service_known *list, size_t n, enum service_where where, struct slice name)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].where == where && service_is_word(name, list[i].name))
			return true;
	return false;
}

static bool is_passed(const struct service *s, enum service_where where, struct slice name)
{
	return is_listed(s->passed, s->n_passed, where, name);
}

static bool is_known(const struct service *s, enum service_where where, struct slice name)
{
	for (size_t i = 0; i < s->n_slots && where == SERVICE_IN_HEADER; i++)
		if (service_is_word(name, s->slot[i].header))
			return true;
	return is_listed(s->known, s->n_known, where, name) && !is_passed(s, where, name);
}

/* USER:PASSWORD; there are clients that put a token in either half. */
static bool is_basic_sentinel(const struct service *s, struct slice text)
{
	uint8_t buf[2 * SERVICE_MAX_TEXT + 2];
	ssize_t n_pair = b64_decode(text, "", buf, sizeof(buf));
	const uint8_t *colon = n_pair > 0 ? memchr(buf, ':', (size_t)n_pair) : NULL;
	size_t n;

	if (!colon)
		return false;
	n = (size_t)(colon - buf);
	return is_sentinel(s, slice_of(buf, n)) ||
	       is_sentinel(s, slice_of(colon + 1, (size_t)n_pair - n - 1));
}

/* KEY/DATE/REGION/... of AWS. */
static bool is_scope_sentinel(const struct service *s, struct slice text)
{
	const uint8_t *slash = text.n ? memchr(text.p, '/', text.n) : NULL;

	return slash && is_sentinel(s, slice_of(text.p, (size_t)(slash - text.p)));
}

static bool is_signed_sentinel(const struct service *s, struct slice text)
{
	static const char key[] = "Credential=";
	const uint8_t *at = text.n ? memmem(text.p, text.n, key, sizeof(key) - 1) : NULL;
	size_t n = at ? (size_t)(at - text.p) + sizeof(key) - 1 : text.n;

	return is_scope_sentinel(s, slice_of(text.p + n, text.n - n));
}

/* A placeholder in the format of a slot for this header. */
static bool is_formatted(const struct service *s, struct slice name, struct slice value)
{
	for (size_t i = 0; i < s->n_slots; i++) {
		const char *format = s->slot[i].format;
		size_t front, back;

		if (!format || !service_is_word(name, s->slot[i].header))
			continue;
		front = (size_t)(strstr(format, "%s") - format);
		back = strlen(format) - front - 2;
		if (value.n >= front + back && memcmp(value.p, format, front) == 0 &&
			memcmp(value.p + value.n - back, format + front + 2, back) == 0 &&
			is_sentinel(s, slice_of(value.p + front, value.n - front - back)))
			return true;
	}
	return false;
}

static bool is_header_sentinel(const struct service *s, struct slice name, struct slice value)
{
	size_t n = 0;
	struct slice scheme, rest;

	if (is_sentinel(s, value) || is_formatted(s, name, value))
		return true;
	while (n < value.n && value.p[n] != ' ')
		n++;
	scheme = slice_of(value.p, n);
	rest = slice_trim(slice_of(value.p + n, value.n - n));
	if (service_is_word(scheme, "basic"))
		return is_basic_sentinel(s, rest);
	if (service_is_word(scheme, "aws4-hmac-sha256"))
		return is_signed_sentinel(s, rest);
	return is_sentinel(s, rest);
}

/* A secret's place is not known, only its shape: one that is not ours belongs to the guest. */
static enum service_verdict judge_shape(const struct service *s, struct slice value)
{
	struct slice secret;

	while (shape_next_secret(&value, &secret))
		if (!is_header_sentinel(s, slice_of(NULL, 0), secret))
			return SERVICE_FOREIGN;
	return SERVICE_PLAIN;
}

static enum service_verdict judge_known(
	const struct service *s, enum service_where where, struct slice name, struct slice value)
{
	bool ours = is_sentinel(s, value);

	if (where == SERVICE_IN_HEADER)
		ours = is_header_sentinel(s, name, value);
	else if (where == SERVICE_IN_QUERY)
		ours = ours || is_scope_sentinel(s, value);
	return ours ? SERVICE_SENTINEL : SERVICE_FOREIGN;
}

enum service_verdict service_judge(
	const struct service *s, enum service_where where, struct slice name, struct slice value)
{
	AUTO_FREE uint8_t *buf = NULL;
	size_t n = name.n;

	if (where == SERVICE_IN_QUERY) { /* both always fit */
		buf = xmalloc(n + value.n + 1);
		name = service_field_name(name, buf);
		(void)!service_unescape(value, buf + n, value.n + 1, &value);
	}
	value = slice_trim(value);
	if (value.n == 0)
		return SERVICE_PLAIN;
	if (is_known(s, where, name))
		return judge_known(s, where, name, value);
	/* cookies are judged one by one */
	if (is_passed(s, where, name) ||
		(where == SERVICE_IN_HEADER && service_is_word(name, "cookie")))
		return SERVICE_PLAIN;
	return judge_shape(s, value);
}
