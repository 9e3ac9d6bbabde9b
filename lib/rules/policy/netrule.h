/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netrule - one resource of a rule: which hosts, which ports, and of a request which paths.
 *
 * How      netrule_parse reads `api.example.com`, `*.example.com` (exactly one additional label),
 *          `**.example.com` (any depth, not example.com itself), patterns inside labels (glob.h),
 *          `10.0.0.0/8`, `[2001:db8::1]`, `[2001:db8::/32]`, `**` (every host), each with an
 *          optional `:443` or `:8000-9000`. netrule_parse_target reads the resource of a rule about
 *          requests: `HOST[:PORT]/PATH`, `HOST[:PORT]/REPO`, SERVICE, or `**`. netrule_print
 *          returns the canonical text of both.
 * Trust    Text of the same user, or of a file that the user imports. Parsing does no I/O.
 * Owns     name and path, freed by netrule_done.
 * Limits   NETRULE_MAX_TEXT bytes.
 * Never    Takes an address in an unusual spelling: `example.com:80,443` would name host 0.0.1.187.
 * See      proto/PROTOCOL.policy, netrule_test.c
 */
#pragma once

#include "host.h"
#include "lib/rules/effect/effect.h"

#define NETRULE_MAX_TEXT 1200 /* before IDNA; 300 after */
#define NETRULE_MAX_PORTS 2
#define NETRULE_MAX_SERVICE 32

enum netrule_form { NETRULE_EVERY, NETRULE_NAME, NETRULE_ADDR, NETRULE_NO_HOST };

struct netrule_ports {
	uint16_t lo, hi;
};

struct netrule {
	enum netrule_form form;
	bool deep;	/* `**.` preceded the name */
	uint8_t n_glob; /* bytes of name up to the last pattern's dot; the rest is literal */
	uint8_t n_name;
	struct netrule_ports ports; /* 0, 0: none written */
	char *name;
	struct addr_net net;
	char *path; /* a pattern of effect_terms.h: the path from its slash on, the repository, or,
		     * of NETRULE_NO_HOST, the service. NULL: of a network rule */
};

int netrule_parse(struct slice text, struct netrule *ret, struct err *err) MUST_CHECK;
int netrule_parse_target(
	enum effect_kind kind, struct slice text, struct netrule *ret, struct err *err) MUST_CHECK;
void netrule_done(struct netrule *nr);
/* Whether it names this host, by one of the names of host_is_here. */
bool netrule_is_here(const struct netrule *nr);
/* buf has NETRULE_MAX_TEXT bytes. */
void netrule_print(const struct netrule *nr, char *buf);
/* The ports it means, and how many ranges. Without a port: 80 and 443, or with `every` all. */
size_t netrule_get_ports(const struct netrule *nr, bool every, struct netrule_ports *ret);
/* Whether a host, and a path, could be both's, ports aside. May return true for rules that do not
 * overlap. */
bool netrule_may_meet(const struct netrule *a, const struct netrule *b);
