/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin - the parts of sbx-origin: main.c (start, jail, the switch), control.c (keeper's
 * messages),
 *          exchange.c and talk.c (the life of one exchange, its frames), answer.c, scrub.c, sweep.c
 *          and capture.c (what the server says), slot.c (whose credential, and where it goes),
 *          sign.c, value.c (the credential), token.c and token_answer.c (token endpoints), line.c
 *          and tls.c (connections), line_h1.c and line_h2.c (HTTP on one), selftest.c.
 *
 * How      Each OPEN is a struct exchange: its request is read from edge, checked and judged
 *          (slot_judge), then waits for a struct line, a connection whose certificate is verified.
 *          Only on such a line the value is asked for (value_ask); when it is there, slot_fill
 *          puts it in and line_start sends the request. A line is asked through its struct
 *          line_ops and answers by the exchange_on_* functions, so that HTTP/1.1 (one exchange at
 *          a time) and HTTP/2 (many) look the same from here. Whoever finds a reason to stop calls
 *          exchange_fail or exchange_finish and touches the exchange no more.
 * Trust    Eats frames of edge and bytes of a server. Holds the credentials of one service.
 * Owns     The sockets, fd ORIGIN_CONTROL_FD, the value.
 * Limits   ORIGIN_MAX_OPEN exchanges, ORIGIN_MAX_CONNS lines, the ORIGIN_*_MS below, OUT_MAX a
 *          direction, LINE_MAX_IDLE.
 * Never    Says NEED before a certificate was verified. Sends to another host. Sends a request
 *          twice, but for the one case at ORIGIN_TRIES. Follows a redirect.
 * See      README, lib/os/ipc/origin_chan.h, proto/PROTOCOL.canon
 */
#pragma once

#include <openssl/ssl.h>
#include "lib/wire/flow/out.h"
#include "lib/wire/http/http1.h"
#include "lib/wire/http/ws.h"
#include "lib/os/ipc/origin_chan.h"
#include "lib/os/ipc/vault_frame.h"
#include "lib/os/loop/loop.h"
#include "lib/secret/oauth/oauth.h"
#include "lib/secret/secret/secret.h"
#include "lib/secret/service/service.h"

#define ORIGIN_CONTROL_FD 3
#define ORIGIN_SLOTS (ORIGIN_MAX_OPEN + 1) /* the last one only ever says BUSY */
#define ORIGIN_HEAD_MS 10000		   /* for edge's request */
#define ORIGIN_BODY_MS 60000		   /* for more of content that is kept */
#define ORIGIN_LINE_MS 60000		   /* for a connection, others' turns included */
#define ORIGIN_HANDSHAKE_MS 10000
#define ORIGIN_VALUE_MS 60000 /* for the vault, which may have to ask a person */
#define ORIGIN_READ_VALUE_MS 10000
#define ORIGIN_IDLE_MS 900000	  /* of an exchange: models think for minutes */
#define ORIGIN_KEEP_MS 55000	  /* a line that nobody uses; servers often say 60 s */
#define ORIGIN_TOKEN_MS 60000	  /* for a token endpoint's answer */
#define ORIGIN_FLIGHT_MS 90000	  /* for the answer to somebody else's refresh */
#define ORIGIN_STORE_MS 20000	  /* for the vault to keep the tokens */
#define ORIGIN_REFRESHED_MS 60000 /* a refresh so soon after the last one gets that one's answer */
#define ORIGIN_AGAIN_MS 50	  /* between two tries to pass a token on */
#define ORIGIN_MAX_TOKENS 16	  /* exchanges with a token endpoint under way; more are busy */
#define ORIGIN_LINGER_MS 2000	  /* for edge to read the end */
#define ORIGIN_ROOTS_BYTES (4 * 1024 * 1024)
#define ORIGIN_MAX_RETIRED 4  /* values of before that responses are still searched for */
#define ORIGIN_MAX_CAPTURED 4 /* the same of captured ones */
#define LINE_MAX_IDLE 8	      /* lines that are kept for later */
#define LINE_READ OUT_READ
/* A request is sent once. Only one without content, whose method is safe, may go a second time,
 * on a new line: when a line that had served before was closed before one byte of an answer
 * came. That is how servers end connections that they are tired of. */
#define ORIGIN_TRIES 2

enum origin_ev {
	ORIGIN_EV_CONTROL,
	ORIGIN_EV_EDGE,
	ORIGIN_EV_TIMER, /* of an exchange */
	ORIGIN_EV_SCRUB, /* bytes that are kept back have waited */
	ORIGIN_EV_LINE,
	ORIGIN_EV_LINE_TIMER,
	ORIGIN_EV_VALUE,
	ORIGIN_EV_VALUE_TIMER,
	ORIGIN_EV_AGAIN,
};

enum origin_exit { ORIGIN_EXIT_OK = 0, ORIGIN_EXIT_START = 1, ORIGIN_EXIT_KEEPER = 4 };

struct origin;
struct exchange;
struct line;

/* ---- connections ---- */

enum line_kind { LINE_NONE, LINE_H1, LINE_H2 };

enum line_state {
	LINE_FREE,
	LINE_WANTED,	/* WANT was said */
	LINE_HANDSHAKE, /* TLS, and the certificate */
	LINE_READY,	/* verified */
};

/*
 * What a protocol does on a line. on_event and resume may end exchanges by the exchange_on_*
 * functions, which say what became of them; leave and these may drop the line by line_drop. start,
 * body and end do neither, they only take. Plain bytes go by line_recv and line_send.
 */
struct line_ops {
	enum line_kind kind;
	const char *alpn;
	/* The line is READY: makes l->proto. False: the line is dropped by the caller. */
	bool (*begin)(struct origin *o, struct line *l);
	void (*done)(struct origin *o, struct line *l); /* frees l->proto */
	/* Whether one more exchange may be put on it now. */
	bool (*can_take)(const struct line *l);
	/* Sends the head of x->talk->req, which may hold the value. x->line is l
	 * and counted in l->n_exchanges. 0, or negative: nothing was sent. */
	int (*start)(struct origin *o, struct line *l, struct exchange *x);
	/* How many bytes of content it takes from x now; the rest waits in edge's socket. When it
	 * becomes more it calls exchange_on_room. */
	size_t (*room)(const struct line *l, const struct exchange *x);
	/* Of edge: at most OUT_READ bytes when room() was as much, whose number fits what the
	 * head said; canon_flow has checked it. */
	int (*body)(struct origin *o, struct exchange *x, struct slice bytes);
	int (*end)(struct origin *o, struct exchange *x, const struct http_headers *trailers);
	/* The exchange leaves: it is answered, or given up by us or edge; perhaps never started. */
	void (*leave)(struct origin *o, struct line *l, struct exchange *x);
	/* x has room for more of its answer again (exchange_has_room), and the line had set
	 * x->is_stopped. */
	void (*resume)(struct origin *o, struct line *l, struct exchange *x);
	/* Bytes may be read or written. */
	void (*on_event)(struct origin *o, struct line *l);
};

struct line {
	enum line_state state;
	uint32_t id; /* of the WANT */
	uint32_t gen;
	int fd;
	SSL *ssl;
	bool h1_only; /* for websockets: no other protocol is offered */
	const struct line_ops *ops;
	void *proto; /* of ops */
	unsigned n_exchanges;
	uint64_t n_served; /* exchanges that were answered on it */
	bool is_closing;   /* takes no more exchanges */
	char addr[ORIGIN_MAX_ADDR];
	uint8_t cert[ORIGIN_CERT_HASH];
	struct loop_timer timer;
};

/* ---- exchanges ---- */

enum exchange_state {
	EXCHANGE_FREE,
	EXCHANGE_HEAD,	 /* edge's request is awaited */
	EXCHANGE_BODY,	 /* its content is kept until it is whole, to be signed */
	EXCHANGE_TOKEN,	 /* a token endpoint's: all of the content is awaited */
	EXCHANGE_FLIGHT, /* a refresh: that of another exchange is awaited */
	EXCHANGE_LINE,	 /* a line is awaited */
	EXCHANGE_VALUE,	 /* has a line; the value is awaited */
	EXCHANGE_TALK,	 /* request and answer under way */
	EXCHANGE_STORE,	 /* answered with tokens; the vault is awaited */
	EXCHANGE_RAW,	 /* a websocket: bytes both ways */
	EXCHANGE_ENDING, /* the last bytes to edge, then its end is awaited */
	EXCHANGE_OVER,	 /* everything is closed; the keeper is still to be told */
};

/* One request and its answer. */
struct talk {
	uint8_t *head; /* the payload that req points into; kept while it may be sent again */
	size_t n_head;
	struct arena req_arena;
	struct http_req req; /* judged: no sentinel is in it */
	struct canon_reader frames;
	struct canon_flow up, down;
	struct ws ws;	   /* of EXCHANGE_RAW: where the server is in a frame */
	struct sign *sign; /* sign.c's; NULL when the service's requests are not signed */
	bool is_deaf;	   /* the server takes no more of the request */
	bool is_said;	   /* the answer's head went to edge */
	bool is_done;	   /* the answer's end went to edge */
};

/* A token on its way to the vault. */
struct token_store {
	uint32_t id; /* of TOKENS; 0: none */
	struct origin_tokens what;
	int fd;	     /* its frame, while the keeper does not read */
	bool is_due; /* TOKENS is still to be said */
};

/* One request to a token endpoint and its answer, each held until it is whole. */
struct token {
	struct oauth_request req; /* points into body */
	uint8_t *body;
	size_t n_body;
	struct secret filled; /* the body with the refresh token */
	size_t n_pushed;
	bool is_pushed;
	uint8_t *head; /* the answer's: payload of a frame */
	size_t n_head;
	struct secret answer;
	struct secret clean; /* the answer as edge gets it */
	uint32_t expires_s;
	uint32_t n_removed;
	bool has_answer; /* it goes to edge, and to those that wait for this refresh */
	struct token_store store[2];
};

/* The answer to the last refresh; no token is in it. */
struct token_memory {
	uint8_t *head, *body;
	size_t n_head, n_body;
	uint64_t until_ms;
};

struct exchange {
	enum exchange_state state;
	uint32_t id; /* keeper's */
	uint32_t gen;
	uint64_t order; /* of their coming */
	int edge_fd;
	struct canon_reader frames; /* until the request is there */
	struct talk *talk;
	struct token *token; /* NULL: not for a token endpoint */
	struct line *line;
	void *stream;			 /* of the line's protocol */
	const struct service_slot *slot; /* NULL: no credential goes into this request */
	enum origin_which which;
	struct secret filled; /* what sign.c made, until the head was sent */
	unsigned n_tries;
	unsigned n_lost; /* new lines that were closed before it was sent; ORIGIN_TRIES end it */
	struct out to_edge;
	struct scrub_state *scrub; /* scrub.c's; NULL without one */
	uint32_t captures;	   /* rules of the service for its response, a bit each */
	struct capture *capture;   /* capture.c's; NULL: the response is not held */
	struct sweep *pinned;	   /* has the values that were sent with it; NULL: none was */
	struct loop_timer scrub_timer;
	uint64_t n_up, n_down;
	struct loop_timer timer;
	struct origin_result result; /* grows; said once */
	bool result_due, result_said, closed_due;
	bool edge_shut;	 /* nothing more is said to edge */
	bool wants_h1;	 /* the server wants HTTP/1.1 for it */
	bool is_stopped; /* its line has more of the answer, which waits for exchange_has_room */
};

/* ---- the credential ---- */

enum value_state { VALUE_NONE, VALUE_ASKED, VALUE_READING, VALUE_HERE };

struct value {
	enum value_state state;
	uint32_t id, gen;
	int fd;
	uint64_t until_ms; /* UINT64_MAX: kept */
	struct origin_need need;
	bool need_due;	     /* the keeper did not read */
	bool is_stale;	     /* there is another one since it was asked for */
	struct secret bytes; /* a whole vault_frame */
	struct secret
		text[SERVICE_MAX_SLOTS]; /* as it stands in a slot's header; made on first use */
	struct vault_frame frame;	 /* its value points into bytes */
	struct loop_timer timer;
};

struct origin {
	struct loop loop;
	enum origin_phase phase;
	struct origin_config config;
	struct host host;
	struct service service;
	SSL_CTX *tls;
	struct exchange *exchanges; /* ORIGIN_SLOTS */
	unsigned n_open;
	uint64_t n_exchanges;
	struct line lines[ORIGIN_MAX_CONNS];
	uint32_t n_wants, n_needs;
	enum line_kind spoken; /* what the server chose the last time */
	struct value value[ORIGIN_N_WHICH];
	struct exchange *flight; /* the refresh that is under way */
	struct token_memory memory;
	uint32_t n_tokens;
	struct sweep
		*sweep; /* sweep.c's: what responses are searched for now; NULL: made when needed */
	struct secret retired[ORIGIN_MAX_RETIRED]; /* values that were here before */
	unsigned n_retired;
	struct secret captured[ORIGIN_MAX_CAPTURED];
	unsigned n_captures; /* that were put there */
	size_t n_captured;   /* bytes of responses that are held, see CAPTURE_MAX_KEPT */
	bool is_sweep_old;   /* values changed since it was made */
	uint32_t n_changes;  /* of the values that responses are searched for */
	struct arena arena;  /* of one decoding */
	size_t n_kept;	     /* bytes, see SIGN_MAX_KEPT */
	bool lines_due;	     /* line_serve is called before the next event */
	bool reports_due;    /* fd 3 takes no more now */
	bool is_crowded;     /* a token could not be passed on, and the log has it */
	struct loop_timer again;
	bool done;
	enum origin_exit status;
};

/* control.c */
void control_on_event(struct origin *o, uint32_t events);
/* Says what is due about an exchange, or later when the keeper does not read. */
void control_report(struct origin *o, struct exchange *x);
/* Tries again to pass tokens on. */
void control_again(struct origin *o);
/* Whether it was said. When the keeper does not read, line_serve and value_flush_due come later. */
bool control_want(struct origin *o, uint32_t id) MUST_CHECK;
bool control_need(struct origin *o, uint32_t id, const struct origin_need *need) MUST_CHECK;
bool control_tokens(
	struct origin *o, uint32_t id, const struct origin_tokens *tokens, int fd) MUST_CHECK;

/* exchange.c */
/* fd is taken. */
void exchange_open(struct origin *o, uint32_t id, int fd);
struct exchange *exchange_find(struct origin *o, struct loop_key key);
struct loop_key exchange_key(const struct origin *o, const struct exchange *x, enum origin_ev kind);
void exchange_on_edge(struct origin *o, struct exchange *x, uint32_t events);
void exchange_on_timer(struct origin *o, struct exchange *x);
/* Edge gets a refusal of our own when it has no answer yet; the keeper gets the outcome. */
void exchange_fail(struct origin *o, struct exchange *x, enum origin_outcome outcome,
	const char *fmt, ...) PRINTF_LIKE(4, 5);
/* The answer is whole: RESULT says DONE, what is in to_edge goes, then everything is closed. */
void exchange_end(struct origin *o, struct exchange *x);
/* Closes everything now. */
void exchange_finish(struct origin *o, struct exchange *x);
void exchange_set_timer(struct origin *o, struct exchange *x, uint64_t ms);
/* Its request is judged and whole: it waits for a line. */
void exchange_want_line(struct origin *o, struct exchange *x);
/* RESULT says DONE. */
void exchange_tell_done(struct origin *o, struct exchange *x);
/* A line is there and verified: goes on to the value, or sends. */
void exchange_take_line(struct origin *o, struct exchange *x, struct line *l);
/* The value is there, or (NULL otherwise) why not. */
void exchange_on_value(struct origin *o, struct exchange *x, const char *why_not);

/* Its content is whole, and signed with it. */
void exchange_on_kept(struct origin *o, struct exchange *x);

/* What a line says. They return whether the exchange is still on this line. After the events of one
 * read the line calls talk_flush, which sends them on. */
bool exchange_on_head(struct origin *o, struct exchange *x, struct http_resp *resp);
bool exchange_on_data(struct origin *o, struct exchange *x, struct slice data);
bool exchange_on_end(struct origin *o, struct exchange *x, struct http_headers *trailers);
/* untouched: the server has certainly not begun to work on the request, and the line had served
 * others before. The exchange has left the line when it returns. */
void exchange_on_fail(struct origin *o, struct exchange *x, enum origin_outcome outcome,
	bool untouched, const char *why);
/* As exchange_on_fail, and it is certain that the server has not begun, and no content was
 * taken: it is sent once more, on any line that fits. */
void exchange_on_refused(struct origin *o, struct exchange *x, const char *why);
/* Its line was closed while it held it and nothing was sent on it. */
void exchange_on_lost(struct origin *o, struct exchange *x);
/* The server will read no more of the request; its answer may still come. */
void exchange_on_deaf(struct origin *o, struct exchange *x);
/* room() has grown. From on_event only, where no bytes are half read. */
void exchange_on_room(struct origin *o, struct exchange *x);
/* Whether one more read of the server may be passed on to it. A head needs all of the room. */
bool exchange_has_room(const struct exchange *x);

/* talk.c: frames of edge to the line, once the request was sent. */
struct talk *talk_new(void);
void talk_free(struct talk *t);
void talk_pump(struct origin *o, struct exchange *x);
/* Reads content that is kept; see EXCHANGE_BODY. */
void talk_keep(struct origin *o, struct exchange *x);
/* Sends what is in to_edge. False when the exchange is over. */
bool talk_flush(struct origin *o, struct exchange *x) MUST_CHECK;

/* answer.c: what goes to edge. -EBADMSG: it cannot be passed on. */
int answer_put_head(struct exchange *x, struct http_resp *resp) MUST_CHECK;
int answer_put_data(struct exchange *x, struct slice data) MUST_CHECK;
int answer_put_end(struct exchange *x, struct http_headers *trailers) MUST_CHECK;

/* scrub.c: every byte of an answer passes here, and may be changed or held back, on its way to the
 * answer_put_* functions. -EBADMSG: it cannot be looked through, the exchange fails. */
int answer_scrub_head(struct origin *o, struct exchange *x, struct http_resp *resp) MUST_CHECK;
int answer_scrub(struct origin *o, struct exchange *x, struct slice data) MUST_CHECK;
int answer_scrub_end(
	struct origin *o, struct exchange *x, struct http_headers *trailers) MUST_CHECK;
/* Bytes of a websocket, which have no frames around them. */
int answer_scrub_raw(struct origin *o, struct exchange *x, struct slice data) MUST_CHECK;
/* What was kept back of them. */
int answer_scrub_raw_end(struct exchange *x) MUST_CHECK;
void answer_scrub_done(struct origin *o, struct exchange *x);
/* A decoder has more than edge had room for: answer_scrub_more goes on when there is room. The
 * answer's end may be waiting behind it. */
bool answer_has_more(const struct exchange *x);
int answer_scrub_more(struct origin *o, struct exchange *x) MUST_CHECK;
/* Bytes that are kept back because they may be the value. */
size_t answer_held(const struct exchange *x);
/* Nothing came for a moment. */
void answer_on_idle(struct origin *o, struct exchange *x);
/* A text of x's response that was held here, in place; adds to *n_removed. */
int answer_scrub_kept(struct origin *o, struct exchange *x, uint8_t *text, size_t n,
	uint32_t *n_removed) MUST_CHECK;

/* capture.c: responses with fields that the service captures. Errors are -EBADMSG, and
 * capture_why says why. */
#define CAPTURE_MAX_ANSWER (2U << 20) /* content of one response, decoded */
#define CAPTURE_MAX_KEPT (16U << 20)  /* of all that are held */
/* A final head of x's response: 1 when it and the content are held, 0 when it goes on. */
int capture_begin(struct exchange *x, const struct http_resp *resp) MUST_CHECK;
int capture_keep(struct origin *o, struct exchange *x, struct slice data) MUST_CHECK;
/* The content is whole: takes the fields out, and gives their number and the head. Its text is
 * x's. */
int capture_open(
	struct origin *o, struct exchange *x, struct http_resp *ret_head, size_t *ret_n) MUST_CHECK;
bool capture_is_open(const struct exchange *x);
/* Of the clean content what was not passed on; empty at its end. */
struct slice capture_next(const struct exchange *x, size_t max);
void capture_passed(struct exchange *x, size_t n);
const char *capture_why(const struct exchange *x, const char *otherwise);
void capture_free(struct origin *o, struct exchange *x);

/* sweep.c */
struct scrub_set;
/* x is about to be sent with v: its response will be searched for it. -EBADMSG: it cannot be. */
int sweep_pin(struct origin *o, struct exchange *x, const struct value *v) MUST_CHECK;
void sweep_unpin(struct exchange *x);
/* What a response is searched for: what was pinned and what is here now. NULL: it cannot be, or a
 * value was sent and is not among them. sweep_put gives it back. */
struct sweep *sweep_get(struct origin *o, const struct exchange *x);
/* w and what is here now, for a response that has begun with w; as sweep_get. */
struct sweep *sweep_join(struct origin *o, struct sweep *w);
void sweep_put(struct sweep *w);
const struct scrub_set *sweep_set(const struct sweep *w);
/* A value came: responses are searched for it from here on. */
void sweep_change(struct origin *o);
/* v is here and will be wiped: responses are searched for it until ORIGIN_MAX_RETIRED others
 * came. */
void sweep_retire(struct origin *o, const struct value *v);
/* A credential that a response had: later responses are searched for it until
 * ORIGIN_MAX_CAPTURED others came. */
void sweep_capture(struct origin *o, struct slice value);
void sweep_done(struct origin *o);

/* token.c: requests to a token endpoint. */
/* Whether the path is one; -EPERM: it is not, and some server may take it for one. */
int token_is_for(const struct origin *o, const struct exchange *x, bool *ret) MUST_CHECK;
/* The head was judged: makes x->token and waits for the content. */
void token_begin(struct origin *o, struct exchange *x);
void token_read(struct origin *o, struct exchange *x);
bool token_needs_value(const struct exchange *x);
/* The request's framing, and for a refresh its content with the value. -EINVAL: it cannot stand
 * there. */
int token_fill(struct exchange *x, const struct value *v) MUST_CHECK;
/* Gives the line what it takes of the content. */
void token_push(struct origin *o, struct exchange *x);
/* Edge is gone: what was sent goes on without it, since the server may give out a token once only.
 * False when there is nothing to go on with. */
bool token_orphan(struct origin *o, struct exchange *x) MUST_CHECK;
/* Its refresh is over: whoever waits for it goes on. */
void token_land(struct origin *o, struct exchange *x);
void token_drop(struct origin *o, struct exchange *x);

/* token_answer.c */
bool token_on_head(struct origin *o, struct exchange *x, struct http_resp *resp);
bool token_on_data(struct origin *o, struct exchange *x, struct slice data);
void token_on_end(struct origin *o, struct exchange *x);
/* STORED. */
int token_on_stored(struct origin *o, const struct ipc_msg *msg) MUST_CHECK;
/* TOKENS that the keeper would not read. */
void token_flush_due(struct origin *o);
/* Whether the last refresh is good enough; then x has its answer. */
bool token_remembers(struct origin *o, struct exchange *x);
/* The flight's answer, for one that waited for it. */
void token_share(struct origin *o, struct exchange *x, const struct token *t);
void token_store_drop(struct token *t);

/* slot.c */
void slot_remove_header(struct http_headers *headers, struct slice name);
#define SLOT_MAX_WHERE 288
/* Looks through the request: ORIGIN_DONE and x->slot, or an outcome to refuse it with, and where
 * the credential stands. Removes sentinels, in place. */
enum origin_outcome slot_judge(
	struct origin *o, struct exchange *x, char ret_where[SLOT_MAX_WHERE]) MUST_CHECK;
/* ORIGIN_DENIED_FOREIGN, or ORIGIN_DONE and the trailers without sentinels. */
enum origin_outcome slot_judge_trailers(
	const struct origin *o, struct http_headers *trailers) MUST_CHECK;
/* Puts the value into the request: the header of x->slot, its text in v->text. -EINVAL: the value
 * cannot stand there. */
int slot_fill(struct origin *o, struct exchange *x, struct value *v) MUST_CHECK;
/* The head was sent: takes it out again. */
void slot_wipe(struct exchange *x);

/* refuse.c */
/* Notes in x->captures which rules `capture` its response is for. */
void refuse_find_captures(const struct origin *o, struct exchange *x);
/* Adds the command that helps to the place of a foreign credential. */
void refuse_help(const struct origin *o, enum origin_outcome outcome, char where[SLOT_MAX_WHERE]);
/* -EPERM when a rule of the service refuses the request; names the rule and a command that
 * helps. */
int refuse_judge(const struct origin *o, const struct exchange *x,
	char ret_where[SLOT_MAX_WHERE]) MUST_CHECK;

/* sign.c */
#define SIGN_MAX_KEPT (32U << 20) /* content of all exchanges that waits to be signed or sent */
/* Before slot_judge takes the sentinels out: what the guest signed. */
void sign_read(struct origin *o, struct exchange *x);
/* After it: NULL, or why it cannot be signed again. A request without signature loses its slot. */
const char *sign_refusal(struct exchange *x);
/* Whether all content must be there before the request is sent: sign_keep each part, then
 * sign_keep_end. */
bool sign_keeps_body(const struct exchange *x);
int sign_keep(struct origin *o, struct exchange *x, struct slice data) MUST_CHECK;
void sign_keep_end(struct exchange *x);
/* Content in signed chunks. -EPROTO: sign_why says why. */
bool sign_has_chunks(const struct exchange *x);
int sign_put_chunks(struct origin *o, struct exchange *x, struct slice data) MUST_CHECK;
int sign_end_chunks(struct exchange *x) MUST_CHECK;
const char *sign_why(const struct exchange *x);
/* What goes to the line before more of edge is read. sign_due_sent says whether it was the end. */
bool sign_has_due(const struct exchange *x);
struct slice sign_due(const struct exchange *x, size_t max);
bool sign_due_sent(struct exchange *x, size_t n) MUST_CHECK;
/* Signs the request. Negative: it cannot be, *ret_why says why. */
int slot_sign(struct origin *o, struct exchange *x, const struct value *v,
	const char **ret_why) MUST_CHECK;
/* The head was sent: the request is as it was before. */
void sign_wipe(struct exchange *x);
/* Whether content that no line took can be sent again. */
bool sign_can_repeat(const struct exchange *x);
void sign_free(struct origin *o, struct talk *t);

/* value.c */
/* NULL when it must be waited for: exchange_on_value is called for every exchange in EXCHANGE_VALUE
 * that waits for it. NEED names the line. */
struct value *value_ask(struct origin *o, enum origin_which which, const struct line *l);
int value_on_message(struct origin *o, struct ipc_msg *msg) MUST_CHECK;
void value_on_event(struct origin *o, struct loop_key key);
void value_on_timer(struct origin *o, struct loop_key key);
/* NEEDs that the keeper would not read. */
void value_flush_due(struct origin *o);
/* RENEW: other tokens than before. */
int value_on_renew(struct origin *o, const struct ipc_msg *msg) MUST_CHECK;
void value_wipe_all(struct origin *o);

/* line.c */
/* Gives lines to the exchanges that wait, in their order, and WANTs more. */
void line_serve(struct origin *o);
/* Whether a connection stands. */
bool line_has_any(const struct origin *o);
int line_on_socket(struct origin *o, struct ipc_msg *msg) MUST_CHECK;
void line_on_event(struct origin *o, struct loop_key key);
void line_on_timer(struct origin *o, struct loop_key key);
/* x leaves its line, which is kept or dropped. */
void line_leave(struct origin *o, struct exchange *x);
/* Closes it. No exchange may be on it any more. */
void line_drop(struct origin *o, struct line *l);
/* Asks for another turn: nothing new will come, and there was more to do. */
void line_again(struct origin *o, struct line *l);
/* As line_again after a while, for a line that has exchanges; a turn that comes sooner stays. */
void line_wake(struct origin *o, struct line *l, uint64_t ms);
/* While it is held a line is not dropped when its last exchange leaves. line_release gives the
 * number that is left; when it is 0 line_settle does what was put off: the line is kept for the
 * next ones, or dropped. */
static inline void line_hold(struct line *l)
{
	l->n_exchanges++;
}
static inline unsigned line_release(struct origin *o, struct line *l)
{
	return --l->n_exchanges;
}
void line_settle(struct origin *o, struct line *l);

/* tls.c */
int tls_init(struct origin *o, struct slice roots, struct err *err) MUST_CHECK;
/* Makes l->ssl over l->fd. */
int tls_begin(struct origin *o, struct line *l) MUST_CHECK;
/* 0 when it is verified (l->cert, l->ops), -EAGAIN, -EPROTO: no TLS, -EKEYREJECTED: not its
 * certificate; *ret_why says why. */
int tls_handshake(struct origin *o, struct line *l, const char **ret_why) MUST_CHECK;
void tls_end(
	struct line *l); /* not _free: OpenSSL 3.5 has one of that name, and is linked statically */
/* Plain bytes: as many as there are, 0 at the proper end, -EAGAIN, -EPIPE when it was cut. */
ssize_t line_recv(struct line *l, void *p, size_t n) MUST_CHECK;
/* How many were taken, -EAGAIN, -EPIPE. After -EAGAIN the same bytes must come again. */
ssize_t line_send(struct line *l, struct slice bytes) MUST_CHECK;

/* line_h1.c */
extern const struct line_ops line_h1;

/* line_h2.c */
extern const struct line_ops line_h2;

/* selftest.c */
int origin_selftest(void);
