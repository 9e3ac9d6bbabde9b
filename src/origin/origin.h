/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin - the files of sbx-origin above its parts.
 *
 * How      main.c starts, enters the jail and dispatches events. control.c handles messages of the
 *          keeper, channel.c the bytes of the channel to edge. Each OPEN is a struct exchange with
 *          its stream of the channel, or the socket of a clerk: exchange.c reads its request,
 *          checks it (slot_judge) and waits for a line whose certificate is verified. Only on such
 *          a line is the value requested (value_ask). Then slot_fill inserts it and the line sends
 *          the request. talk.c forwards the body. selftest.c is --jail-selftest.
 * Trust    Frames of edge and data of a server. Holds the credentials of one service.
 * Owns     The channel to edge, the sockets, fd CONTROL_FD, the value.
 * Limits   ORIGIN_MAX_OPEN exchanges, ORIGIN_MAX_CONNS lines, the ORIGIN_*_MS of limits.h, OUT_MAX
 *          a direction.
 * Never    Sends NEED before a certificate was verified. Sends to another host. Sends a request
 *          twice, except for the one case at ORIGIN_TRIES. Follows a redirect.
 * See      README, lib/os/ipc/origin_chan.h, proto/PROTOCOL.canon
 */
#pragma once

#include "src/origin/answer/answer.h"
#include "src/origin/line/line.h"
#include "src/origin/value/value.h"

/* control.c */
extern const struct control_ops origin_control;
/* Sends due reports of an exchange, or later if the keeper does not read. */
void control_report(struct origin *o, struct exchange *x);
/* Returns true if sent. Otherwise line_serve and value_flush_due are called later. */
bool control_want(struct origin *o, uint32_t id) MUST_CHECK;
bool control_need(struct origin *o, uint32_t id, const struct origin_need *need) MUST_CHECK;
bool control_tokens(
	struct origin *o, uint32_t id, const struct origin_tokens *tokens, int fd) MUST_CHECK;

/* channel.c: the channel to edge. */
/* Takes fd. All exchanges of an earlier channel end. */
void channel_take(struct origin *o, int fd);
void channel_on_event(struct origin *o, uint32_t events);
/* Reads on, if it waited for the keeper. */
void channel_resume(struct origin *o);
/* After each event: sends what is there when no further event is. */
void channel_turn(struct origin *o);

/* exchange.c */
extern const struct exchange_ops exchange_ops;
/* Takes clerk: the socket to a clerk; -1: it is a stream of the channel. */
void exchange_open(struct origin *o, uint32_t id, const struct ticket *ticket, int clerk);
struct exchange *exchange_find(struct origin *o, struct loop_key key);
/* Handles what has happened on the streams to edge. */
void exchange_run_streams(struct origin *o);
void exchange_on_clerk(struct origin *o, struct exchange *x, uint32_t events);
void exchange_on_timer(struct origin *o, struct exchange *x);
void exchange_fail(struct origin *o, struct exchange *x, enum origin_outcome outcome,
	const char *fmt, ...) PRINTF_LIKE(4, 5);
/* The answer is complete: reports DONE, sends the rest of to_edge, then closes everything. */
void exchange_end(struct origin *o, struct exchange *x);
void exchange_finish(struct origin *o, struct exchange *x);
/* Its content is complete, and can be signed. */
void exchange_on_kept(struct origin *o, struct exchange *x);

/* talk.c: frames of edge to the line, once the request was sent. */
struct talk *talk_new(void);
void talk_free(struct talk *t);
void talk_pump(struct origin *o, struct exchange *x);
/* Reads content to keep; see EXCHANGE_BODY. */
void talk_keep(struct origin *o, struct exchange *x);
/* Sends the rest of to_edge. Returns false if the exchange has ended. */
bool talk_flush(struct origin *o, struct exchange *x) MUST_CHECK;

/* selftest.c */
int origin_selftest(void);
