/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slice - bytes with a length, and the readers and writers of fixed binary messages.
 *
 * How      struct rd reads a slice field by field; the first short read makes it sticky-bad and
 *          everything after it reads as zero, so one check at the end (rd_finish) is enough. struct
 *          wr is the same for writing into a fixed buffer. Integers are little-endian.
 * Trust    Input: untrusted bytes. Every program.
 * Owns     Nothing: slices point into the caller's memory and are never NUL-terminated.
 * Never    Pointer arithmetic on outside bytes anywhere else.
 * See      slice_test.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "attr.h"

struct slice {
	const uint8_t *p;
	size_t n;
};

static inline struct slice slice_of(const void *p, size_t n)
{
	return (struct slice){.p = p, .n = n};
}

static inline struct slice slice_from_str(const char *s)
{
	return slice_of(s, strlen(s));
}

bool slice_eq(struct slice a, struct slice b);
bool slice_eq_str(struct slice a, const char *s);
/* As long as the pattern and equal to it, where each `*` of the pattern is any letter or digit
 * of ASCII. */
bool slice_is_like(struct slice s, struct slice pattern);
/* The first n bytes, or all of fewer; *rest is what stands after them. */
struct slice slice_take(struct slice *rest, size_t n);
/* Copies into a NUL-terminated buffer. -ENAMETOOLONG when it does not fit, -EINVAL with a NUL
 * inside. */
int slice_to_cstr(struct slice s, char *buf, size_t size) MUST_CHECK;
/* A heap copy, NUL-terminated; NULL when there is a NUL inside. */
char *slice_dup(struct slice s);

struct rd {
	const uint8_t *p;
	size_t n;
	bool bad;
};

static inline struct rd rd_init(struct slice s)
{
	return (struct rd){.p = s.p, .n = s.n};
}

uint8_t rd_u8(struct rd *rd);
uint16_t rd_u16(struct rd *rd);
uint32_t rd_u24(struct rd *rd);
uint32_t rd_u32(struct rd *rd);
uint64_t rd_u64(struct rd *rd);
struct slice rd_bytes(struct rd *rd, size_t n);
/* u16 length + bytes. */
struct slice rd_str(struct rd *rd);
/* As rd_str into a C string of at most size - 1 bytes; a NUL inside or an over-long one is bad. */
void rd_cstr(struct rd *rd, char *buf, size_t size);
/* 0 when everything was there and nothing is left, else -EBADMSG. */
int rd_finish(const struct rd *rd) MUST_CHECK;

/* ---- lines of text ---- */

/* Without blanks and tabs at both ends. */
struct slice slice_trim(struct slice s);
/* Up to the next newline, which is removed too; *rest is what follows it. */
struct slice slice_next_line(struct slice *rest);

struct wr {
	uint8_t *p;
	size_t n;
	size_t size;
	bool bad;
};

static inline struct wr wr_init(void *buf, size_t size)
{
	return (struct wr){.p = buf, .size = size};
}

void wr_u8(struct wr *wr, uint8_t v);
void wr_u16(struct wr *wr, uint16_t v);
void wr_u24(struct wr *wr, uint32_t v);
void wr_u32(struct wr *wr, uint32_t v);
void wr_u64(struct wr *wr, uint64_t v);
void wr_bytes(struct wr *wr, struct slice s);
void wr_str(struct wr *wr, struct slice s);
void wr_cstr(struct wr *wr, const char *s);
/* Text of at most 1023 bytes, without a NUL. */
void wr_printf(struct wr *wr, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* 0, or -EMSGSIZE when something did not fit. */
int wr_finish(const struct wr *wr) MUST_CHECK;
