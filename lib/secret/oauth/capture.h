/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture - removes the values of named fields from a JSON text, in place.
 *
 * How      The text is walked with jtext. The value of each member that a service's rule `capture`
 *          names, at any depth and at each occurrence, is overwritten with '*', so the text keeps
 *          its length. Each value is first passed to the caller, unescaped.
 * Trust    Input: untrusted bytes of a server. The values are secrets of the caller.
 * Owns     Nothing: text and buffer are the caller's.
 * Limits   OAUTH_MAX_DEPTH. A value larger than the caller's buffer is removed without being
 *          passed.
 * Never    Leaves such a value in the text when it returns 0. Changes anything else.
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
