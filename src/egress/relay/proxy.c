/* SPDX-License-Identifier: Apache-2.0 */
/* The upstream proxy: a tunnel through it, or a connection for sbx-origin, is a CONNECT, its answer
 * parsed as strictly as a server's. HTTP requests are sent to it as to a server (request.c), with
 * an absolute target. */
#include "relay.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

void PRINTF_LIKE(4, 5) proxy_refuse(
	struct egress *e, struct exchange *x, enum egress_outcome outcome, const char *fmt, ...)
{
	char why[EGRESS_MAX_TEXT];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	e->ops->fail(e, x, outcome, &x->addr, "upstream proxy %s: %s", e->proxy.name, why);
}

static void fail_proxy(struct egress *e, struct exchange *x, const char *why)
{
	proxy_refuse(e, x, EGRESS_PROXY_DOWN, "%s", why);
}

void proxy_refuse_login(struct egress *e, struct exchange *x, unsigned status)
{
	if (e->config.proxy_user[0])
		proxy_refuse(e, x, EGRESS_PROXY_LOGIN, "wrong user or password (%u)", status);
	else
		proxy_refuse(e, x, EGRESS_PROXY_LOGIN, "login required (%u)", status);
}

/* What its status means for the target, or for us. */
static void refuse_status(struct egress *e, struct exchange *x, unsigned status)
{
	/* tinyproxy answers 401 to a wrong password. */
	if (status == 407 || (status == 401 && e->config.proxy_user[0]))
		proxy_refuse_login(e, x, status);
	else
		proxy_refuse(e, x, EGRESS_PROXY_REFUSED, "refused %s, port %u: %u %s", x->host.name,
			x->port, status, canon_reason((uint16_t)status));
}

void proxy_begin(struct egress *e, struct exchange *x)
{
	struct wr wr = out_wr(&x->to_upstream, 2048);
	struct talk *t = x->talk = talk_new();

	t->req = (struct http_req){.method = slice_from_str("CONNECT"),
		.form = HTTP_FORM_AUTHORITY,
		.host = host_slice(&x->host),
		.port = x->port,
		.body = {.kind = HTTP_BODY_TUNNEL}};
	if (canon_write_req(&wr, &t->req, CANON_TO_PROXY) < 0) {
		proxy_refuse(e, x, EGRESS_PROXY_REFUSED, "the request is too large");
		return;
	}
	out_put_wr(&x->to_upstream, &wr);
	http1_init_response(&t->reader, &t->resp_arena, &t->req);
	x->state = EXCHANGE_UPSTREAM;
	exchange_set_timer(e, x, EGRESS_UPSTREAM_MS);
	if (!e->config.proxy_user[0])
		proxy_pump(e, x);
	else if (!login_split(e, x))
		proxy_refuse(e, x, EGRESS_PROXY_REFUSED, "the request is too large");
}

/* Whether its answer is still awaited. */
static bool on_answer(
	struct egress *e, struct exchange *x, const struct http1_event *ev, struct slice rest)
{
	if (ev->kind != HTTP1_EV_HEAD) {
		fail_proxy(e, x, ev->kind == HTTP1_EV_ERROR ? ev->fault.why : "invalid response");
		return false;
	}
	if (ev->resp->status < 200)
		return true;
	if (ev->resp->body.kind != HTTP_BODY_TUNNEL) {
		refuse_status(e, x, ev->resp->status);
		return false;
	}
	if (x->kind == EGRESS_SOCKET) {
		e->ops->give(e, x);
		return false;
	}
	e->ops->tell(e, x, EGRESS_CONNECTED, &x->addr, egress_outcome_text(EGRESS_CONNECTED));
	tunnel_put_head(x);
	if (out_put(&x->to_edge, rest) < 0) {
		e->ops->finish(e, x);
		return false;
	}
	x->n_bytes[WAY_DOWN] += rest.n;
	tunnel_run(e, x);
	return false;
}

void proxy_pump(struct egress *e, struct exchange *x)
{
	uint8_t buf[4096];
	/* Data after the proxy's head belongs to the receiver of the connection and must not be
	 * read here, so the head is read byte by byte. */
	size_t want = x->kind == EGRESS_SOCKET ? 1 : sizeof(buf);
	struct http1_event ev;
	struct slice in;
	uint64_t n_sent = 0;
	ssize_t n;
	int r = out_flush(&x->to_upstream, x->upstream_fd, &n_sent);

	if (r < 0 && r != -EAGAIN) {
		fail_proxy(e, x, "connection lost");
		return;
	}
	for (;;) {
		n = recv(x->upstream_fd, buf, want, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			fail_proxy(e, x, "connection closed without a response");
			return;
		}
		in = slice_of(buf, (size_t)n);
		while (http1_read(&x->talk->reader, &in, &ev)) {
			if (!on_answer(e, x, &ev, in))
				return;
		}
	}
}
