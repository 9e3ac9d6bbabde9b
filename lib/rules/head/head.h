/* SPDX-License-Identifier: Apache-2.0 */
/*
 * head - decides one HTTP request by its head: what it does, and whether rules permit that.
 *
 * How      head_describe makes the descriptions of a request (proto/PROTOCOL.effect): as HTTP, as
 *          git if the path is one of git's smart HTTP, as an operation of an API if a pack has the
 *          host. head_decide asks the policy about them. What a push does is in its content, and
 *          what a request to the path of GraphQL does: if rules are about the repository or the
 *          API, the answer is HEAD_READ, and the keeper decides again with the effects that
 *          sbx-clerk-git or sbx-clerk found. The keeper decides on the head that sbx-edge
 *          reports, sbx-origin and sbx-egress on the head that they are about to send.
 *          A pack is that of the host, or NULL.
 * Trust    Requests are untrusted. No I/O. Runs in keeper, origin and egress.
 * Owns     Nothing: effects point into the request, the arena and the struct head_effects.
 * Limits   HEAD_MAX_EFFECTS, EFFECT_MAX_HEADERS.
 * Never    Permits a request that a server may take for another one: by a header or a query field
 *          that replaces its method or its path.
 * See      lib/rules/policy/policy_request.h, head_describe_test.c,
 *          head_fuzz.c, lib/rules/gate/test/gate_head_test.c
 */
#pragma once

#include "lib/rules/effect/effect.h"
#include "lib/rules/pack/pack_match.h"
#include "lib/rules/policy/policy.h"
#include "lib/wire/http/canon/canon.h"

#define HEAD_MAX_EFFECTS 3
#define HEAD_MAX_RULE 256
#define HEAD_MAX_ID 65
#define HEAD_MAX_REASON 512

/* What is known of the content of a push, or of calls. */
struct head_read {
	const struct effect *effect; /* NULL: the keeper has decided about them */
	size_t n;
};

/* A request in its canonical form. */
struct head {
	struct slice method, host; /* host: canonical, no brackets around an address */
	uint16_t port;
	struct slice path, query;
	bool has_query;
	const struct http_headers *headers;
	struct slice names; /* of the headers that rules name: only they are part of effects */
	const struct head_read *read; /* NULL: nothing is known */
};

/* Whether the content of a request says what it does. */
enum head_content {
	HEAD_NO_CONTENT,
	HEAD_ADVERT, /* no: it requests the list of refs that a push begins with */
	HEAD_PUSH,
	HEAD_CALLS, /* of GraphQL */
};

/* One description each. */
struct head_effects {
	struct effect v[HEAD_MAX_EFFECTS];
	size_t n;
	struct effect_header header[EFFECT_MAX_HEADERS];
	struct pack_effect api;
	struct slice path; /* normal */
	unsigned int odd;
	enum head_content content;
	size_t at_content; /* the effect that the content replaces */
};

enum head_answer {
	HEAD_ALLOWED,
	HEAD_DENIED,
	HEAD_HELD, /* a person must be asked */
	HEAD_READ, /* the content decides */
};

struct head_decision {
	enum head_answer answer;
	struct head_effects effects;  /* none: the request has no canonical form */
	size_t which;		      /* the effect that the texts are about */
	enum head_content content;    /* rules are about this repository, or this API */
	bool paths;		      /* of a push: they are about the files that it changes */
	bool asks;		      /* of a push: a person may have to be asked */
	char rule[HEAD_MAX_RULE];     /* the rule that decided, as written; "": none applies */
	char id[HEAD_MAX_ID];	      /* its id, or "" */
	char where[POLICY_MAX_WHERE]; /* policy_print_where, or "" */
	char reason[HEAD_MAX_REASON];
	bool is_managed; /* HEAD_DENIED by the managed policy: no rule of the user helps */
	char instead[HEAD_MAX_RULE]; /* HEAD_DENIED: a rule that allows something there, or "" */
};

/* Whether the head of each request to the host must be read: some rule is about its requests. Then
 * other connections to it are refused. ret_rule: HEAD_MAX_RULE bytes, such a rule; or NULL. */
bool head_is_needed(const struct policy *policy, const struct policy_op *op,
	const struct pack *pack, char *ret_rule);
/* If the head is needed: the names of headers that rules name, or rows of the pack, which also
 * depend on the type of the content. CANON_NAMED_NAMES bytes. */
void head_get_wants(const struct policy *policy, const struct policy_op *op,
	const struct pack *pack, char *ret);
/* The effects point into the request and the arena. */
void head_decide(const struct policy *policy, const struct policy_op *op, const struct pack *pack,
	const struct head *h, struct arena *arena, struct head_decision *ret);
/* What the process that is about to send a request knows. */
struct head_sender {
	const struct policy *policy;
	const struct policy_op *op;
	const struct pack *pack;
	bool is_judged; /* by the ticket: the keeper has decided about the content */
};
/* Whether it may send the request. Else ret_why has why not. */
bool head_may_send(const struct head_sender *s, const struct http_req *req, struct arena *arena,
	char *ret_why, size_t size);
/* -EBADMSG: the target is not in the canonical form. */
int head_describe(const struct head *h, const struct pack *pack, struct arena *arena,
	struct head_effects *ret) MUST_CHECK;
