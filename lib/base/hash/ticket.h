/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ticket - the permission for one request: a digest of what the keeper decided.
 *
 * How      ticket_make hashes the canonical text of a decided request; the keeper sends the ticket
 *          with OPEN. ticket_is_for makes the same text from the request that arrived, and
 *          compares. The text is a sequence of fields with their lengths: version, scheme, method,
 *          host, port, path, the query if there is one, and the headers that rules name. No two
 *          requests have the same text. Fields that are added later follow these and change
 *          TICKET_VERSION.
 * Trust    keeper: the facts come from the ASK of an edge that may be compromised, so the ticket is
 *          for what was decided, not for what was meant. sbx-origin, sbx-egress: the request comes
 *          from edge, the ticket from the keeper. Holds no secret.
 * Never    I/O. A ticket of another version is for no request.
 * See      proto/PROTOCOL.ipc, ticket_test.c, lib/os/ipc/edge_chan.h, lib/wire/flow/out.h
 */
#pragma once

#include "sha256.h"

#define TICKET_VERSION 2

struct ticket {
	uint8_t version;
	uint8_t digest[SHA256_BYTES];
	bool is_judged; /* the keeper has also decided about the content: a push of git */
};

/* A request in its canonical form (lib/wire/http/canon). */
struct ticket_request {
	bool tls; /* the scheme is https */
	struct slice method, host, path, query;
	uint16_t port;
	bool has_query;
	struct slice named; /* lib/wire/http/canon/canon_named.h; empty: none */
};

void ticket_make(const struct ticket_request *req, struct ticket *ret);
bool ticket_is_for(const struct ticket *ticket, const struct ticket_request *req);
