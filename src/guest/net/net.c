/* SPDX-License-Identifier: Apache-2.0 */
#include "net_main.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "src/guest/base/base.h"
#include "net_link.h"
#include "net_path.h"
#include "net_rules.h"
#include "lib/wire/guestapi/guest_ctl.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/base/str.h"

#define BACKLOG 1024

/* Queries about connections leave a stream for each possible connection. */
_Static_assert(NET_MAX_CONNS + NET_MAX_HELD < WIRE_NET_STREAMS, "too many questions");

static struct net {
	struct loop loop;
	struct port port;
	struct net_conns conns;
	struct net_dns dns;
	struct net_hold hold;
	int listeners[NET_N_LISTENERS];
	bool listening; /* they are in the loop */
	bool pinged;	/* and no answer yet */
	struct loop_timer away, ping, unready;
} net;

/* ---- listeners ---- */

static int make_listener(enum net_listener which)
{
	static const uint16_t ports[] = {[NET_L_CAUGHT / 2] = NET_PORT_CAUGHT,
		[NET_L_PROXY / 2] = NET_PORT_PROXY,
		[NET_L_DNS_TCP / 2] = NET_PORT_DNS,
		[NET_L_DNS_UDP / 2] = NET_PORT_DNS};
	bool is_v6 = which & 1, is_udp = (which & ~1u) == NET_L_DNS_UDP;
	const int one = 1;
	struct sockaddr_in v4 = {.sin_family = AF_INET,
		.sin_port = htons(ports[which / 2]),
		.sin_addr = net_link_gateway()};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
		.sin6_port = htons(ports[which / 2]),
		.sin6_addr = net_link_gateway6()};
	AUTO_CLOSE int fd = socket(is_v6 ? AF_INET6 : AF_INET,
		(is_udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4,
		    is_v6 ? sizeof(v6) : sizeof(v4)) < 0)
		return -errno;
	if (!is_udp && listen(fd, BACKLOG) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* Any program in the guest may connect; the host decides. */
static int make_unix_listener(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	(void)!str_copy(at.sun_path, sizeof(at.sun_path), path);
	(void)unlink(path); /* of the process before this one */
	if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 || chmod(path, 0666) < 0 ||
		listen(fd, BACKLOG) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int make_listeners(struct net *n, struct err *err)
{
	for (unsigned i = 0; i < NET_N_LISTENERS; i++) {
		n->listeners[i] = i == NET_L_AGENT  ? make_unix_listener(GUEST_SSH_AGENT)
				  : i == NET_L_LINK ? make_unix_listener(OPENER_SOCKET)
						    : make_listener((enum net_listener)i);
		if (n->listeners[i] < 0)
			return err_errno(err, n->listeners[i], "listening on the gateway");
	}
	return 0;
}

static void listen_now(struct net *n, bool on)
{
	for (uint32_t i = 0; i < NET_N_LISTENERS && on != n->listening; i++) {
		struct loop_key key = {.kind = NET_EV_LISTEN, .idx = i};

		if (!on)
			loop_del(&n->loop, n->listeners[i]);
		else if (loop_add(&n->loop, n->listeners[i], EPOLLIN, key) < 0)
			log_warn("waiting for connections failed");
	}
	n->listening = on;
}

static void take_connection(struct net *n, unsigned which, int fd)
{
	char path[NET_PATH_MAX];

	switch (which & ~1u) {
	case NET_L_CAUGHT:
		if (net_path_caught(fd, path) < 0)
			net_conn_refuse(fd);
		else
			net_conn_open(&n->conns, fd, path);
		break;
	case NET_L_PROXY:
		net_conn_open(&n->conns, fd, "/proxy");
		break;
	case NET_L_DNS_TCP:
		net_dns_open(&n->dns, fd);
		break;
	case NET_L_AGENT: /* and NET_L_LINK */
		net_conn_open(&n->conns, fd, which == NET_L_LINK ? "/link" : "/agent");
		break;
	}
}

static void on_listener(struct net *n, unsigned which)
{
	int fd;

	if (!n->listening)
		return;
	if ((which & ~1u) == NET_L_DNS_UDP) {
		net_dns_on_datagram(&n->dns, n->listeners[which]);
		return;
	}
	for (int i = 0; i < NET_TURN_ACCEPTS; i++) {
		fd = accept4(n->listeners[which], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return;
		take_connection(n, which, fd);
	}
}

/* ---- the wire ---- */

static void on_reply(void *ctx, uint32_t id, uint32_t slot, unsigned status)
{
	struct net *n = ctx;

	if (slot & NET_HOLD_SLOT)
		net_hold_on_reply(&n->hold, id, slot & ~NET_HOLD_SLOT, status);
}

static void on_data(void *ctx, uint32_t id, uint32_t slot, struct slice bytes)
{
	struct net *n = ctx;

	if (slot & NET_HOLD_SLOT)
		wire_consumed(n->hold.wire, id, bytes.n); /* the status was the whole answer */
	else if (slot & NET_DNS_SLOT)
		net_dns_on_data(&n->dns, slot & ~NET_DNS_SLOT, bytes);
	else
		net_conn_on_data(&n->conns, slot, bytes);
}

static void on_end(void *ctx, uint32_t id, uint32_t slot)
{
	struct net *n = ctx;

	if (slot & NET_DNS_SLOT)
		net_dns_on_end(&n->dns, slot & ~NET_DNS_SLOT);
	else if (!(slot & NET_HOLD_SLOT))
		net_conn_on_end(&n->conns, slot);
}

static void on_close(void *ctx, uint32_t id, uint32_t slot, int error)
{
	struct net *n = ctx;

	if (slot & NET_HOLD_SLOT)
		net_hold_on_close(&n->hold, id, slot & ~NET_HOLD_SLOT);
	else if (slot & NET_DNS_SLOT)
		net_dns_on_close(&n->dns, slot & ~NET_DNS_SLOT, error);
	else
		net_conn_on_close(&n->conns, slot, error);
}

static ssize_t pull_net(void *ctx, uint32_t id, uint32_t slot, uint8_t *buf, size_t size)
{
	struct net *n = ctx;

	if (slot & NET_HOLD_SLOT)
		return 0;
	return slot & NET_DNS_SLOT ? net_dns_pull(&n->dns, slot & ~NET_DNS_SLOT, buf, size)
				   : net_conn_pull(&n->conns, slot, buf, size);
}

static void on_pong(void *ctx, uint64_t cookie)
{
	((struct net *)ctx)->pinged = false;
}

/* The host has answered our preface. */
static void on_ready(void *ctx)
{
	struct net *n = ctx;

	loop_timer_clear(&n->loop, &n->unready);
}

static const struct wire_ops ops = {
	.on_ready = on_ready,
	.on_pong = on_pong,
	.on_reply = on_reply,
	.on_data = on_data,
	.on_end = on_end,
	.on_close = on_close,
	.pull = pull_net,
};

static void wait_ready(struct net *n)
{
	loop_timer_set(&n->loop, &n->unready, clock_mono_ms() + NET_READY_MS,
		(struct loop_key){.kind = NET_EV_UNREADY});
}

static void on_session(void *ctx, struct wire *w)
{
	struct net *n = ctx;

	if (w) {
		loop_timer_clear(&n->loop, &n->away);
	} else {
		net_conn_drop_all(&n->conns);
		net_dns_drop_all(&n->dns);
		net_hold_drop_all(&n->hold);
		loop_timer_set(&n->loop, &n->away, clock_mono_ms() + NET_AWAY_MS,
			(struct loop_key){.kind = NET_EV_AWAY});
	}
	n->pinged = false;
	wait_ready(n);
	n->conns.wire = n->dns.wire = n->hold.wire = w;
	listen_now(n, w != NULL);
}

/* An edge that replaced another one immediately may wait for a preface that the other one got.
 * Pinged only while a connection waits for it: an idle guest stays idle. */
static void ping_later(struct net *n)
{
	if (!n->ping.pos && n->conns.wire && wire_n_streams(n->conns.wire) > 0)
		loop_timer_set(&n->loop, &n->ping, clock_mono_ms() + NET_PING_MS,
			(struct loop_key){.kind = NET_EV_PING});
}

static void on_ping_timer(struct net *n)
{
	if (!n->conns.wire)
		return;
	if (n->pinged) {
		log_warn("no response from the host on " NET_PORT_NAME);
		port_kick(&n->port);
	} else if (wire_n_streams(n->conns.wire) > 0) {
		n->pinged = wire_ping(n->conns.wire, 0) == 0;
	}
}

static void on_unready(struct net *n)
{
	port_kick(&n->port);
	wait_ready(n);
}

/* ---- life ---- */

static int prepare_net(struct net *n, struct err *err)
{
	static const char *const modules[] = {"dummy numdummies=0", "nft_chain_nat", "nft_nat",
		"nft_reject_inet", "nft_fib_inet", "nfnetlink_queue", "nft_queue", NULL};
	int r = modules_load(modules, err);
	struct err why;

	if (r == 0)
		r = net_link_up(err);
	if (r == 0)
		r = make_listeners(n, err);
	if (r < 0)
		return r;
	/* A kernel without queues: denied connections then fail after the connect. */
	if (net_hold_start(&n->hold, &why) < 0 || net_rules_apply(true, &why) < 0) {
		log_warn("connections are not held: %s", why.text);
		return net_rules_apply(false, err);
	}
	return 0;
}

static void say_ready(void)
{
	uint64_t now = clock_mono_ms();

	if (write(NET_READY_FD, "R", 1) < 0)
		log_warn("cannot notify PID 1");
	(void)close(NET_READY_FD);
	log_info("ready at %u ms", (unsigned)now);
}

static void begin_net(struct net *n)
{
	struct err err;

	log_init(NET_PROGRAM);
	(void)prctl(PR_SET_NAME, NET_PROGRAM);
	(void)signal(SIGPIPE, SIG_IGN);
	/* Without this process there is no outgoing traffic; PID 1 would restart it, but
	 * connections are lost. */
	(void)!file_poke("/proc/self/oom_score_adj", "-900");
	if (loop_init(&n->loop) < 0) {
		log_error("cannot create the event loop");
		_exit(1);
	}
	n->conns.loop = n->dns.loop = n->hold.loop = &n->loop;
	n->conns.kind = NET_EV_CONN;
	n->conns.max = NET_MAX_CONNS;
	if (prepare_net(n, &err) < 0) {
		log_error("%s", err.text);
		_exit(1);
	}
	n->port.name = NET_PORT_NAME;
	n->port.role = WIRE_CLIENT;
	n->port.kind = WIRE_NET;
	n->port.key = (struct loop_key){.kind = NET_EV_PORT};
	n->port.probe_key = (struct loop_key){.kind = NET_EV_PROBE};
	n->port.ops = &ops;
	n->port.ctx = n;
	n->port.on_session = on_session;
	say_ready();
	on_session(n, NULL);
	port_start(&n->port, &n->loop, -1);
}

static void dispatch_net(struct net *n, const struct loop_event *ev)
{
	switch ((enum net_ev)ev->key.kind) {
	case NET_EV_PORT:
		port_on_event(&n->port, ev->events);
		break;
	case NET_EV_PROBE:
		port_on_probe(&n->port);
		break;
	case NET_EV_UNREADY:
		on_unready(n);
		break;
	case NET_EV_PING:
		on_ping_timer(n);
		break;
	case NET_EV_AWAY:
		/* Edge stays away: connections are refused instead of waiting. */
		listen_now(n, true);
		break;
	case NET_EV_LISTEN:
		on_listener(n, ev->key.idx);
		break;
	case NET_EV_CONN:
		net_conn_on_event(&n->conns, ev);
		break;
	case NET_EV_DNS_CONN:
		net_dns_on_event(&n->dns, ev);
		break;
	case NET_EV_DNS_TIMER:
		net_dns_on_timer(&n->dns);
		break;
	case NET_EV_HOLD:
		net_hold_on_event(&n->hold);
		break;
	case NET_EV_HOLD_TIMER:
		net_hold_on_timer(&n->hold);
		break;
	}
}

void net_main(void)
{
	struct net *n = &net;
	struct loop_event ev;

	begin_net(n);
	port_pump(&n->port);
	for (;;) {
		loop_next(&n->loop, &ev);
		dispatch_net(n, &ev);
		ping_later(n);
		port_pump(&n->port);
	}
}
