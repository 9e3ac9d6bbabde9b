/* SPDX-License-Identifier: Apache-2.0 */
/* A SOCKS 5 proxy: it gets the name, or an address that was checked, and resolves the name. The
 * replies are read to their last byte and no further: what follows is the server's. */
#include "relay.h"

#include <errno.h>
#include <sys/socket.h>
#include "lib/base/mem.h"

static void put_hello(struct exchange *x)
{
	struct wr wr = out_wr(&x->to_upstream, 8);

	socks_put_hello(x->socks, &wr);
	out_put_wr(&x->to_upstream, &wr);
}

/* Whether the request fits. */
static bool put_request(struct exchange *x)
{
	struct wr wr = out_wr(&x->to_upstream, SOCKS_MAX_REQUEST);
	const struct socks_target target = {
		.name = x->host.is_addr ? slice_of(NULL, 0) : host_slice(&x->host),
		.addr = slice_of(x->host.addr.b, x->host.is_addr ? x->host.addr.n : 0),
		.port = x->port};

	if (socks_put_request(&target, &wr) < 0)
		return false;
	out_put_wr(&x->to_upstream, &wr);
	return true;
}

static void fail_socks(struct egress *e, struct exchange *x)
{
	static const enum egress_outcome outcomes[] = {
		[SOCKS_NOT_SOCKS] = EGRESS_PROXY_DOWN,
		[SOCKS_WANTS_LOGIN] = EGRESS_PROXY_LOGIN,
		[SOCKS_LOGIN_REFUSED] = EGRESS_PROXY_LOGIN,
		[SOCKS_HOST_REFUSED] = EGRESS_PROXY_REFUSED,
		[SOCKS_CANNOT] = EGRESS_PROXY_REFUSED,
	};
	enum egress_outcome outcome = outcomes[x->socks->fault];

	if (outcome == EGRESS_PROXY_REFUSED)
		proxy_refuse(e, x, outcome, "refused %s, port %u: %s", x->host.name, x->port,
			x->socks->why);
	else
		proxy_refuse(e, x, outcome, "%s", x->socks->why);
}

/* Whether its replies are still awaited. */
static bool on_reply(struct egress *e, struct exchange *x, enum socks_next next)
{
	switch (next) {
	case SOCKS_READ:
		return true;
	case SOCKS_REQUEST:
		if (put_request(x))
			return true;
		proxy_refuse(e, x, EGRESS_PROXY_REFUSED, "the name is too long");
		return false;
	case SOCKS_OPEN:
		free(TAKE(x->socks));
		e->ops->ready(e, x);
		return false;
	case SOCKS_LOGIN:
		login_begin(e, x, slice_of(NULL, 0));
		return false;
	case SOCKS_FAILED:
		fail_socks(e, x);
		return false;
	}
	return false;
}

void socks_begin(struct egress *e, struct exchange *x)
{
	x->socks = xcalloc(1, sizeof(*x->socks));
	socks_init(x->socks, e->config.proxy_user[0]);
	put_hello(x);
	x->state = EXCHANGE_UPSTREAM;
	exchange_set_timer(e, x, EGRESS_UPSTREAM_MS);
	socks_pump(e, x);
}

void socks_pump(struct egress *e, struct exchange *x)
{
	uint8_t buf[SOCKS_MAX_REPLY];
	uint64_t n_sent = 0;
	ssize_t n;
	int r;

	for (;;) {
		r = out_flush(&x->to_upstream, x->upstream_fd, &n_sent);
		if (r < 0 && r != -EAGAIN) {
			proxy_refuse(e, x, EGRESS_PROXY_DOWN, "connection lost");
			return;
		}
		n = recv(x->upstream_fd, buf, socks_want(x->socks), MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			proxy_refuse(
				e, x, EGRESS_PROXY_DOWN, "connection closed without a response");
			return;
		}
		if (!on_reply(e, x, socks_take(x->socks, slice_of(buf, (size_t)n))))
			return;
	}
}
