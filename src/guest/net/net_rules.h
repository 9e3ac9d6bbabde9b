/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_rules - the nf_tables rules that turn what leaves by eth0 towards sbx-guest.
 *
 * How      One table `inet sbx` of our own, put in place as a whole by one netlink batch (nft
 *          itself takes 0.4 s under emulation). What a process or a container sends out by eth0:
 *          port 53 goes to the gateway's DNS, any other TCP to its NET_PORT_CAUGHT, the rest is
 *          refused at once, as is a connection that net_hold.c has marked. Everything that stays
 *          inside (loopback, between containers, published ports) never has eth0 for its way, so no
 *          bridge has to be named. Before Docker's chains.
 * Trust    Courtesy, not a wall: root in the guest may take it away, and then nothing works.
 * Limits   NL_MAX.
 * See      net_rules_test.c, which has them in nft's words
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"

#define NET_PORT_CAUGHT 15001
#define NET_PORT_PROXY 3128
#define NET_PORT_DNS 53

/* hold: the first packet of each connection goes to the queue of net_hold.h. */
int net_rules_apply(bool hold, struct err *err) MUST_CHECK;
