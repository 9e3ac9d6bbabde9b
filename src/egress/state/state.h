/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state - the state of sbx-egress that all parts share.
 *
 * How      struct egress has the exchanges and the policy. The parts report what became of an
 *          exchange through struct exchange_ops, which main.c sets. A part that finds a reason to
 *          stop calls fail or finish and does not touch the exchange afterwards.
 * Trust    Internal.
 */
#pragma once

#include "exchange.h"

struct egress;

/* exchange.c */
struct exchange_ops {
	/* Sends edge an error if it has no answer yet, and the outcome to the keeper. addr may be
	 * NULL. */
	void (*fail)(struct egress *e, struct exchange *x, enum egress_outcome outcome,
		const struct addr *addr, const char *fmt, ...) PRINTF_LIKE(5, 6);
	/* Closes everything now. */
	void (*finish)(struct egress *e, struct exchange *x);
	/* Sends the rest of to_edge, then closes everything. */
	void (*end)(struct egress *e, struct exchange *x);
	/* RESULT, once. */
	void (*tell)(struct egress *e, struct exchange *x, enum egress_outcome outcome,
		const struct addr *addr, const char *text);
	/* upstream_fd is connected and checked. */
	void (*connected)(struct egress *e, struct exchange *x);
	/* The connection leads to the server: begins to relay. */
	void (*ready)(struct egress *e, struct exchange *x);
	/* Has the vault write the login to upstream_fd; login_on_logged follows. */
	void (*login)(struct egress *e, struct exchange *x);
	/* The connection is established: passes it to the keeper and keeps no copy. */
	void (*give)(struct egress *e, struct exchange *x);
};

struct egress {
	const struct exchange_ops *ops;
	struct loop loop;
	struct control control;
	struct policy *policy;
	struct policy_inbox inbox;
	struct egress_config config;
	struct addr_locals locals;
	struct addr pins[EGRESS_MAX_PINS];
	struct host proxy;	    /* n is 0 without one */
	struct exchange *exchanges; /* EGRESS_SLOTS */
	unsigned n_open;
	struct arena arena; /* of one decoding */
	struct loop_timer recheck, resolver_timer;
	int idle_pipe[2];
	unsigned n_pipes;
	bool loaded_due;
	uint32_t loaded_id;
	char loaded_text[EGRESS_MAX_TEXT];
};

/* NULL for a stale event. */
struct exchange *exchange_find(struct egress *e, struct loop_key key);
struct loop_key exchange_key(const struct egress *e, const struct exchange *x, enum egress_ev kind);
void exchange_set_timer(struct egress *e, struct exchange *x, uint64_t ms);
struct policy_op exchange_op(const struct egress *e, const struct exchange *x);
struct talk *talk_new(void);
void talk_free(struct talk *t);
