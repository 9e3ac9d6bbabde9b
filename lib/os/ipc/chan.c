/* SPDX-License-Identifier: Apache-2.0 */
#include "chan.h"

#include <errno.h>
#include "lib/base/str.h"

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

int chan_send(
	int sock, uint16_t type, uint32_t id, const struct field *fields, const void *from, int fd)
{
	UNINITIALIZED uint8_t buf[IPC_MAX_BODY];
	struct wr wr = wr_init(buf, sizeof(buf));
	int r;

	fields_write(&wr, fields, from);
	r = ipc_send_wr(sock, type, id, &wr, fd);
	explicit_bzero(buf, wr.n); /* it may have a key */
	return r;
}

int chan_send_str(int sock, uint16_t type, uint32_t id, const char *text, size_t max, int fd)
{
	UNINITIALIZED uint8_t buf[IPC_MAX_BODY];
	struct wr wr = wr_init(buf, MIN(sizeof(buf), max + 2));

	wr_cstr(&wr, text);
	return ipc_send_wr(sock, type, id, &wr, fd);
}

int chan_send_plain(int sock, uint16_t type, uint32_t id, int fd)
{
	return ipc_send(sock, type, id, slice_of(NULL, 0), fd);
}

int chan_finish(
	const struct chan *chan, const struct ipc_msg *msg, uint16_t type, const struct rd *rd)
{
	const struct chan_row *row = find_row(chan, type);

	if (!row || msg->type != type || rd_finish(rd) < 0 ||
		(msg->id != 0 && !(row->flags & CHAN_ID)))
		return -EBADMSG;
	if (row->flags & CHAN_MAY_FD)
		return 0;
	return (msg->fd >= 0) == !!(row->flags & CHAN_FD) ? 0 : -EBADMSG;
}

int chan_get(const struct chan *chan, const struct ipc_msg *msg, uint16_t type,
	const struct field *fields, void *ret)
{
	struct rd rd = rd_init(ipc_body(msg));

	fields_read(&rd, fields, ret);
	return chan_finish(chan, msg, type, &rd);
}

int chan_get_str(
	const struct chan *chan, const struct ipc_msg *msg, uint16_t type, char *buf, size_t size)
{
	struct rd rd = rd_init(ipc_body(msg));

	rd_cstr(&rd, buf, size);
	return chan_finish(chan, msg, type, &rd);
}

int chan_get_plain(const struct chan *chan, const struct ipc_msg *msg, uint16_t type)
{
	struct rd rd = rd_init(ipc_body(msg));

	return chan_finish(chan, msg, type, &rd);
}

int chan_send_hello(int sock, const char *build)
{
	return chan_send_str(sock, CHAN_HELLO, 0, build, CHAN_MAX_BUILD, -1);
}

int chan_get_hello(const struct ipc_msg *msg, char build[CHAN_MAX_BUILD])
{
	struct rd rd = rd_init(ipc_body(msg));

	rd_cstr(&rd, build, CHAN_MAX_BUILD);
	if (msg->type != CHAN_HELLO || msg->id != 0 || msg->fd >= 0 || rd_finish(&rd) < 0)
		return -EBADMSG;
	return str_is_printable(build) ? 0 : -EBADMSG;
}
