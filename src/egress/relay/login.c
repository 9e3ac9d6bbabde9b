/* SPDX-License-Identifier: Apache-2.0 */
/* The login at the upstream proxy is written by the vault (egress_chan.h). What precedes it must be
 * in the socket before; what follows it is kept until the keeper reports. */
#include "relay.h"

#include <errno.h>
#include <sys/socket.h>
#include "lib/base/mem.h"

void login_begin(struct egress *e, struct exchange *x, struct slice rest)
{
	struct login *l = x->login = xcalloc(1, sizeof(*l));

	l->n = rest.n;
	if (rest.n) {
		l->rest = xmalloc(rest.n);
		memcpy(l->rest, rest.p, rest.n);
	}
	x->state = EXCHANGE_UPSTREAM;
	exchange_set_timer(e, x, EGRESS_UPSTREAM_MS);
	login_pump(e, x);
}

bool login_split(struct egress *e, struct exchange *x)
{
	static const char header[] = "\r\nproxy-authorization: Basic ";
	struct out *o = &x->to_upstream;
	struct slice head = out_peek(o);
	const uint8_t *end = memmem(head.p, head.n, "\r\n", 2);
	AUTO_FREE uint8_t *rest = NULL;
	size_t n;

	if (!end)
		return false;
	n = head.n - (size_t)(end - head.p);
	rest = xmalloc(n);
	memcpy(rest, end, n);
	o->n -= n;
	if (out_put(o, slice_of(header, sizeof(header) - 1)) < 0)
		return false;
	login_begin(e, x, slice_of(rest, n));
	return true;
}

void login_pump(struct egress *e, struct exchange *x)
{
	uint64_t n_sent = 0;
	int r = out_flush(&x->to_upstream, x->upstream_fd, &n_sent);

	if (r < 0 && r != -EAGAIN) {
		proxy_refuse(e, x, EGRESS_PROXY_DOWN, "connection lost");
		return;
	}
	if (r < 0 || x->login->is_asked)
		return;
	x->login->is_asked = true;
	e->ops->login(e, x);
}

void login_drop(struct exchange *x)
{
	struct login *l = TAKE(x->login);

	if (l)
		free(l->rest);
	free(l);
}

void login_on_logged(struct egress *e, struct exchange *x, const char *why)
{
	struct login *l = x->login;

	if (why[0]) {
		proxy_refuse(e, x, EGRESS_PROXY_LOGIN, "no login: %s", why);
		return;
	}
	if (out_put(&x->to_upstream, slice_of(l->rest, l->n)) < 0) {
		proxy_refuse(e, x, EGRESS_PROXY_REFUSED, "the request is too large");
		return;
	}
	login_drop(x);
	if (x->socks)
		socks_pump(e, x);
	else if (x->kind == EGRESS_HTTP)
		request_go_on(e, x);
	else
		proxy_pump(e, x);
}
