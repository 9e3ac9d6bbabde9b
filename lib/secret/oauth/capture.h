/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture - takes the values of named fields out of a JSON text, in place.
 *
 * How      The text is walked with jtext. The value of each member that a service's rule `capture`
 *          names, at any depth and as often as it stands there, becomes as many '*', so the text is
 *          as long as it was. Each value is shown to the caller, with its escapes undone, before it
 *          goes.
 * Trust    A server's bytes, hostile. The values are secrets of the caller's.
 * Owns     Nothing: text and buffer are the caller's.
 * Limits   OAUTH_MAX_DEPTH. A value above the caller's buffer goes without being shown.
 * Never    Leaves such a value behind when it returns 0. Changes anything else.
 * See      lib/secret/service/service.h, proto/PROTOCOL.service, capture_test.c, oauth_fuzz.c
 */
#pragma once

#include "oauth.h"
#include "lib/secret/service/service.h"

typedef void capture_fn(void *user, struct slice value);

struct capture_to {
	uint8_t *buf; /* for one value */
	size_t size;
	capture_fn *found;
	void *user;
	size_t n; /* how many values were taken out; grows */
};

/*
 * rules: of service_captures. An object or an array. Empty strings and null, true and false stay.
 * -EBADMSG: it is not JSON; -EPROTO: such a field is a number, an object or an array, which cannot
 * be taken out. Part of the text may be changed then.
 */
int capture_clean(const struct service *s, uint32_t rules, uint8_t *text, size_t n,
	struct capture_to *to) MUST_CHECK;
