/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove_run - a complete run of `sbx prove`: probes, sandboxes and cleanup.
 *
 * How      The selected probes go to two lanes, one for the user's sandbox and one for the scratch
 *          twin, which run in parallel in one poll loop. If a probe needs the twin, it is created
 *          in the background from the start. Signals are checked between events. In every case
 *          sessions, parts, the twin and the directory of the run are removed at the end.
 * Trust    See prove_lane.h.
 * Owns     A directory (prove_folder.h), locked during the run; the twin.
 * Limits   PROBE_MAX probes; each part has its seconds.
 * See      prove.h, prove_twin.h
 */
#pragma once

#include "prove.h"
#include "prove_probe.h"
#include "lib/client/cli/ui.h"

struct prove_wish {
	const char *sbx;	   /* its path */
	const char *sandbox;	   /* NULL: the only running one */
	const char *const *groups; /* NULL-terminated; NULL: all */
	const char *const *ids;
	bool quick;
	const char *echo_url; /* or NULL */
	const char *twin;     /* an existing one, or NULL */
	const char *top;      /* for the directory of the run; no guest can write to it */
	/* The header can be printed: sandbox, accelerator and so on are known. */
	void (*on_begin)(void *arg, const struct prove_run *run);
	void (*on_done)(void *arg, const struct prove_run *run, const struct prove_result *res);
	void *arg;
};

/* Whether the selection includes it. */
bool prove_wants(const struct prove_wish *w, const struct probe *p);
/* Returns 0 if probes were tried, whatever their results; also if interrupted (ret->cut). */
int prove_run(const struct prove_wish *w, const struct probes *set, struct prove_run *ret,
	struct problem *p) MUST_CHECK;
void prove_run_done(struct prove_run *run);

#define AUTO_PROVE_RUN CLEANUP(prove_run_done)
