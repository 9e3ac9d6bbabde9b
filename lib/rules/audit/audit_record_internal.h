/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_record_internal - the table of fields, for encoder and decoder.
 */
#pragma once

#include "audit_record.h"

enum audit_shape { SHAPE_NUMBER, SHAPE_KIND, SHAPE_VERDICT, SHAPE_WORD, SHAPE_TEXT, SHAPE_HEX };

struct audit_field {
	const char *key; /* with everything around it: ,"host": */
	enum audit_shape shape;
	uint64_t max;  /* the number, or the length in bytes */
	size_t offset; /* in struct audit_record */
	uint32_t must; /* kinds that have it always, one bit each */
	uint32_t may;  /* kinds that may have it */
};

enum {
	AUDIT_FIELD_KIND = 2,
	AUDIT_FIELD_DIGEST = 15,
	AUDIT_FIELD_SIG = 25,
	AUDIT_FIELD_HASH = 26,
	AUDIT_N_FIELDS = 27
};

extern const struct audit_field audit_fields[AUDIT_N_FIELDS];

/* Whether a byte is written unescaped in a text. */
static inline bool audit_is_plain(uint8_t c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}
