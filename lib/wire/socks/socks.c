/* SPDX-License-Identifier: Apache-2.0 */
#include "socks.h"

#include <errno.h>

#define VERSION 5
#define LOGIN_VERSION 1
#define CONNECT 1
#define NO_METHOD 0xff

enum method { METHOD_NONE = 0, METHOD_LOGIN = 2 };
enum kind { KIND_V4 = 1, KIND_NAME = 3, KIND_V6 = 4 };

/* The version, the reply, a zero, the kind of the address, and the first byte of it: the length of
 * a name. */
#define HEAD 5

static void expect_reply(struct socks *s, enum socks_state state, size_t want)
{
	s->state = state;
	s->n = 0;
	s->want = want;
}

void socks_init(struct socks *s, bool has_login)
{
	*s = (struct socks){.has_login = has_login};
	expect_reply(s, SOCKS_AT_METHOD, 2);
}

void socks_put_hello(const struct socks *s, struct wr *wr)
{
	wr_u8(wr, VERSION);
	wr_u8(wr, s->has_login ? 2 : 1);
	wr_u8(wr, METHOD_NONE);
	if (s->has_login)
		wr_u8(wr, METHOD_LOGIN);
}

int socks_put_request(const struct socks_target *t, struct wr *wr)
{
	bool is_name = t->name.n > 0;

	if (is_name ? t->name.n > UINT8_MAX : t->addr.n != 4 && t->addr.n != 16)
		return -EINVAL;
	wr_u8(wr, VERSION);
	wr_u8(wr, CONNECT);
	wr_u8(wr, 0);
	wr_u8(wr, is_name ? KIND_NAME : t->addr.n == 4 ? KIND_V4 : KIND_V6);
	if (is_name)
		wr_u8(wr, (uint8_t)t->name.n);
	wr_bytes(wr, is_name ? t->name : t->addr);
	wr_u8(wr, (uint8_t)(t->port >> 8));
	wr_u8(wr, (uint8_t)t->port);
	return wr->bad ? -ENOBUFS : 0;
}

size_t socks_want(const struct socks *s)
{
	return s->state == SOCKS_AT_END ? 0 : s->want - s->n;
}

static enum socks_next fail_socks(struct socks *s, enum socks_fault fault, const char *why)
{
	expect_reply(s, SOCKS_AT_END, 0);
	s->fault = fault;
	s->why = why;
	return SOCKS_FAILED;
}

static enum socks_next fail_form(struct socks *s)
{
	return fail_socks(s, SOCKS_NOT_SOCKS, "the reply is not SOCKS 5");
}

static enum socks_next take_method(struct socks *s)
{
	if (s->buf[0] != VERSION)
		return fail_form(s);
	if (s->buf[1] == METHOD_NONE) {
		expect_reply(s, SOCKS_AT_HEAD, HEAD);
		return SOCKS_REQUEST;
	}
	if (s->buf[1] == METHOD_LOGIN && s->has_login) {
		expect_reply(s, SOCKS_AT_LOGIN, 2);
		return SOCKS_LOGIN;
	}
	if (s->buf[1] == NO_METHOD)
		return s->has_login ? fail_socks(s, SOCKS_LOGIN_REFUSED,
					      "a login with a password is not accepted")
				    : fail_socks(s, SOCKS_WANTS_LOGIN, "login required");
	return fail_form(s);
}

static enum socks_next take_login(struct socks *s)
{
	if (s->buf[0] != LOGIN_VERSION)
		return fail_form(s);
	if (s->buf[1] != 0)
		return fail_socks(s, SOCKS_LOGIN_REFUSED, "wrong user or password");
	expect_reply(s, SOCKS_AT_HEAD, HEAD);
	return SOCKS_REQUEST;
}

static enum socks_next fail_reply(struct socks *s, uint8_t code)
{
	static const char *const texts[] = {
		[1] = "connection failed",
		[2] = "denied by the rules of the proxy",
		[3] = "network unreachable",
		[4] = "host unreachable",
		[5] = "connection refused",
		[6] = "timed out",
		[7] = "connections are not supported",
		[8] = "address type not supported",
	};

	if (code >= ARRAY_LEN(texts))
		return fail_socks(s, SOCKS_CANNOT, "connection failed");
	return fail_socks(s, code == 2 ? SOCKS_HOST_REFUSED : SOCKS_CANNOT, texts[code]);
}

static enum socks_next take_head(struct socks *s)
{
	size_t rest;

	if (s->buf[0] != VERSION || s->buf[2] != 0)
		return fail_form(s);
	if (s->buf[1] != 0)
		return fail_reply(s, s->buf[1]);
	switch (s->buf[3]) {
	case KIND_V4:
		rest = 4 - 1;
		break;
	case KIND_V6:
		rest = 16 - 1;
		break;
	case KIND_NAME:
		rest = s->buf[4];
		break;
	default:
		return fail_form(s);
	}
	s->state = SOCKS_AT_REST;
	s->want = HEAD + rest + 2;
	return SOCKS_READ;
}

enum socks_next socks_take(struct socks *s, struct slice bytes)
{
	if (bytes.n > socks_want(s))
		return fail_form(s);
	if (bytes.n)
		memcpy(s->buf + s->n, bytes.p, bytes.n);
	s->n += bytes.n;
	if (s->n < s->want)
		return SOCKS_READ;
	switch (s->state) {
	case SOCKS_AT_METHOD:
		return take_method(s);
	case SOCKS_AT_LOGIN:
		return take_login(s);
	case SOCKS_AT_HEAD:
		return take_head(s);
	case SOCKS_AT_REST:
		expect_reply(s, SOCKS_AT_END, 0);
		return SOCKS_OPEN;
	default:
		return s->fault ? SOCKS_FAILED : SOCKS_OPEN;
	}
}
