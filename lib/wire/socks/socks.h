/* SPDX-License-Identifier: Apache-2.0 */
/*
 * socks - the client's side of SOCKS 5 (RFC 1928), with a user and a password (RFC 1929).
 *
 * How      socks_put_hello begins. Then socks_want is the exact number of bytes to read next, and
 *          socks_take returns what to send, until the connection is open. No byte after the
 *          proxy's last reply is requested: it belongs to the server. The login itself is written
 *          by the vault, so no function here has a password.
 * Trust    Replies of a proxy: untrusted. Pure: no I/O, no heap.
 * Owns     Nothing.
 * Limits   SOCKS_MAX_REPLY bytes per reply.
 * Never    Accepts a method that was not offered, or a reply of another version.
 * See      socks_test.c, socks_fuzz.c, src/egress/relay/socks_proxy.c
 */
#pragma once

#include "lib/base/slice.h"

#define SOCKS_MAX_REPLY 262 /* four bytes, a name with its length, a port */
#define SOCKS_MAX_REQUEST 262
#define SOCKS_MAX_LOGIN 255 /* bytes of a user, and of a password */

enum socks_next {
	SOCKS_READ,    /* more bytes */
	SOCKS_LOGIN,   /* send the login, then read */
	SOCKS_REQUEST, /* send socks_put_request, then read */
	SOCKS_OPEN,    /* the next byte is the server's */
	SOCKS_FAILED,  /* `fault` */
};

enum socks_fault {
	SOCKS_NO_FAULT,
	SOCKS_NOT_SOCKS, /* the reply is not SOCKS 5 */
	SOCKS_WANTS_LOGIN,
	SOCKS_LOGIN_REFUSED,
	SOCKS_HOST_REFUSED, /* by the rules of the proxy */
	SOCKS_CANNOT,	    /* the proxy could not connect */
};

enum socks_state { SOCKS_AT_METHOD, SOCKS_AT_LOGIN, SOCKS_AT_HEAD, SOCKS_AT_REST, SOCKS_AT_END };

struct socks {
	enum socks_state state;
	bool has_login;
	uint8_t buf[SOCKS_MAX_REPLY];
	size_t n, want; /* bytes of the reply under way, and of all of it that is known */
	enum socks_fault fault;
	const char *why; /* "host unreachable" ...; set with a fault */
};

/* A name, or an address of 4 or 16 bytes (then `name` is empty). */
struct socks_target {
	struct slice name, addr;
	uint16_t port;
};

void socks_init(struct socks *s, bool has_login);
/* The offered methods: none, and with has_login the password. */
void socks_put_hello(const struct socks *s, struct wr *wr);
/* -EINVAL for a name over 255 bytes or an address of another length. */
int socks_put_request(const struct socks_target *t, struct wr *wr) MUST_CHECK;
/* The bytes to read next; 0 when it is over. */
size_t socks_want(const struct socks *s);
/* At most socks_want bytes. */
enum socks_next socks_take(struct socks *s, struct slice bytes);
