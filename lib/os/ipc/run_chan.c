/* SPDX-License-Identifier: Apache-2.0 */
#include "run_chan.h"

#include <errno.h>

static const struct chan_row rows[RUN_N_MSGS] = {
	[RUN_RUN] = {"RUN", RUN_FROM_VAULT, 1, 0, CHAN_FD | CHAN_ID},
	[RUN_ENDED] = {"ENDED", RUN_FROM_RUNNER, 1, 0, CHAN_ID},
};

const struct chan run_chan = {
	.sides = {"vault", "vault-run"}, .rows = rows, .n_rows = RUN_N_MSGS, .n_phases = 1};

static const struct field run_fields[] = {
	FIELD_ENUM(run, kind, RUN_N_KINDS),
	FIELD_RANGE(run, timeout_ms, 1, RUN_MAX_MS),
	FIELD_NUMBER(run, serial),
	{0},
};

int run_send_run(int sock, uint32_t id, const struct run *run, int fd)
{
	return chan_send(sock, RUN_RUN, id, run_fields, run, fd);
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
	int r = chan_get(&run_chan, msg, RUN_RUN, run_fields, ret);

	return (ret->kind == RUN_REF) == (ret->serial != 0) ? r : -EBADMSG;
}

int run_get_ended(const struct ipc_msg *msg, int32_t *ret_how)
{
	struct rd rd = rd_init(ipc_body(msg));

	*ret_how = (int32_t)rd_u32(&rd);
	if (msg->type != RUN_ENDED || rd_finish(&rd) < 0 || msg->fd >= 0)
		return -EBADMSG;
	return *ret_how >= -4095 && *ret_how <= 255 ? 0 : -EBADMSG;
}
