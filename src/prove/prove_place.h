/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove_place - a sandbox that probes are tried on: what is known of it, and the folder of facts.
 *
 * How      prove_place_fill asks sbxd and writes the files that data/probes/README names. It is
 *          done once for a run, and again when a probe of recovery has changed what runs.
 * Trust    sbxd; nothing in it was asked of the guest.
 * Owns     Its strings; prove_place_done frees them. The folder is the caller's.
 * See      prove_lane.c
 */
#pragma once

#include "prove_probe.h"
#include "lib/client/cli/ui.h"

struct prove_place {
	char *name, *id, *accel, *template, *template_id;
	char *host_dir, *guest_dir; /* the first workspace, seen from both sides; "" without one */
	char *ro, *hidden;	    /* of a twin: a read-only workspace, a hidden file; "" else */
	char *facts;
	long long cpus, memory, disk;
	bool running;
};

/* `facts` is a folder that is there. */
int prove_place_fill(struct prove_place *pl, const char *sbx, const char *ref, const char *facts,
	struct problem *p) MUST_CHECK;
void prove_place_done(struct prove_place *pl);
