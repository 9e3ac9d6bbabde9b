/* SPDX-License-Identifier: Apache-2.0 */
/* The effects of a request, as far as its head has them. */
#include "head.h"

#include <errno.h>
#include <string.h>
#include "lib/base/str.h"
#include "lib/wire/http/canon/canon_named.h"

/* ---- http ---- */

/* Several headers of a name are several facts: the rules know what that means. */
static void put_headers(const struct head *h, struct head_effects *ret, struct effect *e)
{
	size_t n = 0;

	for (size_t i = 0; h->headers && i < h->headers->n; i++) {
		const struct http_header *from = &h->headers->list[i];

		if (!canon_named_has(h->names, from->name))
			continue;
		if (n == EFFECT_MAX_HEADERS)
			return; /* not known then */
		ret->header[n++] = (struct effect_header){from->name, from->value};
	}
	e->has_headers = true;
	e->header = ret->header;
	e->n_headers = n;
}

static void describe_http(const struct head *h, struct head_effects *ret)
{
	struct effect *e = &ret->v[ret->n++];

	*e = (struct effect){.kind = EFFECT_HTTP,
		.verb = h->method,
		.host = h->host,
		.port = h->port,
		.object = ret->path,
		.is_odd = ret->odd != 0,
		.has_query = h->has_query,
		.query = h->query};
	put_headers(h, ret, e);
}

/* ---- git ---- */

static bool ends_fold(struct slice s, const char *lower, struct slice *ret_front)
{
	size_t n = strlen(lower);

	if (s.n < n || !canon_text_eq_fold(slice_of(s.p + s.n - n, n), lower))
		return false;
	*ret_front = slice_of(s.p, s.n - n);
	return true;
}

static bool ends_exactly(struct slice s, const char *end)
{
	size_t n = strlen(end);

	return s.n >= n && memcmp(s.p + s.n - n, end, n) == 0;
}

/* "/acme/app.git" is acme/app. */
static struct slice repo_of(struct slice front)
{
	static const char suffix[] = ".git";

	while (front.n && front.p[0] == '/')
		front = slice_of(front.p + 1, front.n - 1);
	if (ends_exactly(front, suffix))
		front.n -= sizeof(suffix) - 1;
	return front;
}

static bool names_service(struct slice query)
{
	return query.n && memmem(query.p, query.n, "service", 7);
}

/* Which of the smart HTTP requests it is. In another spelling, some server may still take it for
 * one: then it is one whose effect is not known. */
static bool is_git(const struct head *h, struct slice path, struct slice *ret_repo, bool *ret_fetch,
	enum head_content *ret_push)
{
	static const char refs[] = "/info/refs", fetch[] = "/git-upload-pack",
			  push[] = "/git-receive-pack";
	struct slice front;

	*ret_fetch = false;
	*ret_push = HEAD_NO_CONTENT;
	if (ends_fold(path, refs, &front)) {
		bool is_get = ends_exactly(path, refs) && slice_eq_str(h->method, "GET");

		*ret_fetch = is_get && slice_eq_str(h->query, "service=git-upload-pack");
		if (is_get && slice_eq_str(h->query, "service=git-receive-pack"))
			*ret_push = HEAD_ADVERT;
		/* without the word it is a download of a file */
		if (!*ret_fetch && !names_service(h->query))
			return false;
	} else if (ends_fold(path, fetch, &front)) {
		*ret_fetch = ends_exactly(path, fetch) && slice_eq_str(h->method, "POST") &&
			     !h->has_query;
	} else if (!ends_fold(path, push, &front)) {
		return false;
	} else if (ends_exactly(path, push) && slice_eq_str(h->method, "POST") && !h->has_query) {
		*ret_push = HEAD_PUSH;
	}
	*ret_repo = repo_of(front);
	return true;
}

static void describe_git(const struct head *h, struct head_effects *ret)
{
	struct effect e = {.kind = EFFECT_GIT, .host = h->host, .port = h->port};
	bool is_fetch = false;

	if (ret->odd) {
		/* any repository, as some server may read the path */
		e.is_unknown = true;
		e.why = slice_from_str("odd-path");
	} else if (!is_git(h, ret->path, &e.target, &is_fetch, &ret->content)) {
		return;
	} else if (is_fetch && e.target.n) {
		e.verb = slice_from_str("fetch");
		e.no_path = true;
	} else {
		e.is_unknown = true;
		e.why = slice_from_str("body");
	}
	if (!e.target.n)
		ret->content = HEAD_NO_CONTENT;
	ret->at_content = ret->n;
	ret->v[ret->n++] = e;
}

/* ---- api ---- */

/* sbx-clerk reads the rest. */
static bool is_calls(const struct head *h, const struct pack *pack, const struct head_effects *e)
{
	return e->content == HEAD_NO_CONTENT && pack->graphql.n && !e->odd &&
	       slice_eq(pack->graphql, e->path) && slice_eq_str(h->method, "POST");
}

static void describe_api(const struct head *h, const struct pack *pack, struct head_effects *ret)
{
	struct effect *e = &ret->v[ret->n++];
	struct pack_request req = {.method = h->method,
		.path = ret->path,
		.odd = ret->odd,
		.query = h->query,
		.headers = h->headers};

	pack_match(pack, &req, &ret->api);
	*e = (struct effect){.kind = EFFECT_API, .target = slice_from_str(pack->name)};
	if (is_calls(h, pack, ret)) {
		e->is_unknown = true;
		e->why = slice_from_str("body");
		ret->content = HEAD_CALLS;
		ret->at_content = ret->n - 1;
	} else if (ret->api.row) {
		e->verb = ret->api.row->verb;
		e->object = slice_from_str(ret->api.object);
		e->risk = slice_from_str(pack_risk_name(ret->api.row->risk));
	} else {
		e->is_unknown = true;
		e->why = slice_from_str("no-row");
	}
}

int head_describe(const struct head *h, const struct pack *pack, struct arena *arena,
	struct head_effects *ret)
{
	*ret = (struct head_effects){0};
	if (canon_check_path(h->path) < 0 || canon_check_query(h->query) < 0 ||
		canon_normal_path(h->path, arena, &ret->path, &ret->odd) < 0)
		return -EBADMSG;
	/* Some servers cut each segment there, as they do at the end of "..;". */
	if (memchr(ret->path.p, ';', ret->path.n))
		ret->odd |= CANON_ODD_SEMICOLON;
	describe_http(h, ret);
	describe_git(h, ret);
	if (pack)
		describe_api(h, pack, ret);
	return 0;
}
