/* SPDX-License-Identifier: Apache-2.0 */
/*
 * der - writes ASN.1 DER into a fixed buffer, from the last byte to the first.
 *
 * How      Backwards, because a length precedes its content: der_put the content, then der_wrap it
 *          with its tag. After the first part that does not fit, all calls are ignored and der_end
 *          returns the error.
 * Trust    Writes what its callers checked. No I/O, no heap.
 * Owns     Nothing: the buffer is the caller's.
 * See      der_test.c, mint.h
 */
#pragma once

#include "lib/base/slice.h"

enum der_tag {
	DER_INTEGER = 0x02,
	DER_BIT_STRING = 0x03,
	DER_OCTET_STRING = 0x04,
	DER_UTF8_STRING = 0x0c,
	DER_UTC_TIME = 0x17,
	DER_GENERALIZED_TIME = 0x18,
	DER_SEQUENCE = 0x30,
	DER_SET = 0x31,
	DER_CONTEXT_2 = 0x82, /* [2] IMPLICIT, primitive */
	DER_CONTEXT_7 = 0x87,
	DER_CONTEXT_3_OF = 0xa3, /* [3] EXPLICIT */
};

struct der {
	uint8_t *buf;
	size_t at; /* everything from here to the end is written */
	size_t size;
	bool bad;
};

static inline struct der der_init(void *buf, size_t size)
{
	return (struct der){.buf = buf, .at = size, .size = size};
}

/* Where what was written last begins: the end of what is put in front of it from now on. */
static inline size_t der_mark(const struct der *d)
{
	return d->at;
}

void der_put(struct der *d, struct slice s);
/* Puts the tag and the length of everything that was written since the mark in front of it. */
void der_wrap(struct der *d, enum der_tag tag, size_t mark);
/* UTCTime until 2049, GeneralizedTime from then on; seconds since 1970, at most 9999. */
void der_time(struct der *d, uint64_t seconds);
/* All of it. -EMSGSIZE when something did not fit. */
int der_end(const struct der *d, struct slice *ret) MUST_CHECK;
