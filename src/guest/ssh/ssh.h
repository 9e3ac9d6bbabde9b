/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ssh - the guest's half of `sbx ssh`: one sshd for one connection.
 *
 * How      A builtin of sbx-guest. stdin begins with the host key of the connection, its
 *          certificate and the user key that may log in, of the lengths in argv; after them come
 *          the bytes of the SSH client. They are written into a new directory below /run with a
 *          configuration for sshd (sshd_config.h), and sshd -i gets stdin and stdout. It runs as
 *          the user of the exec, so nothing of it has more rights than `sbx exec`.
 *
 *          Two processes: the exec's own, whose end is the end of the client, and the one that
 *          watches sshd, in a session of its own. When either sshd or the client has ended, the
 *          second one ends the other and the programs that still hold the connection
 *          (hangup.h), removes the directory and exits. Nothing listens anywhere.
 * Trust    The bytes before the client's come from the host. sshd and the client do not trust this
 *          process: guest root can replace it and sshd, and has then replaced its own SSH server.
 * Limits   SSH_MAX_PART bytes a key.
 * See      proto/PROTOCOL.guest, tests/e2e/ssh
 */
#pragma once

#include "src/guest/base/base.h"

#define SSH_MAX_PART 8192
#define SSH_NO_SERVER 3 /* exit status: the guest has no sshd */

/* argv: ssh HOST-KEY CERTIFICATE USER-KEY [remote]. The three are lengths in bytes. Returns the
 * exit status. */
int ssh_serve(char **argv, const struct guest_user *user, const struct env *env);
