/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper_chan.h"

#include <errno.h>

static const struct chan_row rows[KEEPER_N_MSGS] = {
	[KEEPER_HELLO] = {"HELLO", KEEPER_FROM_KEEPER, 1, 0, 0},
	[KEEPER_STATE] = {"STATE", KEEPER_FROM_KEEPER, 1, 0, CHAN_ID},
	[KEEPER_PING] = {"PING", KEEPER_FROM_SBXD, 1, 0, CHAN_ID},
	[KEEPER_STREAM] = {"STREAM", KEEPER_FROM_SBXD, 1, 0, CHAN_FD | CHAN_ID},
	[KEEPER_STOP] = {"STOP", KEEPER_FROM_SBXD, 1, 0, CHAN_ID},
	[KEEPER_STATS] = {"STATS", KEEPER_FROM_SBXD, 1, 0, CHAN_ID},
	[KEEPER_DONE] = {"DONE", KEEPER_FROM_KEEPER, 1, 0, CHAN_ID},
	[KEEPER_STATS_IS] = {"STATS_IS", KEEPER_FROM_KEEPER, 1, 0, CHAN_ID},
	[KEEPER_RELOAD] = {"RELOAD", KEEPER_FROM_SBXD, 1, 0, CHAN_ID},
	[KEEPER_SUSPEND] = {"SUSPEND", KEEPER_FROM_SBXD, 1, 0, CHAN_ID},
	[KEEPER_FREEZE] = {"FREEZE", KEEPER_FROM_SBXD, 1, 0, CHAN_ID},
	[KEEPER_FROZEN] = {"FROZEN", KEEPER_FROM_KEEPER, 1, 0, CHAN_ID},
	[KEEPER_PORTS] = {"PORTS", KEEPER_FROM_SBXD, 1, 0, CHAN_ID},
	[KEEPER_PORTS_ARE] = {"PORTS_ARE", KEEPER_FROM_KEEPER, 1, 0, CHAN_ID},
	[KEEPER_CLAIM] = {"CLAIM", KEEPER_FROM_SBXD, 1, 0, CHAN_ID},
	[KEEPER_VAULT] = {"VAULT", KEEPER_FROM_SBXD, 1, 0, CHAN_FD},
	[KEEPER_WANT_VAULT] = {"WANT_VAULT", KEEPER_FROM_KEEPER, 1, 0, 0},
};

const struct chan keeper_chan = {
	.sides = {"sbxd", "keeper"}, .rows = rows, .n_rows = KEEPER_N_MSGS, .n_phases = 1};

const char *keeper_how_name(enum keeper_how how)
{
	static const char *const names[] = {[KEEPER_HOW_COLD] = "cold",
		[KEEPER_HOW_WARM] = "warm",
		[KEEPER_HOW_RESUMED] = "resumed",
		[KEEPER_HOW_POOL] = "pool"};

	return how < KEEPER_N_HOWS ? names[how] : "";
}

int keeper_send_hello(int sock, const struct keeper_hello *hello)
{
	uint8_t buf[256];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_cstr(&wr, hello->build);
	wr_cstr(&wr, hello->id);
	wr_u32(&wr, hello->pid);
	return ipc_send_wr(sock, KEEPER_HELLO, 0, &wr, -1);
}

int keeper_send_state(int sock, uint32_t id, const struct keeper_state *state)
{
	uint8_t buf[1024];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u8(&wr, (uint8_t)state->phase);
	wr_u8(&wr, state->progress);
	wr_u32(&wr, state->sessions);
	wr_u32(&wr, state->boot_ms);
	wr_u32(&wr, state->qemu_pid);
	wr_u8(&wr, state->stalled);
	wr_cstr(&wr, state->accel);
	wr_cstr(&wr, state->text);
	wr_u8(&wr, (uint8_t)state->how);
	wr_u8(&wr, state->suspended);
	wr_u8(&wr, state->paused);
	wr_cstr(&wr, state->cold_why);
	return ipc_send_wr(sock, KEEPER_STATE, id, &wr, -1);
}

int keeper_send_done(int sock, uint32_t id, int code, const char *text)
{
	uint8_t buf[1024];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u32(&wr, (uint32_t)code);
	wr_str(&wr, slice_of(text, strnlen(text, KEEPER_MAX_TEXT - 1)));
	return ipc_send_wr(sock, KEEPER_DONE, id, &wr, -1);
}

void keeper_put_stats(struct wr *wr, const struct keeper_stats *s)
{
	wr_u64(wr, s->uptime_ms);
	wr_u64(wr, s->cpu_ms);
	wr_u64(wr, s->mem_total);
	wr_u64(wr, s->mem_available);
	wr_u64(wr, s->disk_total);
	wr_u64(wr, s->disk_free);
	wr_u64(wr, s->docker_total);
	wr_u64(wr, s->docker_free);
	wr_u32(wr, s->processes);
	wr_u16(wr, (uint16_t)s->n_sessions);
	for (uint32_t i = 0; i < s->n_sessions; i++) {
		wr_cstr(wr, s->sessions[i].name);
		wr_u8(wr, s->sessions[i].flags);
		wr_u8(wr, s->sessions[i].value);
	}
}

int keeper_send_stats(int sock, uint32_t id, const struct keeper_stats *s)
{
	uint8_t buf[256 + KEEPER_MAX_SESSIONS * (KEEPER_MAX_SESSION + 4)];
	struct wr wr = wr_init(buf, sizeof(buf));

	keeper_put_stats(&wr, s);
	return ipc_send_wr(sock, KEEPER_STATS_IS, id, &wr, -1);
}

int keeper_ask_ping(int sock, uint32_t id)
{
	return ipc_send(sock, KEEPER_PING, id, slice_of(NULL, 0), -1);
}

int keeper_ask_stats(int sock, uint32_t id)
{
	return ipc_send(sock, KEEPER_STATS, id, slice_of(NULL, 0), -1);
}

int keeper_ask_stop(int sock, uint32_t id, uint32_t timeout_ms)
{
	uint8_t buf[4];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u32(&wr, timeout_ms);
	return ipc_send_wr(sock, KEEPER_STOP, id, &wr, -1);
}

int keeper_ask_suspend(int sock, uint32_t id)
{
	return ipc_send(sock, KEEPER_SUSPEND, id, slice_of(NULL, 0), -1);
}

int keeper_ask_claim(int sock, uint32_t id)
{
	return ipc_send(sock, KEEPER_CLAIM, id, slice_of(NULL, 0), -1);
}

int keeper_want_vault(int sock)
{
	return ipc_send(sock, KEEPER_WANT_VAULT, 0, slice_of(NULL, 0), -1);
}

int keeper_give_vault(int sock, int pass_fd)
{
	return ipc_send(sock, KEEPER_VAULT, 0, slice_of(NULL, 0), pass_fd);
}

int keeper_ask_reload(int sock, uint32_t id, const char *name)
{
	uint8_t buf[KEEPER_MAX_NAME + 2];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_cstr(&wr, name);
	return ipc_send_wr(sock, KEEPER_RELOAD, id, &wr, -1);
}

int keeper_ask_stream(int sock, uint32_t id, const char *path, int pass_fd)
{
	uint8_t buf[KEEPER_MAX_PATH + 2];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_cstr(&wr, path);
	return ipc_send_wr(sock, KEEPER_STREAM, id, &wr, pass_fd);
}

int keeper_get_hello(const struct ipc_msg *msg, struct keeper_hello *ret)
{
	struct rd rd = rd_init(ipc_body(msg));

	rd_cstr(&rd, ret->build, sizeof(ret->build));
	rd_cstr(&rd, ret->id, sizeof(ret->id));
	ret->pid = rd_u32(&rd);
	return rd_finish(&rd);
}

int keeper_get_state(const struct ipc_msg *msg, struct keeper_state *ret)
{
	struct rd rd = rd_init(ipc_body(msg));
	uint8_t phase = rd_u8(&rd), stalled, how, suspended, paused;

	ret->progress = rd_u8(&rd);
	ret->sessions = rd_u32(&rd);
	ret->boot_ms = rd_u32(&rd);
	ret->qemu_pid = rd_u32(&rd);
	stalled = rd_u8(&rd);
	rd_cstr(&rd, ret->accel, sizeof(ret->accel));
	rd_cstr(&rd, ret->text, sizeof(ret->text));
	how = rd_u8(&rd);
	suspended = rd_u8(&rd);
	paused = rd_u8(&rd);
	rd_cstr(&rd, ret->cold_why, sizeof(ret->cold_why));
	if (rd_finish(&rd) < 0 || phase >= KEEPER_N_PHASES || stalled > 1 || ret->progress > 100 ||
		how >= KEEPER_N_HOWS || suspended > 1 || paused > 1)
		return -EBADMSG;
	ret->phase = (enum keeper_phase)phase;
	ret->stalled = stalled;
	ret->how = (enum keeper_how)how;
	ret->suspended = suspended;
	ret->paused = paused;
	return 0;
}

int keeper_get_done(const struct ipc_msg *msg, struct keeper_done *ret)
{
	struct rd rd = rd_init(ipc_body(msg));

	ret->code = (int32_t)rd_u32(&rd);
	rd_cstr(&rd, ret->text, sizeof(ret->text));
	return rd_finish(&rd) < 0 || ret->code > 0 ? -EBADMSG : 0;
}

/* The guest's: a name is shown, so it has to be a plain one. */
static void read_session(struct rd *rd, struct keeper_session *ret)
{
	size_t n;

	rd_cstr(rd, ret->name, sizeof(ret->name));
	ret->flags = rd_u8(rd);
	ret->value = rd_u8(rd);
	n = strspn(ret->name, "abcdefghijklmnopqrstuvwxyz0123456789-");
	if (n == 0 || ret->name[n] || ret->flags & ~KEEPER_SESSION_ALL)
		rd->bad = true;
}

int keeper_read_stats(struct slice body, struct keeper_stats *ret)
{
	struct rd rd = rd_init(body);

	ret->uptime_ms = rd_u64(&rd);
	ret->cpu_ms = rd_u64(&rd);
	ret->mem_total = rd_u64(&rd);
	ret->mem_available = rd_u64(&rd);
	ret->disk_total = rd_u64(&rd);
	ret->disk_free = rd_u64(&rd);
	ret->docker_total = rd_u64(&rd);
	ret->docker_free = rd_u64(&rd);
	ret->processes = rd_u32(&rd);
	ret->n_sessions = rd_u16(&rd);
	if (ret->n_sessions > KEEPER_MAX_SESSIONS)
		return -EBADMSG;
	for (uint32_t i = 0; i < ret->n_sessions; i++)
		read_session(&rd, &ret->sessions[i]);
	return rd_finish(&rd);
}

int keeper_get_stats(const struct ipc_msg *msg, struct keeper_stats *ret)
{
	return keeper_read_stats(ipc_body(msg), ret);
}

int keeper_get_stop(const struct ipc_msg *msg, uint32_t *ret_timeout_ms)
{
	struct rd rd = rd_init(ipc_body(msg));

	*ret_timeout_ms = rd_u32(&rd);
	return rd_finish(&rd);
}

int keeper_get_reload(const struct ipc_msg *msg, char name[KEEPER_MAX_NAME])
{
	struct rd rd = rd_init(ipc_body(msg));

	rd_cstr(&rd, name, KEEPER_MAX_NAME);
	return rd_finish(&rd) < 0 || msg->fd >= 0 ? -EBADMSG : 0;
}

int keeper_get_stream(const struct ipc_msg *msg, char path[KEEPER_MAX_PATH])
{
	struct rd rd = rd_init(ipc_body(msg));

	rd_cstr(&rd, path, KEEPER_MAX_PATH);
	return rd_finish(&rd) < 0 || msg->fd < 0 ? -EBADMSG : 0;
}

int keeper_get_vault(const struct ipc_msg *msg)
{
	return chan_get_plain(&keeper_chan, msg, KEEPER_VAULT);
}

int keeper_get_nothing(const struct ipc_msg *msg)
{
	return chan_get_plain(&keeper_chan, msg, msg->type);
}
