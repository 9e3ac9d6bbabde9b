/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locals - the addresses of this host and the networks that it is connected to.
 *
 * How      A list of networks: addresses of the host (a local route may have more than one), and
 *          on-link prefixes. addr_locals_classify is addr_classify, and in addition knows two
 *          classes: ADDR_OWN for an address of the host, whatever its range is (loopback stays
 *          loopback), and ADDR_LAN for a public address in an on-link prefix. Only a rule for the
 *          very address opens the first, a rule for the prefix or a part of it the second.
 * Trust    The kernel's answers (locals_read.h), or the keeper's, for egress. Pure: no I/O, no
 *          heap.
 * Limits   ADDR_MAX_LOCALS; more are ignored. Connections to the host itself are known without the
 *          list too: both ends have the same address (policy_op.is_own).
 * See      locals_test.c
 */
#pragma once

#include "addr.h"

#define ADDR_MAX_LOCALS 256

struct addr_local {
	struct addr_net net;
	bool is_own;
};

struct addr_locals {
	struct addr_local list[ADDR_MAX_LOCALS];
	uint16_t n;
};

/* False when the list is full. What is on it already is not added again. */
bool addr_locals_add(struct addr_locals *l, const struct addr_net *net, bool is_own);
bool addr_locals_eq(const struct addr_locals *a, const struct addr_locals *b);
/* As addr_classify; l may be NULL. */
enum addr_class addr_locals_classify(
	const struct addr_locals *l, const struct addr *a, struct addr_net *ret_range);
