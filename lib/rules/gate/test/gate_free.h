/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_free - frees a gate, for tests that create several.
 *
 * How      gate_free frees the gate and its policy, not the audit log. A keeper needs no such
 *          function: its gate exists until it exits.
 * Trust    Tests.
 */
#pragma once

#include <stdlib.h>
#include "lib/rules/gate/gate_internal.h"

static inline void gate_free(struct gate *g)
{
	if (!g)
		return;
	policy_free(g->policy);
	free(g->no_audit);
	free(g->counters);
	arena_done(&g->arena);
	free(g);
}
