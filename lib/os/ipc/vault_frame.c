/* SPDX-License-Identifier: Apache-2.0 */
#include "vault_frame.h"

#include <errno.h>

int vault_frame_head(const struct vault_frame *frame, struct wr *wr)
{
	if (frame->value.n == 0 || frame->value.n > VAULT_MAX_VALUE)
		return -EMSGSIZE;
	wr_u32(wr, VAULT_FRAME_MAGIC);
	wr_u64(wr, frame->serial);
	wr_cstr(wr, frame->name);
	wr_cstr(wr, frame->header);
	wr_cstr(wr, frame->format);
	wr_cstr(wr, frame->user);
	wr_u32(wr, (uint32_t)frame->value.n);
	return wr_finish(wr);
}

int vault_frame_split(struct slice bytes, struct vault_frame *ret)
{
	struct rd rd = rd_init(bytes);
	uint32_t magic = rd_u32(&rd), n;

	ret->serial = rd_u64(&rd);
	rd_cstr(&rd, ret->name, sizeof(ret->name));
	rd_cstr(&rd, ret->header, sizeof(ret->header));
	rd_cstr(&rd, ret->format, sizeof(ret->format));
	rd_cstr(&rd, ret->user, sizeof(ret->user));
	n = rd_u32(&rd);
	if (magic != VAULT_FRAME_MAGIC || n == 0 || n > VAULT_MAX_VALUE)
		return -EBADMSG;
	ret->value = rd_bytes(&rd, n);
	return rd_finish(&rd);
}
