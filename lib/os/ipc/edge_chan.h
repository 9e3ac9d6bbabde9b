/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edge_chan - the messages between a keeper and its edge, on edge's fd 3.
 *
 * How      SOCK_SEQPACKET, struct ipc_msg; the header's id names the stream (keeper chooses it) or
 *          the ASK (edge chooses it). edge_chan is the table of proto/PROTOCOL.ipc, used by both
 *          sides on every message. HELLO of edge, CONFIG with the stream of sbx.ctl, READY when the
 *          guest has answered; then OPEN bridges a socket to a stream of the guest, answered by
 *          OPENED and later CLOSED, or by REFUSED alone. LOST is the end.
 *
 *          The network: NET gives the stream of the guest's port sbx.net, once. For each request of
 *          the guest there, edge sends an ASK, and the keeper answers each with one VERDICT. An
 *          allowed TUNNEL or HTTP comes with a stream socket to egress, where one exchange of
 *          proto/PROTOCOL.canon follows; DNS, CONNECT and refusals come without. The socket of an
 *          allowed AGENT is connected to sbx-ssh-agent. LINK has a URL as its target, which the
 *          user is asked to open: allowed means that it is shown. An ASK with a fault is a request
 *          that edge has rejected: it is recorded and denied. A TUNNEL whose verdict is `opened`
 *          has no socket: edge terminates the guest's TLS, and each request inside is an HTTP ASK
 *          with `tls`. A VERDICT with `wants` is not a decision: rules for the host name headers,
 *          and edge sends the ASK again with them. To intercept, edge creates the CA of the sandbox
 *          when it is configured, or uses the CA in CONFIG, and sends it once in CA: the
 *          certificate for the guest, and the state that the next edge needs.
 * Trust    keeper: edge may be compromised by the guest. edge: also checks the keeper.
 * Limits   EDGE_MAX_*, IPC_MAX_BODY. Any violation: the receiver drops the peer.
 * See      proto/PROTOCOL.ipc, edge_chan_test.c, edge_chan_fuzz.c
 */
#pragma once

#include "chan.h"
#include "lib/base/hash/ticket.h"

#define EDGE_MAX_ID 32
#define EDGE_MAX_PATH 64
#define EDGE_MAX_TEXT 256
#define EDGE_MAX_STREAMS 256
#define EDGE_MAX_READY_MS 10000000
#define EDGE_MAX_ASKS 1280 /* unanswered at once: one for each stream of sbx.net */
#define EDGE_MAX_HOST 254
#define EDGE_MAX_METHOD 33
#define EDGE_MAX_TARGET 8192 /* HTTP_MAX_TARGET of lib/wire/http/canon, and a NUL */
#define EDGE_MAX_NAMED 2049  /* CANON_NAMED_MAX, and a NUL */
#define EDGE_MAX_WANTS 1024  /* CANON_NAMED_NAMES */
#define EDGE_MAX_EFFECT 513  /* EFFECT_MAX_TEXT, and a NUL */
#define EDGE_MAX_INSTEAD 256
#define EDGE_MAX_COMMAND 512
#define EDGE_MAX_RULE 256
#define EDGE_MAX_REASON 512
#define EDGE_MAX_NAME 64
#define EDGE_MAX_APPROVAL 8
#define EDGE_MAX_PEM 2048
#define EDGE_MAX_SAVED 2048
/* How long a guest may be silent where it has to speak first, and for its TLS handshake: the
 * keeper gives it as `--first-ms`. Under emulation a program can be silent for longer: node
 * takes minutes to start. */
#define EDGE_FIRST_MS 10000
#define EDGE_FIRST_MS_TCG 60000
#define EDGE_MAX_FIRST_MS 6000000
#define EDGE_SILENT "nothing was sent within " /* the fault of a silent one begins so */

enum edge_msg {
	EDGE_HELLO = CHAN_HELLO,
	EDGE_CONFIG,
	EDGE_READY,
	EDGE_OPEN,
	EDGE_OPENED,
	EDGE_REFUSED,
	EDGE_CLOSED,
	EDGE_LOST = 10,
	EDGE_NET = 12,
	EDGE_ASK,
	EDGE_VERDICT,
	EDGE_CA,
	EDGE_GONE, /* nothing waits for the VERDICT of this ASK any more; it is still sent */
	EDGE_CHANNEL,
	EDGE_N_MSGS,
};

enum edge_phase {
	EDGE_PHASE_START,   /* nothing was sent */
	EDGE_PHASE_CONFIG,  /* HELLO was sent */
	EDGE_PHASE_CONNECT, /* CONFIG was sent; the guest has not answered yet */
	EDGE_PHASE_RUN,	    /* READY was sent */
	EDGE_PHASE_END,	    /* LOST was sent: no further message */
	EDGE_N_PHASES,
};

extern const struct chan edge_chan;

enum edge_reason {
	EDGE_REASON_FULL,  /* EDGE_MAX_STREAMS are open */
	EDGE_REASON_GUEST, /* the guest reset the stream before it answered */
	EDGE_REASON_GONE,  /* the bridged socket closed before the guest answered */
	EDGE_REASON_IDS,   /* this connection's stream ids are used up: start a new edge */
	EDGE_N_REASONS,
};

enum edge_ask_kind {
	EDGE_ASK_TUNNEL, /* bytes both ways to host:port */
	EDGE_ASK_HTTP,	 /* one HTTP request */
	EDGE_ASK_DNS,	 /* may this name have an address? */
	EDGE_ASK_AGENT,	 /* the host's SSH agent */
	/* Whether a TUNNEL or HTTP to host:port would be refused by policy. Nothing is opened. */
	EDGE_ASK_CONNECT,
	EDGE_ASK_LINK, /* may the user be asked to open this URL? */
	EDGE_N_ASK_KINDS,
};

/* Whether an allowed one, unless it is opened, comes with a socket, or with a stream if it is
 * inside TLS. */
static inline bool edge_ask_has_socket(enum edge_ask_kind kind)
{
	return kind != EDGE_ASK_DNS && kind != EDGE_ASK_CONNECT && kind != EDGE_ASK_LINK;
}

/* How the guest named the target. */
enum edge_via { EDGE_VIA_FORWARD, EDGE_VIA_TRANSPARENT, EDGE_N_VIAS };

/* What the connection was seen to speak so far. */
enum edge_proto {
	EDGE_PROTO_UNKNOWN,
	EDGE_PROTO_TLS,
	EDGE_PROTO_HTTP,
	EDGE_PROTO_TCP,
	EDGE_N_PROTOS
};

struct edge_ask {
	enum edge_ask_kind kind;
	enum edge_via via;
	enum edge_proto proto;
	char host[EDGE_MAX_HOST]; /* canonical (rules/policy/host.h); of a fault: what is known */
	uint16_t port;		  /* 0 for DNS, and in a fault where it is not known */
	uint16_t qtype;		  /* DNS */
	bool tls;		  /* HTTP: inside TLS that edge has opened */
	char method[EDGE_MAX_METHOD]; /* HTTP */
	char target[EDGE_MAX_TARGET]; /* HTTP: the whole path, and `?` and the query if it has one.
				     * LINK: the URL */
	char fault[EDGE_MAX_TEXT];    /* not "": why edge has refused it */
	uint32_t wants_id;	      /* HTTP: of the `wants` whose headers `named` has; 0: none */
	char named[EDGE_MAX_NAMED];   /* HTTP: text of lib/wire/http/canon/canon_named.h */
};

/* The target of an HTTP ask up to its query. */
struct slice edge_ask_path(const struct edge_ask *ask);
/* What an HTTP ask permits if it is allowed. */
void edge_ask_ticket(const struct edge_ask *ask, struct ticket *ret);

/* An ask that waits: a heap block with just its texts, where struct edge_ask has room for the
 * longest. free() frees it. */
struct ask_copy;
struct ask_copy *ask_copy_new(const struct edge_ask *ask);
void ask_copy_get(const struct ask_copy *a, struct edge_ask *ret);
/* True if an allowed ask needs egress. */
bool ask_copy_is_open(const struct ask_copy *a);

struct edge_verdict {
	bool allowed;
	bool opened;		      /* TUNNEL: edge terminates its TLS; no socket */
	bool no_rule_helps;	      /* of a no: it is not the policy that would have to change */
	uint32_t count;		      /* how often just this was refused, now included */
	char rule[EDGE_MAX_RULE];     /* the rule that decided; "": none applies */
	char reason[EDGE_MAX_REASON]; /* a sentence that stands instead of rule or its absence */
	char sandbox[EDGE_MAX_NAME];  /* its name, for the command to type */
	char approval[EDGE_MAX_APPROVAL]; /* of a no: the hold that a person can approve */
	/* HTTP, of a no by a rule about requests; printable. */
	char effect[EDGE_MAX_EFFECT];	/* what was refused (lib/rules/effect/effect.h) */
	char instead[EDGE_MAX_INSTEAD]; /* the nearest rule that allows; "": none for the host */
	char command[EDGE_MAX_COMMAND]; /* to type instead of one about the network */
	/* Names of headers that rules name, with commas. HTTP, not allowed: not decided yet,
	 * edge sends the ASK again with these headers. Opened: for all requests inside. */
	char wants[EDGE_MAX_WANTS];
	uint32_t wants_id; /* not 0 if there are names; another one for other names */
	/* HTTP inside TLS, allowed: the id of CHANNEL, and the stream of it. Otherwise 0. */
	uint32_t channel, stream;
};

struct edge_config {
	char sandbox[EDGE_MAX_ID];
	uint32_t ready_ms; /* LOST if no SETTINGS of the guest came by then; not 0 */
	uint16_t n_saved;
	uint8_t saved[EDGE_MAX_SAVED]; /* the previous edge's CA (mint); none: a new one */
};

/* The sandbox's CA. `saved` is its key: the keeper keeps it in memory for the next edge only. */
struct edge_ca {
	char pem[EDGE_MAX_PEM]; /* the certificate: printable lines */
	uint16_t n_saved;
	uint8_t saved[EDGE_MAX_SAVED];
};

/* edge's side. HELLO: chan_send_hello. READY, CLOSED: chan_send_plain. */
int edge_send_opened(int sock, uint32_t id, uint16_t status) MUST_CHECK;
int edge_send_refused(int sock, uint32_t id, enum edge_reason reason) MUST_CHECK;
/* Text over the limit is cut. */
int edge_send_lost(int sock, const char *text) MUST_CHECK;
int edge_send_ask(int sock, uint32_t id, const struct edge_ask *ask) MUST_CHECK;
int edge_send_ca(int sock, const struct edge_ca *ca) MUST_CHECK;

/* keeper's side; fds stay the caller's. NET, CHANNEL: chan_send_plain. */
int edge_ask_config(int sock, const struct edge_config *config, int ctl_fd) MUST_CHECK;
int edge_ask_open(int sock, uint32_t id, const char *path, int fd) MUST_CHECK;
/* fd: -1, or the edge's end of the socket to egress. */
int edge_answer_ask(int sock, uint32_t id, const struct edge_verdict *verdict, int fd) MUST_CHECK;

/* Decoders: 0, or -EBADMSG when a field is missing, too long, out of range or too many came, or an
 * fd is missing or unexpected. CONFIG and OPEN leave the fd in the message. */
int edge_get_config(const struct ipc_msg *msg, struct edge_config *ret) MUST_CHECK;
int edge_get_open(const struct ipc_msg *msg, char path[EDGE_MAX_PATH]) MUST_CHECK;
int edge_get_opened(const struct ipc_msg *msg, uint16_t *ret_status) MUST_CHECK;
int edge_get_refused(const struct ipc_msg *msg, enum edge_reason *ret_reason) MUST_CHECK;
int edge_get_lost(const struct ipc_msg *msg, char text[EDGE_MAX_TEXT]) MUST_CHECK;
int edge_get_ask(const struct ipc_msg *msg, struct edge_ask *ret) MUST_CHECK;
int edge_get_ca(const struct ipc_msg *msg, struct edge_ca *ret) MUST_CHECK;
/* An fd stays in the message; only an allowed verdict has one. edge checks it against the ASK. */
int edge_get_verdict(const struct ipc_msg *msg, struct edge_verdict *ret) MUST_CHECK;
/* For people: "the guest refused the stream" ... */
const char *edge_reason_text(enum edge_reason reason);
