/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inventory - the open descriptors of a process, written by the process itself.
 *
 * How      sbxd and sbx-keeper are not dumpable (lib/os/jail/broker.h), so /proc/PID/fd and
 *          /proc/PID/environ are closed to the user, too. On SIGUSR1 they write the same here: one
 *          line `fd N TARGET` for each descriptor and one line `env NAME=VALUE` for each variable.
 *          The file replaces the one before it, mode 0600. A descriptor is described, never passed
 *          on.
 * Trust    The caller's own process. Control characters become '?'.
 * Limits   INVENTORY_MAX_LINES; further lines are skipped, and the last line reports that.
 * Never    Contains memory. The environment of both programs holds no secret (keepenv.h).
 * See      inventory_test.c
 */
#pragma once

#define INVENTORY_NAME "inventory"
#define INVENTORY_MAX_LINES 16384

/* A failure is logged. */
void inventory_write(const char *path);
