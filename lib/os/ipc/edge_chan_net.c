/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of edge_chan.h that are about the guest's network. */
#include "edge_chan.h"

#include <errno.h>

static const struct field ask_fields[] = {
	FIELD_ENUM(edge_ask, kind, EDGE_N_ASK_KINDS),
	FIELD_ENUM(edge_ask, via, EDGE_N_VIAS),
	FIELD_ENUM(edge_ask, proto, EDGE_N_PROTOS),
	FIELD_TEXT(edge_ask, host),
	FIELD_NUMBER(edge_ask, port),
	FIELD_NUMBER(edge_ask, qtype),
	FIELD_BOOL(edge_ask, url_cut),
	FIELD_BOOL(edge_ask, tls),
	FIELD_TEXT(edge_ask, method),
	FIELD_TEXT(edge_ask, url),
	FIELD_TEXT(edge_ask, fault),
	{0},
};

int edge_send_ask(int sock, uint32_t id, const struct edge_ask *ask)
{
	return chan_send(sock, EDGE_ASK, id, ask_fields, ask, -1);
}

static const struct field verdict_fields[] = {
	FIELD_BOOL(edge_verdict, allowed),
	FIELD_BOOL(edge_verdict, opened),
	FIELD_BOOL(edge_verdict, no_rule_helps),
	FIELD_NUMBER(edge_verdict, count),
	FIELD_STR(edge_verdict, rule),
	FIELD_STR(edge_verdict, reason),
	FIELD_STR(edge_verdict, sandbox),
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

	if (!http && (a->method[0] || a->url[0] || a->url_cut || a->tls))
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

	if ((ret->no_rule_helps && ret->allowed) || (ret->opened && !ret->allowed) ||
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
