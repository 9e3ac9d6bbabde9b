/* SPDX-License-Identifier: Apache-2.0 */
#include "notify_chan.h"

#include <errno.h>

#define IN(phase) (1U << NOTIFY_PHASE_##phase)

static const struct chan_row rows[NOTIFY_N_MSGS] = {
	[NOTIFY_HELLO] = {"HELLO", NOTIFY_FROM_NOTIFY, IN(START), NOTIFY_PHASE_RUN, 0},
	[NOTIFY_SHOW] = {"SHOW", NOTIFY_FROM_SBXD, IN(RUN), 0, CHAN_ID},
	[NOTIFY_CLOSE] = {"CLOSE", NOTIFY_FROM_SBXD, IN(RUN), 0, CHAN_ID},
	[NOTIFY_REFUSE] = {"REFUSE", NOTIFY_FROM_NOTIFY, IN(RUN), 0, CHAN_ID},
};

const struct chan notify_chan = {.sides = {"sbxd", "notify"},
	.rows = rows,
	.n_rows = NOTIFY_N_MSGS,
	.n_phases = NOTIFY_N_PHASES};

static const struct field show_fields[] = {
	FIELD_TEXT(notify_show, sandbox),
	FIELD_TEXT(notify_show, hold),
	FIELD_TEXT(notify_show, effect),
	FIELD_NUMBER(notify_show, more),
	{0},
};

int notify_send_show(int sock, uint32_t number, const struct notify_show *show)
{
	return chan_send(sock, NOTIFY_SHOW, number, show_fields, show, -1);
}

int notify_get_show(const struct ipc_msg *msg, struct notify_show *ret)
{
	int r;

	*ret = (struct notify_show){0};
	r = chan_get(&notify_chan, msg, NOTIFY_SHOW, show_fields, ret);
	return r == 0 && msg->id && ret->sandbox[0] && ret->hold[0] && ret->effect[0] ? 0
										      : -EBADMSG;
}

int notify_get_plain(const struct ipc_msg *msg, enum notify_msg type)
{
	int r = chan_get_plain(&notify_chan, msg, (uint16_t)type);

	return r == 0 && msg->id ? 0 : -EBADMSG;
}
