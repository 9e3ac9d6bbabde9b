/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin_chan - what a keeper and one of its origins say to each other on origin's fd 3.
 *
 * How      SOCK_SEQPACKET, struct ipc_msg. The id names the exchange (keeper chooses it), the
 *          connection of a WANT, the NEED or the TOKENS (origin chooses those). origin_chan is this
 *          table:
 *          message  direction         phase           fd            fields
 *          HELLO    origin -> keeper  START > CONFIG  -             build id
 *          CONFIG   keeper -> origin  CONFIG > ROOTS  a file        struct origin_config
 *          ROOTS    keeper -> origin  ROOTS > RUN     a file        -
 *          OPEN     keeper -> origin  RUN             -, a stream  struct ticket
 *          RESULT   origin -> keeper  RUN, per OPEN   -             struct origin_result
 *          CLOSED   origin -> keeper  RUN, per OPEN   -             u64 bytes up, u64 bytes down
 *          WANT     origin -> keeper  RUN             -             -
 *          SOCKET   keeper -> origin  RUN, per WANT   a connection  struct egress_result
 *          NEED     origin -> keeper  RUN             -             struct origin_need
 *          VALUE    keeper -> origin  RUN, per NEED   a stream      struct origin_value
 *          TOKENS   origin -> keeper  RUN             a pipe        struct origin_tokens
 *          STORED   keeper -> origin  RUN, per TOKENS -             struct origin_stored
 *          RENEW    keeper -> origin  RUN             -             u8 has
 *          POLICY   keeper -> origin  RUN             a table       u8 part
 *          PACK     keeper -> origin  RUN             a file        -
 *          CHANNEL  keeper -> origin  RUN             a stream      -
 * Trust    keeper: origin reads bytes of a server and of edge. origin: checks the keeper.
 * Limits   ORIGIN_MAX_*, IPC_MAX_BODY. Any violation: the receiver drops the peer.
 * See      proto/PROTOCOL.ipc (what each means), origin_chan_test.c, origin_chan_fuzz.c
 */
#pragma once

#include "egress_chan.h"
#include "vault_chan.h"

#define ORIGIN_MAX_HOST EGRESS_MAX_HOST
#define ORIGIN_MAX_NAME 64
#define ORIGIN_MAX_ADDR EGRESS_MAX_ADDR
#define ORIGIN_MAX_TEXT 384
#define ORIGIN_MAX_SLOT 65
#define ORIGIN_CERT_HASH 32
#define ORIGIN_MAX_OPEN 256 /* exchanges at once */
#define ORIGIN_MAX_CONNS 32 /* connections, including requested ones */

enum origin_msg {
	ORIGIN_HELLO = CHAN_HELLO,
	ORIGIN_CONFIG,
	ORIGIN_ROOTS,
	ORIGIN_OPEN,
	ORIGIN_RESULT,
	ORIGIN_CLOSED,
	ORIGIN_WANT,
	ORIGIN_SOCKET,
	ORIGIN_NEED,
	ORIGIN_VALUE,
	ORIGIN_TOKENS,
	ORIGIN_STORED = 13,
	ORIGIN_RENEW,
	ORIGIN_POLICY,
	ORIGIN_PACK,
	ORIGIN_CHANNEL,
	ORIGIN_N_MSGS,
};

enum origin_phase {
	ORIGIN_PHASE_START,
	ORIGIN_PHASE_CONFIG,
	ORIGIN_PHASE_ROOTS,
	ORIGIN_PHASE_RUN,
	ORIGIN_PHASE_END,
	ORIGIN_N_PHASES,
};

extern const struct chan origin_chan;

/* Which values the sandbox has for this service: enum service_value, added up. */
#define ORIGIN_HAS_SECRET 1
#define ORIGIN_HAS_ACCESS 2
#define ORIGIN_HAS_REFRESH 4
#define ORIGIN_HAS_ALL 7

struct origin_config {
	char sandbox[ORIGIN_MAX_NAME]; /* its name, for sentences */
	char host[ORIGIN_MAX_HOST];    /* canonical */
	uint16_t port;
	uint8_t has; /* ORIGIN_HAS_*; 0: only searched, nothing is added */
};

enum origin_which { ORIGIN_SECRET, ORIGIN_ACCESS, ORIGIN_REFRESH, ORIGIN_N_WHICH };

/* What origin verified before it requests a value. */
struct origin_need {
	enum origin_which which;
	uint32_t conn;			/* the WANT whose connection was verified */
	uint8_t cert[ORIGIN_CERT_HASH]; /* SHA-256 of the server's certificate */
};

struct origin_value {
	bool given;		    /* then there is an fd */
	uint32_t use_s;		    /* requested again after this time; 0: kept */
	char text[ORIGIN_MAX_TEXT]; /* why not */
};

enum origin_outcome {
	ORIGIN_DONE,	       /* the server has answered */
	ORIGIN_BAD_REQUEST,    /* edge sent what was not allowed */
	ORIGIN_DENIED_FOREIGN, /* the request carries a credential that is not a placeholder */
	ORIGIN_DENIED_METHOD,  /* TRACE, CONNECT */
	ORIGIN_DENIED_REQUEST, /* it would create or return a credential */
	ORIGIN_NO_CONNECTION,  /* SOCKET has the reason */
	ORIGIN_NO_TLS,	       /* the handshake failed */
	ORIGIN_BAD_CERT,       /* the server's certificate is not one for this host */
	ORIGIN_NO_VALUE,       /* VALUE has the reason */
	ORIGIN_CANNOT_SIGN,    /* the request cannot be signed again */
	ORIGIN_BAD_ANSWER,     /* the response is not HTTP, or cannot be searched */
	ORIGIN_TIMEOUT,
	ORIGIN_BUSY,
	ORIGIN_GONE,	    /* edge closed the socket first */
	ORIGIN_NOT_SET,	    /* a placeholder, and no credential is set */
	ORIGIN_DENIED_RULE, /* by a rule about requests */
	ORIGIN_N_OUTCOMES,
};

struct origin_result {
	enum origin_outcome outcome;
	uint16_t status;	    /* of the answer; 0 without one */
	bool used;		    /* the credential was in the request */
	uint64_t serial;	    /* of the credential that was used */
	uint32_t n_removed;	    /* how often its value was in the response */
	char slot[ORIGIN_MAX_SLOT]; /* where it went; "": nowhere */
	char addr[ORIGIN_MAX_ADDR];
	char text[ORIGIN_MAX_TEXT]; /* one printable sentence */
};

/* The token endpoint has answered: the pipe has one of its tokens as a vault_frame, whose name is
 * SERVICE.access or SERVICE.refresh. */
struct origin_tokens {
	enum origin_which which; /* ACCESS or REFRESH */
	uint32_t expires_s;	 /* 0: unknown */
};

/* What became of TOKENS: kept, and the keeper's bindings have it; or why not. */
struct origin_stored {
	bool kept;
	char text[ORIGIN_MAX_TEXT];
};

/* "the server's certificate is not valid for this host" ... */
const char *origin_outcome_text(enum origin_outcome outcome);

/* origin's side. HELLO: chan_send_hello. WANT: chan_send_plain. */
int origin_send_result(int sock, uint32_t id, const struct origin_result *result) MUST_CHECK;
int origin_send_closed(int sock, uint32_t id, uint64_t up, uint64_t down) MUST_CHECK;
int origin_send_need(int sock, uint32_t id, const struct origin_need *need) MUST_CHECK;
int origin_send_tokens(
	int sock, uint32_t id, const struct origin_tokens *tokens, int fd) MUST_CHECK;

/* keeper's side; fds stay the caller's. ROOTS, PACK, CHANNEL: chan_send_plain. */
int origin_ask_config(int sock, const struct origin_config *config, int file) MUST_CHECK;
/* fd: -1: the id is that of a stream of the channel; else the socket to a clerk. */
int origin_ask_open(int sock, uint32_t id, const struct ticket *ticket, int fd) MUST_CHECK;
/* fd: -1 unless the outcome is EGRESS_CONNECTED. */
int origin_answer_want(
	int sock, uint32_t id, const struct egress_result *result, int fd) MUST_CHECK;
int origin_answer_need(int sock, uint32_t id, const struct origin_value *value, int fd) MUST_CHECK;
int origin_answer_tokens(int sock, uint32_t id, const struct origin_stored *stored) MUST_CHECK;
/* There are other tokens than before; `has` has at least what it had. */
int origin_ask_renew(int sock, uint8_t has) MUST_CHECK;
/* As POLICY of egress_chan.h. */
int origin_ask_policy(int sock, uint32_t id, uint8_t part, int table) MUST_CHECK;

/* Decoders: 0, or -EBADMSG. They leave the fd in the message. */
int origin_get_config(const struct ipc_msg *msg, struct origin_config *ret) MUST_CHECK;
int origin_get_open(const struct ipc_msg *msg, struct ticket *ret) MUST_CHECK;
int origin_get_socket(const struct ipc_msg *msg, struct egress_result *ret) MUST_CHECK;
int origin_get_need(const struct ipc_msg *msg, struct origin_need *ret) MUST_CHECK;
int origin_get_value(const struct ipc_msg *msg, struct origin_value *ret) MUST_CHECK;
int origin_get_tokens(const struct ipc_msg *msg, struct origin_tokens *ret) MUST_CHECK;
int origin_get_stored(const struct ipc_msg *msg, struct origin_stored *ret) MUST_CHECK;
int origin_get_renew(const struct ipc_msg *msg, uint8_t *ret_has) MUST_CHECK;
int origin_get_policy(const struct ipc_msg *msg, uint8_t *ret_part) MUST_CHECK;
int origin_get_result(const struct ipc_msg *msg, struct origin_result *ret) MUST_CHECK;
int origin_get_closed(const struct ipc_msg *msg, uint64_t *ret_up, uint64_t *ret_down) MUST_CHECK;
