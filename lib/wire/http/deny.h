/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deny - one refusal as an HTTP response.
 *
 * How      A struct deny names what was blocked and why. deny_write_http answers a request: 403
 *          with plain text, or problem+json for clients that accept JSON. deny_write_connect
 *          answers a CONNECT, so that the client fails instead of showing the text as the page.
 *          deny_write_fault answers a request that could not be read, deny_write_failed one that
 *          was allowed and failed. All have a Proxy-Status. What a person can still approve has the
 *          id of the approval and a Retry-After.
 * Trust    Host and rule come from peers and people: printed only as bounded printable ASCII,
 *          anything else as "?". Runs in edge.
 * Owns     Nothing; writes whole answers into the caller's buffer.
 * Limits   DENY_MAX_TEXT bytes of each name, DENY_MAX_LINE of an effect and a command; an answer
 *          fits into DENY_ROOM.
 * See      deny_test.c
 */
#pragma once

#include "lib/wire/http/canon/canon.h"

#define DENY_MAX_TEXT 255
#define DENY_MAX_LINE 512
#define DENY_ROOM 16384
#define DENY_RETRY_S 60 /* what waits for approval is worth another try then */

struct deny {
	struct slice host;    /* canonical, or as far as it could be read */
	uint16_t port;	      /* 0: of a name alone */
	struct slice rule;    /* the rule that denies; empty: none applies */
	struct slice reason;  /* replaces both if not empty */
	struct slice sandbox; /* its name, for the command to type */
	uint64_t count;	      /* how often this was refused, now included; 0: not known */
	bool no_rule_helps;   /* it is not the policy that would have to change */
	/* Of a rule about requests; else empty. */
	struct slice effect;   /* what the request does (lib/rules/effect) */
	struct slice instead;  /* the nearest rule that allows a request to this host */
	struct slice command;  /* to type instead of one about the network */
	struct slice approval; /* not empty: a person can approve it; the id */
};

/* Whether an Accept header names JSON, or a type that is JSON: application/vnd.github+json. */
bool deny_wants_json(struct slice accept);
/* The sentences, one a line, with a line end after the last. */
int deny_write_text(struct wr *wr, const struct deny *d) MUST_CHECK;
/* A whole response. With is_head the content is omitted, its length is not. The connection stays
 * usable unless `close`. */
int deny_write_http(
	struct wr *wr, const struct deny *d, bool json, bool is_head, bool close) MUST_CHECK;
/* A complete response to an allowed request that failed: 502 or 504, with the reason. It does not
 * mention a policy: no rule needs a change. */
int deny_write_failed(struct wr *wr, const struct deny *d, uint16_t status, bool json, bool is_head,
	bool close) MUST_CHECK;
/* A whole response to CONNECT; the connection ends after it. */
int deny_write_connect(struct wr *wr, const struct deny *d) MUST_CHECK;
/* A whole response to what could not be read; the connection ends after it. */
int deny_write_fault(struct wr *wr, const struct http_fault *fault, bool is_head) MUST_CHECK;
