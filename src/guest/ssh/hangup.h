/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hangup - ends what a closed SSH connection has left.
 *
 * How      The calling process is the subreaper of sshd, so that each process that sshd started
 *          descends from it. Processes of sshd that hold the client's pipes are killed. A program
 *          holds the connection if the other end of its stdin, stdout or stderr (a pipe, socket or
 *          terminal) is closed. Its session (setsid) gets SIGHUP; what holds the connection
 *          HANGUP_GRACE_MS later is killed. Programs that have left the connection (other files,
 *          and setsid or nohup; tmux) keep running, as with any SSH server.
 * Trust    Reads /proc of the guest; runs as root of the guest.
 * Limits   HANGUP_GRACE_MS between SIGHUP and SIGKILL.
 */
#pragma once

#include <sys/stat.h>

#define HANGUP_GRACE_MS 1000

/* The client's two pipes, before this process closed them. */
struct hangup {
	struct stat pipes[2];
};

void hangup_note(struct hangup *h);
void hangup_end(const struct hangup *h);
