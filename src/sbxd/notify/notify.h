/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify - desktop notifications for requests that wait for approval: sbx-notify and its channel.
 *
 * How      notify_look compares the open holds of all sandboxes with the notifications, after each
 *          change. The first one starts sbx-notify, if the setting ask.notify permits it. A
 *          notification has a number that is used once, so an answer that is late is never the
 *          answer to another request. REFUSE is sent to the keeper as no, with the digest of the
 *          hold that was displayed. Without holds the channel is closed after NOTIFY_IDLE_MS, and
 *          sbx-notify exits. If it exits by itself, or there is no session bus, the next hold
 *          starts it again, NOTIFY_FIRST_DELAY_MS later at the earliest, then after twice that.
 * Trust    sbx-notify may be compromised: a message that is not allowed, a number that was not sent
 *          or a second answer for one ends it. It cannot approve.
 * Owns     The channel and the pidfd. sbx-notify exits with the channel.
 * Limits   NOTIFY_MAX notifications; further holds have none.
 * Never    Waits for sbx-notify.
 * See      lib/os/ipc/notify/notify_chan.h, src/notify/README, tests/cli/desktop/test_notify.py
 */
#pragma once

#include "src/sbxd/hands/hands.h"
#include "lib/base/clock.h"
#include "lib/os/ipc/notify/notify_chan.h"
#include "lib/rules/hold/hold.h"

#define NOTIFY_IDLE_MS 2000
#define NOTIFY_START_MS clock_limit_ms(10000) /* until HELLO */
#define NOTIFY_EXIT_MS clock_limit_ms(5000)   /* from the end of the channel */
#define NOTIFY_FIRST_DELAY_MS 60000
#define NOTIFY_LAST_DELAY_MS 600000

enum notify_state {
	NOTIFY_FREE,
	NOTIFY_DUE, /* SHOW must be sent */
	NOTIFY_SHOWN,
	NOTIFY_ENDED, /* CLOSE must be sent */
};

struct notify_place {
	enum notify_state state;
	uint32_t number;
	char keeper[SPEC_ID_LEN + 1];
	char hold[HOLD_ID];
	uint8_t digest[SHA256_BYTES];
	struct notify_show show;
	bool is_open, refused;
};

struct notifier {
	struct hands_child child; /* pidfd -1: none */
	int sock;		  /* -1: none, or it was closed */
	uint8_t phase;
	uint32_t armed;
	bool is_blocked;			  /* sbx-notify does not read */
	bool is_asked;				  /* to exit: its channel was closed here */
	bool is_done;				  /* sbxd exits */
	uint32_t last_number, n_shown, n_answers; /* the latter of this sbx-notify */
	uint64_t next_start_ms, delay_ms;
	uint64_t idle_at_ms, kill_at_ms; /* 0: not set */
	char why[128];			 /* of the last failure; logged once */
	struct loop_timer timer;
	struct notify_place place[NOTIFY_MAX];
};

void notify_init(struct notifier *n);
void notify_done(struct sbxd *d);
/* The holds of a sandbox may have changed. */
void notify_look(struct sbxd *d);
void notify_on_event(struct sbxd *d);
void notify_on_exit(struct sbxd *d);
void notify_on_timer(struct sbxd *d);
