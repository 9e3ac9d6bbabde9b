/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_request - one request from the command line, and its effects as `sbx api test` prints them.
 *
 * How      The text is a method and a URL. The path goes through canon_normal_path, as in the
 *          proxy, then through the pack of the host.
 * Trust    The user's own arguments and files.
 * Owns     A struct asked owns its texts.
 */
#pragma once

#include "lib/client/cli/opt.h"
#include "lib/rules/pack/pack_match.h"
#include "lib/rules/pack/packs.h"
#include "lib/rules/policy/host.h"

#define ASKED_MAX_HEADERS 32

/* A request, and what its parts point to. */
struct asked {
	struct pack_request req;
	struct host host;
	uint16_t port;
	struct slice path; /* as written */
	bool has_query;
	char *text, *body;
	struct arena arena;
	struct http_header header[ASKED_MAX_HEADERS];
	struct http_headers headers;
	char *lines[ASKED_MAX_HEADERS];
};

/* `headers` are lines `NAME: VALUE`; `body` is the path of a file, or NULL. */
int asked_read(struct asked *a, const char *text, const struct opt_list *headers, const char *body,
	struct err *err) MUST_CHECK;
void asked_done(struct asked *a);

/* All packs; prints those that were skipped, once. */
const struct packs *api_packs(void);
/* Text as `DELETE https://api.example.com/v1/things/7`; gives an exit status. */
int api_request_test(const struct packs *all, const char *text, const struct opts *o);
