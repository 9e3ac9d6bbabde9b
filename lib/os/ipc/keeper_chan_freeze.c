/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper_chan.h"

#include <errno.h>

int keeper_ask_freeze(int sock, uint32_t id)
{
	return ipc_send(sock, KEEPER_FREEZE, id, slice_of(NULL, 0), -1);
}

int keeper_send_frozen(int sock, uint32_t id, const struct keeper_frozen *frozen)
{
	uint8_t buf[1024];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u32(&wr, (uint32_t)frozen->code);
	for (size_t i = 0; i < KEEPER_DISKS; i++)
		wr_u8(&wr, frozen->layers[i]);
	wr_str(&wr, slice_of(frozen->text, strnlen(frozen->text, KEEPER_MAX_TEXT - 1)));
	return ipc_send_wr(sock, KEEPER_FROZEN, id, &wr, -1);
}

int keeper_get_frozen(const struct ipc_msg *msg, struct keeper_frozen *ret)
{
	struct rd rd = rd_init(ipc_body(msg));
	bool too_many = false;

	ret->code = (int32_t)rd_u32(&rd);
	for (size_t i = 0; i < KEEPER_DISKS; i++) {
		ret->layers[i] = rd_u8(&rd);
		too_many = too_many || ret->layers[i] > KEEPER_MAX_LAYERS;
	}
	rd_cstr(&rd, ret->text, sizeof(ret->text));
	return rd_finish(&rd) < 0 || ret->code > 0 || too_many ? -EBADMSG : 0;
}
