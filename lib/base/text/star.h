/* SPDX-License-Identifier: Apache-2.0 */
/*
 * star - patterns with `*`, which is any number of any bytes.
 *
 * How      One pass; a mismatch returns to the last `*`. At most pattern x text steps.
 * Trust    Untrusted patterns and texts.
 * See      star_test.c, lib/rules/policy/glob.h (patterns of host names)
 */
#pragma once

#include <stdbool.h>
#include "lib/base/slice.h"

/* The pattern matches all of the text. `fold`: upper and lower case of ASCII are the same. */
bool star_match(struct slice pattern, struct slice text, bool fold);
