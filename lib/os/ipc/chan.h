/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chan - the table of a channel: its messages, who sends each of them, and when.
 *
 * How      Each channel of proto/PROTOCOL.ipc has one struct chan with a row per message number.
 *          Both peers check every message that they receive with chan_allows, and chan_after gives
 *          the phase that follows. Phase 0 is the first one. The first message of a worker is HELLO
 *          with its build id.
 * Trust    The peer may be compromised: a phase or a number that the table does not have is never
 *          allowed.
 * Limits   8 phases.
 * See      proto/PROTOCOL.ipc, chan_test.c, edge_chan.h, egress_chan.h, origin_chan.h,
 *          ssh_agent_chan.h, vault_chan.h, run_chan.h, keeper_chan.h,
 *          lib/os/ipc/notify/notify_chan.h
 */
#pragma once

#include "field.h"
#include "msg.h"

/* What HELLO must contain: both peers come from the same build. */
#ifndef SBX_BUILD
#define SBX_BUILD SBX_VERSION
#endif
#define CHAN_MAX_BUILD 64
#define CHAN_HELLO 1 /* the number of HELLO in every channel */

/* The two sides of a channel between the keeper and one of its workers. The other channels have
 * their own names for 0 and 1. */
enum chan_from { CHAN_FROM_KEEPER, CHAN_FROM_WORKER };

enum chan_flag {
	CHAN_FD = 1,	 /* the message carries a descriptor */
	CHAN_MAY_FD = 2, /* whether it does depends on its fields */
	CHAN_ID = 4,	 /* the id identifies something; in other messages it is 0 */
};

struct chan_row {
	const char *name; /* as in proto/PROTOCOL.ipc; NULL: the number is not in use */
	uint8_t from;	  /* the side that sends it */
	uint8_t phases;	  /* 1 << phase for each phase in which it is allowed */
	uint8_t after;	  /* the next phase; 0: it does not change */
	uint8_t flags;	  /* enum chan_flag */
};

struct chan {
	const char *sides[2]; /* the names of both programs */
	const struct chan_row *rows;
	uint16_t n_rows;
	uint8_t n_phases;
};

/* Whether that side may send this message now. */
bool chan_allows(const struct chan *chan, unsigned phase, unsigned from, uint16_t type);
/* The phase after an allowed message. */
uint8_t chan_after(const struct chan *chan, unsigned phase, uint16_t type);
/* Whether the message may carry a descriptor. */
bool chan_may_have_fd(const struct chan *chan, uint16_t type);
/* "HELLO"; "?" for an unknown number. */
const char *chan_name(const struct chan *chan, uint16_t type);

/* ---- for the files of the channels ---- */

/* -EMSGSIZE if the fields do not fit a message. The copy of the fields is wiped. */
int chan_send(int sock, uint16_t type, uint32_t id, const struct field *fields, const void *from,
	int fd) MUST_CHECK;
/* A message with one text of at most max bytes. */
int chan_send_str(
	int sock, uint16_t type, uint32_t id, const char *text, size_t max, int fd) MUST_CHECK;
/* A message without fields. */
int chan_send_plain(int sock, uint16_t type, uint32_t id, int fd) MUST_CHECK;

/* Decoders: 0, or -EBADMSG. A descriptor stays in the message. */
int chan_get(const struct chan *chan, const struct ipc_msg *msg, uint16_t type,
	const struct field *fields, void *ret) MUST_CHECK;
int chan_get_str(const struct chan *chan, const struct ipc_msg *msg, uint16_t type, char *buf,
	size_t size) MUST_CHECK;
int chan_get_plain(const struct chan *chan, const struct ipc_msg *msg, uint16_t type) MUST_CHECK;
/* Ends a decoder: -EBADMSG unless the type is the one decoded, all fields were there and nothing
 * after them, and the row of the message permits its id and its descriptor. */
int chan_finish(const struct chan *chan, const struct ipc_msg *msg, uint16_t type,
	const struct rd *rd) MUST_CHECK;

/* HELLO of a worker or of the vault: its build id. */
int chan_send_hello(int sock, const char *build) MUST_CHECK;
int chan_get_hello(const struct ipc_msg *msg, char build[CHAN_MAX_BUILD]) MUST_CHECK;
