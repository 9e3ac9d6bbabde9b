/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the contents of a request, and adds the credential in its one place. Everything works in
 * place: the text of the request is our own copy of edge's frame, and only becomes shorter. */
#include "slot.h"

#include <errno.h>
#include <stdio.h>
#include "lib/base/b64.h"
#include "lib/base/mem.h"
#include "lib/secret/service/service_match.h"

#define MAX_NAME SERVICE_MAX_WORD

/* Gateways that convert headers to variables read x_api_key as x-api-key: it is checked as both. */
static enum service_verdict judge_header(const struct service *s, const struct http_header *h)
{
	enum service_verdict verdict = service_judge(s, SERVICE_IN_HEADER, h->name, h->value);
	uint8_t name[MAX_NAME];

	if (verdict != SERVICE_PLAIN || h->name.n > sizeof(name))
		return verdict;
	for (size_t i = 0; i < h->name.n; i++)
		name[i] = h->name.p[i] == '_' ? '-' : h->name.p[i];
	return service_judge(s, SERVICE_IN_HEADER, slice_of(name, h->name.n), h->value);
}

/* Name and value around the first '='; without it there is no value. */
static void split_pair(struct slice pair, struct slice *ret_name, struct slice *ret_value)
{
	const uint8_t *eq = pair.n ? memchr(pair.p, '=', pair.n) : NULL;
	size_t n = eq ? (size_t)(eq - pair.p) : pair.n;

	*ret_name = canon_text_trim(slice_of(pair.p, n));
	*ret_value = eq ? slice_of(eq + 1, pair.n - n - 1) : slice_of(pair.p + pair.n, 0);
}

static void say_where(char *ret, const char *what, struct slice name)
{
	(void)snprintf(
		ret, ORIGIN_MAX_WHERE, "%s %.*s", what, (int)MIN(name.n, 64), (const char *)name.p);
}

struct sifter {
	const struct service *service;
	bool is_bare; /* no value to replace a placeholder */
	char where[ORIGIN_MAX_WHERE];
	enum origin_outcome outcome;
};

/* Whether the request must be denied because of this. */
static bool refuses_slot(
	struct sifter *sf, enum service_verdict verdict, const char *what, struct slice name)
{
	if (verdict == SERVICE_PLAIN || (verdict == SERVICE_SENTINEL && !sf->is_bare))
		return false;
	sf->outcome = verdict == SERVICE_FOREIGN ? ORIGIN_DENIED_FOREIGN : ORIGIN_NOT_SET;
	say_where(sf->where, what, name);
	return true;
}

/*
 * Checks the pairs of a list and removes our placeholders. Pairs end at one of two bytes: servers
 * disagree about ';' in a query, so a pair may hide behind either.
 */
static bool sift_slot(
	struct sifter *sf, enum service_where where, struct slice *list, const char ends[2])
{
	uint8_t *to = (uint8_t *)list->p; /* in talk.head, which is ours */
	size_t n = 0, at = 0;

	while (at < list->n) {
		size_t from = at;
		struct slice pair, name, value;
		enum service_verdict verdict;

		while (at < list->n && list->p[at] != (uint8_t)ends[0] &&
			list->p[at] != (uint8_t)ends[1])
			at++;
		pair = slice_of(list->p + from, at - from);
		at += at < list->n; /* with its separator */
		split_pair(pair, &name, &value);
		verdict = service_judge(sf->service, where, name, value);
		if (refuses_slot(sf, verdict, where == SERVICE_IN_QUERY ? "query field" : "cookie",
			    name))
			return false;
		if (verdict == SERVICE_SENTINEL)
			continue;
		memmove(to + n, list->p + from, at - from);
		n += at - from;
	}
	/* the last pair was removed: removes its separator */
	while (n < list->n && n > 0 && (to[n - 1] == (uint8_t)ends[0] || to[n - 1] == ' '))
		n--;
	list->n = n;
	return true;
}

static bool sift_headers(struct sifter *sf, struct http_headers *headers)
{
	size_t n = 0;

	for (size_t i = 0; i < headers->n; i++) {
		struct http_header *h = &headers->list[i];
		enum service_verdict verdict = judge_header(sf->service, h);

		if (refuses_slot(sf, verdict, "header", h->name))
			return false;
		if (verdict == SERVICE_SENTINEL)
			continue;
		if (slice_eq_str(h->name, "cookie")) {
			if (!sift_slot(sf, SERVICE_IN_COOKIE, &h->value, ";;"))
				return false;
			h->value = canon_text_trim(h->value);
			if (h->value.n == 0)
				continue;
		}
		headers->list[n++] = *h;
	}
	headers->n = n;
	return true;
}

static bool is_word(struct slice s, const char *lower)
{
	return canon_text_eq_fold(s, lower);
}

/* For a path that servers may interpret in several ways, slots for certain paths do not apply. */
static int pick_slot(struct origin *o, struct exchange *x)
{
	struct service_request where = {.host = &o->host, .port = o->config.port};
	unsigned odd = 0;

	arena_reset(&o->arena);
	if (x->talk->req.form == HTTP_FORM_ORIGIN &&
		canon_normal_path(x->talk->req.path, &o->arena, &where.path, &odd) < 0)
		return -EINVAL;
	if (odd)
		where.path = slice_of(NULL, 0);
	x->slot = service_pick_slot(
		&o->service, &where, o->config.has & (ORIGIN_HAS_SECRET | ORIGIN_HAS_ACCESS));
	if (x->slot)
		x->which = x->slot->value == SERVICE_ACCESS ? ORIGIN_ACCESS : ORIGIN_SECRET;
	return 0;
}

enum origin_outcome slot_judge(
	struct origin *o, struct exchange *x, char ret_where[ORIGIN_MAX_WHERE])
{
	struct http_req *req = &x->talk->req;
	struct sifter sf = {.service = &o->service, .is_bare = !o->config.has};

	ret_where[0] = '\0';
	/* They echo the request, or are for proxies. */
	if (is_word(req->method, "trace") || is_word(req->method, "track") ||
		is_word(req->method, "connect"))
		return ORIGIN_DENIED_METHOD;
	if (refuse_judge(o, x, ret_where) < 0)
		return ORIGIN_DENIED_REQUEST;
	if (!sift_headers(&sf, &req->headers) ||
		!sift_slot(&sf, SERVICE_IN_QUERY, &req->query, "&;")) {
		(void)memcpy(ret_where, sf.where, sizeof(sf.where));
		refuse_help(o, sf.outcome, ret_where);
		return sf.outcome;
	}
	if (pick_slot(o, x) < 0)
		return ORIGIN_BAD_REQUEST;
	/* Compressed content cannot be searched. */
	if (o->config.has) {
		canon_remove_header(&req->headers, "accept-encoding");
		if (canon_set_header(&req->headers, slice_from_str("accept-encoding"),
			    slice_from_str("identity")) < 0)
			return ORIGIN_BAD_REQUEST;
	}
	/* permessage-deflate; also without a value, since one may arrive while the websocket is
	 * open */
	canon_remove_header(&req->headers, "sec-websocket-extensions");
	return ORIGIN_DONE;
}

enum origin_outcome slot_judge_trailers(const struct origin *o, struct http_headers *trailers)
{
	struct sifter sf = {.service = &o->service};

	return sift_headers(&sf, trailers) ? ORIGIN_DONE : sf.outcome;
}

static void put_slot(struct secret *s, struct slice bytes)
{
	memcpy(s->p + s->n, bytes.p, bytes.n);
	s->n += bytes.n;
}

static int make_header(
	const struct service_slot *slot, const struct vault_frame *frame, struct secret *ret)
{
	const char *mark = strstr(slot->format, "%s");
	size_t front;
	int r;

	if (!mark)
		return -EINVAL;
	front = (size_t)(mark - slot->format);
	r = secret_init(ret, strlen(slot->format) - 2 + frame->value.n, NULL);
	if (r < 0)
		return r;
	put_slot(ret, slice_of(slot->format, front));
	put_slot(ret, frame->value);
	put_slot(ret, slice_from_str(mark + 2));
	return 0;
}

/* The user name is the service's, or stored with the credential, or part of the value. */
static int make_basic(
	const struct service_slot *slot, const struct vault_frame *frame, struct secret *ret)
{
	static const char scheme[] = "Basic ";
	struct slice user = slice_from_str(slot->user ? slot->user : frame->user);
	AUTO_SECRET struct secret pair = {0};
	int r = secret_init(&pair, user.n + 1 + frame->value.n, NULL);

	if (r < 0)
		return r;
	if (user.n) {
		put_slot(&pair, user);
		put_slot(&pair, slice_of(":", 1));
	}
	put_slot(&pair, frame->value);
	if (!memchr(pair.p, ':', pair.n))
		return -EINVAL;
	r = secret_init(ret, sizeof(scheme) + B64_LEN(pair.n), NULL);
	if (r < 0)
		return r;
	put_slot(ret, slice_of(scheme, sizeof(scheme) - 1));
	ret->n += b64_encode(secret_slice(&pair), (char *)ret->p + ret->n);
	return 0;
}

int slot_fill(struct origin *o, struct exchange *x, struct value *v)
{
	const struct service_slot *slot = x->slot;
	struct http_headers *headers = &x->talk->req.headers;
	struct secret *text = &v->text[slot - o->service.slot];
	struct slice name = slice_from_str(slot->header);
	int r = 0;

	if (!text->n)
		r = slot->how == SERVICE_BASIC ? make_basic(slot, &v->frame, text)
					       : make_header(slot, &v->frame, text);
	if (r < 0)
		return r;
	/* Also an empty one, which had no owner. */
	canon_remove_header(headers, slot->header);
	return canon_set_header(headers, name, secret_slice(text));
}

void slot_wipe(struct exchange *x)
{
	if (x->slot && x->slot->header)
		canon_remove_header(&x->talk->req.headers, x->slot->header);
	secret_done(&x->filled);
}
