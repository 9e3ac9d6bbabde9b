/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sshd_config - the configuration of sshd for one connection, as text.
 *
 * How      A pure function. The environment of `sbx exec` becomes SetEnv: sshd starts programs with
 *          an empty environment. A variable whose value has more than one line cannot be written
 *          there and is omitted.
 * Trust    The environment comes from the host and from the guest's image.
 * Owns     The caller frees the text.
 * See      sshd_config(5), sshd_config_test.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/attr.h"

struct sshd_want {
	const char *dir;  /* has host_key, host_key-cert.pub and user_key.pub */
	const char *user; /* the only one that may log in */
	char *const *env; /* NULL-terminated assignments */
	bool remote;	  /* programs of the client's network may be reached from the guest (-R) */
};

char *sshd_config_text(const struct sshd_want *w) MUST_CHECK;
