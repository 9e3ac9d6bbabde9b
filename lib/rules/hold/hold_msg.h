/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold_msg - HELD, UNHELD and ANSWER of lib/os/ipc/keeper_chan.h.
 *
 * How      The keeper sends HELD when a hold is opened or answered, and all holds to each new
 *          connection of sbxd. Its id is the place of the hold in the table. UNHELD, without
 *          fields (chan_send_plain), has the id of a place that is free again. ANSWER is answered
 *          by DONE: 0, or the error of hold_answer.
 * Trust    As keeper_chan.h. The preview is any bytes of the guest; who displays it must escape it.
 * Limits   HOLD_MAX_EFFECTS and the others; a message fits into IPC_MAX_BODY.
 * See      proto/PROTOCOL.ipc, hold_msg_test.c, hold_msg_fuzz.c
 */
#pragma once

#include "lib/os/ipc/keeper_chan.h"
#include "hold.h"

#define HOLD_MAX_WHERE 32

struct hold_msg {
	char id[HOLD_ID];
	uint8_t kind;	  /* enum hold_kind */
	uint8_t state;	  /* enum hold_state */
	uint64_t age_ms;  /* since it was opened */
	uint64_t left_ms; /* until it is removed, or HOLD_NO_END */
	uint32_t waiting; /* requests of the sandbox that wait now, of all holds */
	uint8_t digest[SHA256_BYTES];
	char effects[HOLD_MAX_EFFECTS + 1];
	char rule[HOLD_MAX_RULE + 1];
	char preview[HOLD_MAX_PREVIEW + 1];
};

enum hold_choice {
	HOLD_CHOICE_NO,
	HOLD_CHOICE_ONCE,
	HOLD_CHOICE_FOR,
	HOLD_CHOICE_ALWAYS,
	HOLD_CHOICE_OPEN, /* of a link: the only yes */
	HOLD_N_CHOICES
};

struct hold_reply {
	char id[HOLD_ID];
	uint8_t digest[SHA256_BYTES]; /* of what the person saw */
	uint8_t choice;		      /* enum hold_choice */
	uint32_t seconds;	      /* of HOLD_CHOICE_FOR; else 0 */
	uint32_t uid;		      /* of the person */
	char where[HOLD_MAX_WHERE];   /* the terminal, or "api" */
	char reason[HOLD_MAX_REASON + 1];
};

/* "request", "link" */
const char *hold_kind_name(enum hold_kind kind);
/* "no", "once", "for", "always", "open" */
const char *hold_choice_name(enum hold_choice choice);
/* "open", "approved", "refused", "withdrawn" */
const char *hold_state_name(enum hold_state state);

int hold_send_held(int sock, uint32_t place, const struct hold_msg *held) MUST_CHECK;
int hold_send_reply(int sock, uint32_t id, const struct hold_reply *reply) MUST_CHECK;
/* 0 or -EBADMSG. msg->id is less than HOLD_MAX for HELD and UNHELD. */
int hold_get_held(const struct ipc_msg *msg, struct hold_msg *ret) MUST_CHECK;
int hold_get_unheld(const struct ipc_msg *msg) MUST_CHECK;
int hold_get_reply(const struct ipc_msg *msg, struct hold_reply *ret) MUST_CHECK;
