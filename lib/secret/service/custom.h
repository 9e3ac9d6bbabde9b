/* SPDX-License-Identifier: Apache-2.0 */
/*
 * custom - a custom credential as a service: hosts, one header, one variable.
 *
 * How      custom_text writes the user's options as a text of PROTOCOL.service, so that one strict
 *          parser checks both, and both are used the same way.
 * Trust    Words of the same user, or of the vault's list. Handles no credentials.
 * Owns     The text is the caller's.
 * Never    Lets a word end its line or begin another: words are checked before they are put in.
 * See      service.h, services.h, vault_chan.h for the fields, custom_test.c
 */
#pragma once

#include "lib/base/err.h"

#define CUSTOM_MAX_TEXT 8192

struct custom {
	const char *name;     /* of the service in the text: letters, digits, hyphens */
	const char *hosts;    /* separated by spaces; without a port it is 443 */
	const char *header;   /* "authorization" */
	const char *format;   /* "Bearer %s" */
	const char *env;      /* variables, separated by spaces; "": none */
	const char *sentinel; /* of the variables */
};

/* The text, on the heap. -EINVAL with a sentence. */
int custom_text(const struct custom *c, char **ret, struct err *err) MUST_CHECK;
