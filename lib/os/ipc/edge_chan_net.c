/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of edge_chan.h that are about the guest's network. */
#include "edge_chan_internal.h"

#include <errno.h>

int edge_send_ask(int sock, uint32_t id, const struct edge_ask *ask)
{
	uint8_t buf[sizeof(*ask) + 32];
	struct wr wr = wr_init(buf, sizeof(buf));
	int r;

	wr_u8(&wr, (uint8_t)ask->kind);
	wr_u8(&wr, (uint8_t)ask->via);
	wr_u8(&wr, (uint8_t)ask->proto);
	wr_cstr(&wr, ask->host);
	wr_u16(&wr, ask->port);
	wr_u16(&wr, ask->qtype);
	wr_u8(&wr, ask->url_cut);
	wr_u8(&wr, ask->tls);
	wr_cstr(&wr, ask->method);
	wr_cstr(&wr, ask->url);
	wr_cstr(&wr, ask->fault);
	r = wr_finish(&wr);
	return r < 0 ? r : ipc_send(sock, EDGE_ASK, id, slice_of(wr.p, wr.n), -1);
}

int edge_ask_net(int sock, int net_fd)
{
	return ipc_send(sock, EDGE_NET, 0, slice_of(NULL, 0), net_fd);
}

int edge_answer_ask(int sock, uint32_t id, const struct edge_verdict *verdict, int fd)
{
	uint8_t buf[sizeof(*verdict) + 16];
	struct wr wr = wr_init(buf, sizeof(buf));
	int r;

	wr_u8(&wr, verdict->allowed);
	wr_u8(&wr, verdict->opened);
	wr_u8(&wr, verdict->no_rule_helps);
	wr_u32(&wr, verdict->count);
	wr_cstr(&wr, verdict->rule);
	wr_cstr(&wr, verdict->reason);
	wr_cstr(&wr, verdict->sandbox);
	r = wr_finish(&wr);
	return r < 0 ? r : ipc_send(sock, EDGE_VERDICT, id, slice_of(wr.p, wr.n), fd);
}

/* What the kind must and must not have. */
static bool ask_is_ok(const struct edge_ask *a)
{
	bool http = a->kind == EDGE_ASK_HTTP;
	bool dns = a->kind == EDGE_ASK_DNS;
	bool agent = a->kind == EDGE_ASK_AGENT;

	if (!ipc_is_printable(a->host) || !ipc_is_printable(a->method) ||
		!ipc_is_printable(a->url) || !ipc_is_printable(a->fault))
		return false;
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
	struct rd rd = rd_init(ipc_body(msg));
	uint8_t kind = rd_u8(&rd), via = rd_u8(&rd), proto = rd_u8(&rd), cut, tls;

	rd_cstr(&rd, ret->host, sizeof(ret->host));
	ret->port = rd_u16(&rd);
	ret->qtype = rd_u16(&rd);
	cut = rd_u8(&rd);
	tls = rd_u8(&rd);
	rd_cstr(&rd, ret->method, sizeof(ret->method));
	rd_cstr(&rd, ret->url, sizeof(ret->url));
	rd_cstr(&rd, ret->fault, sizeof(ret->fault));
	if (rd_finish(&rd) < 0 || msg->type != EDGE_ASK || msg->fd >= 0 ||
		kind >= EDGE_N_ASK_KINDS || via >= EDGE_N_VIAS || proto >= EDGE_N_PROTOS ||
		cut > 1 || tls > 1)
		return -EBADMSG;
	ret->kind = (enum edge_ask_kind)kind;
	ret->via = (enum edge_via)via;
	ret->proto = (enum edge_proto)proto;
	ret->url_cut = cut;
	ret->tls = tls;
	return ask_is_ok(ret) ? 0 : -EBADMSG;
}

int edge_get_verdict(const struct ipc_msg *msg, struct edge_verdict *ret)
{
	struct rd rd = rd_init(ipc_body(msg));
	uint8_t allowed = rd_u8(&rd), opened = rd_u8(&rd), no_rule = rd_u8(&rd);

	ret->count = rd_u32(&rd);
	rd_cstr(&rd, ret->rule, sizeof(ret->rule));
	rd_cstr(&rd, ret->reason, sizeof(ret->reason));
	rd_cstr(&rd, ret->sandbox, sizeof(ret->sandbox));
	if (rd_finish(&rd) < 0 || msg->type != EDGE_VERDICT || allowed > 1 || opened > 1 ||
		no_rule > 1 || (no_rule && allowed) || (opened && !allowed) ||
		(msg->fd >= 0 && (!allowed || opened)))
		return -EBADMSG;
	ret->allowed = allowed;
	ret->opened = opened;
	ret->no_rule_helps = no_rule;
	return 0;
}

void edge_read_saved(struct rd *rd, uint8_t saved[EDGE_MAX_SAVED], uint16_t *ret_n)
{
	struct slice s = rd_str(rd);

	*ret_n = 0;
	if (s.n > EDGE_MAX_SAVED) {
		rd->bad = true;
		return;
	}
	if (s.n > 0)
		memcpy(saved, s.p, s.n);
	*ret_n = (uint16_t)s.n;
}

int edge_send_ca(int sock, const struct edge_ca *ca)
{
	uint8_t buf[sizeof(*ca) + 8];
	struct wr wr = wr_init(buf, sizeof(buf));
	int r;

	wr_cstr(&wr, ca->pem);
	wr_str(&wr, slice_of(ca->saved, ca->n_saved));
	r = wr_finish(&wr);
	r = r < 0 ? r : ipc_send(sock, EDGE_CA, 0, slice_of(wr.p, wr.n), -1);
	explicit_bzero(buf, sizeof(buf));
	return r;
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
	struct rd rd = rd_init(ipc_body(msg));

	rd_cstr(&rd, ret->pem, sizeof(ret->pem));
	edge_read_saved(&rd, ret->saved, &ret->n_saved);
	if (rd_finish(&rd) < 0 || msg->type != EDGE_CA || msg->id != 0 || msg->fd >= 0)
		return -EBADMSG;
	return ret->n_saved > 0 && pem_is_ok(ret->pem) ? 0 : -EBADMSG;
}
