/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool - started QEMUs without a guest and an owner, so that a start has less left to do.
 *
 * How      The setting pool.size is their number; their class is that of a new sandbox without
 *          options (template: pool.template). Each is a keeper (src/keeper/memory/pool.h) in a slot
 *          of keepers.h, which keeper_find does not return, with its own id and directory. A new
 *          sandbox of that class gets such an id (pool_offer), and its start claims the VM
 *          (pool_claim): spec.json is written, CLAIM sent, and the slot becomes an ordinary one. If
 *          a claim fails or gets no response, the keeper is killed, the disks are removed, and the
 *          sandbox starts without the pool. The pool is filled one VM at a time, each after a
 *          pause, so that a starting sandbox gets the CPUs first.
 *
 *          A file `pool` in the directory marks an unclaimed VM. An unclaimed VM exits with its
 *          sbxd; the next sbxd removes its files.
 * Trust    As keepers.h: a keeper may hang, send false data or exit.
 * Owns     The directories of unclaimed VMs.
 * Limits   The setting pool.size, the times below.
 * Never    Gives one VM to two sandboxes; keeps one that does not match the settings; lists or
 *          counts one.
 * See      lib/os/ipc/keeper_chan.h, tests/api/test_pool.py, docs/warm.md
 */
#pragma once

#include "src/sbxd/state/state.h"
#include "lib/base/clock.h"
#include "lib/rules/spec/spec.h"

#define POOL_DELAY_MS 1500		       /* before another VM is started */
#define POOL_AGAIN_MS 5000		       /* after a failure; doubled each time ... */
#define POOL_MAX_AGAIN_MS 300000	       /* ... up to this */
#define POOL_RESTORE_MS clock_limit_ms(120000) /* from its start until it can be claimed */
#define POOL_TAKEN_MS 60000 /* from creation of a sandbox to its start; then the VM is stopped */
#define POOL_END_MS 2000    /* to wait for the exit of a killed keeper */

struct keeper;

enum pool_place {
	POOL_NONE,    /* an ordinary keeper */
	POOL_WAITS,   /* unclaimed, or its sandbox was created and not started */
	POOL_CLAIMED, /* CLAIM is not answered yet */
};

struct pool_class {
	char template_id[SPEC_TEMPLATE_ID_LEN + 1];
	uint32_t cpus;
	uint64_t memory, disk;
	enum spec_accel accel;
};

/* Of a slot in keepers.h. */
struct pool_seat {
	enum pool_place place;
	bool is_ready;
	bool is_taken; /* a sandbox of the registry has its id */
	struct pool_class class;
	uint32_t ask;	       /* of the CLAIM */
	enum spec_accel accel; /* as decided by the start */
};

struct pool {
	unsigned n_failed; /* in a row */
	struct loop_timer timer;
};

/* Before keepers are adopted: removes unclaimed VMs of another sbxd. */
void pool_sweep(struct sbxd *d);
/* Stops and removes the waiting VMs. */
void pool_done(struct sbxd *d);
/* Settings, templates or snapshots may have changed. */
void pool_look(struct sbxd *d);
/* A new snapshot exists: a start that failed for lack of one may succeed now. */
void pool_on_image(struct sbxd *d);
void pool_on_timer(struct sbxd *d);
/* Numbers of VMs: claimable, and wanted. */
void pool_count(struct sbxd *d, unsigned *ret_ready, unsigned *ret_size);

/* Gives a new sandbox the id of a matching VM, if there is one. Call pool_take when it is in the
 * registry. */
void pool_offer(struct sbxd *d, struct spec *spec);
void pool_take(struct sbxd *d, const char *id);
/* Returns true if a VM waits for the sandbox. */
bool pool_has(struct sbxd *d, const char *id);
/* Returns true if a VM was waiting for the sandbox and continues. False: start the sandbox; the
 * waiting VM was removed. */
bool pool_claim(struct sbxd *d, const struct spec *spec, bool cold);
/* The sandbox is being removed. */
void pool_drop(struct sbxd *d, const char *id);
