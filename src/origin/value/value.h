/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value - the credential: its source and its use.
 *
 * How      value.c gets it from the vault, slot.h and sign.h put it into a request, token.h handles
 *          token endpoints.
 * Trust    Holds the credentials of one service. Reads requests of the guest.
 * Owns     o->value, x->token, x->talk->sign.
 * Never    Requests a value before the certificate of a line was verified.
 */
#pragma once

#include "src/origin/state/state.h"
#include "sign.h"
#include "slot.h"
#include "token.h"

/* Returns NULL if the value must be awaited: on_value is called for every exchange in
 * EXCHANGE_VALUE. NEED names the line. */
struct value *value_ask(struct origin *o, enum origin_which which, const struct line *l);
int value_on_message(struct origin *o, struct ipc_msg *msg) MUST_CHECK;
void value_on_event(struct origin *o, struct loop_key key);
void value_on_timer(struct origin *o, struct loop_key key);
/* Sends NEEDs that the keeper did not read before. */
void value_flush_due(struct origin *o);
/* RENEW: the tokens have changed. */
int value_on_renew(struct origin *o, struct ipc_msg *msg) MUST_CHECK;
void value_wipe_all(struct origin *o);
