/* SPDX-License-Identifier: Apache-2.0 */
/* The decision of the process that sends the request: it sees all headers. */
#include <stdio.h>
#include "head.h"
#include "lib/rules/effect/effect_query.h"

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

static const char *find_override(const struct http_headers *headers)
{
	static const char *const names[] = {"x-http-method-override", "x-http-method",
		"x-method-override", "x-original-method", "x-original-url", "x-original-uri",
		"x-rewrite-url", "x-rewrite-uri", "x-forwarded-uri", "x-forwarded-method"};

	for (size_t i = 0; i < headers->n; i++)
		for (size_t k = 0; k < ARRAY_LEN(names); k++)
			if (is_name(headers->list[i].name, names[k]))
				return names[k];
	return NULL;
}

static const char *find_override_field(struct slice query)
{
	static const char *const names[] = {"_method", "x-http-method-override", "$httpMethod"};
	uint8_t buf[EFFECT_MAX_VALUE];
	struct slice value;

	for (size_t k = 0; query.n && k < ARRAY_LEN(names); k++)
		if (effect_query_find(query, slice_from_str(names[k]), buf, &value) == EFFECT_KNOWN)
			return names[k];
	return NULL;
}

bool head_may_send(const struct head_sender *s, const struct http_req *req, struct arena *arena,
	char *ret_why, size_t size)
{
	static const struct head_read judged = {0};
	const char *override = find_override(&req->headers);
	const char *field = find_override_field(req->query);
	struct policy_decision network;
	struct head_decision d;
	struct head h = {.method = req->method,
		.host = req->host,
		.port = req->port,
		.path = req->path,
		.query = req->query,
		.has_query = req->has_query,
		.headers = &req->headers,
		.read = s->is_judged ? &judged : NULL};

	policy_decide(s->policy, s->op, &network);
	if (!network.allowed) {
		policy_explain(s->op, &network, ret_why, size);
		return false;
	}
	if (!head_is_needed(s->policy, s->op, s->pack, NULL))
		return true;
	if (override || field) {
		(void)snprintf(ret_why, size,
			"%s %s: a server can use it instead of the method or the path",
			override ? "header" : "query field", override ? override : field);
		return false;
	}
	arena_reset(arena);
	head_decide(s->policy, s->op, s->pack, &h, arena, &d);
	(void)snprintf(ret_why, size, "%s", d.reason);
	/* What a person must approve came with a ticket: the keeper has the approval. */
	return d.answer == HEAD_ALLOWED || d.answer == HEAD_HELD;
}
