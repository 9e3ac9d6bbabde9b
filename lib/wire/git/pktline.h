/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pktline - the lines of git's protocol: a length in four hexadecimal digits, then the data.
 *
 * How      pktline_read takes bytes from the front of the input and yields one event: the data of a
 *          line, or one of the three marks without data. pktline_put and pktline_mark write them.
 * Trust    Parses untrusted input: pushes of a guest and answers of servers.
 * Owns     Nothing on the heap. Data is valid until the next call.
 * Limits   PKTLINE_MAX bytes a line, with its length. A wrong length: -EBADMSG, and the reader is
 *          dead.
 * See      git_lines_test.c, git_lines_fuzz.c
 */
#pragma once

#include "lib/base/slice.h"

#define PKTLINE_MAX 65520
#define PKTLINE_MAX_DATA (PKTLINE_MAX - 4)

enum pktline_event {
	PKTLINE_FLUSH, /* 0000; the first three are their lengths */
	PKTLINE_DELIM, /* 0001 */
	PKTLINE_END,   /* 0002 */
	PKTLINE_DATA,
	PKTLINE_MORE, /* the input is used up */
};

struct pktline_reader {
	uint32_t n; /* bytes of the line in buf; 0 after a line */
	bool bad;
	uint8_t buf[PKTLINE_MAX];
};

/* Where a writer puts its bytes. */
typedef void pktline_out(void *arg, struct slice bytes);

void pktline_init(struct pktline_reader *r);
/* True between two lines. */
static inline bool pktline_is_between(const struct pktline_reader *r)
{
	return r->n == 0 && !r->bad;
}
/* An enum pktline_event, or -EBADMSG. *ret is set with PKTLINE_DATA. */
int pktline_read(struct pktline_reader *r, struct slice *in, struct slice *ret) MUST_CHECK;

/* At most PKTLINE_MAX_DATA bytes. */
void pktline_put(pktline_out *out, void *arg, struct slice data);
/* PKTLINE_FLUSH, PKTLINE_DELIM or PKTLINE_END. */
void pktline_mark(pktline_out *out, void *arg, enum pktline_event mark);
/* One line of side-band 1, 2 or 3: at most PKTLINE_MAX_DATA - 1 bytes. */
void pktline_band(pktline_out *out, void *arg, uint8_t band, struct slice data);
