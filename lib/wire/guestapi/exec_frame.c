/* SPDX-License-Identifier: Apache-2.0 */
#include "exec_frame.h"

#include <assert.h>
#include <errno.h>
#include "lib/base/mem.h"

/* What a frame of each type may look like; gaps do not exist. */
static const struct {
	bool known;
	enum exec_side side;
	uint32_t min, max;
} types[EXEC_N_TYPES] = {
	[EXEC_SPEC] = {true, EXEC_FROM_HOST, 16, EXEC_MAX_PAYLOAD},
	[EXEC_STDIN] = {true, EXEC_FROM_HOST, 0, EXEC_MAX_PAYLOAD},
	[EXEC_STDIN_EOF] = {true, EXEC_FROM_HOST, 0, 0},
	[EXEC_RESIZE] = {true, EXEC_FROM_HOST, 4, 4},
	[EXEC_SIGNAL] = {true, EXEC_FROM_HOST, 1, 1},
	[EXEC_ATTACH] = {true, EXEC_FROM_HOST, 31, 31 + EXEC_MAX_SESSION},
	[EXEC_ACK] = {true, EXEC_FROM_HOST, 8, 8},
	[EXEC_DETACH] = {true, EXEC_FROM_HOST, 0, 0},
	[EXEC_STARTED] = {true, EXEC_FROM_GUEST, 4, 4},
	[EXEC_STDOUT] = {true, EXEC_FROM_GUEST, 0, EXEC_MAX_PAYLOAD},
	[EXEC_STDERR] = {true, EXEC_FROM_GUEST, 0, EXEC_MAX_PAYLOAD},
	[EXEC_EXIT] = {true, EXEC_FROM_GUEST, 2, 2},
	[EXEC_ERROR] = {true, EXEC_FROM_GUEST, 1, EXEC_MAX_PAYLOAD},
	[EXEC_ATTACHED] = {true, EXEC_FROM_GUEST, 37, 37},
	[EXEC_TAKEN] = {true, EXEC_FROM_GUEST, 8, 8},
	[EXEC_DETACHED] = {true, EXEC_FROM_GUEST, 1, 1},
	[EXEC_REPLAY] = {true, EXEC_FROM_GUEST, 0, EXEC_MAX_PAYLOAD},
};

void exec_reader_init(struct exec_reader *rd, enum exec_side side)
{
	*rd = (struct exec_reader){.side = side};
}

void exec_reader_done(struct exec_reader *rd)
{
	free(rd->buf);
	*rd = (struct exec_reader){.side = rd->side, .bad = true};
}

static bool is_first_type(enum exec_type type)
{
	return type == EXEC_SPEC || type == EXEC_ATTACH || type == EXEC_STARTED ||
	       type == EXEC_ATTACHED || type == EXEC_ERROR;
}

static bool is_last_type(enum exec_type type)
{
	return type == EXEC_EXIT || type == EXEC_ERROR || type == EXEC_DETACHED;
}

/* Phase: one opening frame, at its place and nowhere else; nothing after the last. */
static bool is_in_order(const struct exec_reader *rd, enum exec_type type)
{
	/* A program that is still being started may be taken from its client too. */
	if (type == EXEC_DETACHED)
		return !rd->ended;
	return !rd->ended && rd->begun != is_first_type(type);
}

static bool check_head(struct exec_reader *rd)
{
	struct rd head = rd_init(slice_of(rd->head, EXEC_HEADER));
	uint8_t type = rd_u8(&head);
	uint32_t n = rd_u24(&head);

	if (type >= EXEC_N_TYPES || !types[type].known || types[type].side != rd->side)
		return false;
	if (n < types[type].min || n > types[type].max)
		return false;
	if (!is_in_order(rd, (enum exec_type)type))
		return false;
	rd->want = n;
	return true;
}

static bool collect_head(struct exec_reader *rd, struct slice *in)
{
	struct slice s = slice_take(in, EXEC_HEADER - rd->n_head);

	if (s.n)
		memcpy(&rd->head[rd->n_head], s.p, s.n);
	rd->n_head += s.n;
	return rd->n_head == EXEC_HEADER;
}

/* The payload as one run: in place when *in has all of it, else through the buffer. */
static bool collect_payload(struct exec_reader *rd, struct slice *in, struct slice *ret)
{
	struct slice s;

	if (rd->n_buf == 0 && in->n >= rd->want) {
		*ret = slice_take(in, rd->want);
		return true;
	}
	if (!rd->buf)
		rd->buf = xmalloc(EXEC_MAX_PAYLOAD);
	s = slice_take(in, rd->want - rd->n_buf);
	if (s.n)
		memcpy(rd->buf + rd->n_buf, s.p, s.n);
	rd->n_buf += s.n;
	*ret = slice_of(rd->buf, rd->n_buf);
	return rd->n_buf == rd->want;
}

int exec_reader_feed(struct exec_reader *rd, struct slice *in, struct exec_frame *ret)
{
	bool fresh = rd->n_head < EXEC_HEADER;

	if (rd->bad)
		return -EBADMSG;
	if (fresh && !collect_head(rd, in))
		return 0;
	if (fresh && !check_head(rd)) {
		rd->bad = true;
		return -EBADMSG;
	}
	if (!collect_payload(rd, in, &ret->payload))
		return 0;
	ret->type = (enum exec_type)rd->head[0];
	rd->begun = true;
	rd->ended = is_last_type(ret->type);
	rd->n_head = rd->n_buf = rd->want = 0;
	return 1;
}

void exec_head(uint8_t head[EXEC_HEADER], enum exec_type type, size_t n_payload)
{
	struct wr wr = wr_init(head, EXEC_HEADER);

	assert(n_payload <= EXEC_MAX_PAYLOAD);
	wr_u8(&wr, (uint8_t)type);
	wr_u24(&wr, (uint32_t)n_payload);
}

int exec_put_frame(struct bufq *q, enum exec_type type, struct slice payload)
{
	uint8_t head[EXEC_HEADER];

	if (payload.n > EXEC_MAX_PAYLOAD)
		return -EMSGSIZE;
	if (bufq_space(q) < EXEC_HEADER + payload.n)
		return -ENOBUFS;
	exec_head(head, type, payload.n);
	(void)bufq_put(q, slice_of(head, sizeof(head)));
	(void)bufq_put(q, payload);
	return 0;
}

size_t exec_put_data(struct bufq *q, enum exec_type type, struct slice data)
{
	size_t room = bufq_space(q), n;

	if (room <= EXEC_HEADER || data.n == 0)
		return 0;
	n = MIN(MIN(room - EXEC_HEADER, data.n), (size_t)EXEC_MAX_PAYLOAD);
	return exec_put_frame(q, type, slice_of(data.p, n)) < 0 ? 0 : n;
}

int exec_put_resize(struct bufq *q, uint16_t rows, uint16_t cols)
{
	uint8_t b[4];
	struct wr wr = wr_init(b, sizeof(b));

	wr_u16(&wr, rows);
	wr_u16(&wr, cols);
	return exec_put_frame(q, EXEC_RESIZE, slice_of(b, sizeof(b)));
}

int exec_put_signal(struct bufq *q, uint8_t signo)
{
	return exec_put_frame(q, EXEC_SIGNAL, slice_of(&signo, 1));
}

int exec_put_started(struct bufq *q, uint32_t pid)
{
	uint8_t b[4];
	struct wr wr = wr_init(b, sizeof(b));

	wr_u32(&wr, pid);
	return exec_put_frame(q, EXEC_STARTED, slice_of(b, sizeof(b)));
}

int exec_put_exit(struct bufq *q, bool signalled, uint8_t value)
{
	uint8_t b[2] = {signalled, value};

	return exec_put_frame(q, EXEC_EXIT, slice_of(b, sizeof(b)));
}

int exec_put_error(struct bufq *q, uint8_t status, const char *text)
{
	uint8_t b[1024];
	struct wr wr = wr_init(b, sizeof(b));

	wr_u8(&wr, status);
	wr_bytes(&wr, slice_of(text, strnlen(text, sizeof(b) - 1)));
	return exec_put_frame(q, EXEC_ERROR, slice_of(b, wr.n));
}

int exec_get_resize(struct slice payload, uint16_t *ret_rows, uint16_t *ret_cols)
{
	struct rd rd = rd_init(payload);

	*ret_rows = rd_u16(&rd);
	*ret_cols = rd_u16(&rd);
	return rd_finish(&rd);
}

int exec_get_signal(struct slice payload, uint8_t *ret_signo)
{
	struct rd rd = rd_init(payload);

	*ret_signo = rd_u8(&rd);
	return rd_finish(&rd) < 0 || *ret_signo == 0 || *ret_signo > 64 ? -EBADMSG : 0;
}

int exec_get_exit(struct slice payload, bool *ret_signalled, uint8_t *ret_value)
{
	struct rd rd = rd_init(payload);
	uint8_t kind = rd_u8(&rd);

	*ret_value = rd_u8(&rd);
	*ret_signalled = kind == 1;
	return rd_finish(&rd) < 0 || kind > 1 || (kind == 1 && *ret_value > 127) ? -EBADMSG : 0;
}

int exec_get_error(struct slice payload, uint8_t *ret_status, struct slice *ret_text)
{
	struct rd rd = rd_init(payload);

	*ret_status = rd_u8(&rd);
	*ret_text = rd_bytes(&rd, rd.n);
	return rd_finish(&rd);
}
