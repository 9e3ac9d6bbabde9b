/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netconf - configures programs for the proxy: variables, resolv.conf, Docker's settings.
 *
 * How      Files that the user may have created are written only if they do not exist.
 * Trust    Not enforcement: connections of programs that do not use a proxy are redirected anyway.
 * See      netconf_test.c, net_rules.h
 */
#pragma once

#include "net_link.h"
#include "src/guest/base/base.h"

#define NETCONF_NAMES "gateway.docker.internal gateway.sbx.internal"
#define NETCONF_HOSTS NET_GATEWAY "\t" NETCONF_NAMES "\n" NET_GATEWAY6 "\t" NETCONF_NAMES "\n"

/* The variables of every program; later settings override them. */
void netconf_env(struct env *e);
/* Writes resolv.conf, dockerd's settings, sudo's list of variables. Failures are only logged. */
void netconf_write(void);
/* Returns the new text of resolv.conf, or NULL if the existing one (NULL: none) is the user's. */
const char *netconf_resolv(const char *old);
extern const char netconf_daemon_json[];
