#include "run_chan.h"

#include <errno.h>

int run_send_run(int sock, uint32_t id, const struct run *run, int fd)
{
	uint8_t buf[sizeof(*run) + 64];
	struct wr wr = wr_init(buf, sizeof(buf));
	int r;

	wr_u8(&wr, (uint8_t)run->kind);
	wr_u32(&wr, run->timeout_ms);
	wr_cstr(&wr, run->program);
	wr_u8(&wr, run->n_args);
	for (size_t i = 0; i < run->n_args && i < RUN_MAX_ARGS; i++)
		wr_cstr(&wr, run->args[i]);
	r = wr_finish(&wr);
	return r < 0 ? r : ipc_send(sock, RUN_RUN, id, slice_of(wr.p, wr.n), fd);
}

int run_send_ended(int sock, uint32_t id, int32_t how)
{
	uint8_t buf[4];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u32(&wr, (uint32_t)how);
	return ipc_send(sock, RUN_ENDED, id, slice_of(wr.p, wr.n), -1);
}

static bool is_good(const struct run *run)
{
	bool names = run->kind == RUN_DOCKER || run->kind == RUN_COMMAND;

	if (run->timeout_ms == 0 || run->timeout_ms > RUN_MAX_MS)
		return false;
	if (names ? run->program[0] != '/' : run->program[0] != '\0')
		return false;
	return run->kind != RUN_DOCKER || run->n_args == 1;
}

int run_get_run(const struct ipc_msg *msg, struct run *ret)
{
	struct rd rd = rd_init(ipc_body(msg));
	uint8_t kind = rd_u8(&rd);

	*ret = (struct run){.timeout_ms = rd_u32(&rd)};
	rd_cstr(&rd, ret->program, sizeof(ret->program));
	ret->n_args = rd_u8(&rd);
	if (kind >= RUN_N_KINDS || ret->n_args > RUN_MAX_ARGS)
		return -EBADMSG;
	ret->kind = (enum run_kind)kind;
	for (size_t i = 0; i < ret->n_args; i++)
		rd_cstr(&rd, ret->args[i], sizeof(ret->args[i]));
	if (msg->type != RUN_RUN || rd_finish(&rd) < 0 || msg->fd < 0 || !is_good(ret))
		return -EBADMSG;
	return 0;
}

int run_get_ended(const struct ipc_msg *msg, int32_t *ret_how)
{
	struct rd rd = rd_init(ipc_body(msg));

	*ret_how = (int32_t)rd_u32(&rd);
	if (msg->type != RUN_ENDED || rd_finish(&rd) < 0 || msg->fd >= 0)
		return -EBADMSG;
	return *ret_how >= -4095 && *ret_how <= 255 ? 0 : -EBADMSG;
}
