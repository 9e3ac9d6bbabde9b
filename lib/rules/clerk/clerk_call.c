/* SPDX-License-Identifier: Apache-2.0 */
#include "clerk_call.h"

#include <errno.h>

const char *clerk_call_name(enum clerk_call_type type)
{
	static const char *const names[] = {[CLERK_QUERY] = "query",
		[CLERK_MUTATION] = "mutation",
		[CLERK_SUBSCRIPTION] = "subscription",
		[CLERK_UNKNOWN] = ""};

	return names[type];
}

void clerk_put_call(struct wr *wr, const struct clerk_call *call)
{
	wr_u8(wr, (uint8_t)call->type);
	wr_u16(wr, (uint16_t)call->field.n);
	wr_bytes(wr, call->field);
	wr_u16(wr, (uint16_t)call->object.n);
	wr_bytes(wr, call->object);
}

int clerk_next_call(struct slice *records, struct clerk_call *ret)
{
	struct rd rd = rd_init(*records);
	bool is_unknown;
	uint8_t type;

	if (records->n == 0)
		return 0;
	type = rd_u8(&rd);
	ret->field = rd_bytes(&rd, rd_u16(&rd));
	ret->object = rd_bytes(&rd, rd_u16(&rd));
	is_unknown = type == CLERK_UNKNOWN;
	if (rd.bad || type > CLERK_UNKNOWN || (ret->field.n == 0) != is_unknown ||
		(ret->object.n == 0) != is_unknown || ret->field.n > CLERK_MAX_FIELD ||
		ret->object.n > CLERK_MAX_OBJECT)
		return -EBADMSG;
	ret->type = (enum clerk_call_type)type;
	*records = slice_of(rd.p, rd.n);
	return 1;
}

int clerk_get_calls(const struct ipc_msg *msg, struct slice *ret, size_t *ret_n)
{
	struct rd end = {0};
	struct slice rest = ipc_body(msg);
	struct clerk_call call;
	int r;

	*ret = rest;
	*ret_n = 0;
	while ((r = clerk_next_call(&rest, &call)) == 1)
		(*ret_n)++;
	if (r < 0 || *ret_n == 0)
		return -EBADMSG;
	return chan_finish(&clerk_chan, msg, CLERK_EFFECTS, &end);
}
