/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synth_free - frees a table of names, for tests that create several.
 *
 * How      synth_free frees the table. sbx-edge needs no such function: its table exists until it
 *          exits.
 * Trust    Tests.
 */
#pragma once

#include <stdlib.h>
#include "lib/wire/dns/synth_internal.h"

static inline void synth_free(struct synth *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; s->slots && i < SYNTH_FIRST + SYNTH_N_ADDRS; i++)
		if (s->slots[i].n > 0)
			free(s->slots[i].name);
	free(s->slots);
	free(s->buckets);
	free(s);
}
