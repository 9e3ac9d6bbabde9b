/* SPDX-License-Identifier: Apache-2.0 */
#include "slice.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include "mem.h"

bool slice_eq(struct slice a, struct slice b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool slice_eq_str(struct slice a, const char *s)
{
	return slice_eq(a, slice_from_str(s));
}

bool slice_is_like(struct slice s, struct slice pattern)
{
	if (s.n != pattern.n)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		uint8_t c = s.p[i], want = pattern.p[i];
		bool is_word =
			(c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');

		if (want == '*' ? !is_word : c != want)
			return false;
	}
	return true;
}

static bool has_nul(struct slice s)
{
	return s.n > 0 && memchr(s.p, 0, s.n) != NULL;
}

int slice_to_cstr(struct slice s, char *buf, size_t size)
{
	if (s.n >= size)
		return -ENAMETOOLONG;
	if (has_nul(s))
		return -EINVAL;
	if (s.n)
		memcpy(buf, s.p, s.n);
	buf[s.n] = '\0';
	return 0;
}

char *slice_dup(struct slice s)
{
	char *p;

	if (has_nul(s))
		return NULL;
	p = xmalloc(s.n + 1);
	if (s.n)
		memcpy(p, s.p, s.n);
	p[s.n] = '\0';
	return p;
}

struct slice rd_bytes(struct rd *rd, size_t n)
{
	struct slice s = {.p = rd->p, .n = n};

	if (rd->bad || rd->n < n) {
		rd->bad = true;
		return (struct slice){0};
	}
	if (n > 0)
		rd->p += n;
	rd->n -= n;
	return s;
}

static uint64_t rd_le(struct rd *rd, size_t n)
{
	struct slice s = rd_bytes(rd, n);
	uint64_t v = 0;

	for (size_t i = 0; i < s.n; i++)
		v |= (uint64_t)s.p[i] << (8 * i);
	return v;
}

uint8_t rd_u8(struct rd *rd)
{
	return (uint8_t)rd_le(rd, 1);
}

uint16_t rd_u16(struct rd *rd)
{
	return (uint16_t)rd_le(rd, 2);
}

uint32_t rd_u24(struct rd *rd)
{
	return (uint32_t)rd_le(rd, 3);
}

uint32_t rd_u32(struct rd *rd)
{
	return (uint32_t)rd_le(rd, 4);
}

uint64_t rd_u64(struct rd *rd)
{
	return rd_le(rd, 8);
}

struct slice rd_str(struct rd *rd)
{
	return rd_bytes(rd, rd_u16(rd));
}

void rd_cstr(struct rd *rd, char *buf, size_t size)
{
	struct slice s = rd_str(rd);

	if (slice_to_cstr(s, buf, size) < 0) {
		rd->bad = true;
		buf[0] = '\0';
	}
}

int rd_finish(const struct rd *rd)
{
	return rd->bad || rd->n > 0 ? -EBADMSG : 0;
}

void wr_bytes(struct wr *wr, struct slice s)
{
	if (wr->bad || wr->size - wr->n < s.n) {
		wr->bad = true;
		return;
	}
	if (s.n)
		memcpy(wr->p + wr->n, s.p, s.n);
	wr->n += s.n;
}

static void wr_le(struct wr *wr, uint64_t v, size_t n)
{
	uint8_t b[8];

	for (size_t i = 0; i < n; i++)
		b[i] = (uint8_t)(v >> (8 * i));
	wr_bytes(wr, slice_of(b, n));
}

void wr_u8(struct wr *wr, uint8_t v)
{
	wr_le(wr, v, 1);
}

void wr_u16(struct wr *wr, uint16_t v)
{
	wr_le(wr, v, 2);
}

void wr_u24(struct wr *wr, uint32_t v)
{
	if (v > 0xffffff)
		wr->bad = true;
	wr_le(wr, v, 3);
}

void wr_u32(struct wr *wr, uint32_t v)
{
	wr_le(wr, v, 4);
}

void wr_u64(struct wr *wr, uint64_t v)
{
	wr_le(wr, v, 8);
}

void wr_str(struct wr *wr, struct slice s)
{
	if (s.n > UINT16_MAX) {
		wr->bad = true;
		return;
	}
	wr_u16(wr, (uint16_t)s.n);
	wr_bytes(wr, s);
}

void wr_cstr(struct wr *wr, const char *s)
{
	wr_str(wr, slice_from_str(s));
}

void wr_printf(struct wr *wr, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(text))
		wr->bad = true;
	else
		wr_bytes(wr, slice_of(text, (size_t)n));
}

int wr_finish(const struct wr *wr)
{
	return wr->bad ? -EMSGSIZE : 0;
}

struct slice slice_trim(struct slice s)
{
	while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
		s = slice_of(s.p + 1, s.n - 1);
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

struct slice slice_next_line(struct slice *rest)
{
	const uint8_t *end = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;
	size_t n = end ? (size_t)(end - rest->p) : rest->n;
	struct slice line = slice_of(rest->p, n);

	n += end != NULL;
	*rest = slice_of(rest->p + n, rest->n - n);
	return line;
}

struct slice slice_take(struct slice *rest, size_t n)
{
	struct slice s = slice_of(rest->p, MIN(n, rest->n));

	*rest = slice_of(s.n ? rest->p + s.n : rest->p, rest->n - s.n);
	return s;
}
