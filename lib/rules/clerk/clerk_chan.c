/* SPDX-License-Identifier: Apache-2.0 */
#include "clerk_chan.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define IN(phase) (1U << CLERK_PHASE_##phase)

static const struct chan_row rows[CLERK_N_MSGS] = {
	[CLERK_HELLO] = {"HELLO", CHAN_FROM_WORKER, IN(START), CLERK_PHASE_CONFIG, 0},
	[CLERK_CONFIG] = {"CONFIG", CHAN_FROM_KEEPER, IN(CONFIG), CLERK_PHASE_OPEN, CHAN_FD},
	[CLERK_OPEN] = {"OPEN", CHAN_FROM_KEEPER, IN(OPEN), CLERK_PHASE_READ, CHAN_FD},
	[CLERK_WANT] = {"WANT", CHAN_FROM_WORKER, IN(READ), 0, 0},
	[CLERK_LINE] = {"LINE", CHAN_FROM_KEEPER, IN(READ), 0, CHAN_MAY_FD},
	[CLERK_EFFECTS] = {"EFFECTS", CHAN_FROM_WORKER, IN(READ), 0, 0},
	[CLERK_JUDGED] = {"JUDGED", CHAN_FROM_WORKER, IN(READ), CLERK_PHASE_JUDGED, 0},
	[CLERK_DECIDED] = {"DECIDED", CHAN_FROM_KEEPER, IN(READ) | IN(JUDGED), CLERK_PHASE_SEND,
		CHAN_MAY_FD},
	[CLERK_DONE] = {"DONE", CHAN_FROM_WORKER, IN(READ) | IN(JUDGED) | IN(SEND), CLERK_PHASE_END,
		0},
};

const struct chan clerk_chan = {.sides = {"keeper", "clerk"},
	.rows = rows,
	.n_rows = CLERK_N_MSGS,
	.n_phases = CLERK_N_PHASES};

const char *clerk_verb_name(enum clerk_verb verb)
{
	static const char *const names[CLERK_N_VERBS] = {[CLERK_PUSH] = "push",
		[CLERK_CREATE] = "create",
		[CLERK_DELETE] = "delete",
		[CLERK_FORCE] = "force",
		[CLERK_TAG] = "tag"};

	return names[verb];
}

static const struct field open_fields[] = {
	FIELD_BOOL(clerk_open, is_advert),
	FIELD_BOOL(clerk_open, paths),
	FIELD_BOOL(clerk_open, files),
	FIELD_NUMBER(clerk_open, max_bytes),
	FIELD_TEXT(clerk_open, wants),
	{0},
};

static const struct field line_fields[] = {
	FIELD_BOOL(clerk_line, given),
	FIELD_TEXT(clerk_line, text),
	{0},
};

static const struct field judged_fields[] = {
	FIELD_BOOL(clerk_judged, is_unknown),
	FIELD_BYTES(clerk_judged, commands),
	FIELD_TEXT(clerk_judged, text),
	FIELD_STR(clerk_judged, preview),
	{0},
};
static_assert(sizeof(struct clerk_judged) <= IPC_MAX_BODY, "a message has room for it");

static const struct field decided_fields[] = {
	FIELD_BOOL(clerk_decided, allowed),
	FIELD_TEXT(clerk_decided, why),
	FIELD_STR(clerk_decided, report),
	{0},
};

int clerk_send_want(int sock, const char *named)
{
	return chan_send_str(sock, CLERK_WANT, 0, named, EDGE_MAX_NAMED - 1, -1);
}

int clerk_send_effects(int sock, struct slice records)
{
	struct ipc_msg msg = {.fd = -1};
	struct wr wr = wr_init(msg.body, sizeof(msg.body));

	wr_bytes(&wr, records);
	return ipc_send_wr(sock, CLERK_EFFECTS, 0, &wr, -1);
}

int clerk_send_judged(int sock, const struct clerk_judged *judged)
{
	return chan_send(sock, CLERK_JUDGED, 0, judged_fields, judged, -1);
}

void clerk_put_effect(struct wr *wr, const struct clerk_effect *e)
{
	wr_u8(wr, (uint8_t)e->verb);
	wr_u8(wr, e->no_path);
	wr_u16(wr, (uint16_t)e->ref.n);
	wr_bytes(wr, e->ref);
	wr_u16(wr, (uint16_t)e->path.n);
	wr_bytes(wr, e->path);
}

int clerk_ask_open(int sock, const struct clerk_open *open, int fd)
{
	return chan_send(sock, CLERK_OPEN, 0, open_fields, open, fd);
}

int clerk_answer_want(int sock, const struct clerk_line *line, int fd)
{
	return chan_send(sock, CLERK_LINE, 0, line_fields, line, fd);
}

int clerk_answer_judged(int sock, const struct clerk_decided *decided, int fd)
{
	return chan_send(sock, CLERK_DECIDED, 0, decided_fields, decided, fd);
}

int clerk_get_open(const struct ipc_msg *msg, struct clerk_open *ret)
{
	return chan_get(&clerk_chan, msg, CLERK_OPEN, open_fields, ret);
}

int clerk_get_line(const struct ipc_msg *msg, struct clerk_line *ret)
{
	int r = chan_get(&clerk_chan, msg, CLERK_LINE, line_fields, ret);

	return (msg->fd >= 0) == ret->given ? r : -EBADMSG;
}

int clerk_get_decided(const struct ipc_msg *msg, struct clerk_decided *ret)
{
	int r = chan_get(&clerk_chan, msg, CLERK_DECIDED, decided_fields, ret);

	return (msg->fd >= 0) == ret->allowed ? r : -EBADMSG;
}

int clerk_get_want(const struct ipc_msg *msg, char named[EDGE_MAX_NAMED])
{
	return chan_get_str(&clerk_chan, msg, CLERK_WANT, named, EDGE_MAX_NAMED);
}

int clerk_get_judged(const struct ipc_msg *msg, struct clerk_judged *ret)
{
	int r = chan_get(&clerk_chan, msg, CLERK_JUDGED, judged_fields, ret);

	return r == 0 && ret->is_unknown && !ret->text[0] ? -EBADMSG : r;
}

int clerk_next_effect(struct slice *records, struct clerk_effect *ret)
{
	struct rd rd = rd_init(*records);
	uint8_t verb, no_path;

	if (records->n == 0)
		return 0;
	verb = rd_u8(&rd);
	no_path = rd_u8(&rd);
	ret->ref = rd_bytes(&rd, rd_u16(&rd));
	ret->path = rd_bytes(&rd, rd_u16(&rd));
	if (rd.bad || verb >= CLERK_N_VERBS || no_path > (ret->path.n == 0) || ret->ref.n == 0 ||
		ret->ref.n > CLERK_MAX_REF || ret->path.n > CLERK_MAX_PATH ||
		memchr(ret->ref.p, 0, ret->ref.n) ||
		(ret->path.n && memchr(ret->path.p, 0, ret->path.n)))
		return -EBADMSG;
	ret->verb = (enum clerk_verb)verb;
	ret->no_path = no_path;
	*records = slice_of(rd.p, rd.n);
	return 1;
}

int clerk_get_effects(const struct ipc_msg *msg, struct slice *ret, size_t *ret_n)
{
	struct rd end = {0};
	struct slice rest = ipc_body(msg);
	struct clerk_effect e;
	int r;

	*ret = rest;
	*ret_n = 0;
	while ((r = clerk_next_effect(&rest, &e)) == 1)
		(*ret_n)++;
	if (r < 0 || *ret_n == 0)
		return -EBADMSG;
	return chan_finish(&clerk_chan, msg, CLERK_EFFECTS, &end);
}
