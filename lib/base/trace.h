/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace - one line per message or step of the kinds that SBX_TRACE lists, for debugging.
 *
 * How      trace_init parses SBX_TRACE, a comma-separated list of ipc, net, vm and exec. trace_line
 *          writes `TIME PROGRAM[PID] trace KIND: TEXT` if its kind is on: to stderr, or to a file
 *          after trace_open. A file of TRACE_MAX_BYTES is renamed to PATH.1 and a new file begins:
 *          the newest lines are kept, a guest that causes lines cannot fill the disk, and the limit
 *          of the program's log (log.h) is not used up. Processes forked after trace_open write
 *          nothing.
 * Trust    The user's environment; a guest cannot set it. Callers pass names, numbers and hosts of
 *          the audit log, never the body of a message. Control characters become '?'.
 * Owns     One open file per process.
 * Limits   TRACE_MAX_BYTES per file, two files, LOG_MAX_LINE bytes per line.
 * See      docs/debugging.md, trace_test.c
 */
#pragma once

#include <stdbool.h>
#include "attr.h"
#include "err.h"

#define TRACE_MAX_BYTES (4 << 20)

enum trace_kind { TRACE_IPC, TRACE_NET, TRACE_VM, TRACE_EXEC, TRACE_N_KINDS };

/* Returns 0, or -EINVAL if SBX_TRACE has an unknown word. */
int trace_init(struct err *err) MUST_CHECK;
/* The kinds that are on, as in SBX_TRACE and in the order above; "" for none. */
const char *trace_words(void);
bool trace_on(enum trace_kind kind);
/* Lines go to this file from now on, mode 0600. Does nothing if no kind is on. A failure is logged,
 * and turns tracing off. */
void trace_open(const char *path);
void trace_line(enum trace_kind kind, const char *fmt, ...) PRINTF_LIKE(2, 3);
