/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem - heap memory; the process aborts if there is none.
 *
 * How      x* functions abort when memory is out. Nothing whose size a peer chooses goes through
 *          them unbounded: such bytes are in a struct bufq, or their size was checked before.
 * Trust    Every program.
 * Owns     The caller owns what it gets; AUTO_FREE frees it at the end of the scope.
 * See      mem_test.c
 */
#pragma once

#include <stdlib.h>
#include "attr.h"

void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* A list of n strings, and each of them. */
void mem_free_list(char **list, size_t n);
void mem_free_ptr(void *pp);

#define AUTO_FREE CLEANUP(mem_free_ptr)
