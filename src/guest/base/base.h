/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base - what all parts of sbx-guest use: files, variables, users, modules, kinds of event.
 *
 * How      One header for each file.
 * Trust    The guest's own disk, and what the host has said (facts.h).
 */
#pragma once

#include "env.h"
#include "event.h"
#include "facts.h"
#include "file.h"
#include "modules.h"
#include "users.h"

/* signals.c, in a child: default actions, nothing blocked. */
void signals_reset(void);
