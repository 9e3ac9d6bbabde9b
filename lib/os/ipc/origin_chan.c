/* SPDX-License-Identifier: Apache-2.0 */
#include "origin_chan.h"

#include <errno.h>

#define IN(phase) (1U << ORIGIN_PHASE_##phase)

static const struct chan_row rows[ORIGIN_N_MSGS] = {
	[ORIGIN_HELLO] = {"HELLO", CHAN_FROM_WORKER, IN(START), ORIGIN_PHASE_CONFIG, 0},
	[ORIGIN_CONFIG] = {"CONFIG", CHAN_FROM_KEEPER, IN(CONFIG), ORIGIN_PHASE_ROOTS, CHAN_FD},
	[ORIGIN_ROOTS] = {"ROOTS", CHAN_FROM_KEEPER, IN(ROOTS), ORIGIN_PHASE_RUN, CHAN_FD},
	[ORIGIN_OPEN] = {"OPEN", CHAN_FROM_KEEPER, IN(RUN), 0, CHAN_FD | CHAN_ID},
	[ORIGIN_RESULT] = {"RESULT", CHAN_FROM_WORKER, IN(RUN), 0, CHAN_ID},
	[ORIGIN_CLOSED] = {"CLOSED", CHAN_FROM_WORKER, IN(RUN), 0, CHAN_ID},
	[ORIGIN_WANT] = {"WANT", CHAN_FROM_WORKER, IN(RUN), 0, CHAN_ID},
	[ORIGIN_SOCKET] = {"SOCKET", CHAN_FROM_KEEPER, IN(RUN), 0, CHAN_MAY_FD | CHAN_ID},
	[ORIGIN_NEED] = {"NEED", CHAN_FROM_WORKER, IN(RUN), 0, CHAN_ID},
	[ORIGIN_VALUE] = {"VALUE", CHAN_FROM_KEEPER, IN(RUN), 0, CHAN_MAY_FD | CHAN_ID},
	[ORIGIN_TOKENS] = {"TOKENS", CHAN_FROM_WORKER, IN(RUN), 0, CHAN_FD | CHAN_ID},
	[ORIGIN_STORED] = {"STORED", CHAN_FROM_KEEPER, IN(RUN), 0, CHAN_ID},
	[ORIGIN_RENEW] = {"RENEW", CHAN_FROM_KEEPER, IN(RUN), 0, 0},
};

const struct chan origin_chan = {.sides = {"keeper", "origin"},
	.rows = rows,
	.n_rows = ORIGIN_N_MSGS,
	.n_phases = ORIGIN_N_PHASES};

const char *origin_outcome_text(enum origin_outcome outcome)
{
	static const char *const texts[ORIGIN_N_OUTCOMES] = {
		[ORIGIN_DONE] = "answered",
		[ORIGIN_BAD_REQUEST] = "another request than the one that was allowed",
		[ORIGIN_DENIED_FOREIGN] =
			"the request carries a credential that is not this sandbox's",
		[ORIGIN_DENIED_METHOD] = "no credential is sent with this method",
		[ORIGIN_DENIED_REQUEST] =
			"a request that creates or returns a credential is refused",
		[ORIGIN_NO_CONNECTION] = "no connection",
		[ORIGIN_NO_TLS] = "the TLS handshake failed",
		[ORIGIN_BAD_CERT] = "the server's certificate is not valid for this host",
		[ORIGIN_NO_VALUE] = "the credential cannot be had",
		[ORIGIN_CANNOT_SIGN] = "the request cannot be signed again",
		[ORIGIN_BAD_ANSWER] = "the server's answer cannot be passed on",
		[ORIGIN_TIMEOUT] = "the server did not answer in time",
		[ORIGIN_BUSY] = "too many requests to this host at once",
		[ORIGIN_GONE] = "given up before it was answered",
		[ORIGIN_NOT_SET] = "no credential is set for the placeholder of the request",
	};

	return outcome < ORIGIN_N_OUTCOMES ? texts[outcome] : "unknown outcome";
}

int origin_send_result(int sock, uint32_t id, const struct origin_result *result)
{
	uint8_t buf[sizeof(*result) + 16];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u8(&wr, (uint8_t)result->outcome);
	wr_u16(&wr, result->status);
	wr_u8(&wr, result->used);
	wr_u64(&wr, result->serial);
	wr_u32(&wr, result->n_removed);
	wr_cstr(&wr, result->slot);
	wr_cstr(&wr, result->addr);
	wr_cstr(&wr, result->text);
	return ipc_send_wr(sock, ORIGIN_RESULT, id, &wr, -1);
}

int origin_send_closed(int sock, uint32_t id, uint64_t up, uint64_t down)
{
	uint8_t buf[16];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u64(&wr, up);
	wr_u64(&wr, down);
	return ipc_send_wr(sock, ORIGIN_CLOSED, id, &wr, -1);
}

int origin_send_want(int sock, uint32_t id)
{
	return ipc_send(sock, ORIGIN_WANT, id, slice_of(NULL, 0), -1);
}

int origin_send_need(int sock, uint32_t id, const struct origin_need *need)
{
	uint8_t buf[sizeof(*need) + 8];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u8(&wr, (uint8_t)need->which);
	wr_u32(&wr, need->conn);
	wr_bytes(&wr, slice_of(need->cert, sizeof(need->cert)));
	return ipc_send_wr(sock, ORIGIN_NEED, id, &wr, -1);
}

int origin_send_tokens(int sock, uint32_t id, const struct origin_tokens *tokens, int fd)
{
	uint8_t buf[8];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u8(&wr, (uint8_t)tokens->which);
	wr_u32(&wr, tokens->expires_s);
	return ipc_send_wr(sock, ORIGIN_TOKENS, id, &wr, fd);
}

int origin_answer_tokens(int sock, uint32_t id, const struct origin_stored *stored)
{
	uint8_t buf[sizeof(*stored) + 8];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u8(&wr, stored->kept);
	wr_cstr(&wr, stored->text);
	return ipc_send_wr(sock, ORIGIN_STORED, id, &wr, -1);
}

int origin_ask_renew(int sock, uint8_t has)
{
	uint8_t buf[1];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u8(&wr, has);
	return ipc_send_wr(sock, ORIGIN_RENEW, 0, &wr, -1);
}

int origin_ask_config(int sock, const struct origin_config *config, int file)
{
	uint8_t buf[sizeof(*config) + 8];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_cstr(&wr, config->sandbox);
	wr_cstr(&wr, config->host);
	wr_u16(&wr, config->port);
	wr_u8(&wr, config->has);
	return ipc_send_wr(sock, ORIGIN_CONFIG, 0, &wr, file);
}

int origin_ask_roots(int sock, int file)
{
	return ipc_send(sock, ORIGIN_ROOTS, 0, slice_of(NULL, 0), file);
}

int origin_ask_open(int sock, uint32_t id, int fd)
{
	return ipc_send(sock, ORIGIN_OPEN, id, slice_of(NULL, 0), fd);
}

int origin_answer_want(int sock, uint32_t id, const struct egress_result *result, int fd)
{
	uint8_t buf[sizeof(*result) + 8];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u8(&wr, (uint8_t)result->outcome);
	wr_cstr(&wr, result->addr);
	wr_cstr(&wr, result->text);
	return ipc_send_wr(sock, ORIGIN_SOCKET, id, &wr, fd);
}

int origin_answer_need(int sock, uint32_t id, const struct origin_value *value, int fd)
{
	uint8_t buf[sizeof(*value) + 8];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u8(&wr, value->given);
	wr_u32(&wr, value->use_s);
	wr_cstr(&wr, value->text);
	return ipc_send_wr(sock, ORIGIN_VALUE, id, &wr, fd);
}

int origin_get_config(const struct ipc_msg *msg, struct origin_config *ret)
{
	struct rd rd = rd_init(ipc_body(msg));

	rd_cstr(&rd, ret->sandbox, sizeof(ret->sandbox));
	rd_cstr(&rd, ret->host, sizeof(ret->host));
	ret->port = rd_u16(&rd);
	ret->has = rd_u8(&rd);
	if (!ret->host[0] || !ret->port || ret->has > ORIGIN_HAS_ALL || msg->id != 0)
		return -EBADMSG;
	return ipc_finish(msg, ORIGIN_CONFIG, &rd, true);
}

int origin_get_socket(const struct ipc_msg *msg, struct egress_result *ret)
{
	struct rd rd = rd_init(ipc_body(msg));
	uint8_t outcome = rd_u8(&rd);

	rd_cstr(&rd, ret->addr, sizeof(ret->addr));
	rd_cstr(&rd, ret->text, sizeof(ret->text));
	if (outcome >= EGRESS_N_OUTCOMES || !ipc_is_printable(ret->addr) ||
		!ipc_is_printable(ret->text))
		return -EBADMSG;
	ret->outcome = (enum egress_outcome)outcome;
	return ipc_finish(msg, ORIGIN_SOCKET, &rd, outcome == EGRESS_CONNECTED);
}

int origin_get_need(const struct ipc_msg *msg, struct origin_need *ret)
{
	struct rd rd = rd_init(ipc_body(msg));
	uint8_t which = rd_u8(&rd);
	struct slice cert;

	ret->conn = rd_u32(&rd);
	cert = rd_bytes(&rd, sizeof(ret->cert));
	if (which >= ORIGIN_N_WHICH || ipc_finish(msg, ORIGIN_NEED, &rd, false) < 0)
		return -EBADMSG;
	ret->which = (enum origin_which)which;
	memcpy(ret->cert, cert.p, sizeof(ret->cert));
	return 0;
}

int origin_get_value(const struct ipc_msg *msg, struct origin_value *ret)
{
	struct rd rd = rd_init(ipc_body(msg));
	uint8_t given = rd_u8(&rd);

	ret->use_s = rd_u32(&rd);
	rd_cstr(&rd, ret->text, sizeof(ret->text));
	if (given > 1 || !ipc_is_printable(ret->text))
		return -EBADMSG;
	ret->given = given;
	return ipc_finish(msg, ORIGIN_VALUE, &rd, given);
}

int origin_get_tokens(const struct ipc_msg *msg, struct origin_tokens *ret)
{
	struct rd rd = rd_init(ipc_body(msg));
	uint8_t which = rd_u8(&rd);

	ret->expires_s = rd_u32(&rd);
	if ((which != ORIGIN_ACCESS && which != ORIGIN_REFRESH) || msg->id == 0)
		return -EBADMSG;
	ret->which = (enum origin_which)which;
	return ipc_finish(msg, ORIGIN_TOKENS, &rd, true);
}

int origin_get_stored(const struct ipc_msg *msg, struct origin_stored *ret)
{
	struct rd rd = rd_init(ipc_body(msg));
	uint8_t kept = rd_u8(&rd);

	rd_cstr(&rd, ret->text, sizeof(ret->text));
	ret->kept = kept;
	if (kept > 1 || msg->id == 0 || (!rd.bad && !ipc_is_printable(ret->text)))
		return -EBADMSG;
	return ipc_finish(msg, ORIGIN_STORED, &rd, false);
}

int origin_get_renew(const struct ipc_msg *msg, uint8_t *ret_has)
{
	struct rd rd = rd_init(ipc_body(msg));

	*ret_has = rd_u8(&rd);
	if (*ret_has & ~ORIGIN_HAS_ALL || msg->id != 0)
		return -EBADMSG;
	return ipc_finish(msg, ORIGIN_RENEW, &rd, false);
}

static bool result_is_ok(const struct origin_result *r)
{
	return ipc_is_printable(r->slot) && ipc_is_printable(r->addr) &&
	       ipc_is_printable(r->text) &&
	       (r->status == 0 || (r->status >= 100 && r->status <= 599)) &&
	       (!r->used || r->slot[0]);
}

int origin_get_result(const struct ipc_msg *msg, struct origin_result *ret)
{
	struct rd rd = rd_init(ipc_body(msg));
	uint8_t outcome = rd_u8(&rd), used;

	ret->status = rd_u16(&rd);
	used = rd_u8(&rd);
	ret->serial = rd_u64(&rd);
	ret->n_removed = rd_u32(&rd);
	rd_cstr(&rd, ret->slot, sizeof(ret->slot));
	rd_cstr(&rd, ret->addr, sizeof(ret->addr));
	rd_cstr(&rd, ret->text, sizeof(ret->text));
	if (outcome >= ORIGIN_N_OUTCOMES || used > 1)
		return -EBADMSG;
	ret->outcome = (enum origin_outcome)outcome;
	ret->used = used;
	return result_is_ok(ret) ? ipc_finish(msg, ORIGIN_RESULT, &rd, false) : -EBADMSG;
}

int origin_get_closed(const struct ipc_msg *msg, uint64_t *ret_up, uint64_t *ret_down)
{
	struct rd rd = rd_init(ipc_body(msg));

	*ret_up = rd_u64(&rd);
	*ret_down = rd_u64(&rd);
	return ipc_finish(msg, ORIGIN_CLOSED, &rd, false);
}
