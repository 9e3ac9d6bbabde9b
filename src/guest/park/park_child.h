/* SPDX-License-Identifier: Apache-2.0 */
/*
 * park_child - the process that parks the guest's programs and wakes them.
 *
 * How      Forked by PID 1 (park.h), because it waits for programs and enters namespaces. It
 *          freezes, lists (park_list.h), releases the share and reports that. Then it waits until
 *          PID 1 has mounted the share again, restores mounts and files, thaws, reports what was
 *          not restored, and exits. Its memory is saved and restored with the VM.
 * Trust    Our own code, with all rights in the guest.
 * Limits   PARK_WAKE_S for waking: then it exits, and the kernel releases what it holds.
 */
#pragma once

#include <sys/types.h>

#define PARK_WAKE_S 60

/* sock: struct guest_reply as a message in each direction; any message to the child wakes it. */
void park_child_run(int sock, const pid_t *skip) __attribute__((noreturn));
