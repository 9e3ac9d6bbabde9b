/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state - the state of sbx-origin that all parts share.
 *
 * How      struct origin has the exchanges, the lines and the values. Each part changes its own
 *          fields; the headers next to this one describe them.
 * Trust    Internal.
 */
#pragma once

#include "credential.h"
#include "exchange.h"
#include "limits.h"
#include "line_ops.h"
#include "ops.h"
#include "lib/rules/pack/pack.h"
#include "lib/rules/policy/table.h"

struct sweep; /* sweep.c */

struct origin {
	const struct exchange_ops *ops;
	const struct keeper_ops *keeper;
	struct loop loop;
	struct control control;
	struct origin_config config;
	struct host host;
	struct service service;
	struct policy *policy; /* NULL: everything is denied */
	struct policy_inbox inbox;
	struct pack pack; /* of the host, if rules are about APIs; else without a name */
	SSL_CTX *tls;
	int channel;		    /* to sbx-edge; -1: none */
	struct mux mux;		    /* of the channel, and of those before */
	struct exchange *exchanges; /* ORIGIN_SLOTS */
	unsigned n_open;
	uint64_t n_exchanges;
	struct line lines[ORIGIN_MAX_CONNS];
	uint32_t n_wants, n_needs;
	enum line_kind spoken; /* protocol that the server chose last */
	struct value value[ORIGIN_N_WHICH];
	struct exchange *flight; /* the refresh that is under way */
	struct token_memory memory;
	uint32_t n_tokens;
	struct sweep *sweep; /* sweep.c: current set for responses; NULL: built when needed */
	struct secret retired[ORIGIN_MAX_RETIRED]; /* earlier values */
	unsigned n_retired;
	struct secret captured[ORIGIN_MAX_CAPTURED];
	unsigned n_captures; /* number of captures so far */
	size_t n_captured;   /* bytes of held responses, see CAPTURE_MAX_KEPT */
	bool is_sweep_old;   /* values changed since it was built */
	uint32_t n_changes;  /* of the values that responses are searched for */
	struct arena arena;  /* of one decoding */
	size_t n_kept;	     /* bytes, see SIGN_MAX_KEPT */
	bool lines_due;	     /* line_serve is called before the next event */
};
