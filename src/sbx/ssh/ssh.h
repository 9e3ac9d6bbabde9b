/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ssh - SSH connections to sandboxes: `sbx ssh`, `sbx setup ssh` and `sbx code`.
 *
 * How      OpenSSH's client runs `sbx ssh --proxy HOST` for a connection (ssh_config.h). That opens
 *          an exec whose program is one sshd (src/guest/ssh), and copies bytes. No port is open on
 *          the host or in the guest. ssh_home.h has the keys of the installation, ssh_host_key.h
 *          the host key of one connection.
 * Trust    The guest's sshd is the guest's: our configuration of the client gives it nothing.
 * See      docs/guides/editors.md, tests/cli/ssh, tests/e2e/ssh
 */
#pragma once

#include "src/sbx/verb/verb.h"

extern const struct verb verb_code, verb_setup, verb_ssh;
