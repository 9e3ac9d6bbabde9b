/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_rules - the nf_tables rules that redirect outgoing traffic of eth0 to sbx-guest.
 *
 * How      One table `inet sbx`, installed atomically by one netlink batch (nft itself takes 0.4 s
 *          under emulation). Traffic of processes and containers through eth0: port 53 is
 *          redirected to the gateway's DNS, other TCP to its NET_PORT_CAUGHT, the rest is rejected
 *          immediately, as is a connection that net_hold.c has marked. Local traffic (loopback,
 *          between containers, published ports) does not use eth0, so no bridge has to be named.
 *          Before Docker's chains.
 * Trust    Not an isolation layer: guest root can remove the rules, and then it has no network.
 * Limits   NL_MAX.
 * See      net_rules_test.c, which has them in nft syntax
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"

#define NET_PORT_CAUGHT 15001
#define NET_PORT_PROXY 3128
#define NET_PORT_DNS 53

/* hold: the first packet of each connection is passed to the queue of net_hold.h. */
int net_rules_apply(bool hold, struct err *err) MUST_CHECK;
