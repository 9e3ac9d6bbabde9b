/* SPDX-License-Identifier: Apache-2.0 */
#include "chan.h"

#include <errno.h>

static const struct chan_row *find_row(const struct chan *chan, uint16_t type)
{
	return type < chan->n_rows && chan->rows[type].name ? &chan->rows[type] : NULL;
}

bool chan_allows(const struct chan *chan, unsigned phase, unsigned from, uint16_t type)
{
	const struct chan_row *row = find_row(chan, type);

	return row && phase < chan->n_phases && row->from == from && row->phases & 1U << phase;
}

uint8_t chan_after(const struct chan *chan, unsigned phase, uint16_t type)
{
	const struct chan_row *row = find_row(chan, type);

	return row && row->after ? row->after : (uint8_t)phase;
}

bool chan_may_have_fd(const struct chan *chan, uint16_t type)
{
	const struct chan_row *row = find_row(chan, type);

	return row && row->flags & (CHAN_FD | CHAN_MAY_FD);
}

const char *chan_name(const struct chan *chan, uint16_t type)
{
	const struct chan_row *row = find_row(chan, type);

	return row ? row->name : "?";
}

int chan_send_hello(int sock, const char *build)
{
	uint8_t buf[CHAN_MAX_BUILD + 2];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_cstr(&wr, build);
	return ipc_send_wr(sock, CHAN_HELLO, 0, &wr, -1);
}

int chan_get_hello(const struct ipc_msg *msg, char build[CHAN_MAX_BUILD])
{
	struct rd rd = rd_init(ipc_body(msg));

	rd_cstr(&rd, build, CHAN_MAX_BUILD);
	if (msg->id != 0 || rd.bad || !ipc_is_printable(build))
		return -EBADMSG;
	return ipc_finish(msg, CHAN_HELLO, &rd, false);
}

int chan_get_plain(const struct chan *chan, const struct ipc_msg *msg, uint16_t type)
{
	const struct chan_row *row = find_row(chan, type);
	bool has_fd = msg->fd >= 0;

	if (!row || msg->type != type || msg->n != 0 || has_fd != !!(row->flags & CHAN_FD))
		return -EBADMSG;
	return row->flags & CHAN_ID || msg->id == 0 ? 0 : -EBADMSG;
}
