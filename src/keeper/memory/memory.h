/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory - starts from a snapshot, suspend and resume, the pool, and pauses on a full disk.
 *
 * How      Each file has its own header. The files request steps of life through life_ops.
 * Trust    Snapshot files are the user's own and are checked before use.
 */
#pragma once

#include "src/keeper/machine/machine.h"
#include "freeze.h"
#include "pool.h"
#include "space.h"
#include "suspend.h"
#include "warm.h"
