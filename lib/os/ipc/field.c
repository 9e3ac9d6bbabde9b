/* SPDX-License-Identifier: Apache-2.0 */
#include "field.h"

#include <assert.h>
#include "msg.h"
#include "lib/base/str.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "integers are copied as they are");

void fields_write(struct wr *wr, const struct field *fields, const void *from)
{
	for (const struct field *f = fields; f->kind != FIELD_KIND_END; f++) {
		const uint8_t *at = (const uint8_t *)from + f->at;
		uint16_t n;

		switch ((enum field_kind)f->kind) {
		case FIELD_KIND_STR:
		case FIELD_KIND_TEXT:
			wr_str(wr, slice_of(at, strnlen((const char *)at, f->size - 1U)));
			break;
		case FIELD_KIND_BLOB:
			memcpy(&n, (const uint8_t *)from + f->min, sizeof(n));
			wr_str(wr, slice_of(at, n));
			break;
		default:
			wr_bytes(wr, slice_of(at, f->wire));
			break;
		}
	}
}

static void read_text(struct rd *rd, const struct field *f, char *ret)
{
	rd_cstr(rd, ret, f->size);
	if (f->kind == FIELD_KIND_TEXT && !str_is_printable(ret)) {
		rd->bad = true;
		ret[0] = '\0';
	}
}

static bool is_in_range(const struct field *f, uint64_t v)
{
	int32_t code = (int32_t)v;

	return f->kind == FIELD_KIND_CODE ? code <= 0 && code >= -4095 : v >= f->min && v <= f->max;
}

static void read_number(struct rd *rd, const struct field *f, uint8_t *ret)
{
	struct slice s = rd_bytes(rd, f->wire);
	uint64_t v = 0;

	if (s.n > 0)
		memcpy(&v, s.p, s.n);
	if (!is_in_range(f, v)) {
		rd->bad = true;
		v = 0;
	}
	memcpy(ret, &v, f->size);
}

/* The number of bytes that came. */
static uint16_t read_bytes(struct rd *rd, const struct field *f, uint8_t *ret)
{
	struct slice s = f->kind == FIELD_KIND_BLOB ? rd_str(rd) : rd_bytes(rd, f->size);

	if (s.n > f->size) {
		rd->bad = true;
		return 0;
	}
	if (s.n > 0)
		memcpy(ret, s.p, s.n);
	return (uint16_t)s.n;
}

void fields_read(struct rd *rd, const struct field *fields, void *ret)
{
	for (const struct field *f = fields; f->kind != FIELD_KIND_END; f++) {
		uint8_t *at = (uint8_t *)ret + f->at;
		uint16_t n;

		switch ((enum field_kind)f->kind) {
		case FIELD_KIND_STR:
		case FIELD_KIND_TEXT:
			read_text(rd, f, (char *)at);
			break;
		case FIELD_KIND_BYTES:
			(void)read_bytes(rd, f, at);
			break;
		case FIELD_KIND_BLOB:
			n = read_bytes(rd, f, at);
			memcpy((uint8_t *)ret + f->min, &n, sizeof(n));
			break;
		default:
			read_number(rd, f, at);
			break;
		}
	}
}
