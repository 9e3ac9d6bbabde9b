/* SPDX-License-Identifier: Apache-2.0 */
#include "hold_msg.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include "lib/os/ipc/field.h"

static_assert(sizeof(struct hold_msg) <= IPC_MAX_BODY, "a message has room for the longest texts");

static const struct field held_fields[] = {
	FIELD_TEXT(hold_msg, id),
	FIELD_RANGE(hold_msg, kind, 0, HOLD_N_KINDS - 1),
	FIELD_RANGE(hold_msg, state, HOLD_OPEN, HOLD_WITHDRAWN),
	FIELD_NUMBER(hold_msg, age_ms),
	FIELD_NUMBER(hold_msg, left_ms),
	FIELD_NUMBER(hold_msg, waiting),
	FIELD_BYTES(hold_msg, digest),
	FIELD_STR(hold_msg, effects),
	FIELD_STR(hold_msg, rule),
	FIELD_STR(hold_msg, preview),
	{0},
};

static const struct field reply_fields[] = {
	FIELD_TEXT(hold_reply, id),
	FIELD_BYTES(hold_reply, digest),
	FIELD_RANGE(hold_reply, choice, 0, HOLD_N_CHOICES - 1),
	FIELD_NUMBER(hold_reply, seconds),
	FIELD_NUMBER(hold_reply, uid),
	FIELD_TEXT(hold_reply, where),
	FIELD_TEXT(hold_reply, reason),
	{0},
};

const char *hold_kind_name(enum hold_kind kind)
{
	return kind == HOLD_LINK ? "link" : "request";
}

const char *hold_choice_name(enum hold_choice choice)
{
	static const char *const names[] = {[HOLD_CHOICE_NO] = "no",
		[HOLD_CHOICE_ONCE] = "once",
		[HOLD_CHOICE_FOR] = "for",
		[HOLD_CHOICE_ALWAYS] = "always",
		[HOLD_CHOICE_OPEN] = "open"};

	return choice < HOLD_N_CHOICES ? names[choice] : "";
}

const char *hold_state_name(enum hold_state state)
{
	static const char *const names[] = {[HOLD_OPEN] = "open",
		[HOLD_APPROVED] = "approved",
		[HOLD_REFUSED] = "refused",
		[HOLD_WITHDRAWN] = "withdrawn"};

	return state > HOLD_FREE && state <= HOLD_WITHDRAWN ? names[state] : "";
}

int hold_send_held(int sock, uint32_t place, const struct hold_msg *held)
{
	return chan_send(sock, KEEPER_HELD, place, held_fields, held, -1);
}

int hold_send_reply(int sock, uint32_t id, const struct hold_reply *reply)
{
	return chan_send(sock, KEEPER_ANSWER, id, reply_fields, reply, -1);
}

static bool is_id(const char *id)
{
	char parsed[HOLD_ID];

	return hold_id_parse(id, parsed) == 0 && strcmp(parsed, id) == 0;
}

int hold_get_held(const struct ipc_msg *msg, struct hold_msg *ret)
{
	int r = chan_get(&keeper_chan, msg, KEEPER_HELD, held_fields, ret);

	return r == 0 && (msg->id >= HOLD_MAX || !is_id(ret->id)) ? -EBADMSG : r;
}

int hold_get_unheld(const struct ipc_msg *msg)
{
	int r = chan_get_plain(&keeper_chan, msg, KEEPER_UNHELD);

	return r == 0 && msg->id >= HOLD_MAX ? -EBADMSG : r;
}

int hold_get_reply(const struct ipc_msg *msg, struct hold_reply *ret)
{
	int r = chan_get(&keeper_chan, msg, KEEPER_ANSWER, reply_fields, ret);

	if (r == 0 && (!is_id(ret->id) || (ret->choice == HOLD_CHOICE_FOR) != (ret->seconds > 0)))
		r = -EBADMSG;
	return r;
}
