/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_chan - what a keeper and its sbx-ssh-agent say to each other on the agent's fd 3.
 *
 * How      SOCK_SEQPACKET, struct ipc_msg. The header's id names the stream (keeper chooses it) or
 *          the ASK (agent chooses it). agent_chan is this table, used by both sides:
 *
 *          message  direction        phase           fd               fields
 *          HELLO    agent -> keeper  START > CONFIG  -                build id
 *          CONFIG   keeper -> agent  CONFIG > RUN    host's agent     u8 n, n rules
 *          OPEN     keeper -> agent  RUN             guest's stream   -
 *          CLOSED   agent -> keeper  RUN, per OPEN   -                -
 *          ASK      agent -> keeper  RUN             -                struct agent_ask
 *          VERDICT  keeper -> agent  RUN, per ASK    -                u8 allowed
 *
 *          Nothing is signed before the keeper's yes: it writes the audit record, and asks a person
 *          where that is wanted.
 * Trust    keeper: the agent reads what the guest sends. agent: checks keeper all the same.
 * Limits   AGENT_MAX_*, IPC_MAX_BODY. Any violation: the receiver drops the peer.
 * See      proto/PROTOCOL.ipc, agent_chan_test.c, agent_chan_fuzz.c
 */
#pragma once

#include "chan.h"

#define AGENT_MAX_RULES 32
#define AGENT_MAX_RULE 128
#define AGENT_MAX_FINGERPRINT 52
#define AGENT_MAX_TEXT 128
#define AGENT_MAX_OPEN 16 /* streams at once, and so ASKs */

enum agent_msg {
	AGENT_HELLO = CHAN_HELLO,
	AGENT_CONFIG,
	AGENT_OPEN,
	AGENT_CLOSED,
	AGENT_ASK,
	AGENT_VERDICT,
	AGENT_N_MSGS,
};

enum agent_phase {
	AGENT_PHASE_START,
	AGENT_PHASE_CONFIG,
	AGENT_PHASE_RUN,
	AGENT_PHASE_END,
	AGENT_N_PHASES,
};

extern const struct chan agent_chan;

struct agent_config {
	uint8_t n_rules; /* 0: every key of the host's agent */
	char rules[AGENT_MAX_RULES][AGENT_MAX_RULE];
};

enum agent_what { AGENT_LOGIN, AGENT_FILE, AGENT_OTHER, AGENT_N_WHATS };

/* One signature that the guest wants. All texts are printable. */
struct agent_ask {
	enum agent_what what;
	char fingerprint[AGENT_MAX_FINGERPRINT];
	char comment[AGENT_MAX_TEXT]; /* of the key */
	char text[AGENT_MAX_TEXT];    /* LOGIN: the user's name there; FILE: the namespace, "git" */
};

/* agent's side. HELLO: chan_send_hello. */
int agent_send_closed(int sock, uint32_t id) MUST_CHECK;
int agent_send_ask(int sock, uint32_t id, const struct agent_ask *ask) MUST_CHECK;

/* keeper's side; fds stay the caller's. */
int agent_ask_config(int sock, const struct agent_config *config, int fd) MUST_CHECK;
int agent_ask_open(int sock, uint32_t id, int fd) MUST_CHECK;
int agent_answer_ask(int sock, uint32_t id, bool allowed) MUST_CHECK;

/* Decoders: 0, or -EBADMSG. CONFIG leaves the fd in the message. */
int agent_get_config(const struct ipc_msg *msg, struct agent_config *ret) MUST_CHECK;
int agent_get_ask(const struct ipc_msg *msg, struct agent_ask *ret) MUST_CHECK;
int agent_get_verdict(const struct ipc_msg *msg, bool *ret_allowed) MUST_CHECK;
