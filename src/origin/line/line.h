/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line - the connections to the one server.
 *
 * How      line.c requests connections from the keeper, verifies them (tls.c), assigns them to
 *          exchanges and keeps idle ones. line_h1.c and line_h2.c are the protocols on them.
 * Trust    A server that may be hostile, through OpenSSL and lib/wire/http.
 * Owns     o->lines, o->tls.
 * Limits   ORIGIN_MAX_CONNS lines, LINE_MAX_IDLE of them idle.
 * Never    Passes on a line whose certificate was not verified.
 */
#pragma once

#include "src/origin/state/state.h"

/* line.c */
/* Assigns lines to waiting exchanges, in order, and sends WANT for more. */
void line_serve(struct origin *o);
/* Whether a connection is established. */
bool line_has_any(const struct origin *o);
int line_on_socket(struct origin *o, struct ipc_msg *msg) MUST_CHECK;
void line_on_event(struct origin *o, struct loop_key key, uint32_t events);
void line_on_timer(struct origin *o, struct loop_key key);
/* x leaves its line, which is kept or dropped. */
void line_leave(struct origin *o, struct exchange *x);

/* tls.c: o->tls with these root certificates and no others. */
int tls_init(struct origin *o, struct slice roots, struct err *err) MUST_CHECK;
