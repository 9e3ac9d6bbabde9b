/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_body - decodes the bodies of requests. No I/O.
 *
 * How      One function per kind of body. Unknown fields are rejected.
 * Trust    Requests of the same user.
 * Owns     Nothing; the caller owns *ret.
 * See      proto/PROTOCOL.api, api_body.c, api_secret_body.c, api_route_test.c, api_fuzz.c
 */
#pragma once

#include <jansson.h>
#include "lib/os/ipc/vault_item.h"
#include "lib/rules/audit/audit_record.h"
#include "lib/rules/hold/hold_msg.h"
#include "lib/rules/policy/rule.h"
#include "lib/rules/spec/spec.h"

#define API_MAX_STOP_MS 3600000
#define API_MAX_FOR_S (365 * 24 * 3600)
#define API_MAX_CHANGES 16777216 /* of a staged sandbox */
#define API_MAX_RULES 64	 /* of a new sandbox */

/* Fields of a create in addition to the spec. */
struct api_create_body {
	struct rule *rules; /* for the new sandbox only */
	size_t n_rules;
	bool has_rules; /* the field is present, though it may be empty */
	bool start, cold;
};

/* The body of a new policy: exactly one is set. */
struct api_policy {
	char *preset, *text, *file;
	bool lock; /* with the preset deny-all */
};

/* The body of a credential without its value. The scope of meta is not filled in. */
struct api_secret {
	struct vault_meta meta;
	struct vault_ref ref; /* VAULT_REF_NONE: the value is in a descriptor */
	char *sandbox;	      /* NULL: for all */
};

/* The body of API_OWN. */
struct api_own_body {
	char service[VAULT_MAX_NAME];
	bool is_own;
};

/* The body of API_HOLD_ANSWER. */
struct api_hold_body {
	enum hold_choice choice;
	uint8_t digest[SHA256_BYTES];
	uint64_t seconds; /* HOLD_CHOICE_FOR */
	char where[HOLD_MAX_WHERE];
	char reason[HOLD_MAX_REASON + 1];
};

/* The body of API_STAGE: what the command line does with the changes of a staged sandbox. */
struct api_stage_body {
	char action[16];	      /* of the audit record: "stage-review" ... */
	char sha256[65];	      /* of the bundle's manifest; empty: none */
	uint64_t count;		      /* of changes */
	char names[AUDIT_MAX_OP + 1]; /* of changed files; empty: none */
};

/* Loads a JSON object with fields of `allowed` only (ends with NULL; NULL: checked later). *ret
 * must be freed in any case. */
int api_body_load(
	struct slice body, const char *const *allowed, json_t **ret, struct err *err) MUST_CHECK;
int api_body_check(json_t *o, const char *const *allowed, struct err *err) MUST_CHECK;
/* *ret_spec and *ret must be all zero. */
int api_decode_create(struct slice body, uint64_t now_ms, struct spec *ret_spec,
	struct api_create_body *ret, struct err *err) MUST_CHECK;
void api_create_done(struct api_create_body *c);
#define AUTO_API_CREATE CLEANUP(api_create_done)
/* Decodes the new spec of PATCH: `old` with the fields of the body. *ret_generation is the
 * requested one, 0 if the body has none. */
int api_decode_patch(struct slice body, const struct spec *old, struct spec *ret,
	uint64_t *ret_generation, struct err *err) MUST_CHECK;
/* Optional bodies; values are unchanged if the body or the field is missing. */
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
int api_decode_own(struct slice body, struct api_own_body *ret, struct err *err) MUST_CHECK;
/* Decodes a rule with its scope, expiry, comment and origin; *ret must be all zero. */
int api_decode_rule(
	struct slice body, uint64_t now_ms, struct rule *ret, struct err *err) MUST_CHECK;
/* "host", "host:port" or a URL. Default port: that of the scheme, else 443. */
int api_parse_target(
	const char *text, struct host *ret_host, uint16_t *ret_port, struct err *err) MUST_CHECK;
/* The `ports` of a body, at least one; on the heap. */
int api_decode_ports(
	struct slice body, struct spec_port **ret, size_t *ret_n, struct err *err) MUST_CHECK;
int api_decode_hold(struct slice body, struct api_hold_body *ret, struct err *err) MUST_CHECK;
int api_decode_stage(struct slice body, struct api_stage_body *ret, struct err *err) MUST_CHECK;
/* Exactly one of `label` and `undo`; with undo the label is empty. */
int api_decode_rewind(struct slice body, char *ret_label, size_t size, struct err *err) MUST_CHECK;
/* Optional body with `label` and `with_memory`, or with `auto`. */
int api_decode_checkpoint(struct slice body, char *ret, size_t size, bool *ret_auto,
	bool *ret_memory, struct err *err) MUST_CHECK;
int api_decode_stop(struct slice body, uint64_t *timeout_ms, bool *suspend, bool *idle,
	struct err *err) MUST_CHECK;
