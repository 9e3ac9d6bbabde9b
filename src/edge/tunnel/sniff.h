/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sniff - classifies the first bytes of a connection as TLS, HTTP or neither.
 *
 * How      TLS begins with a handshake record. HTTP begins with a word of letters, blanks, and a
 *          path, an http URL or `*`, or with CONNECT. Leading line ends, which servers skip, are
 *          skipped. Input that a lenient server would accept as HTTP is classified as HTTP: the
 *          strict parser then rejects it.
 * Trust    Parses untrusted input. Pure.
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
