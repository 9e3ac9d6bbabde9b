/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep - the values that responses are searched for.
 *
 * How      A set is shared by the responses that began with it; sweep_put gives one back.
 * Trust    Holds credentials; sees no bytes of a peer.
 */
#pragma once

#include "answer.h"

struct scrub_set;
void sweep_unpin(struct exchange *x);
/* Returns the set for a response: pinned and current values. NULL: impossible, or a sent value is
 * not included. sweep_put frees it. */
struct sweep *sweep_get(struct origin *o, const struct exchange *x);
/* w and the current values, for a response that has begun with w; as sweep_get. */
struct sweep *sweep_join(struct origin *o, struct sweep *w);
void sweep_put(struct sweep *w);
const struct scrub_set *sweep_set(const struct sweep *w);
/* A credential from a response: later responses are searched for it until ORIGIN_MAX_CAPTURED newer
 * ones were captured. */
void sweep_capture(struct origin *o, struct slice value);
