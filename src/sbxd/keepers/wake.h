/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wake - published ports of sandboxes that their idle timeout has suspended.
 *
 * How      While such a sandbox has no keeper, sbxd listens on its ports (not on those with any
 *          free port of the host). When a client connects, sbxd starts the sandbox and passes the
 *          sockets with their backlogs to its keeper (wakes_pass), which accepts the connections
 *          when the guest runs. If the start fails, the connections are closed with the sockets.
 *          wakes_look compares the sockets of a sandbox with its state after each change.
 * Trust    Input: connections from any host that can reach the address. They are never accepted
 *          here.
 * Owns     The listening sockets.
 * Limits   WAKES_MAX sockets. One start in WAKE_GAP_MS, and of one sandbox in WAKE_PAUSE_MS.
 * Never    Accepts a connection or reads from it. Listens for a sandbox that `sbx stop` has stopped
 *          or suspended.
 * See      src/keeper/network/ports.h, tests/api/test_ports.py
 */
#pragma once

#include "src/sbxd/state/state.h"
#include "lib/base/clock.h"
#include "lib/rules/spec/spec.h"

#define WAKES_MAX 256
#define WAKE_GAP_MS 1000
#define WAKE_PAUSE_MS clock_limit_ms(10000) /* also after a start that failed */
#define WAKE_BACKLOG 128		    /* as the keeper's */

struct wake {
	char id[SPEC_ID_LEN + 1]; /* empty: free */
	struct spec_port port;
	int fd; /* -1: nothing is opened for this sandbox before until_ms */
	uint32_t gen;
	uint64_t until_ms;
	bool is_watched;
};

struct wakes {
	void (*on_port)(struct sbxd *d, const char *id); /* starts the sandbox */
	struct wake list[WAKES_MAX];
	uint64_t next_ms; /* when the next sandbox may be started */
	struct loop_timer timer;
};

void wakes_init(struct wakes *w, void (*on_port)(struct sbxd *d, const char *id));
void wakes_done(struct sbxd *d);
/* The state or the ports of the sandbox may have changed. */
void wakes_look(struct sbxd *d, const char *id);
/* After a start of sbxd. */
void wakes_look_all(struct sbxd *d);
/* The sandbox has a keeper now: passes the sockets to it. */
void wakes_pass(struct sbxd *d, const char *id);
/* The id of another sandbox that has a socket at this port; NULL if there is none. */
const char *wakes_find(const struct wakes *ws, const char *id, const struct spec_port *p);
void wakes_on_event(struct sbxd *d, const struct loop_event *ev);
void wakes_on_timer(struct sbxd *d);
