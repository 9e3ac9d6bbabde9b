/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canon_internal - what the parts of canon share.
 */
#pragma once

#include "canon.h"

/* Names that a canonical list never has. */
bool canon_is_dropped(struct slice lower_name);
/* A framing or routing name with "_" for "-". */
bool canon_is_disguised(struct slice lower_name);
/* Of path, `?` and query. */
static inline size_t canon_target_length(const struct http_req *req)
{
	return req->path.n + req->has_query + req->query.n;
}
