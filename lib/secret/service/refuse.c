/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests a service refuses by a header or a query field: those whose response contains a
 * new credential. Paths are in refuse_path.c. Runs in sbx-origin and reads the guest's headers
 * and queries; it touches nothing else. */
#include <strings.h>
#include "lib/base/mem.h"
#include "service_internal.h"
#include "service_match.h"

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

static struct slice unescaped_refuse(struct slice s, uint8_t *buf)
{
	struct slice ret = slice_of(buf, 0);

	(void)!service_unescape(s, buf, s.n, &ret); /* always fits */
	return ret;
}

struct pair {
	uint8_t *buf; /* as long as the query */
	struct slice name, value;
};

/* Cuts the next pair off a query and unescapes its parts into the buffer; false at the end. */
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
	ret->name = service_field_name(slice_of(text.p, eq), ret->buf);
	eq += eq < n;
	ret->value = unescaped_refuse(slice_of(text.p + eq, n - eq), ret->buf + eq);
	return true;
}

const struct service_refusal *service_refuses_query(const struct service *s, struct slice query)
{
	const struct service_refusal *found = NULL;
	AUTO_FREE uint8_t *buf = xmalloc(query.n + 1);
	struct pair pair = {.buf = buf};

	while (!found && next_pair(&query, &pair))
		found = find_field(s, SERVICE_IN_QUERY, pair.name, pair.value);
	return found;
}

bool service_has_query(struct slice query, const char *name)
{
	AUTO_FREE uint8_t *buf = xmalloc(query.n + 1);
	struct pair pair = {.buf = buf};

	while (next_pair(&query, &pair))
		if (service_is_word(pair.name, name))
			return true;
	return false;
}
