/* SPDX-License-Identifier: Apache-2.0 */
/*
 * str - helpers for C strings: bounded copies, strict numbers, sizes, durations.
 *
 * How      Each function does one thing and returns a negative errno on failure.
 * Trust    Arguments of the same user, settings, API fields after they were bounded.
 * Never    Accepts trailing characters: "12x" is not a number.
 * See      str_test.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "attr.h"

/* Copies s into buf; -ENAMETOOLONG when it does not fit, and buf is then empty. */
int str_copy(char *buf, size_t size, const char *s) MUST_CHECK;
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
/* Only printable ASCII: it ends up in logs and is shown to people. */
bool str_is_printable(const char *s);
/* Replaces what is not by a question mark. */
void str_make_printable(char *s);
/* Decimal digits only, within min..max. */
int str_to_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret) MUST_CHECK;
/* "512m", "8g", "1024k", "1t" or plain bytes, binary units, upper case and a final b or ib too. */
int str_to_size(const char *s, uint64_t *ret_bytes) MUST_CHECK;
/* "90s", "30m", "24h", "7d". */
int str_to_seconds(const char *s, uint64_t *ret_seconds) MUST_CHECK;
/* "1.5 GiB" */
void str_from_size(uint64_t bytes, char *buf, size_t size);
/* n random bytes as 2n lower-case hex digits; buf has 2n + 1. */
void str_random_hex(char *buf, size_t n);
