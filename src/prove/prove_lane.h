/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove_lane - runs the probes of one sandbox one after the other.
 *
 * How      Items are in batches: a group, or a probe of recovery with the probes that it runs
 *          again. Of a batch all `before` parts run first, then the inside parts in one session,
 *          and each outside part as soon as its inside part has finished, in parallel with the next
 *          inside part. A lane never blocks: prove_lane_step does all possible work,
 *          prove_lane_poll returns the descriptors to wait for.
 * Trust    Results of inside parts come from the guest. The verdict uses exit statuses as described
 *          in data/probes/README; a missing result is a failure.
 * Owns     Its items, the programs of their parts, its session. Results are the caller's.
 * Limits   One part on the host and one in the guest at a time.
 * See      prove_run.c
 */
#pragma once

#include "prove.h"
#include "prove_place.h"
#include "prove_probe.h"
#include "prove_session.h"

#define PROVE_STATUS_SKIP 77
#define PROVE_LANE_FDS (PROVE_JOB_FDS + PROVE_SESSION_FDS)

enum prove_phase {
	PROVE_HELD,   /* repeated after the harm is done */
	PROVE_BEFORE, /* waits for its part before */
	PROVE_READY,  /* for inside */
	PROVE_ASKED,
	PROVE_OUTSIDE, /* waits for its part outside */
	PROVE_DONE,
};

struct prove_seen {
	bool ran;
	int status;
	char *text;
	unsigned ms;
};

struct prove_item {
	const struct probe *p;
	struct prove_result *res;
	size_t owner; /* the recovery item that repeats it; otherwise its own index */
	enum prove_phase phase;
	bool spared; /* repeated, and its `before` was omitted */
	char tag[24];
	char *dir;
	struct prove_job *job[PROBE_N_PARTS];
	struct prove_seen seen[PROBE_N_PARTS];
	uint64_t asked_ms;
	bool once_more;	  /* it was late, and is tried a second time */
	unsigned seconds; /* timeout of its parts */
};

/* Shared by all lanes of a run. */
struct prove_common {
	const char *folder; /* of the run */
	const char *sbx;    /* its path */
	const char *tool;   /* path of sbx-probe */
	struct slice tool_bytes;
	char *prelude_inside, *prelude_outside;
	char *prelude_group[PROBE_N_GROUPS]; /* more of it outside; "" if the group has none */
	const char *echo_url;
	void (*on_done)(void *arg, const struct prove_result *res);
	void *arg;
};

struct prove_lane {
	const struct prove_common *common;
	struct prove_place place;
	bool up;   /* its sandbox is running */
	bool free; /* no other lane is active: an item that is `alone` may begin */
	struct prove_item *items;
	size_t n;
	size_t first, end;		 /* the batch */
	struct prove_item *host, *guest; /* items whose part runs there */
	enum probe_part host_part;
	struct prove_session session;
};

/* The caller owns res; owner: see above, SIZE_MAX for its own. Returns its index. */
size_t prove_lane_add(
	struct prove_lane *l, const struct probe *p, struct prove_result *res, size_t owner);
/* Does the work that is possible now; false if all of it is done. */
bool prove_lane_step(struct prove_lane *l);
size_t prove_lane_poll(const struct prove_lane *l, struct pollfd *ret);
int prove_lane_wait_ms(const struct prove_lane *l);
/* All unfinished items fail for this reason; `untried`: they are not reported. */
void prove_lane_give_up(struct prove_lane *l, const char *why, bool untried);
void prove_lane_done(struct prove_lane *l);

/* ---- prove_script.c ---- */

/* The environment of parts on the host; prove_env_free frees it. */
char **prove_env_make(const struct prove_lane *l, const struct prove_item *it);
void prove_env_free(char **env);
/* The shell of parts on the host, by its full path. Not bash where dash is installed: bash runs
 * commands in the value of a variable that is used in arithmetic. */
const char *prove_shell(void);
/* The script of a part, with its preludes. On the heap. */
char *prove_script_make(
	const struct prove_lane *l, const struct prove_item *it, enum probe_part part);

/* ---- prove_verdict.c ---- */

/* Fills in the result from the output; `missing`: why parts are missing, or NULL. */
void prove_judge(const struct prove_lane *l, struct prove_item *it, const char *missing);
