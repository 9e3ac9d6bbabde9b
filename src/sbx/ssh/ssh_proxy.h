/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ssh_proxy - one connection of an SSH client to a sandbox, on stdin and stdout.
 *
 * How      Starts the sandbox if it is stopped or suspended, creates a host key and runs the
 *          builtin `ssh` of sbx-guest with it (src/guest/ssh). The connection survives a suspension
 *          (session_run.h).
 * Trust    All bytes of the guest go to the SSH client, unread. Words that sbx-guest sends with a
 *          failure are cleaned before they are printed.
 * See      proto/PROTOCOL.guest
 */
#pragma once

#include <stdbool.h>

/* host is NAME.sbx. remote: sshd accepts -R. Returns the exit status. */
int ssh_proxy_run(const char *host, bool remote);
