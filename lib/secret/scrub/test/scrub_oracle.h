/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrub_oracle - the slow and plain answer to what lib/secret/scrub must find, for tests and the
 * fuzzer.
 *
 * How      From each position the rest of the text is decoded whole, in each way; what then begins
 *          with a value is covered. No tables, no state, no pieces.
 * Trust    Tests only.
 * See      scrub.h
 */
#pragma once

#include "lib/base/slice.h"

/* 1 in `covered` for each of the text's bytes that is part of a value. */
void oracle_cover(struct slice text, struct slice value, uint8_t *covered);
/* The oracle reads an escape as one always; a value with one of these in it is found in more
 * places than it says. */
bool oracle_is_exact(struct slice value);
