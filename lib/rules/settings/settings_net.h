/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings_net - the settings network.*: their checks, and their form for egress.
 *
 * How      The checkers are in the table of keys. settings_net_config returns what keeper sends to
 *          egress: hosts canonical, addresses as lib/rules/policy/addr.h prints them.
 * Trust    The user's own settings. sbx, sbxd and keeper.
 * Limits   EGRESS_MAX_PINS entries of connect-to, EGRESS_MAX_DIRECT of no-proxy.
 * See      settings_net_test.c
 */
#pragma once

#include "lib/os/ipc/egress_chan.h"
#include "settings.h"

/* Comma-separated HOST:PORT=ADDR:PORT; an error names the entry. "": none. */
int settings_net_check_pins(const char *value, struct err *err) MUST_CHECK;
/* http://[USER@]HOST:PORT, socks5://[USER@]HOST:PORT or "". */
int settings_net_check_proxy(const char *value, struct err *err) MUST_CHECK;
/* Comma-separated HOST, .DOMAIN, ADDRESS or NETWORK, each with an optional port; "": none. */
int settings_net_check_no_proxy(const char *value, struct err *err) MUST_CHECK;
/* An absolute path or "". settings_net_copy_ca looks for certificates in the file. */
int settings_net_check_ca(const char *value, struct err *err) MUST_CHECK;
/*
 * network.extra-ca is the name of the file that was copied into the configuration directory. Only
 * the copy is used: a later change of the file has no effect. The copy's first line names the file.
 */
char *settings_net_ca_copy(void); /* the copy's path, on the heap */
/* For reading; the file that is checked must be the file that is copied. */
int settings_net_open_ca(const char *path, struct err *err) MUST_CHECK;
/* What `set` does with the open file; "" removes the copy. A file without a certificate is
 * -EINVAL. */
int settings_net_copy_ca(const char *path, int fd, struct err *err) MUST_CHECK;
/* The copied certificates with a NUL after them. -ESTALE when the copy is of another file. */
int settings_net_load_ca(const char *path, char **ret, size_t *ret_n, struct err *err) MUST_CHECK;

int settings_net_config(
	const struct settings *s, struct egress_config *ret, struct err *err) MUST_CHECK;
