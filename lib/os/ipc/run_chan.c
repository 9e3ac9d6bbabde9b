/* SPDX-License-Identifier: Apache-2.0 */
#include "run_chan.h"

#include <errno.h>

static const struct chan_row rows[RUN_N_MSGS] = {
	[RUN_RUN] = {"RUN", RUN_FROM_VAULT, 1, 0, CHAN_FD | CHAN_ID},
	[RUN_ENDED] = {"ENDED", RUN_FROM_RUNNER, 1, 0, CHAN_ID},
};

const struct chan run_chan = {
	.sides = {"vault", "vault-run"}, .rows = rows, .n_rows = RUN_N_MSGS, .n_phases = 1};

int run_send_run(int sock, uint32_t id, const struct run *run, int fd)
{
	uint8_t buf[16];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u8(&wr, (uint8_t)run->kind);
	wr_u32(&wr, run->timeout_ms);
	wr_u64(&wr, run->serial);
	return ipc_send_wr(sock, RUN_RUN, id, &wr, fd);
}

int run_send_ended(int sock, uint32_t id, int32_t how)
{
	uint8_t buf[4];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u32(&wr, (uint32_t)how);
	return ipc_send(sock, RUN_ENDED, id, slice_of(wr.p, wr.n), -1);
}

int run_get_run(const struct ipc_msg *msg, struct run *ret)
{
	struct rd rd = rd_init(ipc_body(msg));
	uint8_t kind = rd_u8(&rd);

	*ret = (struct run){.kind = (enum run_kind)kind, .timeout_ms = rd_u32(&rd)};
	ret->serial = rd_u64(&rd);
	if (kind >= RUN_N_KINDS || ret->timeout_ms == 0 || ret->timeout_ms > RUN_MAX_MS ||
		(kind == RUN_REF) != (ret->serial != 0))
		return -EBADMSG;
	return ipc_finish(msg, RUN_RUN, &rd, true);
}

int run_get_ended(const struct ipc_msg *msg, int32_t *ret_how)
{
	struct rd rd = rd_init(ipc_body(msg));

	*ret_how = (int32_t)rd_u32(&rd);
	if (msg->type != RUN_ENDED || rd_finish(&rd) < 0 || msg->fd >= 0)
		return -EBADMSG;
	return *ret_how >= -4095 && *ret_how <= 255 ? 0 : -EBADMSG;
}
