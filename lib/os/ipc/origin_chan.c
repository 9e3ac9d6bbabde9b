/* SPDX-License-Identifier: Apache-2.0 */
#include "origin_chan.h"

#include <errno.h>

#define IN(phase) (1U << ORIGIN_PHASE_##phase)

static const struct chan_row rows[ORIGIN_N_MSGS] = {
	[ORIGIN_HELLO] = {"HELLO", CHAN_FROM_WORKER, IN(START), ORIGIN_PHASE_CONFIG, 0},
	[ORIGIN_CONFIG] = {"CONFIG", CHAN_FROM_KEEPER, IN(CONFIG), ORIGIN_PHASE_ROOTS, CHAN_FD},
	[ORIGIN_ROOTS] = {"ROOTS", CHAN_FROM_KEEPER, IN(ROOTS), ORIGIN_PHASE_RUN, CHAN_FD},
	[ORIGIN_OPEN] = {"OPEN", CHAN_FROM_KEEPER, IN(RUN), 0, CHAN_MAY_FD | CHAN_ID},
	[ORIGIN_RESULT] = {"RESULT", CHAN_FROM_WORKER, IN(RUN), 0, CHAN_ID},
	[ORIGIN_CLOSED] = {"CLOSED", CHAN_FROM_WORKER, IN(RUN), 0, CHAN_ID},
	[ORIGIN_WANT] = {"WANT", CHAN_FROM_WORKER, IN(RUN), 0, CHAN_ID},
	[ORIGIN_SOCKET] = {"SOCKET", CHAN_FROM_KEEPER, IN(RUN), 0, CHAN_MAY_FD | CHAN_ID},
	[ORIGIN_NEED] = {"NEED", CHAN_FROM_WORKER, IN(RUN), 0, CHAN_ID},
	[ORIGIN_VALUE] = {"VALUE", CHAN_FROM_KEEPER, IN(RUN), 0, CHAN_MAY_FD | CHAN_ID},
	[ORIGIN_TOKENS] = {"TOKENS", CHAN_FROM_WORKER, IN(RUN), 0, CHAN_FD | CHAN_ID},
	[ORIGIN_STORED] = {"STORED", CHAN_FROM_KEEPER, IN(RUN), 0, CHAN_ID},
	[ORIGIN_RENEW] = {"RENEW", CHAN_FROM_KEEPER, IN(RUN), 0, 0},
	[ORIGIN_POLICY] = {"POLICY", CHAN_FROM_KEEPER, IN(RUN), 0, CHAN_FD | CHAN_ID},
	[ORIGIN_PACK] = {"PACK", CHAN_FROM_KEEPER, IN(RUN), 0, CHAN_FD},
	[ORIGIN_CHANNEL] = {"CHANNEL", CHAN_FROM_KEEPER, IN(RUN), 0, CHAN_FD},
};

const struct chan origin_chan = {.sides = {"keeper", "origin"},
	.rows = rows,
	.n_rows = ORIGIN_N_MSGS,
	.n_phases = ORIGIN_N_PHASES};

const char *origin_outcome_text(enum origin_outcome outcome)
{
	static const char *const texts[ORIGIN_N_OUTCOMES] = {
		[ORIGIN_DONE] = "answered",
		[ORIGIN_BAD_REQUEST] = "the request does not match the allowed one",
		[ORIGIN_DENIED_FOREIGN] =
			"the request carries a credential that is not the sandbox's placeholder",
		[ORIGIN_DENIED_METHOD] = "no credential is sent with this method",
		[ORIGIN_DENIED_REQUEST] = "requests that create or return a credential are blocked",
		[ORIGIN_NO_CONNECTION] = "no connection",
		[ORIGIN_NO_TLS] = "the TLS handshake failed",
		[ORIGIN_BAD_CERT] = "the server's certificate is not valid for this host",
		[ORIGIN_NO_VALUE] = "the credential is not available",
		[ORIGIN_CANNOT_SIGN] = "the request cannot be signed again",
		[ORIGIN_BAD_ANSWER] = "the server's response cannot be forwarded",
		[ORIGIN_TIMEOUT] = "the server did not respond in time",
		[ORIGIN_BUSY] = "too many concurrent requests to this host",
		[ORIGIN_GONE] = "canceled before the server responded",
		[ORIGIN_NOT_SET] = "no credential is set for the placeholder of the request",
		[ORIGIN_DENIED_RULE] = "denied by a rule about requests",
	};

	return outcome < ORIGIN_N_OUTCOMES ? texts[outcome] : "unknown outcome";
}

static const struct field result_fields[] = {
	FIELD_ENUM(origin_result, outcome, ORIGIN_N_OUTCOMES),
	FIELD_NUMBER(origin_result, status),
	FIELD_BOOL(origin_result, used),
	FIELD_NUMBER(origin_result, serial),
	FIELD_NUMBER(origin_result, n_removed),
	FIELD_TEXT(origin_result, slot),
	FIELD_TEXT(origin_result, addr),
	FIELD_TEXT(origin_result, text),
	{0},
};

int origin_send_result(int sock, uint32_t id, const struct origin_result *result)
{
	return chan_send(sock, ORIGIN_RESULT, id, result_fields, result, -1);
}

int origin_send_closed(int sock, uint32_t id, uint64_t up, uint64_t down)
{
	uint8_t buf[16];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u64(&wr, up);
	wr_u64(&wr, down);
	return ipc_send_wr(sock, ORIGIN_CLOSED, id, &wr, -1);
}

static const struct field need_fields[] = {
	FIELD_ENUM(origin_need, which, ORIGIN_N_WHICH),
	FIELD_NUMBER(origin_need, conn),
	FIELD_BYTES(origin_need, cert),
	{0},
};

int origin_send_need(int sock, uint32_t id, const struct origin_need *need)
{
	return chan_send(sock, ORIGIN_NEED, id, need_fields, need, -1);
}

static const struct field tokens_fields[] = {
	FIELD_ENUM(origin_tokens, which, ORIGIN_N_WHICH),
	FIELD_NUMBER(origin_tokens, expires_s),
	{0},
};

int origin_send_tokens(int sock, uint32_t id, const struct origin_tokens *tokens, int fd)
{
	return chan_send(sock, ORIGIN_TOKENS, id, tokens_fields, tokens, fd);
}

static const struct field stored_fields[] = {
	FIELD_BOOL(origin_stored, kept),
	FIELD_TEXT(origin_stored, text),
	{0},
};

int origin_answer_tokens(int sock, uint32_t id, const struct origin_stored *stored)
{
	return chan_send(sock, ORIGIN_STORED, id, stored_fields, stored, -1);
}

static const struct field renew_fields[] = {FIELD_ONE(uint8_t, 0, ORIGIN_HAS_ALL), {0}};

int origin_ask_renew(int sock, uint8_t has)
{
	return chan_send(sock, ORIGIN_RENEW, 0, renew_fields, &has, -1);
}

int origin_ask_policy(int sock, uint32_t id, uint8_t part, int table)
{
	return chan_send(sock, ORIGIN_POLICY, id, egress_policy_fields, &part, table);
}

static const struct field config_fields[] = {
	FIELD_STR(origin_config, sandbox),
	FIELD_STR(origin_config, host),
	FIELD_RANGE(origin_config, port, 1, UINT16_MAX),
	FIELD_RANGE(origin_config, has, 0, ORIGIN_HAS_ALL),
	{0},
};

int origin_ask_config(int sock, const struct origin_config *config, int file)
{
	return chan_send(sock, ORIGIN_CONFIG, 0, config_fields, config, file);
}

int origin_ask_open(int sock, uint32_t id, const struct ticket *ticket, int fd)
{
	return chan_send(sock, ORIGIN_OPEN, id, egress_ticket_fields, ticket, fd);
}

int origin_answer_want(int sock, uint32_t id, const struct egress_result *result, int fd)
{
	return chan_send(sock, ORIGIN_SOCKET, id, egress_result_fields, result, fd);
}

static const struct field value_fields[] = {
	FIELD_BOOL(origin_value, given),
	FIELD_NUMBER(origin_value, use_s),
	FIELD_TEXT(origin_value, text),
	{0},
};

int origin_answer_need(int sock, uint32_t id, const struct origin_value *value, int fd)
{
	return chan_send(sock, ORIGIN_VALUE, id, value_fields, value, fd);
}

int origin_get_config(const struct ipc_msg *msg, struct origin_config *ret)
{
	int r = chan_get(&origin_chan, msg, ORIGIN_CONFIG, config_fields, ret);

	return ret->host[0] ? r : -EBADMSG;
}

int origin_get_open(const struct ipc_msg *msg, struct ticket *ret)
{
	return chan_get(&origin_chan, msg, ORIGIN_OPEN, egress_ticket_fields, ret);
}

int origin_get_socket(const struct ipc_msg *msg, struct egress_result *ret)
{
	int r = chan_get(&origin_chan, msg, ORIGIN_SOCKET, egress_result_fields, ret);

	return (msg->fd >= 0) == (ret->outcome == EGRESS_CONNECTED) ? r : -EBADMSG;
}

int origin_get_need(const struct ipc_msg *msg, struct origin_need *ret)
{
	return chan_get(&origin_chan, msg, ORIGIN_NEED, need_fields, ret);
}

int origin_get_value(const struct ipc_msg *msg, struct origin_value *ret)
{
	int r = chan_get(&origin_chan, msg, ORIGIN_VALUE, value_fields, ret);

	return (msg->fd >= 0) == ret->given ? r : -EBADMSG;
}

int origin_get_tokens(const struct ipc_msg *msg, struct origin_tokens *ret)
{
	int r = chan_get(&origin_chan, msg, ORIGIN_TOKENS, tokens_fields, ret);

	if ((ret->which != ORIGIN_ACCESS && ret->which != ORIGIN_REFRESH) || msg->id == 0)
		return -EBADMSG;
	return r;
}

int origin_get_stored(const struct ipc_msg *msg, struct origin_stored *ret)
{
	int r = chan_get(&origin_chan, msg, ORIGIN_STORED, stored_fields, ret);

	return msg->id == 0 ? -EBADMSG : r;
}

int origin_get_renew(const struct ipc_msg *msg, uint8_t *ret_has)
{
	return chan_get(&origin_chan, msg, ORIGIN_RENEW, renew_fields, ret_has);
}

int origin_get_policy(const struct ipc_msg *msg, uint8_t *ret_part)
{
	return chan_get(&origin_chan, msg, ORIGIN_POLICY, egress_policy_fields, ret_part);
}

static bool result_is_ok(const struct origin_result *r)
{
	return (r->status == 0 || (r->status >= 100 && r->status <= 599)) &&
	       (!r->used || r->slot[0]);
}

int origin_get_result(const struct ipc_msg *msg, struct origin_result *ret)
{
	int r = chan_get(&origin_chan, msg, ORIGIN_RESULT, result_fields, ret);

	return r == 0 && !result_is_ok(ret) ? -EBADMSG : r;
}

int origin_get_closed(const struct ipc_msg *msg, uint64_t *ret_up, uint64_t *ret_down)
{
	struct rd rd = rd_init(ipc_body(msg));

	*ret_up = rd_u64(&rd);
	*ret_down = rd_u64(&rd);
	return chan_finish(&origin_chan, msg, ORIGIN_CLOSED, &rd);
}
