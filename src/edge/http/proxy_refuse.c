/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy_internal.h"

#include <errno.h>
#include <string.h>

/* Whether the guest can still get an answer: none has begun, and there is room. */
static bool can_answer(const struct conn *c)
{
	const struct proxy *p = c->proxy;

	return !p->x.answered && p->to_guest.n == 0 && conn_room(c) >= DENY_ROOM;
}

enum proxy_step proxy_refuse(struct edge *e, struct conn *c, const struct http_fault *fault)
{
	const struct proxy_exchange *x = &c->proxy->x;
	uint8_t buf[DENY_ROOM];
	struct wr wr = wr_init(buf, sizeof(buf));

	/* Once per connection, because each fault ends it. */
	if (c->target.given)
		conn_report_fault(e, c, EDGE_ASK_HTTP, fault->why);
	else
		conn_report_named_fault(e, c, EDGE_ASK_HTTP, x->host, x->port, fault->why);
	if (!can_answer(c) || deny_write_fault(&wr, fault, x->is_head) < 0 ||
		c->proxy->tongue->say_refusal(e, c, slice_of(buf, wr.n)) < 0)
		return proxy_hang_up(e, c);
	return proxy_finish(e, c);
}

static struct deny deny_of(const struct proxy_exchange *x)
{
	return (struct deny){.host = slice_from_str(x->host), .port = x->port};
}

/* A body with a small announced length is read and dropped. A body that waits for 100 may never
 * arrive. */
static bool can_discard(const struct http_req *req)
{
	if (req->body.kind == HTTP_BODY_NONE)
		return true;
	return req->body.kind == HTTP_BODY_LENGTH && req->body.length <= PROXY_MAX_DISCARD &&
	       !req->expect_continue;
}

enum proxy_step proxy_deny(struct edge *e, struct conn *c, const struct edge_verdict *verdict)
{
	struct proxy *p = c->proxy;
	struct deny d = deny_of(&p->x);
	uint8_t buf[DENY_ROOM];
	struct wr wr = wr_init(buf, sizeof(buf));
	/* Inside intercepted TLS, a denial with its own reason concerns more than this request: the
	 * host may no longer be intercepted. The next connection is decided again. */
	bool stale = conn_is_opened(c) && verdict->reason[0] && !verdict->effect[0] &&
		     !verdict->approval[0];
	bool close = stale || !p->x.keep_alive || !can_discard(p->x.req);

	if (stale && p->tongue->go_away)
		p->tongue->go_away(e, c);
	d.rule = slice_from_str(verdict->rule);
	d.reason = slice_from_str(verdict->reason);
	d.sandbox = slice_from_str(verdict->sandbox);
	d.effect = slice_from_str(verdict->effect);
	d.instead = slice_from_str(verdict->instead);
	d.command = slice_from_str(verdict->command);
	d.count = verdict->count;
	d.no_rule_helps = verdict->no_rule_helps;
	d.approval = slice_from_str(verdict->approval);
	if (!can_answer(c) || deny_write_http(&wr, &d, p->x.json, p->x.is_head, close) < 0 ||
		p->tongue->say_refusal(e, c, slice_of(buf, wr.n)) < 0)
		return proxy_hang_up(e, c);
	if (close)
		return proxy_finish(e, c);
	p->state = PROXY_DISCARD;
	conn_set_timer(e, c, PROXY_HEAD_MS);
	return PROXY_AGAIN;
}

enum proxy_step proxy_fail(struct edge *e, struct conn *c, uint16_t status, struct slice reason)
{
	struct proxy *p = c->proxy;
	struct deny d = deny_of(&p->x);
	uint8_t buf[DENY_ROOM];
	struct wr wr = wr_init(buf, sizeof(buf));
	bool close = !p->x.keep_alive || !p->x.req_done;
	int r;

	d.reason = reason;
	/* In intercepted TLS it was sbx-origin: a credential, not a rule. */
	d.no_rule_helps = conn_is_opened(c);
	if (status == 403)
		r = deny_write_http(&wr, &d, p->x.json, p->x.is_head, close);
	else
		r = deny_write_failed(&wr, &d, status, p->x.json, p->x.is_head, close);
	if (r < 0 || !can_answer(c) || p->tongue->say_refusal(e, c, slice_of(buf, wr.n)) < 0)
		return proxy_hang_up(e, c);
	if (close)
		return proxy_finish(e, c);
	conn_drop_fd(e, c);
	return proxy_next(e, c);
}
