/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hello_walk - reads the lists of a ClientHello for tests.
 *
 * How      alpn_next walks the ALPN list from *at = 0 and returns false at its end.
 * Trust    For hello_test.c and hello_fuzz.c only.
 */
#pragma once

#include "lib/wire/tls/hello.h"

static inline bool alpn_next(const struct hello *h, size_t *at, struct slice *ret)
{
	struct rd rd = rd_init(slice_of(h->alpn, h->n_alpn));

	(void)rd_bytes(&rd, *at);
	if (rd.bad || rd.n == 0)
		return false;
	*ret = rd_bytes(&rd, rd_u8(&rd));
	*at += 1 + ret->n;
	return true;
}
