/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress_link - the egress process.
 *
 * How      egress_start starts sbx-egress. Its messages go to the parts above through struct
 *          egress_ops. A process that exits is started again after a pause that grows.
 * Trust    egress may be compromised by a server or a resolver: every message is untrusted.
 * Owns     The process.
 * Limits   KEEPER_EGRESS_*, KEEPER_LOAD_MS.
 * See      lib/os/ipc/egress_chan.h
 */
#pragma once

#include "process.h"
#include "lib/base/clock.h"
#include "lib/os/ipc/egress_chan.h"

#define KEEPER_EGRESS_GAP_MS 100      /* before another egress; doubled each time ... */
#define KEEPER_EGRESS_MAX_GAP_MS 5000 /* ... up to this */
#define KEEPER_EGRESS_STEADY_MS 10000 /* an egress that ran this long restarts with the short gap */
/* How long asks wait for an egress. */
#define KEEPER_EGRESS_GRACE_MS clock_limit_ms(2000)
#define KEEPER_LOAD_MS clock_limit_ms(3000) /* for egress to load a policy */

struct egress_ops {
	int (*configure)(struct keeper *k); /* settings, resolver and policy */
	void (*on_loaded)(struct keeper *k, const char *text);
	int (*on_result)(struct keeper *k, struct ipc_msg *msg);
	int (*on_closed)(struct keeper *k, const struct ipc_msg *msg);
	int (*on_login)(struct keeper *k, struct ipc_msg *msg);
	/* The vault has answered: "", or why the proxy was sent no login. */
	void (*on_logged)(struct keeper *k, uint32_t exchange, const char *text);
	void (*on_room)(struct keeper *k);
	void (*on_end)(struct keeper *k);
};

struct egress_link {
	struct worker worker;
	const struct egress_ops *ops;
	struct egress_config config; /* pins and proxy, as read last */
	uint64_t lost_ms;	     /* since when no egress with a policy exists */
	uint32_t n_sent, n_loaded;   /* POLICY messages, over all egresses; equal: all loaded */
	bool has_policy;	     /* this egress has loaded a policy */
	struct loop_timer load_timer;
};

void egress_init(struct keeper *k, const struct egress_ops *ops);
bool egress_is_live(const struct keeper *k, struct loop_key key);
/* Never fails: the start is retried, and asks are denied meanwhile. */
void egress_start(struct keeper *k);
void egress_on_event(struct keeper *k, const struct loop_event *ev);
void egress_on_exit(struct keeper *k);
void egress_kill(struct keeper *k);
/* Kills and restarts an egress that does not work. */
void egress_restart(struct keeper *k, const char *why);
bool egress_is_alive(const struct keeper *k);
/* Egress has a policy and accepts exchanges. */
bool egress_is_up(const struct keeper *k);
void egress_want_room(struct keeper *k);
