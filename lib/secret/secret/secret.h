/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secret - memory for a value: a separate mapping between two guard pages, wiped when freed.
 *
 * How      memfd_secret where the kernel has it: such pages are in no other map, so neither ptrace
 *          nor /proc/PID/mem nor a swapped kernel can show them. Else anonymous memory, locked.
 *          Neither goes into a core or to a child. secret.kind has the result.
 * Trust    Holds what must not be seen. There is no char pointer, so no %s can print it.
 * Owns     Its mapping; secret_done wipes and unmaps. Zero bytes are an empty secret.
 * Limits   The size given at the start; it never grows.
 * See      secret_test.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/slice.h"
#include "lib/base/err.h"

enum secret_kind { SECRET_HIDDEN, SECRET_LOCKED, SECRET_PLAIN };

struct secret {
	uint8_t *p;
	size_t n;    /* bytes in use: none after them was ever written */
	size_t size; /* room */
	enum secret_kind kind;
	void *map;
	size_t map_n;
};

/* -ENOMEM. When the limit of locked memory is reached, the memory is SECRET_PLAIN and works. */
int secret_init(struct secret *s, size_t size, struct err *err) MUST_CHECK;
void secret_done(struct secret *s);
int secret_copy(struct secret *s, struct slice from, struct err *err) MUST_CHECK;
/* Keeps the first n bytes and wipes the others that are in use. */
void secret_cut(struct secret *s, size_t n);
/* Hands it over: `s` is empty afterwards. */
struct secret secret_take(struct secret *s);
/* Only locked memory from now on, which a test can inspect. */
void secret_forbid_hidden(void);

static inline struct slice secret_slice(const struct secret *s)
{
	return slice_of(s->p, s->n);
}

#define AUTO_SECRET CLEANUP(secret_done)
