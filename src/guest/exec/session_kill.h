/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_kill - signals every process of a session, in any process group.
 *
 * How      Walks /proc and compares the session of each process: a process can easily leave a
 *          group.
 * Trust    Reads /proc of the guest; the processes can belong to any user of the guest.
 */
#pragma once

#include <sys/types.h>

void session_kill(pid_t session, int signo);
