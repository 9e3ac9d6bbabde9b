/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sbxd - the daemon's one state, and the kinds of events its loop knows.
 *
 * How      main.c owns the only struct sbxd and the only switch. Tables have fixed sizes; an event
 *          names a slot and its generation, so one that comes late hits nothing.
 * Trust    Holds the registry; no secret. Talks to clients and keepers of the same user.
 * Owns     Everything below; sbxd_done in main.c closes it. Sandboxes are not closed with it.
 * Limits   CONN_MAX, KEEPER_MAX, WIPE_MAX.
 * See      README, proto/PROTOCOL.api
 */
#pragma once

#include "src/sbxd/http/conn.h"
#include "src/sbxd/disk/images.h"
#include "src/sbxd/journal/journal.h"
#include "src/sbxd/journal/keep.h"
#include "src/sbxd/keepers/keepers.h"
#include "lib/os/loop/loop.h"
#include "lib/vm/store/store.h"
#include "src/sbxd/policy/rulebook.h"
#include "src/sbxd/vault/vault_link.h"
#include "src/sbxd/disk/wipe.h"

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
	SBXD_EV_SPAWNER,
	SBXD_EV_DRAIN_TIMER,
};

/* Less than LISTEN_LOCK_MS: the next sbxd may be waiting already. */
#define SBXD_DRAIN_MS 2000

struct sbxd {
	struct loop loop;
	struct store *store;
	int lock_fd, listen_fd, signal_fd;
	bool activated; /* the socket belongs to the service manager */
	bool quit;
	bool failed;  /* its spawner ended before it */
	bool late;    /* who is not answered by now is not any more */
	uint64_t seq; /* of changes, for watchers */
	uint64_t n_reloads;
	struct rulebook rulebook;
	struct journal journal;
	struct conns conns;
	struct keepers keepers;
	struct wipes wipes;
	struct vault_link vault;
	struct images images;
	struct pool pool;
	struct keep keep;
};
