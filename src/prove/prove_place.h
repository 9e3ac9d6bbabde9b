/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove_place - the sandbox that probes run in: its data, and the directory of facts.
 *
 * How      prove_place_fill queries sbxd and writes the files that data/probes/README names, once
 *          per run and again after a probe of recovery has changed the processes.
 * Trust    sbxd; no data comes from the guest.
 * Owns     Its strings; prove_place_done frees them. The directory is the caller's.
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

/* `facts` is a directory that exists. */
int prove_place_fill(struct prove_place *pl, const char *sbx, const char *ref, const char *facts,
	struct problem *p) MUST_CHECK;
void prove_place_done(struct prove_place *pl);
