/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attr - the compiler attributes that the tree uses, under short names.
 *
 * How      AUTO_x frees a local at the end of its scope; TAKE hands it over instead.
 * Trust    Macros only; every program.
 */
#pragma once

#include <stddef.h>

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define CLEANUP(fn) __attribute__((cleanup(fn)))
/* -ftrivial-auto-var-init=zero clears each local variable, so that a forgotten one has no old
 * content. A large buffer of a function that runs often is marked with this if its bytes are read
 * no further than they were written: the compiler does not clear it. */
#define UNINITIALIZED __attribute__((uninitialized))

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* Hands a pointer over: the variable becomes NULL, so its cleanup does nothing. */
#define TAKE(p)                           \
	({                                \
		__auto_type _taken = (p); \
		(p) = NULL;               \
		_taken;                   \
	})
