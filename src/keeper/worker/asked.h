/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asked - a compact copy of an ASK of edge.
 *
 * How      struct edge_ask has room for the longest texts; struct asked is a heap block with just
 *          the texts of one ASK. free() frees it.
 * Trust    The texts are edge's, which may be compromised: bounded by struct edge_ask.
 */
#pragma once

#include "lib/os/ipc/edge_chan.h"

struct asked;

struct asked *asked_new(const struct edge_ask *ask);
void asked_get(const struct asked *a, struct edge_ask *ret);
/* True if an allowed ask needs egress. */
bool asked_is_open(const struct asked *a);
