/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rule - one rule of a policy, and the line of text that it is written as.
 *
 * How      A rule has an effect (allow, deny, ask), a kind that defines the syntax of its
 *          resources, resources, and metadata: its sandbox, its expiry, its origin. A rule about
 *          requests also has terms (effect_terms.h). rule_parse reads a line of
 *          proto/PROTOCOL.policy, rule_print writes it. A further kind is a row in the table of
 *          rule.c and a kind of effect.h.
 * Trust    Text of the same user, or of a file that the user imports.
 * Owns     All its pointers, freed by rule_done.
 * Limits   RULE_MAX_LINE, RULE_MAX_LIST, RULE_MAX_RESOURCES, RULE_MAX_WORD, RULE_MAX_COMMENT.
 * See      proto/PROTOCOL.policy, rule_test.c, rules.h for the file
 */
#pragma once

#include "lib/rules/effect/effect_terms.h"
#include "netrule.h"

#define RULE_MAX_LINE 16384
#define RULE_MAX_LIST \
	15000 /* of the resources and terms in canonical form, so that every rule fits a line \
	       */
#define RULE_MAX_RESOURCES 256
#define RULE_MAX_WORD 64
#define RULE_MAX_COMMENT 240

enum rule_effect { RULE_DENY, RULE_ALLOW, RULE_ASK, RULE_EFFECTS };
/* All but the first one are about requests: see rule_request_kind. */
enum rule_kind { RULE_NETWORK, RULE_HTTP, RULE_GIT, RULE_API, RULE_KINDS };

/* What rule_print leaves out. */
enum rule_print { RULE_PRINT_ALL, RULE_PRINT_PLAIN /* id, origin and created */ };

struct rule {
	enum rule_effect effect;
	enum rule_kind kind;
	struct netrule *net; /* its resources */
	size_t n_net;
	struct effect_terms terms; /* not of RULE_NETWORK */
	char *sandbox;		   /* NULL: every one */
	char *id;		   /* 12 hex digits, or a word; NULL: none yet */
	char *origin;		   /* "local", "kit:x" ...; NULL: unknown */
	char *comment;		   /* NULL: none */
	uint64_t until_ms;   /* 0: for ever; from then on the rule is as if it were not there */
	uint64_t created_ms; /* 0: unknown */
	size_t group;	     /* of struct rules, from 1; 0: none */
	unsigned line;	     /* where it was read; 0: not from a file */
};

const char *rule_effect_name(enum rule_effect effect);
const char *rule_kind_name(enum rule_kind kind);
/* The kind of effects that a rule about requests is for; kind is not RULE_NETWORK. */
enum effect_kind rule_request_kind(enum rule_kind kind);
/* -ENOENT if there is no such kind, -ENOTSUP for one of a later version. */
int rule_kind_find(struct slice word, enum rule_kind *ret, struct err *err) MUST_CHECK;
/* "net:connect:tcp" */
const char *rule_action_name(enum rule_kind kind);

/* A line without its comment, split at blanks. *ret must be all zero, and is so after an error. */
int rule_parse(struct slice line, struct rule *ret, struct err *err) MUST_CHECK;
/* For commands: the same from its parts. `resources` is a list with commas. */
int rule_make(enum rule_effect effect, enum rule_kind kind, struct slice resources,
	struct rule *ret, struct err *err) MUST_CHECK;
/* The same with terms, as in a line: "method GET,HEAD query a=1". */
int rule_make_terms(enum rule_effect effect, enum rule_kind kind, struct slice resources,
	struct slice terms, struct rule *ret, struct err *err) MUST_CHECK;
/* What ids, origins, sandboxes and groups are: 1 to RULE_MAX_WORD letters, digits and `.-_:`. */
bool rule_is_word(struct slice s);
/* Printable UTF-8 or ASCII of at most RULE_MAX_COMMENT bytes, no blank at either end. */
bool rule_is_comment(struct slice s);
void rule_done(struct rule *rule);
#define AUTO_RULE CLEANUP(rule_done)

/* The canonical line without its end, on the heap. */
char *rule_print(const struct rule *rule, enum rule_print what);
/* Its resources alone, on the heap: "a.example.com:443,b.example.com". */
char *rule_print_resources(const struct rule *rule);
/* Its resources and terms, on the heap: "a.example.com/v1/x method GET". */
char *rule_print_what(const struct rule *rule);

bool rule_is_for(const struct rule *rule, const char *sandbox);
bool rule_is_over(const struct rule *rule, uint64_t now_ms);
/* The ports a resource of this rule means: an allow without a port 80 and 443, others all. */
size_t rule_get_ports(
	const struct rule *rule, const struct netrule *net, struct netrule_ports *ret);
/* Whether something could be decided by both. May return true for rules that do not overlap. */
bool rule_may_meet(const struct rule *a, const struct rule *b);

/* "2026-12-31T23:59:59Z", with ".123" where there are milliseconds; buf has 32 bytes. */
void rule_print_time(uint64_t ms, char *buf);
int rule_parse_time(struct slice text, uint64_t *ret_ms) MUST_CHECK;
