/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress_chan - the messages between a keeper and its egress, on egress's fd 3.
 *
 * How      SOCK_SEQPACKET, struct ipc_msg; the header's id names the exchange (keeper chooses it)
 *          or the POLICY. egress_chan is this table, used by both sides on every message:
 *
 *          message   direction         phase           fd           fields
 *          HELLO     egress -> keeper  START > CONFIG  -            build id
 *          CONFIG    keeper -> egress  CONFIG, RUN > RUN  -         struct egress_config, no direct
 *          DIRECT    keeper -> egress  RUN             -            its hosts without the proxy
 *          RESOLVER  keeper -> egress  RUN             a file       -, the text of resolv.conf
 *          LOCALS    keeper -> egress  RUN             -            struct egress_locals
 *          POLICY    keeper -> egress  RUN             a table      u8 part
 *          LOADED    egress -> keeper  RUN, per POLICY 1 -          text; "" or why it denies all
 *          OPEN      keeper -> egress  RUN             see below    struct egress_open
 *          LOGIN     egress -> keeper  RUN, per OPEN   the proxy   -, the vault writes a login
 *          LOGGED    keeper -> egress  RUN, per LOGIN  -           text; "" or why there is none
 *          RESULT    egress -> keeper  RUN, per OPEN   see below    struct egress_result
 *          CLOSED    egress -> keeper  RUN, per OPEN   -            u64 bytes up, u64 bytes down
 *
 *          OPEN's socket carries one exchange of proto/PROTOCOL.canon. RESULT comes at most once,
 *          CLOSED always and last. Until the last part of a policy the previous one applies, at
 *          first none. An OPEN of the kind SOCKET has no socket: RESULT brings the connection.
 * Trust    keeper: egress reads bytes of origins and may be compromised. egress: checks keeper too.
 * Limits   EGRESS_MAX_*, IPC_MAX_BODY. Any violation: the receiver drops the peer.
 * See      proto/PROTOCOL.ipc, egress_chan_test.c, egress_chan_fuzz.c
 */
#pragma once

#include "chan.h"
#include "lib/base/hash/ticket.h"

#define EGRESS_MAX_HOST 254
#define EGRESS_MAX_ADDR 64
#define EGRESS_MAX_TEXT 256
#define EGRESS_MAX_PINS 48
#define EGRESS_MAX_DIRECT 48
#define EGRESS_MAX_USER 128
#define EGRESS_MAX_OPEN 1280 /* exchanges at once */

enum egress_msg {
	EGRESS_HELLO = CHAN_HELLO,
	EGRESS_CONFIG,
	EGRESS_RESOLVER,
	EGRESS_POLICY,
	EGRESS_LOADED,
	EGRESS_OPEN,
	EGRESS_RESULT,
	EGRESS_CLOSED,
	EGRESS_DIRECT,
	EGRESS_LOCALS,
	EGRESS_LOGIN,
	EGRESS_LOGGED,
	EGRESS_N_MSGS,
};

enum egress_phase {
	EGRESS_PHASE_START,
	EGRESS_PHASE_CONFIG,
	EGRESS_PHASE_RUN,
	EGRESS_PHASE_END,
	EGRESS_N_PHASES,
};

extern const struct chan egress_chan;

/* The user's `network.connect-to`: this host and port are found there, and nowhere else. */
struct egress_pin {
	char host[EGRESS_MAX_HOST]; /* canonical */
	uint16_t port;
	char addr[EGRESS_MAX_ADDR]; /* strict text of lib/rules/policy/addr.h */
	uint16_t addr_port;
};

/* An entry of the user's `network.no-proxy`. */
struct egress_direct {
	char host[EGRESS_MAX_HOST]; /* canonical name; "": a network */
	bool is_below;		    /* the names below host, not host itself */
	uint8_t n;		    /* bytes of addr: 4 or 16; 0: a name */
	uint8_t addr[16];
	uint8_t prefix;
	uint16_t port; /* 0: every port */
};

enum egress_proxy { EGRESS_PROXY_HTTP, EGRESS_PROXY_SOCKS, EGRESS_N_PROXIES };

struct egress_config {
	enum egress_proxy proxy;
	char proxy_host[EGRESS_MAX_HOST]; /* the company's proxy; "": none */
	uint16_t proxy_port;		  /* 0 without one */
	char proxy_user[EGRESS_MAX_USER]; /* the password is in the vault; "": no login */
	uint16_t n_pins;
	struct egress_pin pins[EGRESS_MAX_PINS];
	uint16_t n_direct;
	struct egress_direct direct[EGRESS_MAX_DIRECT];
};

/* Whether this target is reached without the proxy. host is canonical; addr has n bytes, 0 of a
 * name. */
bool egress_is_direct(
	const struct egress_config *config, const char *host, struct slice addr, uint16_t port);

/* The host's own addresses, and the networks that it is connected to
 * (lib/rules/policy/locals.h). */
#define EGRESS_MAX_LOCALS 256
struct egress_local {
	bool is_own;
	uint8_t n; /* 4 or 16 */
	uint8_t addr[16];
	uint8_t prefix;
};

struct egress_locals {
	uint16_t n;
	struct egress_local list[EGRESS_MAX_LOCALS];
};

enum egress_kind {
	EGRESS_TUNNEL,
	EGRESS_HTTP,
	EGRESS_SOCKET, /* for sbx-origin: returns the connection itself */
	EGRESS_N_KINDS,
};

struct egress_open {
	enum egress_kind kind;
	char host[EGRESS_MAX_HOST]; /* canonical */
	uint16_t port;
	struct ticket ticket; /* of the kind HTTP: for its one request */
};

enum egress_outcome {
	EGRESS_CONNECTED,
	EGRESS_DENIED_POLICY,  /* its own decision on the request was no */
	EGRESS_DENIED_ADDRESS, /* the name resolves to an address that no rule allows */
	EGRESS_BAD_REQUEST,    /* edge sent another request than the keeper allowed */
	EGRESS_NO_NAME,	       /* the resolver found no such name */
	EGRESS_NO_RESOLVER,
	EGRESS_REFUSED,
	EGRESS_UNREACHABLE,
	EGRESS_TIMEOUT,
	EGRESS_PROXY_REFUSED, /* the upstream proxy refused the target */
	EGRESS_BUSY,	      /* EGRESS_MAX_OPEN */
	EGRESS_GONE,	      /* edge closed the socket first */
	EGRESS_PROXY_DOWN,    /* the upstream proxy cannot be reached */
	EGRESS_PROXY_LOGIN,   /* the upstream proxy requires another login */
	EGRESS_N_OUTCOMES,
};

struct egress_result {
	enum egress_outcome outcome;
	char addr[EGRESS_MAX_ADDR]; /* where it went, or the address that was refused; "": none */
	char text[EGRESS_MAX_TEXT]; /* one printable sentence */
};

/* ORIGIN_SOCKET, ORIGIN_OPEN and ORIGIN_POLICY of origin_chan.h have them too. */
extern const struct field egress_policy_fields[];
extern const struct field egress_result_fields[];
extern const struct field egress_ticket_fields[];
/* "connection refused" ... */
const char *egress_outcome_text(enum egress_outcome outcome);

/* egress's side. HELLO: chan_send_hello. */
int egress_send_loaded(int sock, uint32_t id, const char *text) MUST_CHECK;
/* fd: -1, or the connection that an OPEN of the kind SOCKET is about. */
int egress_send_result(
	int sock, uint32_t id, const struct egress_result *result, int fd) MUST_CHECK;
/* fd: the connection to the proxy, where the login comes next. */
int egress_send_login(int sock, uint32_t id, int fd) MUST_CHECK;
int egress_send_closed(int sock, uint32_t id, uint64_t up, uint64_t down) MUST_CHECK;

/* keeper's side; fds stay the caller's. RESOLVER: chan_send_plain. */
/* CONFIG and DIRECT. */
int egress_ask_config(int sock, const struct egress_config *config) MUST_CHECK;
int egress_ask_locals(int sock, const struct egress_locals *locals) MUST_CHECK;
/* part: enum policy_part of lib/rules/policy. */
int egress_ask_policy(int sock, uint32_t id, uint8_t part, int table) MUST_CHECK;
int egress_ask_logged(int sock, uint32_t id, const char *text) MUST_CHECK;
/* fd: -1 for the kind SOCKET. */
int egress_ask_open(int sock, uint32_t id, const struct egress_open *open, int fd) MUST_CHECK;

/* Decoders: 0, or -EBADMSG. POLICY, OPEN and RESULT leave the fd in the message; only a RESULT with
 * CONNECTED may have one, and keeper checks that it comes for a SOCKET. */
/* CONFIG without, DIRECT only the direct hosts. */
int egress_get_config(const struct ipc_msg *msg, struct egress_config *ret) MUST_CHECK;
int egress_get_direct(const struct ipc_msg *msg, struct egress_config *ret) MUST_CHECK;
int egress_get_locals(const struct ipc_msg *msg, struct egress_locals *ret) MUST_CHECK;
int egress_get_policy(const struct ipc_msg *msg, uint8_t *ret_part) MUST_CHECK;
int egress_get_loaded(const struct ipc_msg *msg, char text[EGRESS_MAX_TEXT]) MUST_CHECK;
int egress_get_logged(const struct ipc_msg *msg, char text[EGRESS_MAX_TEXT]) MUST_CHECK;
int egress_get_open(const struct ipc_msg *msg, struct egress_open *ret) MUST_CHECK;
int egress_get_result(const struct ipc_msg *msg, struct egress_result *ret) MUST_CHECK;
int egress_get_closed(const struct ipc_msg *msg, uint64_t *ret_up, uint64_t *ret_down) MUST_CHECK;
