/* SPDX-License-Identifier: Apache-2.0 */
#include "edge_chan_internal.h"

#include <errno.h>

#define IN(phase) (1U << EDGE_PHASE_##phase)

static const struct chan_row rows[EDGE_N_MSGS] = {
	[EDGE_HELLO] = {"HELLO", CHAN_FROM_WORKER, IN(START), EDGE_PHASE_CONFIG, 0},
	[EDGE_CONFIG] = {"CONFIG", CHAN_FROM_KEEPER, IN(CONFIG), EDGE_PHASE_CONNECT, CHAN_FD},
	[EDGE_READY] = {"READY", CHAN_FROM_WORKER, IN(CONNECT), EDGE_PHASE_RUN, 0},
	[EDGE_OPEN] = {"OPEN", CHAN_FROM_KEEPER, IN(RUN), 0, CHAN_FD | CHAN_ID},
	[EDGE_OPENED] = {"OPENED", CHAN_FROM_WORKER, IN(RUN), 0, CHAN_ID},
	[EDGE_REFUSED] = {"REFUSED", CHAN_FROM_WORKER, IN(RUN), 0, CHAN_ID},
	[EDGE_CLOSED] = {"CLOSED", CHAN_FROM_WORKER, IN(RUN), 0, CHAN_ID},
	[EDGE_LOST] = {"LOST", CHAN_FROM_WORKER, IN(CONNECT) | IN(RUN), EDGE_PHASE_END, 0},
	[EDGE_NET] = {"NET", CHAN_FROM_KEEPER, IN(CONNECT) | IN(RUN), 0, CHAN_FD},
	[EDGE_ASK] = {"ASK", CHAN_FROM_WORKER, IN(CONNECT) | IN(RUN), 0, CHAN_ID},
	[EDGE_VERDICT] = {"VERDICT", CHAN_FROM_KEEPER, IN(CONNECT) | IN(RUN), 0,
		CHAN_MAY_FD | CHAN_ID},
	[EDGE_CA] = {"CA", CHAN_FROM_WORKER, IN(CONNECT), 0, 0},
};

const struct chan edge_chan = {.sides = {"keeper", "edge"},
	.rows = rows,
	.n_rows = EDGE_N_MSGS,
	.n_phases = EDGE_N_PHASES};

static int send_nothing(int sock, uint16_t type, uint32_t id)
{
	return ipc_send(sock, type, id, slice_of(NULL, 0), -1);
}

int edge_send_ready(int sock)
{
	return send_nothing(sock, EDGE_READY, 0);
}

int edge_send_opened(int sock, uint32_t id, uint16_t status)
{
	uint8_t buf[2];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u16(&wr, status);
	return ipc_send_wr(sock, EDGE_OPENED, id, &wr, -1);
}

int edge_send_refused(int sock, uint32_t id, enum edge_reason reason)
{
	uint8_t buf[1];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u8(&wr, (uint8_t)reason);
	return ipc_send_wr(sock, EDGE_REFUSED, id, &wr, -1);
}

int edge_send_closed(int sock, uint32_t id)
{
	return send_nothing(sock, EDGE_CLOSED, id);
}

int edge_send_lost(int sock, const char *text)
{
	uint8_t buf[EDGE_MAX_TEXT + 2];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_str(&wr, slice_of(text, strnlen(text, EDGE_MAX_TEXT - 1)));
	return ipc_send_wr(sock, EDGE_LOST, 0, &wr, -1);
}

int edge_ask_config(int sock, const struct edge_config *config, int ctl_fd)
{
	uint8_t buf[sizeof(*config) + 8];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_cstr(&wr, config->sandbox);
	wr_u32(&wr, config->ready_ms);
	wr_str(&wr, slice_of(config->saved, config->n_saved));
	return ipc_send_wr(sock, EDGE_CONFIG, 0, &wr, ctl_fd);
}

int edge_ask_open(int sock, uint32_t id, const char *path, int fd)
{
	uint8_t buf[EDGE_MAX_PATH + 2];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_cstr(&wr, path);
	return ipc_send_wr(sock, EDGE_OPEN, id, &wr, fd);
}

int edge_get_config(const struct ipc_msg *msg, struct edge_config *ret)
{
	struct rd rd = rd_init(ipc_body(msg));

	rd_cstr(&rd, ret->sandbox, sizeof(ret->sandbox));
	ret->ready_ms = rd_u32(&rd);
	edge_read_saved(&rd, ret->saved, &ret->n_saved);
	if (ret->ready_ms == 0 || ret->ready_ms > EDGE_MAX_READY_MS || msg->id != 0)
		return -EBADMSG;
	return ipc_finish(msg, EDGE_CONFIG, &rd, true);
}

static bool path_is_ok(const char *path)
{
	if (path[0] != '/')
		return false;
	for (; *path; path++) {
		if (*path <= ' ' || *path > '~')
			return false;
	}
	return true;
}

int edge_get_open(const struct ipc_msg *msg, char path[EDGE_MAX_PATH])
{
	struct rd rd = rd_init(ipc_body(msg));
	int r;

	rd_cstr(&rd, path, EDGE_MAX_PATH);
	r = ipc_finish(msg, EDGE_OPEN, &rd, true);
	return r == 0 && !path_is_ok(path) ? -EBADMSG : r;
}

int edge_get_opened(const struct ipc_msg *msg, uint16_t *ret_status)
{
	struct rd rd = rd_init(ipc_body(msg));

	*ret_status = rd_u16(&rd);
	if (*ret_status < 200 || *ret_status > 599)
		return -EBADMSG;
	return ipc_finish(msg, EDGE_OPENED, &rd, false);
}

int edge_get_refused(const struct ipc_msg *msg, enum edge_reason *ret_reason)
{
	struct rd rd = rd_init(ipc_body(msg));
	uint8_t reason = rd_u8(&rd);

	if (reason >= EDGE_N_REASONS)
		return -EBADMSG;
	*ret_reason = (enum edge_reason)reason;
	return ipc_finish(msg, EDGE_REFUSED, &rd, false);
}

/* The text ends up in logs and in front of people: no control characters. */
int edge_get_lost(const struct ipc_msg *msg, char text[EDGE_MAX_TEXT])
{
	struct rd rd = rd_init(ipc_body(msg));

	rd_cstr(&rd, text, EDGE_MAX_TEXT);
	for (const char *c = text; *c; c++) {
		if (*c < ' ' || *c > '~')
			return -EBADMSG;
	}
	return msg->id == 0 ? ipc_finish(msg, EDGE_LOST, &rd, false) : -EBADMSG;
}

const char *edge_reason_text(enum edge_reason reason)
{
	static const char *const texts[EDGE_N_REASONS] = {
		[EDGE_REASON_FULL] = "too many streams are open in this sandbox",
		[EDGE_REASON_GUEST] = "the guest refused the stream",
		[EDGE_REASON_GONE] = "the client went away before the guest answered",
		[EDGE_REASON_IDS] = "the connection to the guest is worn out",
	};

	return reason < EDGE_N_REASONS ? texts[reason] : "unknown reason";
}
