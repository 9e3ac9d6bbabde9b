/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pull - gets the staged changes of a running sandbox into a bundle.
 *
 * How      For each workspace the builtin `stage` of sbx-guest (PROTOCOL.exec) writes its stream
 *          into a file. All streams are read and checked before the directory gets its name.
 * Trust    The streams are a guest's: limited in size, checked by bundle.h.
 * Limits   PULL_MAX_STREAM bytes and PULL_MS per workspace; PULL_LOOK_BYTES
 *          per workspace and PULL_LOOK_MS for a look.
 * See      bundle.h, lib/wire/stage/stage_pack.h
 */
#pragma once

#include "area.h"

#define PULL_MAX_STREAM (7ull << 29)
#define PULL_MS (30u * 60 * 1000)
#define PULL_REFRESH_MS 10000
#define PULL_LOOK_MS 2000
#define PULL_LOOK_BYTES (32ull << 20)

/* The new bundle of the area, in *ret too. */
int pull_bundle(const struct area *a, struct bundle *ret, struct problem *p) MUST_CHECK;
/* The changes of now in memory only: no review, and no record of one. */
int pull_look(const struct area *a, struct bundle *ret, struct problem *p) MUST_CHECK;
/* The changes are emptied at the next start of the sandbox. */
int pull_discard(const struct area *a, struct problem *p) MUST_CHECK;
/* After an apply or undo: programs in the sandbox see the new files at once. Without an effect if
 * the sandbox is not running; it then sees them when it starts. */
void pull_refresh(const struct area *a);
