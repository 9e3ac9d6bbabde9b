/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb - the results of all verbs of sbx-probe.
 *
 * How      A verb gets its arguments, prints one line and returns PROBE_POSSIBLE, PROBE_REFUSED or
 *          PROBE_USAGE. argc counts the arguments after the verb.
 * Trust    Runs as root in the guest, and as the user on the host: it tries, it never decides.
 * Never    Leaves anything behind, waits without a limit.
 * See      data/probes/README
 */
#pragma once

#include <stdbool.h>

#include "lib/base/attr.h"

#define PROBE_POSSIBLE 0
#define PROBE_REFUSED 1
#define PROBE_USAGE 2

/* Prints `ENAME what` for errno; returns PROBE_REFUSED. */
int probe_refused(const char *what);
