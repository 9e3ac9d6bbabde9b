/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress - the parts of sbx-egress: main.c (start, seal, the switch), control.c (keeper's
 * messages),
 *          exchange.c (the life of one exchange), resolve.c (names), dial.c (connections), tunnel.c
 *          (bytes), origin.c (HTTP), upstream.c (a company's proxy), selftest.c; bytes that wait
 *          are in lib/wire/flow/out.h.
 *
 * How      Each OPEN is a struct exchange: its request is read from edge and compared with what the
 *          keeper allowed, decided again, its name resolved, every address checked, one of them
 *          connected and checked once more; then it is a tunnel or one HTTP request. A SOCKET has
 *          no edge: its connection goes to the keeper. Whoever finds a reason to stop calls
 *          exchange_fail or exchange_finish and touches it no more.
 * Trust    Eats frames of edge, answers of resolvers, bytes of origins. Holds no secret.
 * Owns     The sockets, fd EGRESS_CONTROL_FD, the policy.
 * Limits   EGRESS_MAX_OPEN exchanges; the EGRESS_*_MS below; EGRESS_PIPES; OUT_MAX a direction.
 * Never    Resolves or connects before the policy's yes. Resolves twice for one exchange.
 * See      README, lib/os/ipc/egress_chan.h, proto/PROTOCOL.canon
 */
#pragma once

#include <netdb.h>
#include "lib/wire/flow/out.h"
#include "lib/wire/http/http1.h"
#include "lib/os/ipc/egress_chan.h"
#include "lib/os/loop/loop.h"
#include "lib/rules/policy/policy.h"

#define EGRESS_CONTROL_FD 3
#define EGRESS_SLOTS (EGRESS_MAX_OPEN + 1) /* the last one only ever says BUSY */
#define EGRESS_HEAD_MS 10000		   /* for edge's request */
#define EGRESS_RESOLVE_MS 10000
#define EGRESS_FAMILY_MS 1000 /* for the second family, when the first has addresses */
#define EGRESS_DIALS 4	      /* addresses that are tried */
#define EGRESS_DIAL_MS 5000
#define EGRESS_DIAL_NEXT_MS 300 /* a silent address does not hold up the next one longer */
#define EGRESS_DIAL_ALL_MS 15000
#define EGRESS_UPSTREAM_MS 15000 /* for the proxy's answer to CONNECT */
#define EGRESS_IDLE_MS 900000	 /* of an HTTP exchange: models think for minutes */
#define EGRESS_LINGER_MS 2000	 /* for edge to read the end */
#define EGRESS_RECHECK_MS 5000	 /* a rule that has run out ends its exchanges within this */
#define EGRESS_AGAIN_MS 50	 /* between two tries to give a connection away ... */
#define EGRESS_GIVE_MS 10000	 /* ... and for all of them */
#define EGRESS_PIPES 64		 /* held by directions that wait for their reader */
#define EGRESS_READ OUT_READ
#define EGRESS_STREAM OUT_STREAM

enum egress_ev {
	EGRESS_EV_CONTROL,
	EGRESS_EV_EDGE,
	EGRESS_EV_ORIGIN,
	EGRESS_EV_DIAL, /* idx: slot * EGRESS_DIALS + which */
	EGRESS_EV_TIMER,
	EGRESS_EV_RESOLVER,
	EGRESS_EV_RESOLVER_TIMER,
	EGRESS_EV_RECHECK,
	EGRESS_EV_AGAIN,
};

enum egress_exit { EGRESS_EXIT_OK = 0, EGRESS_EXIT_START = 1, EGRESS_EXIT_KEEPER = 4 };

enum exchange_state {
	EXCHANGE_FREE,
	EXCHANGE_HEAD,	    /* edge's request is awaited */
	EXCHANGE_RESOLVING, /* x->dial */
	EXCHANGE_DIALING,   /* x->dial */
	EXCHANGE_UPSTREAM,  /* the proxy was sent CONNECT; x->talk */
	EXCHANGE_TUNNEL,
	EXCHANGE_HTTP,	 /* x->talk */
	EXCHANGE_ENDING, /* the last bytes to edge, then its end is awaited */
	EXCHANGE_OVER,	 /* everything is closed; the keeper is still to be told */
};

struct dial {
	uint16_t port;
	bool is_checked; /* against the policy; not a pin, not the proxy */
	bool waits[2];	 /* for an answer: A, AAAA */
	bool none[2];	 /* the answer was that there is none */
	struct addr found[2][EGRESS_DIALS];
	unsigned n_found[2];
	struct addr addr[EGRESS_DIALS];
	unsigned n, next;
	int fd[EGRESS_DIALS];
	uint64_t until[EGRESS_DIALS], next_at, all_until;
	enum egress_outcome failure; /* the most telling so far; EGRESS_N_OUTCOMES: none */
	struct addr failed;
};

/* One HTTP request and its response; or a CONNECT to the proxy. */
struct talk {
	uint8_t *head; /* the payload that req points into */
	struct arena req_arena, resp_arena;
	struct http_req req;
	struct canon_reader frames;
	struct canon_flow up, down;
	struct http1 reader;
	bool is_deaf; /* the origin takes no more of the request */
	bool is_said; /* the answer's head went to edge */
	bool is_done; /* the answer's end went to edge */
};

/* One direction of a tunnel. */
struct way {
	int pipe[2]; /* -1; held while bytes are in it */
	size_t n_held;
	bool ended; /* nothing more will be read */
	bool shut;  /* and the other side knows */
};

enum { WAY_UP, WAY_DOWN };

struct exchange {
	enum exchange_state state;
	enum egress_kind kind;
	uint32_t id; /* keeper's */
	uint32_t gen;
	int edge_fd, origin_fd;
	int given_fd; /* the keeper's as soon as it takes RESULT */
	uint64_t give_until;
	struct host host;
	uint16_t port;
	bool is_free; /* where it goes was named by the user: no check of the address */
	bool is_proxied;
	uint16_t pin_port;	    /* of the pin that names the address; 0: there is none */
	bool is_own;		    /* origin_fd leads to this host itself */
	struct addr addr;	    /* where origin_fd goes */
	struct canon_reader frames; /* until the request is there */
	struct dial *dial;
	struct talk *talk;
	struct out to_edge, to_origin;
	struct way way[2];
	uint64_t n_bytes[2]; /* on the origin's connection */
	struct loop_timer timer;
	bool result_said, closed_due;
	struct egress_result *result_due;
};

struct egress {
	struct loop loop;
	enum egress_phase phase;
	struct policy *policy;
	struct egress_config config;
	struct addr_locals locals;
	struct addr pins[EGRESS_MAX_PINS];
	struct host proxy;	    /* n is 0 without one */
	struct exchange *exchanges; /* EGRESS_SLOTS */
	unsigned n_open;
	struct arena arena; /* of one decoding */
	struct loop_timer recheck, resolver_timer, again;
	int idle_pipe[2];
	unsigned n_pipes;
	bool reports_due; /* fd 3 takes no more now */
	bool is_crowded;  /* a connection could not be given away, and the log has it */
	bool loaded_due;
	uint32_t loaded_id;
	char loaded_text[EGRESS_MAX_TEXT];
	bool done;
	enum egress_exit status;
};

/* control.c */
void control_on_event(struct egress *e, uint32_t events);
/* Says what is due about an exchange, or later when the keeper does not read. */
void control_report(struct egress *e, struct exchange *x);
/* Ends what the policy of now forbids. */
void control_recheck(struct egress *e);
/* Tries again to give connections away. */
void control_again(struct egress *e);

/* exchange.c */
/* fd is taken; -1 for the kind SOCKET. */
void exchange_open(struct egress *e, uint32_t id, const struct egress_open *open, int fd);
struct exchange *exchange_find(struct egress *e, struct loop_key key);
struct loop_key exchange_key(const struct egress *e, const struct exchange *x, enum egress_ev kind);
void exchange_on_edge(struct egress *e, struct exchange *x, uint32_t events);
void exchange_on_origin(struct egress *e, struct exchange *x, uint32_t events);
void exchange_on_timer(struct egress *e, struct exchange *x);
/* origin_fd is connected and checked. */
void exchange_connected(struct egress *e, struct exchange *x);
/* The connection is what was wanted: it goes to the keeper, and nothing of it is left here. */
void exchange_give(struct egress *e, struct exchange *x);
void exchange_tell(struct egress *e, struct exchange *x, enum egress_outcome outcome,
	const struct addr *addr, const char *text);
/* Edge gets a refusal of our own when it has no answer yet; the keeper gets the outcome. addr may
 * be NULL. */
void exchange_fail(struct egress *e, struct exchange *x, enum egress_outcome outcome,
	const struct addr *addr, const char *fmt, ...) PRINTF_LIKE(5, 6);
/* What is in to_edge goes, then everything is closed. */
void exchange_end(struct egress *e, struct exchange *x);
/* Closes everything now. */
void exchange_finish(struct egress *e, struct exchange *x);
void exchange_set_timer(struct egress *e, struct exchange *x, uint64_t ms);
struct policy_op exchange_op(const struct egress *e, const struct exchange *x);
/* Whether the policy of now has anything against it; ends it when so. */
void exchange_recheck(struct egress *e, struct exchange *x);

/* resolve.c: one channel of c-ares. */
int resolve_init(struct egress *e, struct err *err) MUST_CHECK;
/* The text of a resolv.conf; what was being asked fails. */
void resolve_set_servers(struct egress *e, const char *text);
/* Asks for both families; each answer comes to dial_on_answer, perhaps at once. */
void resolve_ask(struct egress *e, const struct exchange *x, const char *name);
void resolve_on_event(struct egress *e, const struct loop_event *ev);
void resolve_on_timer(struct egress *e);

/* dial.c */
enum dial_answer { DIAL_FOUND, DIAL_NONE, DIAL_BROKEN };
void dial_begin(struct egress *e, struct exchange *x);
/* family: 0 A, 1 AAAA; host is NULL unless DIAL_FOUND. */
void dial_on_answer(struct egress *e, struct exchange *x, unsigned family, enum dial_answer answer,
	const struct hostent *host);
void dial_on_event(struct egress *e, struct loop_event ev);
void dial_on_timer(struct egress *e, struct exchange *x);
void dial_free(struct egress *e, struct exchange *x);
/* Whether the exchange may no longer lead where it leads or is about to: *ret is the address. */
bool dial_is_over(const struct egress *e, const struct exchange *x, struct addr *ret);

/* tunnel.c */
/* "200", behind which bytes pass as they are. */
void tunnel_put_head(struct exchange *x);
/* From here on bytes pass, after what is in to_edge and to_origin. */
void tunnel_run(struct egress *e, struct exchange *x);
void tunnel_pump(struct egress *e, struct exchange *x);
void tunnel_on_edge(struct egress *e, struct exchange *x, uint32_t events);
void tunnel_drop(struct egress *e, struct exchange *x);

/* origin.c */
void origin_begin(struct egress *e, struct exchange *x);
void origin_pump(struct egress *e, struct exchange *x);
struct talk *origin_new_talk(void);
void origin_free_talk(struct talk *t);

/* upstream.c */
void upstream_begin(struct egress *e, struct exchange *x);
void upstream_pump(struct egress *e, struct exchange *x);

/* selftest.c */
int egress_selftest(void);
