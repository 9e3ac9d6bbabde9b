/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry - the service file of a private container registry.
 *
 * How      registry_text writes a text of PROTOCOL.service for one host, so that one strict parser
 *          checks it. Registries authenticate in two ways: the password in each request, or at a
 *          token service, whose token is in the other requests. The text has slots for both.
 * Trust    The user's words. Handles no credentials.
 * Owns     The text is the caller's.
 * Never    Lets a word end its line or begin another: the words are checked first.
 * See      service.h, services.h, registry_test.c
 */
#pragma once

#include "lib/base/err.h"

#define REGISTRY_MARK "# sbx secret set --registry wrote this file, and sbx secret rm removes it."
#define REGISTRY_MAX_NAME 64

struct registry {
	const char *host; /* HOST or HOST:PORT */
	const char *user; /* NULL: the credential is USER:PASSWORD */
	const char
		*token; /* HOST[:PORT]/PATH of the token service; NULL: the usual paths of host */
};

/* The service's name: registry-HOST with hyphens for other characters. -EINVAL with a sentence. */
int registry_name(const char *host, char buf[REGISTRY_MAX_NAME], struct err *err) MUST_CHECK;
/* The text, on the heap. -EINVAL with a sentence. */
int registry_text(const struct registry *reg, char **ret, struct err *err) MUST_CHECK;
