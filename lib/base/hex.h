/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hex - bytes as hexadecimal digits, and back.
 *
 * How      hex_digit returns the value of one digit. hex_encode and hex_print write lower case,
 *          hex_decode and hex_is read lower case only, hex_put_percent writes a percent escape.
 * Trust    Input: untrusted. Runs in: every program. May handle secrets: copies none.
 * See      hex_test.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "slice.h"

#define HEX_LOWER "0123456789abcdef"
#define HEX_UPPER "0123456789ABCDEF"

/* The value of a digit in either case, or -1. */
static inline int hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Writes 2n lower-case digits and no NUL. */
void hex_encode(const uint8_t *b, size_t n, char *ret);
/* Writes 2n lower-case digits and a NUL. */
void hex_print(const uint8_t *b, size_t n, char *ret);
/* Writes hex.n / 2 bytes. Returns 0, or -EBADMSG if hex is not pairs of lower-case digits. */
int hex_decode(struct slice hex, uint8_t *ret) MUST_CHECK;
/* True if s is exactly n lower-case digits. */
bool hex_is(const char *s, size_t n);
/* Writes '%' and two upper-case digits. */
void hex_put_percent(struct wr *wr, uint8_t c);
