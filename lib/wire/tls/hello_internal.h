/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hello_internal - what hello.c (records, the message) and hello_ext.c (extensions) share.
 *
 * See      hello.h
 */
#pragma once

#include "hello.h"

/* Network byte order; lib/base speaks little-endian. */
static inline uint16_t rd_be16(struct rd *rd)
{
	uint8_t high = rd_u8(rd);

	return (uint16_t)(high << 8 | rd_u8(rd));
}

/* How many bytes of an extension must be collected for hello_ext_parse; the others are passed
 * over. */
size_t hello_ext_wanted(uint16_t type, size_t n);
/* HELLO_E_NONE, or the fault. n is the length of the whole extension, data the collected part. */
enum hello_why hello_ext_parse(struct hello *h, uint16_t type, size_t n, struct slice data);
