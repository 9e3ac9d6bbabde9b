/* SPDX-License-Identifier: Apache-2.0 */
/*
 * b64 - bytes as base64, and back.
 *
 * How      b64_digit and b64_url_digit return the value of one digit. b64_encode writes padded
 *          base64. b64_decode reads base64 with or without padding.
 * Trust    Input: untrusted. Runs in: every program. May handle secrets: copies none.
 * See      b64_test.c
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>
#include "slice.h"

/* The 62 digits that base64 and base64url share, and all 64 of base64. */
#define B64_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#define B64_DIGITS B64_LETTERS "+/"

/* The length of n bytes in padded base64. */
#define B64_LEN(n) (((n) + 2) / 3 * 4)

/* The value of a base64 digit, or -1. */
static inline int b64_digit(uint8_t c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* The value of a digit of base64 or base64url, or -1. */
static inline int b64_url_digit(uint8_t c)
{
	return c == '-' ? 62 : c == '_' ? 63 : b64_digit(c);
}

/* Writes B64_LEN(in.n) characters and no NUL. Returns their number. */
size_t b64_encode(struct slice in, char *ret);
/* Skips the characters of `skip` and padding at the end. Returns the number of bytes written,
 * -EBADMSG if there is any other character, or -EMSGSIZE if the bytes do not fit. */
ssize_t b64_decode(struct slice in, const char *skip, uint8_t *buf, size_t size) MUST_CHECK;
