/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits - times, sizes and event numbers of sbx-egress.
 *
 * How      Constants only.
 * Trust    Internal.
 */
#pragma once

#include "lib/os/ipc/egress_chan.h"
#include "lib/os/worker/control.h"
#include "lib/wire/flow/out.h"

#define EGRESS_SLOTS (EGRESS_MAX_OPEN + 1) /* the last one only reports BUSY */
#define EGRESS_HEAD_MS 10000		   /* for edge's request */
#define EGRESS_RESOLVE_MS 10000
#define EGRESS_FAMILY_MS 1000 /* for the second family, when the first has addresses */
#define EGRESS_DIALS 4	      /* addresses that are tried */
#define EGRESS_DIAL_MS 5000
#define EGRESS_DIAL_NEXT_MS 300 /* a silent address delays the next one no longer */
#define EGRESS_DIAL_ALL_MS 15000
#define EGRESS_UPSTREAM_MS 15000 /* for the proxy's answer to CONNECT */
#define EGRESS_IDLE_MS 900000	 /* of an HTTP exchange: models think for minutes */
#define EGRESS_LINGER_MS 2000	 /* for edge to read the end */
#define EGRESS_RECHECK_MS 5000	 /* maximum delay until an expired rule ends its exchanges */
#define EGRESS_GIVE_MS 10000	 /* for all attempts to pass a connection on */
#define EGRESS_PIPES 64		 /* held by directions that wait for their reader */
#define EGRESS_READ OUT_READ
#define EGRESS_STREAM OUT_STREAM

enum egress_ev {
	EGRESS_EV_CONTROL,
	EGRESS_EV_EDGE,
	EGRESS_EV_UPSTREAM,
	EGRESS_EV_DIAL, /* idx: slot * EGRESS_DIALS + which */
	EGRESS_EV_TIMER,
	EGRESS_EV_RESOLVER,
	EGRESS_EV_RESOLVER_TIMER,
	EGRESS_EV_RECHECK,
	EGRESS_EV_AGAIN,
};
