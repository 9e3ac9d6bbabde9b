/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contain_internal - what the parts of contain.h share: the rules of one moment.
 */
#pragma once

#include "contain.h"

/* A resource of a rule that applies. */
struct contain_row {
	const struct netrule *net;
	bool is_inner_allow; /* of the policy that should be contained */
};

struct contain {
	struct contain_row *row;
	size_t n_rows;
	uint16_t *port; /* edges of all ranges */
	size_t n_ports;
	const struct policy *inner, *outer;
	uint64_t now_ms;
	size_t n_tries;
	struct contain_witness *ret;
};

/* True if it is a witness, which is then in c->ret, or if there were too many tries. */
bool contain_try(struct contain *c, const struct host *host);
/* The same for all representatives. *ret_unproven: there are too many. */
bool contain_try_names(struct contain *c, bool *ret_unproven);
bool contain_try_addrs(struct contain *c);
