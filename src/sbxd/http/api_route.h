/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_route - from a request to the call it means, and from its body to fields. No I/O.
 *
 * How      One table of method, pattern and call. `:ref` in a pattern is a sandbox's name or id.
 *          Query keys and body fields that a call does not know are refused.
 * Trust    Requests of the same user.
 * Owns     Nothing; ref points into the request.
 * See      proto/PROTOCOL.api, api_body.c, api_secret_body.c, api_route_test.c, api_fuzz.c
 */
#pragma once

#include "lib/wire/http/api_http.h"
#include "lib/os/ipc/vault_chan.h"
#include "lib/rules/policy/rule.h"
#include "lib/rules/spec/spec.h"

#define API_MAX_WAIT_MS 600000
#define API_MAX_STOP_MS 3600000

enum api_call {
	API_VERSION,
	API_LIST,
	API_CREATE,
	API_GET,
	API_PATCH,
	API_DELETE,
	API_START,
	API_STOP,
	API_EXEC,
	API_STATS,
	API_WATCH,
	API_SHUTDOWN,
	API_POLICY_GET,
	API_POLICY_PUT,
	API_POLICY_RESET,
	API_POLICY_CHECK,
	API_RULE_ADD,
	API_RULE_RM,
	API_RULES_RM,
	API_RELOAD,
	API_POOL,
	API_SECRETS,
	API_SECRET_PUT,
	API_SECRET_RM,
	API_SECRET_STATUS,
	API_SECRET_UNLOCK,
	API_SECRET_SCAN,
	API_SERVICES,
	API_PORTS,
	API_PORT_ADD,
	API_PORT_RM,
	API_FREEZE,
	API_OWN,
	API_TEMPLATE_RM,
	API_TEMPLATE_COLLECT,
	API_AUDIT_PRUNE,
	API_N_CALLS,
};

struct api_request {
	enum api_call call;
	const char *ref;  /* NULL when the call has none */
	uint64_t wait_ms; /* GET */
	bool force;	  /* DELETE */

	/* of the policy */
	uint64_t from; /* the first rule that is wanted */
	bool text;
	const char *target, *resource, *sandbox; /* NULL: not said */
	bool has_effect;
	enum rule_effect effect;

	const char *control; /* of a scan; NULL: none */

	/* of pruning an audit log; one of both is there */
	uint64_t before_ms, keep_bytes;
	bool has_keep, dry;

	/* of a published port; 0, NULL: not said */
	const char *host_ip, *protocol;
	uint64_t host_port, sandbox_port;
};

/* The body of a new policy: one of them is there. */
struct api_policy {
	char *preset, *text, *file;
	bool lock; /* with the preset deny-all */
};

/* The body of a credential: all but its value. The scope of meta is not filled in. */
struct api_secret {
	struct vault_meta meta;
	struct vault_ref ref; /* VAULT_REF_NONE: the value comes in a descriptor */
	char *sandbox;	      /* NULL: for all */
};

/* The body of API_OWN. */
struct api_own {
	char service[VAULT_MAX_NAME];
	bool is_own;
};

/* 0, or the HTTP status with err filled: 404, 405, 400. */
int api_route(const struct api_http *h, struct api_request *ret, struct err *err) MUST_CHECK;

/* The new spec of PATCH: `old` with the body's fields put in. *ret_generation is what the body
 * asked for, 0 when it did not. */
int api_decode_patch(struct slice body, const struct spec *old, struct spec *ret,
	uint64_t *ret_generation, struct err *err) MUST_CHECK;
/* Bodies that may be left out; values are untouched when they or the field are. */
int api_decode_start(
	struct slice body, enum spec_accel *accel, bool *cold, struct err *err) MUST_CHECK;
int api_decode_policy(struct slice body, struct api_policy *ret, struct err *err) MUST_CHECK;
void api_policy_done(struct api_policy *p);
#define AUTO_API_POLICY CLEANUP(api_policy_done)
/* `name` is the path's; *ret must be all zero. */
int api_decode_secret(
	struct slice body, const char *name, struct api_secret *ret, struct err *err) MUST_CHECK;
void api_secret_done(struct api_secret *s);
#define AUTO_API_SECRET CLEANUP(api_secret_done)
int api_decode_own(struct slice body, struct api_own *ret, struct err *err) MUST_CHECK;
/* A rule with its scope, end, comment and origin; *ret must be all zero. */
int api_decode_rule(
	struct slice body, uint64_t now_ms, struct rule *ret, struct err *err) MUST_CHECK;
/* "host", "host:port" or a URL; without a port that of the scheme, else 443. */
int api_parse_target(
	const char *text, struct host *ret_host, uint16_t *ret_port, struct err *err) MUST_CHECK;
/* The `ports` of a body, at least one; on the heap. */
int api_decode_ports(
	struct slice body, struct spec_port **ret, size_t *ret_n, struct err *err) MUST_CHECK;
int api_decode_stop(
	struct slice body, uint64_t *timeout_ms, bool *suspend, struct err *err) MUST_CHECK;
