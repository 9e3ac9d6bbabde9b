/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edge_chan_internal - what the two files of edge_chan share.
 *
 * How      edge_chan.c has the streams of the guest, edge_chan_net.c its network.
 * Trust    As edge_chan.h.
 * See      edge_chan.h
 */
#pragma once

#include "edge_chan.h"

/* The key of a CA, as long as it is; too long makes rd bad. */
void edge_read_saved(struct rd *rd, uint8_t saved[EDGE_MAX_SAVED], uint16_t *ret_n);
