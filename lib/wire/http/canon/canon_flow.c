/* SPDX-License-Identifier: Apache-2.0 */
#include "canon_frame.h"

#include <errno.h>

static int begin_flow(struct canon_flow *f, const struct http_body *body, bool may_switch)
{
	f->phase = CANON_IN_BODY;
	f->kind = body->absent ? HTTP_BODY_NONE : body->kind;
	f->left = f->kind == HTTP_BODY_LENGTH ? body->length : 0;
	f->may_switch = may_switch;
	return 0;
}

int canon_flow_req(struct canon_flow *f, const struct http_req *req)
{
	if (f->phase != CANON_BEFORE_HEAD)
		return -EBADMSG;
	return begin_flow(f, &req->body, req->websocket);
}

int canon_flow_resp(struct canon_flow *f, const struct http_resp *resp)
{
	if (f->phase != CANON_BEFORE_HEAD)
		return -EBADMSG;
	if (resp->status < 200 && resp->status != 101)
		return 0;
	return begin_flow(f, &resp->body, false);
}

int canon_flow_data(struct canon_flow *f, size_t n)
{
	if (f->phase != CANON_IN_BODY || f->kind == HTTP_BODY_NONE)
		return -EBADMSG;
	if (f->kind != HTTP_BODY_LENGTH)
		return 0;
	if (n > f->left)
		return -EBADMSG;
	f->left -= n;
	return 0;
}

int canon_flow_end(struct canon_flow *f, const struct http_headers *trailers)
{
	bool has_trailers = trailers && trailers->n > 0;

	if (f->phase != CANON_IN_BODY || f->left > 0)
		return -EBADMSG;
	if (has_trailers && f->kind != HTTP_BODY_CHUNKED)
		return -EBADMSG;
	f->phase = CANON_OVER;
	return 0;
}

int canon_flow_switch(struct canon_flow *f)
{
	if (f->phase != CANON_IN_BODY || !f->may_switch)
		return -EBADMSG;
	f->kind = HTTP_BODY_TUNNEL;
	f->may_switch = false;
	return 0;
}
