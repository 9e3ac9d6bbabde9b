/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field - the fields of a message as a table that writes the message and reads it.
 *
 * How      A message with a struct has a table of its members, in the order of the bytes, that ends
 *          with {0}. fields_write and fields_read use the same table. Macros fill the rows:
 *          FIELD_NUMBER(egress_open, port) is the member port of struct egress_open. Integers have
 *          the size of their member, enums one byte, texts a length of two bytes.
 * Trust    Reading is for hostile bytes: a number out of its range, a text that does not fit or
 *          that cannot be printed makes the reader bad, and the member is 0 or "".
 * Limits   Those of the members.
 * See      lib/base/slice.h, chan.h, field_test.c
 */
#pragma once

#include <stddef.h>
#include "lib/base/slice.h"

enum field_kind {
	FIELD_KIND_END,
	FIELD_KIND_UINT,  /* min to max */
	FIELD_KIND_CODE,  /* int32_t: 0 or a negative errno */
	FIELD_KIND_STR,	  /* char array */
	FIELD_KIND_TEXT,  /* the same, printable ASCII: it is shown to people */
	FIELD_KIND_BYTES, /* an array, always whole */
	FIELD_KIND_BLOB,  /* an array whose length is the uint16_t at `min` */
};

struct field {
	uint8_t kind;
	uint16_t wire; /* bytes in the message, of what has no length there */
	uint16_t at, size;
	uint64_t min, max;
};

#define FIELD_AT(s, m) offsetof(struct s, m), sizeof(((struct s *)NULL)->m)
#define FIELD_RANGE(s, m, min, max)                                                      \
	{                                                                                \
		FIELD_KIND_UINT, sizeof(((struct s *)NULL)->m), FIELD_AT(s, m), min, max \
	}
#define FIELD_NUMBER(s, m) FIELD_RANGE(s, m, 0, UINT64_MAX)
#define FIELD_BOOL(s, m) FIELD_RANGE(s, m, 0, 1)
#define FIELD_ENUM(s, m, n)                                  \
	{                                                    \
		FIELD_KIND_UINT, 1, FIELD_AT(s, m), 0, (n)-1 \
	}
#define FIELD_CODE(s, m)                                 \
	{                                                \
		FIELD_KIND_CODE, 4, FIELD_AT(s, m), 0, 0 \
	}
#define FIELD_STR(s, m)                                 \
	{                                               \
		FIELD_KIND_STR, 0, FIELD_AT(s, m), 0, 0 \
	}
#define FIELD_TEXT(s, m)                                 \
	{                                                \
		FIELD_KIND_TEXT, 0, FIELD_AT(s, m), 0, 0 \
	}
#define FIELD_BYTES(s, m)                                                             \
	{                                                                             \
		FIELD_KIND_BYTES, sizeof(((struct s *)NULL)->m), FIELD_AT(s, m), 0, 0 \
	}
#define FIELD_BLOB(s, m, n)                                                  \
	{                                                                    \
		FIELD_KIND_BLOB, 0, FIELD_AT(s, m), offsetof(struct s, n), 0 \
	}
/* The one field of a message without a struct. */
#define FIELD_ONE(type, min, max)                                        \
	{                                                                \
		FIELD_KIND_UINT, sizeof(type), 0, sizeof(type), min, max \
	}

void fields_write(struct wr *wr, const struct field *fields, const void *from);
void fields_read(struct rd *rd, const struct field *fields, void *ret);
