/* SPDX-License-Identifier: Apache-2.0 */
#include "push.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "clerk.h"
#include "lib/base/mem.h"
#include "lib/wire/git/gitadvert.h"
#include "selftest.h"

/* session->own */
struct push {
	struct clerk *clerk;
	struct gitadvert advert;
};

static struct clerk *clerk_of(const struct session *s)
{
	return ((struct push *)s->own)->clerk;
}

/* ---- what the push does ---- */

static void on_request(void *arg, struct slice body)
{
	session_want(arg, body);
}

/* A record that does not fit is empty, and session_add refuses it. */
static void on_effect(void *arg, const struct clerk_effect *e)
{
	uint8_t buf[CLERK_MAX_REF + CLERK_MAX_PATH + 16];
	struct wr wr = wr_init(buf, sizeof(buf));

	clerk_put_effect(&wr, e);
	session_add(arg, slice_of(buf, wr.bad ? 0 : wr.n));
}

static void on_preview(void *arg, struct slice text)
{
	struct session *s = arg;

	(void)snprintf(s->judged.preview, sizeof(s->judged.preview), "%.*s", (int)text.n,
		(const char *)text.p);
}

static void on_unknown(void *arg, const char *why)
{
	session_fail(arg, why);
}

static void on_judged(void *arg)
{
	struct session *s = arg;

	clerk_hash(clerk_of(s), s->judged.commands);
	session_judge(s);
}

static const struct clerk_sink sink = {.request = on_request,
	.effect = on_effect,
	.preview = on_preview,
	.unknown = on_unknown,
	.judged = on_judged};

static int skip_effect(struct slice *records)
{
	struct clerk_effect e;

	return clerk_next_effect(records, &e);
}

/* ---- the list of refs ---- */

static bool has_type(const struct http_resp *resp, const char *type)
{
	size_t at;

	return canon_find_header(&resp->headers, "content-type", &at) == 0 &&
	       slice_eq_str(resp->headers.list[at].value, type) &&
	       canon_find_header(&resp->headers, "content-encoding", &at) == -ENOENT;
}

static bool advert_head(struct session *s, const struct http_resp *resp)
{
	return resp->status == 200 &&
	       has_type(resp, "application/x-git-receive-pack-advertisement");
}

static int advert_data(struct session *s, struct slice data, session_out *out, void *arg)
{
	struct err err = {0};

	return gitadvert_read(&((struct push *)s->own)->advert, data, out, arg, &err);
}

static int advert_end(struct session *s)
{
	return gitadvert_end(&((struct push *)s->own)->advert);
}

static const struct session_rewrite advert = {
	.head = advert_head, .data = advert_data, .end = advert_end};

/* ---- the request ---- */

static int open_push(struct session *s, struct slice list)
{
	const struct clerk_config config = {
		.paths = s->open.paths, .files = s->open.files, .max_bytes = s->open.max_bytes};
	struct push *p = xcalloc(1, sizeof(*p));
	struct clerk_sink to = sink;
	struct err err = {0};

	to.arg = s;
	s->own = p;
	p->clerk = clerk_new(&config, &to);
	gitadvert_init(&p->advert);
	if (s->open.is_advert)
		s->rewrite = &advert;
	return list.n > 0 ? clerk_set_list(p->clerk, list, &err) : 0;
}

static void close_push(struct session *s)
{
	struct push *p = TAKE(s->own);

	if (p)
		clerk_free(&p->clerk);
	free(p);
}

static void take_head(struct session *s)
{
	size_t at;

	if (canon_find_header(&s->req.headers, "content-encoding", &at) != -ENOENT)
		session_fail(s, "the content of the push is encoded");
}

static void take_body(struct session *s, struct slice data)
{
	clerk_body(clerk_of(s), data);
}

static void take_end(struct session *s)
{
	clerk_end(clerk_of(s));
}

static void get_body(struct session *s, struct slice ret[2])
{
	ret[0] = clerk_lines(clerk_of(s));
	ret[1] = clerk_pack(clerk_of(s));
}

static const char *refuse_push(struct session *s, const struct clerk_decided *why)
{
	return clerk_refuse(clerk_of(s), why->report, why->why, session_answer, s) < 0
		       ? NULL
		       : "application/x-git-receive-pack-result";
}

/* ---- what the push needs ---- */

static const char push_end[] = "/git-receive-pack", fetch_end[] = "/git-upload-pack";

static void add_header(struct http_headers *headers, const char *name, const char *value)
{
	headers->list[headers->n++] =
		(struct http_header){slice_from_str(name), slice_from_str(value)};
}

/* The request to upload-pack. -EINVAL: edge's is not a push. */
static int make_fetch(struct session *s, struct session_want *ret)
{
	static const char *const taken[] = {"authorization", "user-agent"};
	struct slice from = s->req.path;
	struct http_headers *headers = &ret->req.headers;
	size_t n = sizeof(push_end) - 1, at;

	if (from.n < n || memcmp(from.p + from.n - n, push_end, n) != 0)
		return -EINVAL;
	memcpy(ret->path, from.p, from.n - n);
	memcpy(ret->path + from.n - n, fetch_end, sizeof(fetch_end));
	ret->req = s->req;
	ret->req.path = slice_from_str(ret->path);
	*headers = (struct http_headers){.list = ret->list, .max = SESSION_WANT_HEADERS};
	add_header(headers, "content-type", "application/x-git-upload-pack-request");
	add_header(headers, "accept", "application/x-git-upload-pack-result");
	add_header(headers, "git-protocol", "version=2");
	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		if (canon_find_header(&s->req.headers, taken[i], &at) == 0)
			headers->list[headers->n++] = s->req.headers.list[at];
	return 0;
}

static bool is_fetched(struct session *s, const struct http_resp *resp)
{
	return resp->status == 200 && has_type(resp, "application/x-git-upload-pack-result");
}

static void take_fetched(struct session *s, struct slice data)
{
	clerk_answer(clerk_of(s), data);
}

static void end_fetched(struct session *s, bool complete)
{
	clerk_answer_end(clerk_of(s), complete);
}

const struct session_program push_program = {.name = "sbx-clerk-git",
	.too_much = "the push changes too many files",
	.profile = JAIL_CLERK_GIT,
	.selftest = clerk_selftest,
	.open = open_push,
	.close = close_push,
	.head = take_head,
	.body = take_body,
	.end = take_end,
	.get_body = get_body,
	.refuse = refuse_push,
	.skip = skip_effect,
	.make_want = make_fetch,
	.take_head = is_fetched,
	.take_data = take_fetched,
	.take_end = end_fetched};
