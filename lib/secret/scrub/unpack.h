/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack - Content-Encoding undone in pieces: gzip, deflate, br, zstd.
 *
 * How      unpack_parse reads the header, unpack_feed reads and writes bytes until one of the two
 *          is used up. One interface for zlib, libbrotlidec and libzstd. gzip may have several
 *          members, zstd several frames; deflate is taken with and without its zlib head, as
 *          browsers do. No bytes may follow the end, and unpack_end checks that the end was
 *          reached.
 * Trust    Parses untrusted input: the libraries are foreign code in a jail. Runs in sbx-origin
 *          only.
 * Owns     The state of one decoder, freed by unpack_free.
 * Limits   UNPACK_MAX_WINDOW for zstd, UNPACK_MAX_MEMORY for zlib and br, UNPACK_MAX_ALL for all
 *          decoders of the process; UNPACK_MAX_RATIO once UNPACK_FREE bytes have come out. An empty
 *          response is complete.
 * Never    More than one coding; a dictionary; a coding that it does not know.
 * See      scrub.h, unpack_test.c, unpack_fuzz.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"
#include "lib/base/slice.h"

#define UNPACK_MAX_WINDOW_LOG 23 /* 8 MiB, what RFC 9659 lets zstd use in HTTP */
#define UNPACK_MAX_WINDOW (1U << UNPACK_MAX_WINDOW_LOG)
#define UNPACK_MAX_MEMORY (18U << 20) /* br: a window of 16 MiB (RFC 7932) and its tables */
#define UNPACK_MAX_ALL (256U << 20)   /* of all decoders together; a third of what origin may use */
#define UNPACK_MAX_RATIO 2000	      /* bytes out for one byte in; gzip reaches 1032 */
#define UNPACK_FREE (16U << 20)	      /* bytes out before the ratio applies */
#define UNPACK_MAX_HEADER 64

enum unpack_coding {
	UNPACK_IDENTITY,
	UNPACK_GZIP,
	UNPACK_DEFLATE,
	UNPACK_BR,
	UNPACK_ZSTD,
	UNPACK_N_CODINGS,
};

struct unpack;

/* The value of a Content-Encoding header, "" for none. -ENOTSUP with what we do not undo. */
int unpack_parse(struct slice value, enum unpack_coding *ret, struct err *err) MUST_CHECK;
/* NULL when UNPACK_MAX_ALL is used up. */
struct unpack *unpack_new(enum unpack_coding coding);
void unpack_free(struct unpack *u);
/* Takes from the front of *in, puts up to `size` bytes at `out`. 0; -EBADMSG if the stream is
 * invalid or has bytes after its end, -E2BIG above a limit (br: -EBADMSG): both are final. Call it
 * again with an empty *in as long as it fills `out`. */
int unpack_feed(struct unpack *u, struct slice *in, uint8_t *out, size_t size, size_t *ret_n,
	struct err *err) MUST_CHECK;
/* Nothing more will come: -EBADMSG when the end is missing. */
int unpack_end(const struct unpack *u, struct err *err) MUST_CHECK;
