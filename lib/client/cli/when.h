/* SPDX-License-Identifier: Apache-2.0 */
/*
 * when - moments as people type and read them.
 *
 * How      when_parse takes "24h" (that long ago), RFC 3339 in UTC, or seconds since 1970.
 * Trust    The user's arguments.
 * See      prune_test.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/err.h"

#define WHEN_TEXT 32

/* Milliseconds since 1970. -EINVAL with a sentence. */
int when_parse(const char *text, uint64_t now_ms, uint64_t *ret_ms, struct err *err) MUST_CHECK;
/* "2026-01-31T12:00:00Z", or with milliseconds; "-" for 0. */
void when_print(uint64_t ms, bool with_ms, char ret[WHEN_TEXT]);
