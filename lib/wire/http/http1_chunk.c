/* SPDX-License-Identifier: Apache-2.0 */
#include "http1_internal.h"

#include <errno.h>
#include "lib/base/hex.h"

/* One byte of "size[;extensions]CRLF". 1 at the end of the line. No blanks: they are in no grammar
 * and servers disagree about them. */
static int pass_size(struct http1 *h, uint8_t c)
{
	int digit = hex_digit(c);

	if (++h->n_line > HTTP1_MAX_CHUNK_LINE)
		return http1_fail(h, 400, "a chunk size line that is too long");
	if (h->after_cr)
		return c == '\n' ? 1 : http1_fail(h, 400, "a CR that is not followed by LF");
	if (c == '\r' && h->n_digits > 0) {
		h->after_cr = true;
		return 0;
	}
	if (h->in_extension) {
		if (c <= 0x20 || c >= 0x7f || ++h->n_extensions > HTTP1_MAX_EXTENSIONS)
			return http1_fail(h, 400, "a chunk extension that is invalid or too long");
		return 0;
	}
	if (c == ';' && h->n_digits > 0) {
		h->in_extension = true;
		return 0;
	}
	if (digit < 0 || ++h->n_digits > HTTP1_MAX_CHUNK_DIGITS)
		return http1_fail(h, 400, "a chunk size that is invalid or too large");
	h->left = h->left << 4 | (uint64_t)digit;
	return 0;
}

static void begin_trailers(struct http1 *h)
{
	h->lines = NULL;
	h->n_lines = 0;
	h->state = HTTP1_IN_TRAILERS;
}

int http1_chunk_line(struct http1 *h, struct slice *in)
{
	size_t n = 0;
	int r = 0;

	while (n < in->n && r == 0) {
		r = pass_size(h, in->p[n++]);
		if (r < 0)
			return r;
	}
	if (n == 0)
		return 0;
	if (http1_twin_framing(h, http1_take(in, n)) < 0)
		return -EBADMSG;
	if (r == 0)
		return 0;
	h->n_line = h->n_digits = 0;
	h->after_cr = h->in_extension = false;
	if (h->left > 0)
		h->state = HTTP1_IN_CHUNK;
	else
		begin_trailers(h);
	return 1;
}

int http1_chunk_end(struct http1 *h, struct slice *in)
{
	while (in->n > 0) {
		uint8_t c = in->p[0];

		if (c != (h->after_cr ? '\n' : '\r'))
			return http1_fail(h, 400, "a chunk that is longer than its size");
		if (http1_twin_framing(h, http1_take(in, 1)) < 0)
			return -EBADMSG;
		if (h->after_cr) {
			h->after_cr = false;
			h->state = HTTP1_IN_CHUNK_LINE;
			return 1;
		}
		h->after_cr = true;
	}
	return 0;
}
