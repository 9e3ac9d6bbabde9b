/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_requests - random rules about requests, and requests, for tests and the bench.
 *
 * How      As random_rules.h: a few hosts, paths and words, so that they often meet;
 *          random_requests_wide makes a large policy of all kinds.
 * Trust    Test code. Deterministic: the same seed, the same rules.
 */
#pragma once

#include "lib/rules/policy/policy_request.h"
#include "random_rules.h"

#define RANDOM_EFFECTS 3

/* A request with its effects. */
struct random_request {
	struct host host;
	struct policy_request req;
	struct policy_description list[3];
	struct effect effect[3][RANDOM_EFFECTS];
	struct effect_header header[3];
	char text[400];
};

/* Mostly a network rule that allows all hosts. */
void random_open_rule(struct random_state *rs, struct rules *rules);
void random_request_rule(struct random_state *rs, struct rules *rules);
void random_request(struct random_state *rs, struct random_request *ret);
/* n rules of all kinds on many hosts; the network rules allow the hosts. */
void random_requests_wide(struct random_state *rs, size_t n, struct rules *rules);
void random_request_wide(struct random_state *rs, size_t n, struct random_request *ret);
