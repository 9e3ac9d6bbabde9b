/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canon_named - those headers of a canonical request that rules name, as one text.
 *
 * How      canon_named_write copies each header whose name is in a list into lines `name:value`, in
 *          the order of the request. The text is part of the ticket, so sbx-edge, the keeper and
 *          the process that sends the request have the same one. canon_named_read gives the headers
 *          of such a text back.
 * Trust    Input: untrusted. Pure; runs in edge, keeper, egress and origin.
 * Owns     Nothing: what is read points into the text.
 * Limits   CANON_NAMED_MAX bytes, CANON_NAMED_LIST names. A request with more is refused by the
 *          caller.
 * See      proto/PROTOCOL.ipc, canon_named_test.c, lib/base/hash/ticket.h
 */
#pragma once

#include "canon.h"

#define CANON_NAMED_MAX 2048
#define CANON_NAMED_LIST 16
#define CANON_NAMED_NAMES 1024 /* bytes of a list of names, its NUL included */
#define CANON_NAMED_HEADERS (CANON_NAMED_MAX / 2)

/* names: lower case, separated by commas. */
bool canon_named_has(struct slice names, struct slice name);
/* -ENAMETOOLONG: the text does not fit into wr. */
int canon_named_write(
	struct wr *wr, const struct http_headers *headers, struct slice names) MUST_CHECK;
/* -EBADMSG for a text that canon_named_write does not write. ret->max is the room of its list. */
int canon_named_read(struct slice text, struct http_headers *ret) MUST_CHECK;
