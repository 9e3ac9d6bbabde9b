/* SPDX-License-Identifier: Apache-2.0 */
#include "edge_chan.h"

#include <errno.h>
#include "lib/base/str.h"

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
	[EDGE_GONE] = {"GONE", CHAN_FROM_WORKER, IN(CONNECT) | IN(RUN), 0, CHAN_ID},
	[EDGE_CHANNEL] = {"CHANNEL", CHAN_FROM_KEEPER, IN(CONNECT) | IN(RUN), 0, CHAN_FD | CHAN_ID},
};

const struct chan edge_chan = {.sides = {"keeper", "edge"},
	.rows = rows,
	.n_rows = EDGE_N_MSGS,
	.n_phases = EDGE_N_PHASES};

static const struct field opened_fields[] = {FIELD_ONE(uint16_t, 200, 599), {0}};

int edge_send_opened(int sock, uint32_t id, uint16_t status)
{
	return chan_send(sock, EDGE_OPENED, id, opened_fields, &status, -1);
}

static const struct field refused_fields[] = {FIELD_ONE(uint8_t, 0, EDGE_N_REASONS - 1), {0}};

int edge_send_refused(int sock, uint32_t id, enum edge_reason reason)
{
	return chan_send(sock, EDGE_REFUSED, id, refused_fields, &(uint8_t){(uint8_t)reason}, -1);
}

int edge_send_lost(int sock, const char *text)
{
	uint8_t buf[EDGE_MAX_TEXT + 2];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_str(&wr, slice_of(text, strnlen(text, EDGE_MAX_TEXT - 1)));
	return ipc_send_wr(sock, EDGE_LOST, 0, &wr, -1);
}

static const struct field config_fields[] = {
	FIELD_STR(edge_config, sandbox),
	FIELD_RANGE(edge_config, ready_ms, 1, EDGE_MAX_READY_MS),
	FIELD_BLOB(edge_config, saved, n_saved),
	{0},
};

int edge_ask_config(int sock, const struct edge_config *config, int ctl_fd)
{
	return chan_send(sock, EDGE_CONFIG, 0, config_fields, config, ctl_fd);
}

int edge_ask_open(int sock, uint32_t id, const char *path, int fd)
{
	return chan_send_str(sock, EDGE_OPEN, id, path, EDGE_MAX_PATH, fd);
}

int edge_get_config(const struct ipc_msg *msg, struct edge_config *ret)
{
	return chan_get(&edge_chan, msg, EDGE_CONFIG, config_fields, ret);
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
	int r = chan_get_str(&edge_chan, msg, EDGE_OPEN, path, EDGE_MAX_PATH);

	return r == 0 && !path_is_ok(path) ? -EBADMSG : r;
}

int edge_get_opened(const struct ipc_msg *msg, uint16_t *ret_status)
{
	return chan_get(&edge_chan, msg, EDGE_OPENED, opened_fields, ret_status);
}

int edge_get_refused(const struct ipc_msg *msg, enum edge_reason *ret_reason)
{
	uint8_t reason;
	int r = chan_get(&edge_chan, msg, EDGE_REFUSED, refused_fields, &reason);

	*ret_reason = (enum edge_reason)reason;
	return r;
}

int edge_get_lost(const struct ipc_msg *msg, char text[EDGE_MAX_TEXT])
{
	int r = chan_get_str(&edge_chan, msg, EDGE_LOST, text, EDGE_MAX_TEXT);

	return r == 0 && !str_is_printable(text) ? -EBADMSG : r;
}

const char *edge_reason_text(enum edge_reason reason)
{
	static const char *const texts[EDGE_N_REASONS] = {
		[EDGE_REASON_FULL] = "too many streams are open in this sandbox",
		[EDGE_REASON_GUEST] = "the guest refused the stream",
		[EDGE_REASON_GONE] = "the client disconnected before the guest answered",
		[EDGE_REASON_IDS] = "the connection to the guest has used all stream ids",
	};

	return reason < EDGE_N_REASONS ? texts[reason] : "unknown reason";
}
