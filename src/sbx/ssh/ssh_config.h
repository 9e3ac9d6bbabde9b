/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ssh_config - the configuration of OpenSSH's client for sandboxes, as text.
 *
 * How      Pure functions. The text is one Host block for *.sbx. Of most keywords ssh takes the
 *          first value, so an Include in the first line of ~/.ssh/config prevails.
 * Trust    Paths of the user. The host name in ProxyCommand can come from a stranger (the URL of a
 *          git submodule): it is in single quotes, and a name with one does not match the block.
 * See      ssh_config(5), tests/cli/ssh
 */
#pragma once

#include "lib/base/err.h"

struct ssh_home;

/* Whether its paths can be written into a configuration. */
int ssh_config_check(const struct ssh_home *h, struct err *err) MUST_CHECK;
char *ssh_config_text(const struct ssh_home *h) MUST_CHECK;
/* The value of ProxyCommand. */
char *ssh_config_proxy(const struct ssh_home *h, const char *options) MUST_CHECK;
