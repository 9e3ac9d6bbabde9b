/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url - a link that a guest asks the user to open, and the callback that it names.
 *
 * How      url_parse takes http and https only, without a user name, with a host of the public
 *          Internet: no address of another class (addr.h), no loopback, no name that only a local
 *          network resolves. The bytes are those of RFC 3986, so all of them are printable ASCII.
 *          A host in other letters has to be written as punycode (url_has_punycode). The result is
 *          in one form: scheme and host in lower case, no default port, a path.
 *
 *          url_callback reads redirect_uri in the query: http to localhost or 127.0.0.1, with a
 *          port from 1024 and a plain path. sbx then receives the browser there (src/sbx/open).
 * Trust    Parses untrusted input in sbx-edge, in the keeper and in sbx: each of them again. A
 *          name may still resolve to a private address; sbx checks that when it opens the link.
 * Owns     Nothing on the heap.
 * Limits   URL_MAX bytes, URL_MAX_PATH of the path of a callback.
 * Never    Shortens: a link that is too long is refused.
 * See      url_test.c, url_fuzz.c
 */
#pragma once

#include "lib/rules/policy/host.h"

#define URL_MAX 4000
#define URL_MAX_PATH 255
#define URL_MIN_PORT 1024 /* of a callback */

struct url {
	bool tls;
	uint16_t port;
	struct host host;
	size_t path; /* where it begins in text */
	size_t n;
	char text[URL_MAX + 1];
};

struct url_callback {
	uint16_t port;
	char path[URL_MAX_PATH + 1];
};

/* -EINVAL with the reason. */
int url_parse(struct slice text, struct url *ret, struct err *err) MUST_CHECK;
/* A label of the host has letters that are not ASCII. */
bool url_has_punycode(const struct url *u);
/* What stands between '?' and '#'. */
struct slice url_query(const struct url *u);
/* The decoded value of a field: 1, or 0 without it. -ENOTUNIQ if there are several, -EINVAL if it
 * does not fit or has a byte that is not printable ASCII. */
int url_field(struct slice query, const char *name, char *buf, size_t size) MUST_CHECK;
/* 1: it names a callback. 0: it does not. -EINVAL with the reason: none that sbx would receive. */
int url_callback(const struct url *u, struct url_callback *ret, struct err *err) MUST_CHECK;
