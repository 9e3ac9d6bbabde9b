/* Which requests a service refuses, because their response is a new credential, and of which it captures fields. Runs
 * in sbx-origin and reads the guest's paths, headers and queries; it touches nothing else. */
#include <ctype.h>
#include <stdlib.h>
#include <strings.h>
#include "lib/base/mem.h"
#include "service_internal.h"

/* ---- paths ---- */

/* Two questions on which servers disagree, so that a path has four readings. */
enum reading {
	CODED_SLASH_STAYS = 1, /* %2f is a letter of a segment, not the end of one */
	MARK_ENDS = 2,	       /* %3f and %23 end the path */
	N_READINGS = 4,
};

#define MAX_DECODINGS 4 /* no known chain of servers decodes more often */

static bool is_coded_slash(const uint8_t *p, size_t n)
{
	return n >= 3 && p[0] == '%' &&
	       ((p[1] == '2' && (p[2] | 0x20) == 'f') || (p[1] == '5' && (p[2] | 0x20) == 'c'));
}

/* Removes all escapes, also doubled ones. buf has room for path.n bytes. */
static size_t decode(struct slice path, unsigned reading, uint8_t *buf)
{
	struct slice out = slice_of(buf, path.n);

	memcpy(buf, path.p, path.n);
	for (unsigned round = 0; round < MAX_DECODINGS; round++) {
		size_t before = out.n;

		for (size_t i = 0; (reading & CODED_SLASH_STAYS) && i < out.n; i++)
			if (is_coded_slash(buf + i, out.n - i))
				memcpy(buf + i, "%7E", 3);
		/* in place: what is written is never longer than what was read */
		if (!service_unescape(out, buf, path.n, &out) || out.n == before)
			break;
	}
	return out.n;
}

static bool ends_path(uint8_t c, unsigned reading)
{
	return c == '\0' || ((reading & MARK_ENDS) && (c == '?' || c == '#'));
}

static bool ends_segment(uint8_t c)
{
	return c == '/' || c == '\\';
}

/* Appends one segment to a path of segments; "." and an empty one add nothing, ".." removes one. */
static size_t put_segment(uint8_t *to, size_t n, struct slice segment)
{
	const uint8_t *parameters = segment.n ? memchr(segment.p, ';', segment.n) : NULL;

	if (parameters)
		segment.n = (size_t)(parameters - segment.p);
	segment = slice_trim(segment);
	if (segment.n == 0 || slice_eq_str(segment, "."))
		return n;
	if (slice_eq_str(segment, "..")) {
		while (n > 0 && to[--n] != '/')
			;
		return n;
	}
	to[n++] = '/';
	for (size_t i = 0; i < segment.n; i++) {
		uint8_t c = segment.p[i];

		to[n++] = c == '?' ? '_' : (uint8_t)tolower(c);
	}
	return n;
}

/* The path as a lenient server reads it: decoded, in lower case, without empty and dot segments,
 * parameters and a slash at the end. `to` has room for path.n + 1 bytes. */
static struct slice fold(struct slice path, unsigned reading, uint8_t *buf, uint8_t *to)
{
	size_t n_buf = decode(path, reading, buf), n = 0, from = 0;

	for (size_t i = 0; i <= n_buf; i++) {
		bool ends = i == n_buf || ends_path(buf[i], reading);

		if (!ends && !ends_segment(buf[i]))
			continue;
		n = put_segment(to, n, slice_of(buf + from, i - from));
		from = i + 1;
		if (ends)
			break;
	}
	return slice_of(to, n);
}

/* Frameworks take /keys.json for /keys. */
static struct slice without_extension(struct slice path)
{
	for (size_t i = path.n; i > 0 && path.p[i - 1] != '/'; i--)
		if (path.p[i - 1] == '.')
			return slice_of(path.p, i - 1);
	return path;
}

static bool is_near(const char *pattern, struct slice folded)
{
	return service_path_match(pattern, folded) ||
	       service_path_match(pattern, without_extension(folded));
}

/* NULL: every method. */
static bool fits_method(const char *want, struct slice method)
{
	return !want || method.n == 0 || service_is_word(method, want);
}

static const struct service_refusal *find_path(
	const struct service *s, struct slice method, struct slice folded)
{
	for (size_t i = 0; i < s->n_refusals; i++) {
		const struct service_refusal *r = &s->refusal[i];

		if (r->path && fits_method(r->method, method) && is_near(r->path, folded))
			return r;
	}
	return NULL;
}

const struct service_refusal *service_refuses_path(
	const struct service *s, struct slice method, struct slice path)
{
	const struct service_refusal *found = NULL;
	AUTO_FREE uint8_t *buf = NULL, *to = NULL;

	if (s->n_refusals == 0 || path.n == 0)
		return NULL;
	buf = xmalloc(path.n);
	to = xmalloc(path.n + 2);
	for (unsigned reading = 0; reading < N_READINGS && !found; reading++)
		found = find_path(s, method, fold(path, reading, buf, to));
	return found;
}

static uint32_t find_captures(const struct service *s, struct slice method, struct slice folded)
{
	uint32_t found = 0;

	for (size_t i = 0; i < s->n_captures; i++) {
		const struct service_capture *c = &s->capture[i];

		if (fits_method(c->method, method) && is_near(c->path, folded))
			found |= UINT32_C(1) << i;
	}
	return found;
}

uint32_t service_captures(const struct service *s, struct slice method, struct slice path)
{
	AUTO_FREE uint8_t *buf = NULL, *to = NULL;
	uint32_t found = 0;

	if (s->n_captures == 0 || path.n == 0)
		return 0;
	buf = xmalloc(path.n);
	to = xmalloc(path.n + 2);
	for (unsigned reading = 0; reading < N_READINGS; reading++)
		found |= find_captures(s, method, fold(path, reading, buf, to));
	return found;
}

/* ---- fields ---- */

/* `want` is a text, or with a `*` at its front or end a part of one. */
static bool fits_value(const char *want, struct slice value)
{
	bool any_front = want[0] == '*', any_back;
	struct slice w = slice_from_str(want + any_front);
	size_t from;

	any_back = w.n > 0 && w.p[w.n - 1] == '*';
	w.n -= any_back;
	if (value.n < w.n || (!any_front && !any_back && value.n != w.n))
		return false;
	from = any_front ? value.n - w.n : 0;
	return strncasecmp((const char *)value.p + from, (const char *)w.p, w.n) == 0;
}

static const struct service_refusal *find_field(
	const struct service *s, enum service_where where, struct slice name, struct slice value)
{
	for (size_t i = 0; i < s->n_refusals; i++) {
		const struct service_refusal *r = &s->refusal[i];

		if (!r->path && r->where == where && service_is_word(name, r->name) &&
			fits_value(r->value, slice_trim(value)))
			return r;
	}
	return NULL;
}

const struct service_refusal *service_refuses_header(
	const struct service *s, struct slice name, struct slice value)
{
	return find_field(s, SERVICE_IN_HEADER, name, value);
}

/* What does not fit is longer than any name or value of a rule, but for one that ends with `*`. */
static struct slice unescaped(struct slice s, uint8_t *buf, size_t size)
{
	struct slice ret = slice_of(buf, 0);

	(void)!service_unescape(slice_of(s.p, MIN(s.n, size)), buf, size, &ret);
	return ret;
}

/* Cuts the next pair off a query and unescapes its parts into the buffers; false at the end. */
struct pair {
	uint8_t name_buf[SERVICE_MAX_WORD + 1], value_buf[SERVICE_MAX_TEXT * 3];
	struct slice name, value;
};

static bool next_pair(struct slice *query, struct pair *ret)
{
	struct slice text = *query;
	size_t n = 0, eq = 0;

	if (query->n == 0)
		return false;
	while (n < text.n && text.p[n] != '&' && text.p[n] != ';')
		n++;
	*query = slice_of(text.p + n + (n < text.n), text.n - n - (n < text.n));
	while (eq < n && text.p[eq] != '=')
		eq++;
	ret->name =
		slice_trim(unescaped(slice_of(text.p, eq), ret->name_buf, sizeof(ret->name_buf)));
	eq += eq < n;
	ret->value =
		unescaped(slice_of(text.p + eq, n - eq), ret->value_buf, sizeof(ret->value_buf));
	return true;
}

const struct service_refusal *service_refuses_query(const struct service *s, struct slice query)
{
	const struct service_refusal *found = NULL;
	struct pair pair;

	while (!found && next_pair(&query, &pair))
		found = find_field(s, SERVICE_IN_QUERY, pair.name, pair.value);
	return found;
}

bool service_has_query(struct slice query, const char *name)
{
	struct pair pair;

	while (next_pair(&query, &pair))
		if (service_is_word(pair.name, name))
			return true;
	return false;
}
