/* Stands where the HTTP engine will be: CONNECT is read, everything else is refused. */
#include "net.h"

#include <errno.h>
#include "lib/base/mem.h"
#include "lib/http/deny.h"

struct proxy {
	bool unused;
};

void proxy_begin(struct edge *e, struct conn *c)
{
	c->proxy = xcalloc(1, sizeof(*c->proxy));
}

void proxy_free(struct edge *e, struct conn *c)
{
	free(TAKE(c->proxy));
}

static void refuse(struct edge *e, struct conn *c)
{
	static const struct http_fault fault = {501, "no HTTP engine is built in"};
	uint8_t buf[DENY_ROOM];
	struct wr wr = wr_init(buf, sizeof(buf));

	conn_report_fault(e, c, EDGE_ASK_HTTP, fault.why);
	if (deny_write_fault(&wr, &fault) == 0 && conn_room(c) >= wr.n)
		conn_say(e, c, slice_of(buf, wr.n));
	conn_end(e, c);
}

void proxy_on_bytes(struct edge *e, struct conn *c)
{
	struct slice in = bufq_peek(&c->in), text, name;
	const uint8_t *end = in.n ? memmem(in.p, in.n, "\r\n\r\n", 4) : NULL;
	const uint8_t *space;
	struct host host;
	uint16_t port;

	if (!end && !c->in_end && in.n < 4096)
		return;
	if (!end || in.n < 9 || memcmp(in.p, "CONNECT ", 8) != 0 || c->target.given) {
		refuse(e, c);
		return;
	}
	space = memchr(in.p + 8, ' ', in.n - 8);
	text = slice_of(in.p + 8, space ? (size_t)(space - in.p - 8) : 0);
	if (canon_split_authority(text, &name, &port) < 0 || port == 0 ||
		host_from_wire(name, &host, NULL) < 0) {
		refuse(e, c);
		return;
	}
	conn_eat(e, c, (size_t)(end + 4 - in.p));
	proxy_free(e, c);
	conn_connect(e, c, &host, port);
}

void proxy_on_room(struct edge *e, struct conn *c)
{
}

void proxy_on_verdict(struct edge *e, struct conn *c, const struct edge_verdict *verdict, int fd)
{
	fd_close(&fd);
}

void proxy_on_fd(struct edge *e, struct conn *c, uint32_t events)
{
}

void proxy_on_timer(struct edge *e, struct conn *c)
{
	conn_end(e, c);
}
