/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_link - the interface eth0, a dummy without a network, and the gateway's addresses on it.
 *
 * How      A dummy interface with both default routes: programs find a route and a local address,
 *          and the rules of net_rules.h redirect their packets. Its addresses are the gateway,
 *          where the proxy and DNS listen.
 * Trust    Constants. Everything may exist already.
 * See      net_rules.h, proto/PROTOCOL.net
 */
#pragma once

#include <netinet/in.h>
#include "lib/base/err.h"

#define NET_LINK "eth0"
#define NET_GATEWAY "198.18.0.1"
#define NET_GATEWAY6 "fd5b:7862:19d3:1::1"

int net_link_up(struct err *err) MUST_CHECK;
/* The gateway's two addresses, in network order. */
struct in_addr net_link_gateway(void);
struct in6_addr net_link_gateway6(void);
