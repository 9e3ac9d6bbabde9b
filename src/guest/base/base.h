/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base - files, variables, users, modules and event kinds, used by all parts of sbx-guest.
 *
 * How      One header for each file.
 * Trust    The guest's own disk, and data of the host (facts.h).
 */
#pragma once

#include "env.h"
#include "event.h"
#include "facts.h"
#include "file.h"
#include "modules.h"
#include "users.h"

/* signals.c, in a child: default actions, no blocked signals. */
void signals_reset(void);
