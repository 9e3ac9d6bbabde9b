/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link - a link that waits for the user: its text, and what the user should know before opening it.
 *
 * How      link_read takes the hold of sbxd (GET /v1/holds/ID) and adds what the policy says about
 *          the host, and the callback. link_print prints all of it: nothing of the URL is cut.
 * Trust    The URL is from a guest. url_parse accepts only printable ASCII and one form.
 * Never    Opens anything.
 * See      link_test.c
 */
#pragma once

#include <jansson.h>
#include <stdio.h>
#include "lib/client/cli/ui.h"
#include "callback.h"

enum link_policy { LINK_UNKNOWN, LINK_ALLOWED, LINK_DENIED };

struct link {
	const json_t *hold;
	struct url url;
	enum link_policy policy;
	bool has_callback;
	struct callback callback;
	struct err no_callback; /* why a redirect_uri is not received; "": there is none */
};

/* -EINVAL if the hold is not a link. */
int link_read(const json_t *hold, struct link *ret, struct problem *p) MUST_CHECK;
/* Asks sbxd whether the sandbox may connect to the host. */
void link_ask_policy(struct link *l);
void link_print(FILE *f, const struct link *l);
/* The hold and what is known about the link, for --json. */
json_t *link_to_json(const struct link *l);
/* -EPERM if a name resolves to an address that is not of the public Internet. A name that does not
 * resolve here is left to the browser, which may use a proxy. */
int link_check_address(const struct link *l, struct err *err) MUST_CHECK;
