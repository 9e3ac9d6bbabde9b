/* SPDX-License-Identifier: Apache-2.0 */
/*
 * served - totals of the replies to clients, by class of the status, for src/sbxd/metrics.
 *
 * How      conn.c counts each reply with the time since the request was complete. Passed
 *          connections and watchers have no reply.
 * Trust    Internal.
 */
#pragma once

#include "src/sbxd/state/state.h"

enum served_class { SERVED_GOOD, SERVED_REFUSED, SERVED_FAILED, SERVED_N };

struct served {
	uint64_t since_ms; /* ms since 1970 */
	struct tally of[SERVED_N];
};
