/* SPDX-License-Identifier: Apache-2.0 */
/* The frames by which a client leaves a program and comes back to it. */
#include "exec_frame.h"

#include <errno.h>
#include <string.h>

#define ATTACH_LOOK 2

bool exec_session_is_valid(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return n > 0 && n <= EXEC_MAX_SESSION && name[n] == '\0';
}

int exec_put_attach(struct bufq *q, const struct exec_attach *a)
{
	uint8_t b[64];
	struct wr wr = wr_init(b, sizeof(b));

	if (a->session[0] && !exec_session_is_valid(a->session))
		return -EINVAL;
	wr_u8(&wr, a->look ? ATTACH_LOOK : a->resume);
	wr_bytes(&wr, slice_of(a->token, EXEC_TOKEN));
	wr_u16(&wr, a->rows);
	wr_u16(&wr, a->cols);
	wr_u64(&wr, a->out_at);
	wr_cstr(&wr, a->session);
	return wr_finish(&wr) < 0 ? -EMSGSIZE : exec_put_frame(q, EXEC_ATTACH, slice_of(b, wr.n));
}

int exec_get_attach(struct slice payload, struct exec_attach *ret)
{
	struct rd rd = rd_init(payload);
	uint8_t resume = rd_u8(&rd);
	struct slice token = rd_bytes(&rd, EXEC_TOKEN), name;

	*ret = (struct exec_attach){.resume = resume == 1, .look = resume == ATTACH_LOOK};
	if (token.n == EXEC_TOKEN)
		memcpy(ret->token, token.p, EXEC_TOKEN);
	ret->rows = rd_u16(&rd);
	ret->cols = rd_u16(&rd);
	ret->out_at = rd_u64(&rd);
	name = rd_str(&rd);
	if (rd_finish(&rd) < 0 || resume > ATTACH_LOOK || name.n > EXEC_MAX_SESSION)
		return -EBADMSG;
	if (name.n)
		memcpy(ret->session, name.p, name.n);
	/* A NUL inside makes the text shorter than what was sent. */
	if (strlen(ret->session) != name.n || (name.n && !exec_session_is_valid(ret->session)))
		return -EBADMSG;
	return 0;
}

int exec_put_attached(struct bufq *q, const struct exec_attached *a)
{
	uint8_t b[40];
	struct wr wr = wr_init(b, sizeof(b));

	wr_u32(&wr, a->pid);
	wr_u8(&wr, a->flags);
	wr_u64(&wr, a->in_taken);
	wr_u64(&wr, a->out_at);
	wr_u64(&wr, a->replay);
	wr_u64(&wr, a->dropped);
	return exec_put_frame(q, EXEC_ATTACHED, slice_of(b, wr.n));
}

int exec_get_attached(struct slice payload, struct exec_attached *ret)
{
	struct rd rd = rd_init(payload);

	*ret = (struct exec_attached){.pid = rd_u32(&rd)};
	ret->flags = rd_u8(&rd);
	ret->in_taken = rd_u64(&rd);
	ret->out_at = rd_u64(&rd);
	ret->replay = rd_u64(&rd);
	ret->dropped = rd_u64(&rd);
	return rd_finish(&rd) < 0 || ret->flags & ~EXEC_AF_ALL ? -EBADMSG : 0;
}

int exec_put_offset(struct bufq *q, enum exec_type type, uint64_t at)
{
	uint8_t b[8];
	struct wr wr = wr_init(b, sizeof(b));

	wr_u64(&wr, at);
	return exec_put_frame(q, type, slice_of(b, sizeof(b)));
}

int exec_get_offset(struct slice payload, uint64_t *ret_at)
{
	struct rd rd = rd_init(payload);

	*ret_at = rd_u64(&rd);
	return rd_finish(&rd);
}

int exec_put_detached(struct bufq *q, enum exec_reason reason)
{
	uint8_t v = (uint8_t)reason;

	return exec_put_frame(q, EXEC_DETACHED, slice_of(&v, 1));
}

int exec_get_detached(struct slice payload, enum exec_reason *ret)
{
	struct rd rd = rd_init(payload);
	uint8_t v = rd_u8(&rd);

	*ret = (enum exec_reason)v;
	return rd_finish(&rd) < 0 || v == 0 || v >= EXEC_N_REASONS ? -EBADMSG : 0;
}
