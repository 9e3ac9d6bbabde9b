/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_main - the process sbx-guest-net: converts outgoing traffic to streams on sbx.net.
 *
 * How      PID 1 starts it (netproc.h). It creates the interface and the rules, listens on the
 *          gateway, reports that it is ready, and opens one stream for each connection (net_conn.h)
 *          and each DNS query (net_dns.h). Before a connection is made, it queries the host whether
 *          the connection is denied (net_hold.h). Its loop is in net.c. While edge is away, new
 *          connections wait in the kernel's queue; after NET_AWAY_MS they are reset. A session
 *          without a preface within NET_READY_MS or a ping response within NET_PING_MS is closed.
 * Trust    Programs of the guest on one side, the host on the other. Enforces nothing.
 * Owns     The port sbx.net, the listeners, all open connections.
 * Limits   NET_MAX_CONNS, NET_MAX_QUERIES, NET_MAX_DNS_CONNS, NET_MAX_HELD; NET_TURN_ACCEPTS in one
 *          turn.
 * See      proto/PROTOCOL.net, net_vm_test.c
 */
#pragma once

#include "net.h"
#include "net_conn.h"
#include "net_dns.h"
#include "net_hold.h"

#define NET_PORT_NAME "sbx.net"
#define NET_READY_FD 3
#define NET_AWAY_MS 5000
#define NET_PING_MS 10000
#define NET_READY_MS 10000
#define NET_TURN_ACCEPTS 64

/* Slots of DNS streams and of held packets are above those of connections. */
#define NET_DNS_SLOT 0x10000u
#define NET_HOLD_SLOT 0x20000u

enum net_ev {
	NET_EV_PORT,
	NET_EV_PROBE,
	NET_EV_AWAY,
	NET_EV_PING,
	NET_EV_UNREADY,
	NET_EV_LISTEN,	  /* idx: enum net_listener */
	NET_EV_CONN,	  /* idx: struct conns */
	NET_EV_DNS_CONN,  /* idx: struct dns */
	NET_EV_DNS_TIMER, /* checks timeouts */
	NET_EV_HOLD,
	NET_EV_HOLD_TIMER, /* the same */
};

/* Each for IPv4 and, at + 1, for IPv6. */
enum net_listener {
	NET_L_CAUGHT = 0,
	NET_L_PROXY = 2,
	NET_L_DNS_TCP = 4,
	NET_L_DNS_UDP = 6,
	NET_L_AGENT = 8, /* the socket GUEST_SSH_AGENT, of which there is one */
	NET_L_LINK = 9,	 /* the socket OPENER_SOCKET */
	NET_N_LISTENERS = 10,
};
