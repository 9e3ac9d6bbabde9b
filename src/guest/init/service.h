/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service - dispatches streams of the channel, and handles the small requests.
 *
 * How      The slot that the wire keeps for a stream is a table (exec, tcp or ctl) and an index
 *          into it.
 * Trust    The host's paths and bodies.
 * Owns     The exec, tcp and ctl tables and the data of /setup.
 */
#pragma once

#include "ctl.h"
#include "src/guest/exec/exec.h"
#include "src/guest/base/base.h"
#include "src/guest/park/park.h"
#include "src/guest/setup/setup.h"
#include "src/guest/net/net.h"
#include "power.h"

struct service {
	struct loop *loop;
	struct wire *wire;
	struct execs execs;
	struct ctl ctl;
	struct net_conns tcps;
	struct facts facts;
	struct mounts mounts;
	struct power power;
	struct park park;
	struct forget forget;
	const struct netproc *net;
	struct loop_timer net_wait; /* answers to /setup wait for the network */
};

/* Prepares the service and tells the port to use it. */
void service_init(
	struct service *s, struct loop *loop, struct port *port, const struct netproc *net);
/* The network is ready, or the wait timed out. */
void service_on_net(struct service *s, bool ready);
/* The result that /park or /wake waited for is available. */
void service_on_parked(struct service *s, const struct park_answer *answer);
/* The same for /forget. */
void service_on_forgotten(struct service *s);
