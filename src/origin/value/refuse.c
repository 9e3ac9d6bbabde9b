/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that sbx-origin does not send because the response contains a new credential. Reads the
 * guest's request; changes nothing. */
#include "slot.h"
#include "lib/secret/service/service_match.h"

#include <errno.h>
#include <stdio.h>

/* Gateways that convert headers to variables read x_http_method as x-http-method. */
static bool is_name(struct slice name, const char *want)
{
	if (name.n != strlen(want))
		return false;
	for (size_t i = 0; i < name.n; i++)
		if ((name.p[i] == '_' ? '-' : name.p[i]) != (uint8_t)want[i])
			return false;
	return true;
}

/* Frameworks let these replace the method of the request line. */
static bool has_override(const struct http_req *req)
{
	static const char *const headers[] = {
		"x-http-method-override", "x-http-method", "x-method-override"};
	static const char *const fields[] = {"_method", "$httpMethod", "x-http-method-override"};

	for (size_t i = 0; i < req->headers.n; i++)
		for (size_t k = 0; k < ARRAY_LEN(headers); k++)
			if (is_name(req->headers.list[i].name, headers[k]))
				return true;
	for (size_t k = 0; k < ARRAY_LEN(fields); k++)
		if (service_has_query(req->query, fields[k]))
			return true;
	return false;
}

/* Some servers use the path of one of these instead of the request line. NULL: none. */
static const char *find_other_path(const struct http_req *req)
{
	static const char *const headers[] = {
		"x-original-url", "x-original-uri", "x-rewrite-url", "x-rewrite-uri"};

	for (size_t i = 0; i < req->headers.n; i++)
		for (size_t k = 0; k < ARRAY_LEN(headers); k++)
			if (is_name(req->headers.list[i].name, headers[k]))
				return headers[k];
	return NULL;
}

/* A form may have a field `_method`, and its content is not parsed. Without a type it may be a
 * form. */
static bool may_be_form(const struct http_req *req)
{
	static const char *const forms[] = {"application/x-www-form-urlencoded", "multipart/"};
	bool has_type = false;

	if (!canon_text_eq_fold(req->method, "post"))
		return false;
	for (size_t i = 0; i < req->headers.n; i++) {
		const struct http_header *h = &req->headers.list[i];

		if (!is_name(h->name, "content-type"))
			continue;
		has_type = true;
		for (size_t k = 0; k < ARRAY_LEN(forms); k++)
			if (h->value.n >= strlen(forms[k]) &&
				canon_text_eq_fold(
					slice_of(h->value.p, strlen(forms[k])), forms[k]))
				return true;
	}
	return !has_type;
}

static bool overrides_method(const struct http_req *req)
{
	return has_override(req) || may_be_form(req);
}

/* Empty: any method. */
static struct slice method_of(const struct http_req *req)
{
	return overrides_method(req) ? slice_of(NULL, 0) : req->method;
}

void refuse_find_captures(const struct origin *o, struct exchange *x)
{
	const struct http_req *req = &x->talk->req;

	x->captures = service_captures(&o->service, method_of(req), req->path);
}

static const struct service_refusal *find_header(
	const struct origin *o, const struct http_headers *headers)
{
	const struct service_refusal *found = NULL;

	for (size_t i = 0; i < headers->n && !found; i++)
		found = service_refuses_header(
			&o->service, headers->list[i].name, headers->list[i].value);
	return found;
}

bool refuse_trailers(const struct origin *o, const struct http_headers *trailers)
{
	const struct http_req req = {.headers = *trailers};

	return find_header(o, trailers) ||
	       (service_names_paths(&o->service) && (has_override(&req) || find_other_path(&req)));
}

static const struct service_refusal *find_refuse(const struct origin *o, const struct http_req *req)
{
	const struct service_refusal *found =
		service_refuses_path(&o->service, method_of(req), req->path);

	if (!found)
		found = service_refuses_query(&o->service, req->query);
	return found ? found : find_header(o, &req->headers);
}

/* The user's own credential has no service that could be set. */
static void say_help(const struct origin *o, const char *what, char ret[ORIGIN_MAX_WHERE])
{
	size_t n = strlen(ret);

	if (strncmp(o->service.name, "custom-", 7) == 0)
		(void)snprintf(ret + n, ORIGIN_MAX_WHERE - n, "; see: sbx secret ls");
	else
		(void)snprintf(ret + n, ORIGIN_MAX_WHERE - n, "; %s the host: sbx secret set %.40s",
			what, o->service.name);
}

void refuse_help(const struct origin *o, enum origin_outcome outcome, char where[ORIGIN_MAX_WHERE])
{
	size_t n;

	say_help(o, "store it on", where);
	n = strlen(where);
	/* If a credential is set, the sandbox needs none of its own. */
	if (outcome == ORIGIN_DENIED_FOREIGN && !o->config.has)
		(void)snprintf(where + n, ORIGIN_MAX_WHERE - n,
			"; or let this sandbox use its own: sbx secret own %.40s --sandbox %.64s",
			o->service.name, o->config.sandbox);
}

int refuse_judge(const struct origin *o, const struct exchange *x, char ret_where[ORIGIN_MAX_WHERE])
{
	const struct service_refusal *found = find_refuse(o, &x->talk->req);
	const char *other = find_other_path(&x->talk->req);

	if (other && service_names_paths(&o->service)) {
		(void)snprintf(ret_where, ORIGIN_MAX_WHERE,
			"header %s: a server can use it instead of the path", other);
		return -EPERM;
	}
	if (!found)
		return 0;
	if (found == &service_odd_path) {
		(void)snprintf(ret_where, ORIGIN_MAX_WHERE,
			"ambiguous path ('..' segments, control characters or nested escapes): "
			"use its normalized form");
		return -EPERM;
	}
	(void)snprintf(ret_where, ORIGIN_MAX_WHERE, "rule 'refuse %.100s'", found->rule);
	say_help(o, "create it on", ret_where);
	return -EPERM;
}
