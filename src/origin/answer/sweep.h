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
/* What a response is searched for: what was pinned and what is here now. NULL: it cannot be, or a
 * value was sent and is not among them. sweep_put gives it back. */
struct sweep *sweep_get(struct origin *o, const struct exchange *x);
/* w and what is here now, for a response that has begun with w; as sweep_get. */
struct sweep *sweep_join(struct origin *o, struct sweep *w);
void sweep_put(struct sweep *w);
const struct scrub_set *sweep_set(const struct sweep *w);
/* A credential that a response had: later responses are searched for it until
 * ORIGIN_MAX_CAPTURED others came. */
void sweep_capture(struct origin *o, struct slice value);
