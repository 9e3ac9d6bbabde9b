/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_route - finds the call of a request. No I/O.
 *
 * How      One table of method, pattern and call. `:ref` in a pattern is a sandbox's name or id.
 *          Unknown query keys are rejected.
 * Trust    Requests of the same user.
 * Owns     Nothing; ref points into the request.
 * See      proto/PROTOCOL.api, api_body.h, api_route_test.c, api_fuzz.c
 */
#pragma once

#include <stdio.h>
#include "lib/wire/http/api_http.h"
#include "lib/rules/policy/rule.h"

#define API_MAX_WAIT_MS 600000

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
	API_CHECKPOINT,
	API_CHECKPOINTS,
	API_REWIND,
	API_CHECKPOINT_RM,
	API_OWN,
	API_TEMPLATE_RM,
	API_TEMPLATE_COLLECT,
	API_AUDIT_PRUNE,
	API_GUARD,
	API_GUARD_DONE,
	API_STAGE,
	API_HOLDS,
	API_HOLD,
	API_HOLD_ANSWER,
	API_METRICS,
	API_N_CALLS,
};

struct api_request {
	enum api_call call;
	const char *ref;   /* NULL: the call has none */
	uint64_t wait_ms;  /* GET */
	bool force;	   /* DELETE */
	uint64_t callback; /* EXEC: instead of a program, this port of the guest; 0: none */
	uint64_t total;	   /* GUARD_DONE: the rows that the client has seen */
	bool has_total;

	/* of the policy */
	uint64_t from; /* the first requested rule */
	bool text;
	const char *target, *resource, *sandbox; /* NULL: not given */
	bool has_effect;
	enum rule_effect effect;

	const char *label; /* of a checkpoint */

	const char *control; /* of a scan; NULL: none */

	/* of pruning an audit log; exactly one is set */
	uint64_t before_ms, keep_bytes;
	bool has_keep, dry;

	/* of a published port; 0, NULL: not given */
	const char *host_ip, *protocol;
	uint64_t host_port, sandbox_port;
};

/* One line per call: method, path, `body` if it may have one, query keys. */
void api_route_print(FILE *out);
/* 0, or the HTTP status with err filled: 404, 405, 400. */
int api_route(const struct api_http *h, struct api_request *ret, struct err *err) MUST_CHECK;
