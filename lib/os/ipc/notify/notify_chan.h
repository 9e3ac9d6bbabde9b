/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify_chan - the messages between sbxd and its sbx-notify, on the notifier's fd 3.
 *
 * How      SOCK_SEQPACKET, struct ipc_msg. The id of SHOW is a number that sbxd uses once; CLOSE
 *          and REFUSE name the notification by it. notify_chan is this table, used by both sides:
 *
 *          message  direction       phase        fields
 *          HELLO    notify -> sbxd  START > RUN  build id
 *          SHOW     sbxd -> notify  RUN          struct notify_show
 *          CLOSE    sbxd -> notify  RUN          -
 *          REFUSE   notify -> sbxd  RUN          -
 *
 *          No message approves a request: sbxd makes every REFUSE the answer no.
 * Trust    sbxd: the notifier reads what the session bus sends. notify: the texts are the guest's.
 * Limits   NOTIFY_MAX notifications, NOTIFY_MAX_EFFECT. Any violation: the receiver drops the peer.
 * See      proto/PROTOCOL.ipc, notify_chan_test.c, notify_chan_fuzz.c
 */
#pragma once

#include "lib/os/ipc/chan.h"

#define NOTIFY_MAX 64		    /* shown at once */
#define NOTIFY_MAX_SANDBOX 64	    /* with the NUL */
#define NOTIFY_MAX_HOLD 8	    /* as HOLD_ID of lib/rules/hold/hold.h, or more */
#define NOTIFY_MAX_EFFECT (512 + 1) /* proto/PROTOCOL.effect */

enum notify_msg {
	NOTIFY_HELLO = CHAN_HELLO,
	NOTIFY_SHOW,
	NOTIFY_CLOSE,
	NOTIFY_REFUSE,
	NOTIFY_N_MSGS,
};

enum notify_phase { NOTIFY_PHASE_START, NOTIFY_PHASE_RUN, NOTIFY_N_PHASES };

enum notify_from { NOTIFY_FROM_SBXD, NOTIFY_FROM_NOTIFY };
extern const struct chan notify_chan;

/* All texts are printable ASCII and not empty. */
struct notify_show {
	char sandbox[NOTIFY_MAX_SANDBOX];
	char hold[NOTIFY_MAX_HOLD];	/* the ID for sbx approve */
	char effect[NOTIFY_MAX_EFFECT]; /* the first effect of the request */
	uint32_t more;			/* how many others it has */
};

/* sbxd's side. CLOSE: chan_send_plain. */
int notify_send_show(int sock, uint32_t number, const struct notify_show *show) MUST_CHECK;
/* The notifier's side: chan_send_hello, and chan_send_plain for REFUSE. */

/* Decoders: 0, or -EBADMSG. */
int notify_get_show(const struct ipc_msg *msg, struct notify_show *ret) MUST_CHECK;
/* CLOSE and REFUSE: with a number. */
int notify_get_plain(const struct ipc_msg *msg, enum notify_msg type) MUST_CHECK;
