/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detach_keys - the keys that leave a session: "ctrl-\", "ctrl-p,ctrl-q", "" for none.
 *
 * How      A list with commas: ctrl-X with X a letter or one of @ [ \ ] ^ _, or one printable
 *          character. detach_keys_match finds the next key of the list at the front of what was
 *          typed; programs may have switched the terminal to other codes for the same key.
 * Trust    The user's own words; the terminal's bytes.
 * Limits   DETACH_MAX_KEYS.
 * See      detach_keys_test.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"
#include "lib/base/slice.h"

#define DETACH_MAX_KEYS 8
#define DETACH_STANDARD "ctrl-\\"

struct detach_keys {
	size_t n;
	uint8_t key[DETACH_MAX_KEYS]; /* as a terminal sends it by default */
};

/* "none" is "". */
int detach_keys_parse(const char *text, struct detach_keys *ret, struct err *err) MUST_CHECK;
int detach_keys_check(const char *text, struct err *err) MUST_CHECK;
/* How many bytes at the front are that key; 0 when they are another. */
size_t detach_keys_match(uint8_t key, struct slice typed);
