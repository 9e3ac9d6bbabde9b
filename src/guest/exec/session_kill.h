/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_kill - a signal for every process of a session, whatever group it has moved to.
 *
 * How      Walks /proc and compares the session of each process: a group alone is easily left.
 * Trust    Reads /proc of the guest; the processes may be anybody's in the guest.
 */
#pragma once

#include <sys/types.h>

void session_kill(pid_t session, int signo);
