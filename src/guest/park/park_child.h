/* SPDX-License-Identifier: Apache-2.0 */
/*
 * park_child - the process that parks the guest's programs, sleeps with them, and wakes them.
 *
 * How      Forked by PID 1 (park.h), because it waits for programs and walks through namespaces. It
 *          freezes, lists (park_list.h), lets the share go, says so; then it waits for PID 1's word
 *          that the share is mounted again, puts mounts and files back, thaws, says what is not as
 *          before, and ends. Its memory is saved and restored with the machine.
 * Trust    Ours, with all rights in the guest.
 * Limits   PARK_WAKE_S for the waking: then it ends, and the kernel lets go of what it holds.
 */
#pragma once

#include <sys/types.h>

#define PARK_WAKE_S 60

/* sock: struct guest_reply as a message each way round; any message to it is the word to wake. */
void park_child_run(int sock, const pid_t *skip) __attribute__((noreturn));
