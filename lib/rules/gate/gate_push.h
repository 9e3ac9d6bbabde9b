/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_push - decides pushes of git and calls of GraphQL, whose content says what they do.
 *
 * How      If rules are about the repository of a push, or about the API of a request to its path
 *          of GraphQL, gate_decide_bound allows it without a record, and gate_push says that its
 *          content must be read first. Then gate_decide_push decides on the effects that
 *          sbx-clerk-git or sbx-clerk has reported, with all that the head says, and records.
 *          gate_asked applies to it too.
 * Trust    As gate.h. The effects are the word of a process that reads the guest's content; host,
 *          port, repository and service in them are the keeper's.
 * Owns     Nothing.
 * Limits   EFFECT_MAX_LIST effects.
 * See      lib/rules/head/head.h, gate_push_test.c, src/keeper/network/clerks.h
 */
#pragma once

#include "gate.h"

/* A push to a repository that rules are about, or calls of an API that they are about. */
struct gate_push {
	bool is_calls;	/* the host has a pack with GraphQL */
	bool is_advert; /* the list of refs: decided, but its answer must be rewritten */
	bool paths;	/* rules are about the files that a push changes */
	bool asks;	/* a person may have to be asked */
	char repository[EDGE_MAX_TARGET]; /* of calls: the service */
};

/* What a push does, as sbx-clerk-git has read it, or what calls do, as sbx-clerk has. */
struct gate_pushed {
	const struct effect *effect; /* not empty, unless the push has no command */
	size_t n;
	uint8_t commands[SHA256_BYTES]; /* of the refs and their objects, or of the body */
	const char *preview;
	const char *unknown; /* why an effect is not known; NULL: each is */
};

/* What the last gate_decide_bound has allowed is a push. Unless it is the list of refs, nothing was
 * recorded yet: its content must be read, then gate_decide_push decides. NULL: it is not. */
const struct gate_push *gate_push(const struct gate *g);
/* Decides a push whose content is known, as gate_decide_bound; with the id of an approval request,
 * as gate_decide_approved. */
void gate_decide_push(struct gate *g, const struct edge_ask *ask,
	const struct gate_binding *binding, const struct gate_pushed *pushed, const char *hold,
	uint64_t now_ms, struct edge_verdict *ret);
/* Whether the rules still permit it, and no person must be asked. */
bool gate_passes_push(struct gate *g, const struct edge_ask *ask, const struct gate_pushed *pushed,
	uint64_t now_ms);
/* Refuses what cannot be read. */
void gate_refuse_push(struct gate *g, const struct edge_ask *ask, const struct gate_push *push,
	const char *why, struct edge_verdict *ret);
/* The headers that requests to the host must report: EDGE_MAX_WANTS bytes of names. Returns their
 * id. */
uint32_t gate_get_wants(struct gate *g, const struct edge_ask *ask, uint64_t now_ms, char *names);
