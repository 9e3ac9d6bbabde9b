/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_internal - what the files of lib/rules/gate share.
 *
 * Trust    As gate.h.
 */
#pragma once

#include "gate.h"

/* One thing that was refused, by its hash: the table then costs the same for long names. */
struct counter {
	uint64_t hash;
	uint32_t n;    /* 0: free */
	uint32_t used; /* when, in refusals of this gate */
};

struct gate {
	char name[EDGE_MAX_NAME];
	struct audit *audit;
	char *no_audit; /* why audit is NULL */
	struct policy *policy;
	struct addr_locals locals; /* of this host */
	uint8_t key[16];
	uint32_t now;
	struct counter *counters;
};

const char *gate_path_word(const struct edge_ask *ask);
/* "GET /a/b", never the query, which may have secrets; buf has GATE_MAX_OP bytes. */
#define GATE_MAX_PATH 1023 /* the record of a longer path has its beginning and " ..." */
#define GATE_MAX_OP (EDGE_MAX_METHOD + GATE_MAX_PATH + 8)
void gate_print_op(const struct edge_ask *ask, char *buf);
int gate_append(struct gate *g, const struct audit_event *ev, struct err *err) MUST_CHECK;
uint32_t gate_count_refusal(struct gate *g, const struct edge_ask *ask);
