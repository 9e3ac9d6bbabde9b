/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url - a link that a guest asks the user to open.
 *
 * How      url_parse takes http and https only, without a user name, with a host of the public
 *          Internet: no address of another class (addr.h), no loopback, no name that only a local
 *          network resolves. The bytes are those of RFC 3986, so all of them are printable ASCII.
 *          A host in other letters has to be written as punycode (url_has_punycode). The result is
 *          in one form: scheme and host in lower case, no default port, a path.
 * Trust    Parses untrusted input in sbx-edge, in the keeper and in sbx: each of them again. A
 *          name may still resolve to a private address; sbx checks that when it opens the link.
 * Owns     Nothing on the heap.
 * Limits   URL_MAX bytes.
 * Never    Shortens: a link that is too long is refused.
 * See      url_test.c, url_fuzz.c
 */
#pragma once

#include "lib/rules/policy/host.h"

#define URL_MAX 4000

struct url {
	bool tls;
	uint16_t port;
	struct host host;
	size_t path; /* where it begins in text */
	size_t n;
	char text[URL_MAX + 1];
};

/* -EINVAL with the reason. */
int url_parse(struct slice text, struct url *ret, struct err *err) MUST_CHECK;
/* A label of the host has letters that are not ASCII. */
bool url_has_punycode(const struct url *u);
