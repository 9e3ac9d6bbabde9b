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
	[KEEPER_SUSPEND_IDLE] = {"SUSPEND_IDLE", KEEPER_FROM_SBXD, 1, 0, CHAN_ID},
	[KEEPER_LISTENER] = {"LISTENER", KEEPER_FROM_SBXD, 1, 0, CHAN_FD},
	[KEEPER_FREEZE] = {"FREEZE", KEEPER_FROM_SBXD, 1, 0, CHAN_ID},
	[KEEPER_MEMORY] = {"MEMORY", KEEPER_FROM_SBXD, 1, 0, CHAN_ID},
	[KEEPER_FROZEN] = {"FROZEN", KEEPER_FROM_KEEPER, 1, 0, CHAN_ID},
	[KEEPER_PORTS] = {"PORTS", KEEPER_FROM_SBXD, 1, 0, CHAN_ID},
	[KEEPER_PORTS_ARE] = {"PORTS_ARE", KEEPER_FROM_KEEPER, 1, 0, CHAN_ID},
	[KEEPER_CLAIM] = {"CLAIM", KEEPER_FROM_SBXD, 1, 0, CHAN_ID},
	[KEEPER_VAULT] = {"VAULT", KEEPER_FROM_SBXD, 1, 0, CHAN_FD},
	[KEEPER_WANT_VAULT] = {"WANT_VAULT", KEEPER_FROM_KEEPER, 1, 0, 0},
	[KEEPER_POLICY] = {"POLICY", KEEPER_FROM_SBXD, 1, 0, CHAN_FD | CHAN_ID},
	[KEEPER_HELD] = {"HELD", KEEPER_FROM_KEEPER, 1, 0, CHAN_ID},
	[KEEPER_UNHELD] = {"UNHELD", KEEPER_FROM_KEEPER, 1, 0, CHAN_ID},
	[KEEPER_ANSWER] = {"ANSWER", KEEPER_FROM_SBXD, 1, 0, CHAN_ID},
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

static const struct field hello_fields[] = {
	FIELD_STR(keeper_hello, build),
	FIELD_STR(keeper_hello, id),
	FIELD_NUMBER(keeper_hello, pid),
	{0},
};

int keeper_send_hello(int sock, const struct keeper_hello *hello)
{
	return chan_send(sock, KEEPER_HELLO, 0, hello_fields, hello, -1);
}

static const struct field state_fields[] = {
	FIELD_ENUM(keeper_state, phase, KEEPER_N_PHASES),
	FIELD_RANGE(keeper_state, progress, 0, 100),
	FIELD_NUMBER(keeper_state, sessions),
	FIELD_NUMBER(keeper_state, boot_ms),
	FIELD_NUMBER(keeper_state, qemu_pid),
	FIELD_BOOL(keeper_state, stalled),
	FIELD_STR(keeper_state, accel),
	FIELD_STR(keeper_state, text),
	FIELD_ENUM(keeper_state, how, KEEPER_N_HOWS),
	FIELD_BOOL(keeper_state, suspended),
	FIELD_BOOL(keeper_state, paused),
	FIELD_STR(keeper_state, cold_why),
	FIELD_NUMBER(keeper_state, net_up),
	FIELD_NUMBER(keeper_state, net_down),
	{0},
};

int keeper_send_state(int sock, uint32_t id, const struct keeper_state *state)
{
	return chan_send(sock, KEEPER_STATE, id, state_fields, state, -1);
}

int keeper_send_done(int sock, uint32_t id, int code, const char *text)
{
	uint8_t buf[1024];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u32(&wr, (uint32_t)code);
	wr_str(&wr, slice_of(text, strnlen(text, KEEPER_MAX_TEXT - 1)));
	return ipc_send_wr(sock, KEEPER_DONE, id, &wr, -1);
}

/* The number of sessions and the sessions follow. */
static const struct field stats_fields[] = {
	FIELD_NUMBER(keeper_stats, uptime_ms),
	FIELD_NUMBER(keeper_stats, cpu_ms),
	FIELD_NUMBER(keeper_stats, mem_total),
	FIELD_NUMBER(keeper_stats, mem_available),
	FIELD_NUMBER(keeper_stats, disk_total),
	FIELD_NUMBER(keeper_stats, disk_free),
	FIELD_NUMBER(keeper_stats, docker_total),
	FIELD_NUMBER(keeper_stats, docker_free),
	FIELD_NUMBER(keeper_stats, processes),
	{0},
};
static const struct field session_fields[] = {
	FIELD_STR(keeper_session, name),
	FIELD_RANGE(keeper_session, flags, 0, KEEPER_SESSION_ALL),
	FIELD_NUMBER(keeper_session, value),
	{0},
};

void keeper_put_stats(struct wr *wr, const struct keeper_stats *s)
{
	fields_write(wr, stats_fields, s);
	wr_u16(wr, (uint16_t)s->n_sessions);
	for (uint32_t i = 0; i < s->n_sessions; i++)
		fields_write(wr, session_fields, &s->sessions[i]);
}

int keeper_send_stats(int sock, uint32_t id, const struct keeper_stats *s)
{
	uint8_t buf[256 + KEEPER_MAX_SESSIONS * (KEEPER_MAX_SESSION + 4)];
	struct wr wr = wr_init(buf, sizeof(buf));

	keeper_put_stats(&wr, s);
	return ipc_send_wr(sock, KEEPER_STATS_IS, id, &wr, -1);
}

static const struct field stop_fields[] = {FIELD_ONE(uint32_t, 0, UINT32_MAX), {0}};

int keeper_ask_stop(int sock, uint32_t id, uint32_t timeout_ms)
{
	return chan_send(sock, KEEPER_STOP, id, stop_fields, &timeout_ms, -1);
}

static const struct field policy_fields[] = {FIELD_ONE(uint8_t, 0, 2), {0}};

int keeper_send_policy(int sock, uint32_t id, uint8_t part, int table)
{
	return chan_send(sock, KEEPER_POLICY, id, policy_fields, &part, table);
}

int keeper_ask_reload(int sock, uint32_t id, const char *name)
{
	return chan_send_str(sock, KEEPER_RELOAD, id, name, KEEPER_MAX_NAME, -1);
}

int keeper_ask_stream(int sock, uint32_t id, const char *path, int pass_fd)
{
	return chan_send_str(sock, KEEPER_STREAM, id, path, KEEPER_MAX_PATH, pass_fd);
}

int keeper_get_hello(const struct ipc_msg *msg, struct keeper_hello *ret)
{
	return chan_get(&keeper_chan, msg, KEEPER_HELLO, hello_fields, ret);
}

int keeper_get_state(const struct ipc_msg *msg, struct keeper_state *ret)
{
	return chan_get(&keeper_chan, msg, KEEPER_STATE, state_fields, ret);
}

static const struct field done_fields[] = {
	FIELD_CODE(keeper_done, code), FIELD_STR(keeper_done, text), {0}};

int keeper_get_done(const struct ipc_msg *msg, struct keeper_done *ret)
{
	return chan_get(&keeper_chan, msg, KEEPER_DONE, done_fields, ret);
}

/* The guest's: a name is shown, so it has to be a plain one. */
static void read_session(struct rd *rd, struct keeper_session *ret)
{
	size_t n;

	fields_read(rd, session_fields, ret);
	n = strspn(ret->name, "abcdefghijklmnopqrstuvwxyz0123456789-");
	if (n == 0 || ret->name[n])
		rd->bad = true;
}

int keeper_read_stats(struct slice body, struct keeper_stats *ret)
{
	struct rd rd = rd_init(body);

	fields_read(&rd, stats_fields, ret);
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
	return chan_get(&keeper_chan, msg, KEEPER_STOP, stop_fields, ret_timeout_ms);
}

int keeper_get_policy(const struct ipc_msg *msg, uint8_t *ret_part)
{
	return chan_get(&keeper_chan, msg, KEEPER_POLICY, policy_fields, ret_part);
}

int keeper_get_reload(const struct ipc_msg *msg, char name[KEEPER_MAX_NAME])
{
	return chan_get_str(&keeper_chan, msg, KEEPER_RELOAD, name, KEEPER_MAX_NAME);
}

int keeper_get_stream(const struct ipc_msg *msg, char path[KEEPER_MAX_PATH])
{
	return chan_get_str(&keeper_chan, msg, KEEPER_STREAM, path, KEEPER_MAX_PATH);
}

int keeper_get_nothing(const struct ipc_msg *msg)
{
	return chan_get_plain(&keeper_chan, msg, msg->type);
}

int keeper_ask_freeze(int sock, uint32_t id, const char *label, bool memory)
{
	uint16_t type = memory ? KEEPER_MEMORY : KEEPER_FREEZE;

	return chan_send_str(sock, type, id, label, KEEPER_MAX_LABEL, -1);
}

int keeper_get_freeze(const struct ipc_msg *msg, char label[KEEPER_MAX_LABEL])
{
	uint16_t type = msg->type == KEEPER_MEMORY ? KEEPER_MEMORY : KEEPER_FREEZE;

	return chan_get_str(&keeper_chan, msg, type, label, KEEPER_MAX_LABEL);
}

static const struct field frozen_fields[] = {
	FIELD_CODE(keeper_frozen, code),
	FIELD_RANGE(keeper_frozen, layers[0], 0, KEEPER_MAX_LAYER),
	FIELD_RANGE(keeper_frozen, layers[1], 0, KEEPER_MAX_LAYER),
	FIELD_NUMBER(keeper_frozen, seq),
	FIELD_NUMBER(keeper_frozen, pause_ms),
	FIELD_STR(keeper_frozen, label),
	FIELD_STR(keeper_frozen, text),
	{0},
};

int keeper_send_frozen(int sock, uint32_t id, const struct keeper_frozen *frozen)
{
	return chan_send(sock, KEEPER_FROZEN, id, frozen_fields, frozen, -1);
}

int keeper_get_frozen(const struct ipc_msg *msg, struct keeper_frozen *ret)
{
	return chan_get(&keeper_chan, msg, KEEPER_FROZEN, frozen_fields, ret);
}
