/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sniff - what the first bytes of a connection are: TLS, HTTP, or neither.
 *
 * How      TLS begins with a handshake record. HTTP begins with a word of letters, blanks, and a
 *          path, an http URL or `*`, or with CONNECT; line ends in front, which servers pass over,
 *          do not hide it. What is not quite HTTP but would be taken for it by a lenient server
 *          counts as HTTP too: its strict reader then refuses it.
 * Trust    Eats hostile bytes. Pure.
 * Limits   Decides within SNIFF_BYTES.
 * See      sniff_test.c
 */
#pragma once

#include "lib/base/slice.h"

#define SNIFF_BYTES 64

enum sniff {
	SNIFF_MORE, /* it may still become TLS or HTTP */
	SNIFF_TLS,
	SNIFF_HTTP,
	SNIFF_OTHER,
};

/* Never SNIFF_MORE for SNIFF_BYTES or more. */
enum sniff sniff_first(struct slice first);
