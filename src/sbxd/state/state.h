/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state - the state of sbxd that all parts share, and the events of its loop.
 *
 * How      main.c has the only struct sbxd. Each part has its own data behind a pointer; only that
 *          part and the parts above it use the data. Tables have fixed sizes. An event names a slot
 *          and the slot's generation, so a late event is ignored.
 * Trust    Internal. Handles no secrets.
 * Limits   KEEPER_MAX.
 * See      README
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "lib/os/loop/loop.h"

#define KEEPER_MAX 4096 /* running sandboxes; the setting daemon.max-sandboxes is lower */

enum sbxd_ev {
	SBXD_EV_SIGNAL = 1,
	SBXD_EV_LISTEN,
	SBXD_EV_CONN,
	SBXD_EV_CONN_TIMER,
	SBXD_EV_KEEPER,
	SBXD_EV_KEEPER_EXIT,
	SBXD_EV_KEEPER_TIMER,
	SBXD_EV_WIPE,
	SBXD_EV_JOURNAL,
	SBXD_EV_VAULT,
	SBXD_EV_VAULT_LISTEN,
	SBXD_EV_VAULT_EXIT,
	SBXD_EV_VAULT_TIMER,
	SBXD_EV_IMAGES,
	SBXD_EV_IMAGES_TIMER,
	SBXD_EV_POOL_TIMER,
	SBXD_EV_KEEP,
	SBXD_EV_KEEP_TIMER,
	SBXD_EV_AUTOSAVE,
	SBXD_EV_MERGES,
	SBXD_EV_MERGES_TIMER,
	SBXD_EV_SPAWNER,
	SBXD_EV_DRAIN_TIMER,
	SBXD_EV_WAKE,
	SBXD_EV_WAKE_TIMER,
	SBXD_EV_MANAGED_TIMER,
	SBXD_EV_NOTIFY,
	SBXD_EV_NOTIFY_EXIT,
	SBXD_EV_NOTIFY_TIMER,
	SBXD_N_EVENTS,
};

/* A number of events and their time, since sbxd started. */
struct tally {
	uint64_t n, us;
};

struct sbxd {
	struct loop loop;
	struct store *store; /* lib/vm/store/store.h */
	int lock_fd, listen_fd, signal_fd;
	bool activated; /* the socket belongs to the service manager */
	bool quit;
	bool failed; /* the spawner exited before sbxd */
	bool late;   /* the timeout for replies at exit expired */
	struct conns *conns;
	struct journal *journal;
	struct keep *keep;
	struct rulebook *rulebook;
	struct tables *tables;
	struct wipes *wipes;
	struct images *images;
	struct merges *merges;
	struct keepers *keepers;
	struct pool *pool;
	struct wakes *wakes;
	struct starts *starts;
	struct vault_link *vault;
	struct notifier *notifier;
};
