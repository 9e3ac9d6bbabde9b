/*
 * settings_net - the settings network.*: what they may say, and the same as egress wants it.
 *
 * How      The checkers stand in the table of keys. settings_net_config gives what keeper sends to
 *          egress: hosts canonical, addresses as lib/policy/addr.h prints them.
 * Trust    The user's own settings. sbx, sbxd and keeper.
 * Limits   EGRESS_MAX_PINS entries of connect-to.
 * See      settings_net_test.c
 */
#pragma once

#include "lib/ipc/egress_chan.h"
#include "settings.h"

/* HOST:PORT=ADDR:PORT with commas between; an error names the entry. "" is none. */
int settings_net_check_pins(const char *value, struct err *err) MUST_CHECK;
/* http://HOST:PORT or "". */
int settings_net_check_proxy(const char *value, struct err *err) MUST_CHECK;
/* An absolute path or "". Whether there are certificates is for settings_net_check_ca_file. */
int settings_net_check_ca(const char *value, struct err *err) MUST_CHECK;
/* A file that has gone must not make the whole of settings.conf an error, so only `set` asks. */
int settings_net_check_ca_file(const char *path, struct err *err) MUST_CHECK;

int settings_net_config(
	const struct settings *s, struct egress_config *ret, struct err *err) MUST_CHECK;
