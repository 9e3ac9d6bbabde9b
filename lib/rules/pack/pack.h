/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack - the definition of an API: what the requests to a service mean.
 *
 * How      pack_parse reads a file of proto/PROTOCOL.api-pack, sorts its rows by precision, and
 *          runs its cases. pack_match.h compares requests with it.
 * Trust    Files of the installation and of the same user, parsed as strictly as untrusted ones.
 *          Handles no credentials.
 * Owns     Its arrays and a copy of the text, to which the slices point; freed by pack_done.
 * Limits   Those of pack_element.h.
 * Never    Accepts two rows that match one request and are equally precise, a row without a case
 *          or without a near miss, or a row for a rest of a path that is not for reading.
 * See      packs.h for all of them, proto/PROTOCOL.api-pack, pack_test.c, pack_fuzz.c
 */
#pragma once

#include "pack_element.h"

struct pack {
	char *name; /* of the service */
	char *text;
	struct slice about, version;
	struct pack_host host[PACK_MAX_HOSTS];
	size_t n_hosts;
	struct pack_object object[PACK_MAX_OBJECTS];
	size_t n_objects;
	struct pack_row *row; /* sorted: of those that match a request, the first one counts */
	size_t n_rows;
	struct slice graphql;	/* the path of GraphQL; empty: none */
	struct pack_row *field; /* the rows of its fields, as in the file */
	size_t n_fields;
	struct pack_case *cases;
	size_t n_cases;
	bool has_override; /* the server may take the method from a form */
};

/* *ret must be all zero, and is so after an error. `name` is the file's name for messages. */
int pack_parse(struct slice text, const char *name, struct pack *ret, struct err *err) MUST_CHECK;
/* A text that pack_parse has accepted, for requests to its path of GraphQL: without checks of rows
 * and cases, and without rows that have a path. */
int pack_parse_calls(
	struct slice text, const char *name, struct pack *ret, struct err *err) MUST_CHECK;
void pack_done(struct pack *p);
#define AUTO_PACK CLEANUP(pack_done)

const char *pack_risk_name(enum pack_risk risk);
/* Canonical host, as in struct http_req. */
/* Whether a host can be one of both; *ret is as a has it. */
bool pack_shares_host(const struct pack *a, const struct pack *b, struct slice *ret);
bool pack_has_host(const struct pack *p, struct slice host, uint16_t port);
