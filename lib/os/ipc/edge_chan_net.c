/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of edge_chan.h that are about the guest's network. */
#include "edge_chan.h"

#include <errno.h>
#include "lib/base/mem.h"

static const struct field ask_fields[] = {
	FIELD_ENUM(edge_ask, kind, EDGE_N_ASK_KINDS),
	FIELD_ENUM(edge_ask, via, EDGE_N_VIAS),
	FIELD_ENUM(edge_ask, proto, EDGE_N_PROTOS),
	FIELD_TEXT(edge_ask, host),
	FIELD_NUMBER(edge_ask, port),
	FIELD_NUMBER(edge_ask, qtype),
	FIELD_BOOL(edge_ask, tls),
	FIELD_TEXT(edge_ask, method),
	FIELD_TEXT(edge_ask, target),
	FIELD_TEXT(edge_ask, fault),
	FIELD_NUMBER(edge_ask, wants_id),
	FIELD_STR(edge_ask, named),
	{0},
};

struct slice edge_ask_path(const struct edge_ask *ask)
{
	return slice_of(ask->target, strcspn(ask->target, "?"));
}

void edge_ask_ticket(const struct edge_ask *ask, struct ticket *ret)
{
	struct ticket_request req = {.tls = ask->tls,
		.method = slice_from_str(ask->method),
		.host = slice_from_str(ask->host),
		.port = ask->port,
		.path = edge_ask_path(ask),
		.named = slice_from_str(ask->named)};
	const char *query = ask->target + req.path.n;

	req.has_query = *query == '?';
	if (req.has_query)
		req.query = slice_from_str(query + 1);
	ticket_make(&req, ret);
}

int edge_send_ask(int sock, uint32_t id, const struct edge_ask *ask)
{
	return chan_send(sock, EDGE_ASK, id, ask_fields, ask, -1);
}

/* ---- asks that wait ---- */

struct ask_copy {
	enum edge_ask_kind kind;
	enum edge_via via;
	enum edge_proto proto;
	uint16_t port, qtype;
	uint32_t wants_id;
	bool has_fault, tls;
	char texts[]; /* host, method, target, fault and named, each with its NUL */
};

struct ask_copy *ask_copy_new(const struct edge_ask *ask)
{
	const char *const texts[] = {ask->host, ask->method, ask->target, ask->fault, ask->named};
	struct ask_copy *a;
	size_t n = 0;
	char *at;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		n += strlen(texts[i]) + 1;
	a = xmalloc(sizeof(*a) + n);
	*a = (struct ask_copy){.kind = ask->kind,
		.via = ask->via,
		.proto = ask->proto,
		.port = ask->port,
		.qtype = ask->qtype,
		.tls = ask->tls,
		.wants_id = ask->wants_id,
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

void ask_copy_get(const struct ask_copy *a, struct edge_ask *ret)
{
	const char *at = a->texts;

	ret->kind = a->kind;
	ret->via = a->via;
	ret->proto = a->proto;
	ret->port = a->port;
	ret->qtype = a->qtype;
	ret->tls = a->tls;
	ret->wants_id = a->wants_id;
	at = take_text(at, ret->host);
	at = take_text(at, ret->method);
	at = take_text(at, ret->target);
	at = take_text(at, ret->fault);
	(void)take_text(at, ret->named);
}

bool ask_copy_is_open(const struct ask_copy *a)
{
	return edge_ask_has_socket(a->kind) && a->kind != EDGE_ASK_AGENT && !a->has_fault;
}

/* ---- verdicts ---- */

static const struct field verdict_fields[] = {
	FIELD_BOOL(edge_verdict, allowed),
	FIELD_BOOL(edge_verdict, opened),
	FIELD_BOOL(edge_verdict, no_rule_helps),
	FIELD_NUMBER(edge_verdict, count),
	FIELD_STR(edge_verdict, rule),
	FIELD_STR(edge_verdict, reason),
	FIELD_STR(edge_verdict, sandbox),
	FIELD_TEXT(edge_verdict, approval),
	FIELD_TEXT(edge_verdict, effect),
	FIELD_TEXT(edge_verdict, instead),
	FIELD_TEXT(edge_verdict, command),
	FIELD_STR(edge_verdict, wants),
	FIELD_NUMBER(edge_verdict, wants_id),
	FIELD_NUMBER(edge_verdict, channel),
	FIELD_NUMBER(edge_verdict, stream),
	{0},
};

int edge_answer_ask(int sock, uint32_t id, const struct edge_verdict *verdict, int fd)
{
	return chan_send(sock, EDGE_VERDICT, id, verdict_fields, verdict, fd);
}

/* What the kind must and must not have. */
static bool ask_is_ok(const struct edge_ask *a)
{
	bool http = a->kind == EDGE_ASK_HTTP;
	bool dns = a->kind == EDGE_ASK_DNS;
	bool agent = a->kind == EDGE_ASK_AGENT;
	bool link = a->kind == EDGE_ASK_LINK;

	if (!http && (a->method[0] || a->tls || a->wants_id || (a->target[0] && !link)))
		return false;
	if (link && !a->target[0])
		return false;
	if (a->named[0] && !a->wants_id)
		return false;
	if (dns ? a->port != 0 : a->qtype != 0)
		return false;
	if (agent) /* there is only one */
		return !a->host[0] && !a->port && !a->fault[0];
	return a->fault[0] || (a->host[0] && (dns || a->port) && (!http || a->method[0]));
}

int edge_get_ask(const struct ipc_msg *msg, struct edge_ask *ret)
{
	int r = chan_get(&edge_chan, msg, EDGE_ASK, ask_fields, ret);

	return r == 0 && !ask_is_ok(ret) ? -EBADMSG : r;
}

int edge_get_verdict(const struct ipc_msg *msg, struct edge_verdict *ret)
{
	int r = chan_get(&edge_chan, msg, EDGE_VERDICT, verdict_fields, ret);

	if (((ret->no_rule_helps || ret->approval[0]) && ret->allowed) ||
		(ret->opened && !ret->allowed) || (ret->wants_id && ret->allowed && !ret->opened) ||
		!ret->wants_id != !ret->wants[0] || !ret->channel != !ret->stream ||
		(ret->stream && (!ret->allowed || ret->opened || msg->fd >= 0)) ||
		(msg->fd >= 0 && (!ret->allowed || ret->opened)))
		return -EBADMSG;
	return r;
}

static const struct field ca_fields[] = {
	FIELD_STR(edge_ca, pem),
	FIELD_BLOB(edge_ca, saved, n_saved),
	{0},
};

int edge_send_ca(int sock, const struct edge_ca *ca)
{
	return chan_send(sock, EDGE_CA, 0, ca_fields, ca, -1);
}

/* It is written into files of the guest: lines of printable characters, the last one ended. */
static bool pem_is_ok(const char *pem)
{
	size_t n = strlen(pem);

	for (const char *c = pem; *c; c++) {
		if (*c != '\n' && (*c < ' ' || *c > '~'))
			return false;
	}
	return n > 0 && pem[n - 1] == '\n';
}

int edge_get_ca(const struct ipc_msg *msg, struct edge_ca *ret)
{
	int r = chan_get(&edge_chan, msg, EDGE_CA, ca_fields, ret);

	return r == 0 && (ret->n_saved == 0 || !pem_is_ok(ret->pem)) ? -EBADMSG : r;
}
