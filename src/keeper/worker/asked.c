/* SPDX-License-Identifier: Apache-2.0 */
#include "asked.h"

#include <string.h>
#include "lib/base/mem.h"

struct asked {
	enum edge_ask_kind kind;
	enum edge_via via;
	enum edge_proto proto;
	uint16_t port, qtype;
	bool url_cut, has_fault, tls;
	char texts[]; /* host, method, url and fault, each with its NUL */
};

struct asked *asked_new(const struct edge_ask *ask)
{
	const char *const texts[] = {ask->host, ask->method, ask->url, ask->fault};
	struct asked *a;
	size_t n = 0;
	char *at;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		n += strlen(texts[i]) + 1;
	a = xmalloc(sizeof(*a) + n);
	*a = (struct asked){.kind = ask->kind,
		.via = ask->via,
		.proto = ask->proto,
		.port = ask->port,
		.qtype = ask->qtype,
		.url_cut = ask->url_cut,
		.tls = ask->tls,
		.has_fault = ask->fault[0]};
	at = a->texts;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		at = stpcpy(at, texts[i]) + 1;
	return a;
}

static const char *take_text(const char *at, char *ret)
{
	size_t n = strlen(at) + 1;

	memcpy(ret, at, n);
	return at + n;
}

void asked_get(const struct asked *a, struct edge_ask *ret)
{
	const char *at = a->texts;

	ret->kind = a->kind;
	ret->via = a->via;
	ret->proto = a->proto;
	ret->port = a->port;
	ret->qtype = a->qtype;
	ret->url_cut = a->url_cut;
	ret->tls = a->tls;
	at = take_text(at, ret->host);
	at = take_text(at, ret->method);
	at = take_text(at, ret->url);
	(void)take_text(at, ret->fault);
}

bool asked_is_open(const struct asked *a)
{
	return edge_ask_has_socket(a->kind) && a->kind != EDGE_ASK_AGENT && !a->has_fault;
}
