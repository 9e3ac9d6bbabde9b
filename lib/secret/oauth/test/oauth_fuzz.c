/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first byte chooses: an answer, a JSON body, a form, a query, a response with captured fields.
 * No token that was found is left in what is written, and what was written has the same members; a
 * filled request is judged foreign.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include "lib/secret/oauth/capture.h"
#include "lib/secret/oauth/oauth.h"
#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char text[] = "service 1\nname demo\nabout Demo\n"
			   "token login.example.com:443 /oauth/token\n"
			   "field access access_token dm-oat-proxy-managed\n"
			   "field access token dm-proxy-managed-*\n"
			   "field refresh refresh_token dm-ort-proxy-managed\n"
			   "field expires expires_in\nfield unsign id_token\n"
			   "capture * /a token\ncapture * /a key\n"
			   "slot api\nhost api.example.com:443\nheader authorization Bearer %s\n"
			   "value access\nend\n";

static struct service service;
static uint8_t out[OAUTH_MAX_REWRITTEN], again[OAUTH_MAX_REWRITTEN + 8192];
static uint8_t room[2 * OAUTH_MAX_TOKEN];

static size_t count(struct slice json)
{
	struct jtext_walk w = jtext_begin(json, OAUTH_MAX_DEPTH);
	struct jtext_member m;
	size_t n = 0;
	int r;

	while ((r = jtext_next(&w, &m)) == 1)
		n++;
	assert(r == 0);
	return n;
}

static void try_answer(struct slice answer)
{
	struct wr wr = wr_init(out, sizeof(out)), in = wr_init(room, sizeof(room));
	struct oauth_tokens tokens, none;
	struct slice written;

	if (oauth_rewrite(&service, answer, "0123456789abcdef", &wr, &in, &tokens) < 0)
		return;
	written = slice_of(out, wr.n);
	assert(count(written) == count(answer));
	assert(tokens.access.n <= OAUTH_MAX_TOKEN && tokens.refresh.n <= OAUTH_MAX_TOKEN);
	/* Once more: what is found then are the sentinels. */
	wr = wr_init(again, sizeof(again));
	in = wr_init(room, sizeof(room));
	if (written.n > OAUTH_MAX_ANSWER)
		return;
	assert(oauth_rewrite(&service, written, "0123456789abcdef", &wr, &in, &none) <= 0);
	if (none.refresh.n)
		assert(slice_eq_str(none.refresh, "dm-ort-proxy-managed"));
}

/* What is found a second time is what was put there. */
static void check_stars(void *user, struct slice value)
{
	for (size_t i = 0; i < value.n; i++)
		assert(value.p[i] == '*');
}

static void see(void *user, struct slice value)
{
	assert(value.n > 0 && value.n <= sizeof(room));
}

static void try_capture(struct slice body)
{
	AUTO_FREE uint8_t *copy = xmalloc(body.n + 1);
	struct capture_to to = {.buf = room, .size = sizeof(room), .found = see};
	size_t n;

	if (body.n)
		memcpy(copy, body.p, body.n);
	if (capture_clean(&service, 3, copy, body.n, &to) < 0)
		return;
	n = to.n;
	to = (struct capture_to){.buf = room, .size = sizeof(room), .found = check_stars};
	assert(capture_clean(&service, 3, copy, body.n, &to) == 0 && to.n == n);
	for (size_t i = 0; i < body.n; i++)
		assert(copy[i] == body.p[i] || copy[i] == '*');
}

static void try_request(enum oauth_form form, struct slice body)
{
	struct oauth_request req, other;
	struct wr wr = wr_init(out, sizeof(out));

	if (oauth_judge(&service, form, body, &req) < 0 || req.grant != OAUTH_REFRESH)
		return;
	assert(req.refresh.p > body.p && req.refresh.p + req.refresh.n <= body.p + body.n);
	assert(oauth_fill(&req, slice_from_str("real/\"\\&=R"), &wr) == 0);
	assert(wr.n > OAUTH_MAX_REQUEST ||
		oauth_judge(&service, form, slice_of(out, wr.n), &other) == -EPERM);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice rest;

	if (!service.name)
		assert(service_parse(slice_from_str(text), "demo", &service, NULL) == 0);
	if (size == 0)
		return 0;
	rest = slice_of(data + 1, size - 1);
	switch (data[0] % 8 == 4 ? 4 : data[0] % 4) {
	case 0:
		try_answer(rest);
		break;
	case 1:
		try_request(OAUTH_JSON, rest);
		break;
	case 2:
		try_request(OAUTH_FORM, rest);
		break;
	case 4:
		try_capture(rest);
		break;
	default:
		(void)!oauth_judge_query(&service, rest);
	}
	return 0;
}
