/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep - removes old records of audit logs: on request of a client, or by the settings audit.keep
 *        and audit.keep-size.
 *
 * How      keep_prune records, prunes and records one log. For the settings, keep_look forks a
 *          child, which verifies every log (this can take minutes) and writes the ids of the valid
 *          ones to a memfd. Then keep_prune handles one log per turn of the loop. This runs after
 *          sbxd has started, after a sandbox has stopped, after the settings have changed, and once
 *          a day.
 * Trust    The logs are untrusted: a log that fails verification is not changed. The ids in the
 *          child's list are validated.
 * Owns     One child, killed when sbxd exits.
 * Limits   KEEP_MS for the child, KEEP_MAX_LIST bytes of ids.
 * See      lib/rules/audit/audit_prune.h, tests/cli/test_audit_prune.py
 */
#pragma once

#include <sys/types.h>
#include "src/sbxd/state/state.h"
#include "lib/rules/audit/audit_prune.h"
#include "lib/base/clock.h"

#define KEEP_DELAY_MS 2000
#define KEEP_DAY_MS (24ull * 3600 * 1000)
#define KEEP_MS clock_limit_ms(30 * 60 * 1000)
#define KEEP_MAX_LIST (8 << 20)

/* Limits of the removal; `by` is the setting, NULL for a request of a client. */
struct keep_rule {
	uint64_t before_ms, keep_bytes;
	bool is_dry;
	const char *by;
};

struct keep {
	pid_t pid; /* 0: no child */
	int pidfd, out;
	char *list; /* ids of verified logs, one per line; NULL: not pruning */
	size_t n, at;
	struct loop_timer timer;
};

void keep_init(struct keep *k);
void keep_done(struct sbxd *d);
/* Starts what is due. */
void keep_look(struct sbxd *d);
void keep_on_timer(struct sbxd *d);
void keep_on_exit(struct sbxd *d);
int keep_prune(struct sbxd *d, const char *id, const struct keep_rule *rule,
	struct audit_pruned *ret, struct err *err) MUST_CHECK;
