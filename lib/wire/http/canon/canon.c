/* SPDX-License-Identifier: Apache-2.0 */
#include "canon.h"
#include "canon_internal.h"

#include <errno.h>

/* Generated from fields of the request, or for one connection only: never in a canonical list. */
static const char *const dropped[] = {
	"connection",
	"content-length",
	"expect",
	"host",
	"http2-settings",
	"keep-alive",
	"te",
	"transfer-encoding",
	"upgrade",
};

/* Names with "-" that frame. Some gateways treat the spelling with "_" as the real name. */
static const char *const sensitive[] = {
	"content-length",
	"transfer-encoding",
};

static const char *const not_in_trailers[] = {
	"age",
	"authorization",
	"cache-control",
	"connection",
	"content-encoding",
	"content-length",
	"content-range",
	"content-type",
	"cookie",
	"date",
	"expect",
	"expires",
	"host",
	"http2-settings",
	"keep-alive",
	"location",
	"max-forwards",
	"range",
	"retry-after",
	"set-cookie",
	"te",
	"trailer",
	"transfer-encoding",
	"upgrade",
	"vary",
	"warning",
	"www-authenticate",
};

int canon_refuse(struct http_fault *fault, uint16_t status, const char *why)
{
	*fault = (struct http_fault){.status = status, .why = why};
	return -EBADMSG;
}

static bool is_in(struct slice name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (slice_eq_str(name, list[i]))
			return true;
	return false;
}

static bool has_prefix(struct slice s, const char *prefix)
{
	size_t n = strlen(prefix);

	return s.n >= n && memcmp(s.p, prefix, n) == 0;
}

bool canon_is_dropped(struct slice name)
{
	return is_in(name, dropped, ARRAY_LEN(dropped)) || has_prefix(name, "proxy-");
}

bool canon_is_disguised(struct slice name)
{
	for (size_t i = 0; i < ARRAY_LEN(sensitive); i++) {
		const char *s = sensitive[i];
		bool other = false, same = name.n == strlen(s);

		for (size_t k = 0; same && k < name.n; k++) {
			other = other || (s[k] == '-' && name.p[k] == '_');
			same = name.p[k] == (uint8_t)s[k] || (s[k] == '-' && name.p[k] == '_');
		}
		if (same && other)
			return true;
	}
	return false;
}

bool canon_is_forbidden_trailer(struct slice name)
{
	return is_in(name, not_in_trailers, ARRAY_LEN(not_in_trailers)) ||
	       has_prefix(name, "proxy-") || has_prefix(name, "x-forwarded-") ||
	       canon_is_disguised(name);
}

void canon_headers_init(struct http_headers *headers, struct arena *arena, size_t max)
{
	*headers =
		(struct http_headers){.list = arena_calloc(arena, max, sizeof(struct http_header))};
	headers->max = headers->list ? max : 0;
}

int canon_find_header(const struct http_headers *headers, const char *lower, size_t *ret_at)
{
	size_t n = 0;

	for (size_t i = 0; i < headers->n; i++)
		if (slice_eq_str(headers->list[i].name, lower)) {
			n++;
			*ret_at = i;
		}
	if (n > 1)
		return -ENOTUNIQ;
	return n ? 0 : -ENOENT;
}

void canon_remove_header(struct http_headers *headers, const char *lower)
{
	size_t n = 0;

	for (size_t i = 0; i < headers->n; i++)
		if (!slice_eq_str(headers->list[i].name, lower))
			headers->list[n++] = headers->list[i];
	headers->n = n;
}

static bool may_be_set(struct slice name, struct slice value)
{
	return canon_text_is_lower_token(name) && !canon_is_dropped(name) &&
	       !canon_is_disguised(name) && canon_text_is_trimmed_value(value);
}

int canon_set_header(struct http_headers *headers, struct slice name, struct slice value)
{
	size_t at = headers->n, n = 0;

	if (!may_be_set(name, value))
		return -EINVAL;
	for (size_t i = 0; i < headers->n; i++)
		if (slice_eq(headers->list[i].name, name)) {
			at = i;
			n++;
		}
	if (n > 1)
		return -ENOTUNIQ;
	if (at == headers->max)
		return -ENOBUFS;
	headers->list[at] = (struct http_header){.name = name, .value = value};
	headers->n = MAX(headers->n, at + 1);
	return 0;
}

/* Whether a Connection header of the list names it. */
static bool is_listed(const struct http_headers *headers, struct slice name)
{
	for (size_t i = 0; i < headers->n; i++) {
		struct slice list = headers->list[i].value, item;

		if (!slice_eq_str(headers->list[i].name, "connection"))
			continue;
		while (canon_text_next(&list, &item)) {
			bool same = item.n == name.n;

			for (size_t k = 0; same && k < item.n; k++)
				same = canon_text_lower(item.p[k]) == name.p[k];
			if (same)
				return true;
		}
	}
	return false;
}

/* Marked first and removed after, because the Connection headers themselves go too. */
static void drop_hop_by_hop(struct http_headers *headers)
{
	bool drop[HTTP_MAX_HEADERS + HTTP_SPARE_HEADERS] = {0};
	size_t to = 0;

	for (size_t i = 0; i < headers->n && i < ARRAY_LEN(drop); i++) {
		struct slice name = headers->list[i].name;

		drop[i] = canon_is_dropped(name) || is_listed(headers, name);
	}
	for (size_t i = 0; i < headers->n && i < ARRAY_LEN(drop); i++)
		if (!drop[i])
			headers->list[to++] = headers->list[i];
	headers->n = to;
}

static int refuse_disguised(
	const struct http_headers *headers, uint16_t status, struct http_fault *fault)
{
	for (size_t i = 0; i < headers->n; i++)
		if (canon_is_disguised(headers->list[i].name))
			return canon_refuse(fault, status,
				"a framing or routing header written with an underscore");
	return 0;
}

static int take_name(const struct canon_where *where, struct slice text, struct arena *arena,
	struct canon_name *ret)
{
	char buf[HTTP_MAX_HOST + 1];
	struct slice host;
	uint16_t port;
	int n;

	if (canon_split_authority(text, &host, &port) < 0)
		return -EINVAL;
	n = where->canonical_host(host, buf, sizeof(buf));
	if (n <= 0 || (size_t)n >= sizeof(buf))
		return -EINVAL;
	*ret = (struct canon_name){
		.given = true, .host = arena_dup(arena, slice_of(buf, (size_t)n))};
	ret->port = port;
	return arena_is_full(arena) ? -EINVAL : 0;
}

static int take_host_field(const struct http_req *req, const struct canon_where *where,
	struct arena *arena, struct canon_names *names, struct http_fault *fault)
{
	size_t at;
	int r = canon_find_header(&req->headers, "host", &at);

	if (r == -ENOENT)
		return req->http10 ? 0 : canon_refuse(fault, 400, "no Host header");
	if (r < 0)
		return canon_refuse(fault, 400, "more than one Host header");
	if (take_name(where, req->headers.list[at].value, arena, &names->host) < 0)
		return canon_refuse(fault, 400, "the Host header is not a host name and port");
	return 0;
}

/* On a proxy connection the request names its own target, otherwise the connection has one. */
static int take_names(const struct http_req *req, const struct canon_where *where,
	struct arena *arena, struct canon_names *names, struct http_fault *fault)
{
	bool is_connect = req->form == HTTP_FORM_AUTHORITY;
	bool is_absolute = req->authority.n > 0 && !is_connect;

	*names = (struct canon_names){.target = where->target, .sni = where->sni};
	names->scheme = is_absolute ? req->scheme : where->scheme;
	names->is_connect = is_connect;
	if (where->target.given && is_connect)
		return canon_refuse(fault, 400, "CONNECT on a connection that has a target");
	if (where->target.given && names->scheme != where->scheme)
		return canon_refuse(fault, 400, "the scheme does not match the connection");
	if (!where->target.given && is_absolute && names->scheme == HTTP_SCHEME_HTTPS)
		return canon_refuse(fault, 400, "an https target requires CONNECT");
	if (req->authority.n > 0) {
		if (take_name(where, req->authority, arena, &names->authority) < 0)
			return canon_refuse(fault, 400, "the target is not a host name and port");
		if (is_connect && names->authority.port == 0)
			return canon_refuse(fault, 400, "CONNECT without a port");
		if (!where->target.given)
			names->target = names->authority;
	}
	return take_host_field(req, where, arena, names, fault);
}

int canon_make_req(struct http_req *req, const struct canon_where *where, struct arena *arena,
	struct http_fault *fault)
{
	struct canon_names names;
	enum canon_verdict v;

	if (take_names(req, where, arena, &names, fault) < 0)
		return -EBADMSG;
	v = canon_agree(&names);
	if (v != CANON_AGREE)
		return canon_refuse(fault, v == CANON_NO_TARGET ? 400 : 421, canon_verdict_text(v));
	if (refuse_disguised(&req->headers, 400, fault) < 0)
		return -EBADMSG;
	req->scheme = names.scheme;
	req->host = names.target.host;
	req->port = names.target.port ? names.target.port : canon_default_port(names.scheme);
	req->authority = (struct slice){0};
	if (req->form == HTTP_FORM_ABSOLUTE)
		req->form = HTTP_FORM_ORIGIN;
	drop_hop_by_hop(&req->headers);
	if (arena_is_full(arena))
		return canon_refuse(fault, 431, "the head is too large");
	if (canon_target_length(req) > HTTP_MAX_TARGET)
		return canon_refuse(fault, 414, "the path and the query are over 8,191 bytes");
	if (canon_check_req(req) < 0)
		return canon_refuse(fault, 400, "the request has no canonical form");
	return 0;
}

int canon_make_resp(struct http_resp *resp, struct http_fault *fault)
{
	if (refuse_disguised(&resp->headers, 502, fault) < 0)
		return -EBADMSG;
	drop_hop_by_hop(&resp->headers);
	if (canon_check_resp(resp) < 0)
		return canon_refuse(fault, 502, "the response has no canonical form");
	return 0;
}
