/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_match - what a service file means for a request, a header or a path.
 *
 * How      service_pick_slot finds the slot of a request. service_judge reports whether a header or
 *          a query field carries a credential, and whether that is our placeholder or a credential
 *          of the guest. service_refuses_path and its siblings find requests that are never sent.
 * Trust    Hosts, paths and headers that are looked up are a guest's, hosts canonical (host.h).
 * Owns     Nothing.
 * Limits   SERVICE_MAX_CAPTURES captures, a bit each.
 * See      service.h, service_test.c, refuse_path_test.c, service_fuzz.c
 */
#pragma once

#include "service.h"

struct service_request {
	const struct host *host;
	uint16_t port;
	struct slice path; /* canonical; ignored from a '?' on */
};

/*
 * The first slot, in the order of the file, for this host, port and path whose value is one of
 * `values` (service_value, added up: those that the sandbox has); NULL when there is none.
 */
const struct service_slot *service_pick_slot(
	const struct service *s, const struct service_request *req, unsigned values);
/* Whether it is the token endpoint, byte for byte. */
bool service_is_endpoint(const struct service *s, const struct service_request *req);

enum service_verdict {
	SERVICE_PLAIN,	  /* no credential */
	SERVICE_SENTINEL, /* ours */
	SERVICE_FOREIGN,  /* of the guest: the request must not pass */
};

/*
 * A header (its name in any case), a query field (as in the request), or one cookie. It is a
 * credential when its name is known, or when its value looks like one (shape.h).
 */
enum service_verdict service_judge(
	const struct service *s, enum service_where where, struct slice name, struct slice value);

/* Whether a slot is at this host and port, whatever the path. only_always: one with
 * `intercept always`. */
bool service_is_slot_host(
	const struct service *s, const struct service_request *req, bool only_always);
/* Whether requests to this name must be intercepted on every port: a slot has `intercept always`,
 * or with `logins` a token endpoint where programs log in. Many servers answer on more ports than
 * the one that the file names. Not for addresses and names of this host. */
bool service_guards_host(const struct service *s, const struct host *host, bool logins);
/* Whether one of its token endpoints is at this host and port, whatever the path. */
bool service_is_endpoint_host(const struct service *s, const struct service_request *req);
/* Whether some server at this host and port may take the path, as it is in the request, for one
 * of the service's token endpoints. Paths are compared as in service_refuses_path; a path that
 * service_odd_path refuses may be one. */
bool service_may_be_endpoint(const struct service *s, const struct service_request *req);

/*
 * The rule that refuses this method and path, or NULL. Servers disagree about the spelling of
 * paths: upper and lower case, escapes, empty and "." segments, `;` parameters, a host after "//"
 * at the front, a slash or an extension at the end are all treated as the same path.
 * service_odd_path refuses a path with a ".." segment in any spelling, a control character or more
 * than four nested escapes, when there is a rule for any path: servers disagree about what it is.
 * An empty method is one that is not known.
 */
extern const struct service_refusal service_odd_path;
const struct service_refusal *service_refuses_path(
	const struct service *s, struct slice method, struct slice path);
/* The same for a header (its name in any case), and for a whole query with its pairs. */
const struct service_refusal *service_refuses_header(
	const struct service *s, struct slice name, struct slice value);
const struct service_refusal *service_refuses_query(const struct service *s, struct slice query);
/* Whether a rule or a token endpoint of it is for some path. */
bool service_names_paths(const struct service *s);
/* The captures for this method and path, a bit each; paths are compared as in service_refuses_path,
 * and one that service_odd_path refuses has all of them. */
uint32_t service_captures(const struct service *s, struct slice method, struct slice path);
/* Whether a query has a field of this name, in any case and spelling. */
bool service_has_query(struct slice query, const char *name);

/* Whether a path fits a pattern: segments, `*` for one of them, one `**` for one or more. */
bool service_path_match(const char *pattern, struct slice path);
