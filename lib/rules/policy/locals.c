/* SPDX-License-Identifier: Apache-2.0 */
#include "locals.h"

bool addr_locals_add(struct addr_locals *l, const struct addr_net *net, bool is_own)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct addr_local *old = &l->list[i];

		if (old->is_own == is_own && old->net.prefix == net->prefix &&
			addr_eq(&old->net.addr, &net->addr))
			return true;
	}
	if (l->n == ADDR_MAX_LOCALS)
		return false;
	l->list[l->n++] = (struct addr_local){.net = *net, .is_own = is_own};
	return true;
}

bool addr_locals_eq(const struct addr_locals *a, const struct addr_locals *b)
{
	bool same = a->n == b->n;

	for (size_t i = 0; same && i < a->n; i++) {
		const struct addr_local *x = &a->list[i], *y = &b->list[i];

		same = x->is_own == y->is_own && x->net.prefix == y->net.prefix &&
		       addr_eq(&x->net.addr, &y->net.addr);
	}
	return same;
}

/* The row of this kind around the address that has the longest prefix; NULL when there is none. */
static const struct addr_net *find_locals(
	const struct addr_locals *l, const struct addr *a, bool is_own)
{
	const struct addr_net *best = NULL;

	for (size_t i = 0; l && i < l->n; i++) {
		const struct addr_local *row = &l->list[i];

		if (row->is_own == is_own && addr_net_has(&row->net, a) &&
			(!best || row->net.prefix > best->prefix))
			best = &row->net;
	}
	return best;
}

/* An address written inside this one is judged too, and then the range is this address alone. */
static enum addr_class classify_inner(const struct addr_locals *l, const struct addr *a)
{
	struct addr inner[ADDR_MAX_EMBEDDED];
	size_t n = addr_embedded(a, inner);
	enum addr_class class = ADDR_PUBLIC;

	for (size_t i = 0; i < n; i++) {
		if (find_locals(l, &inner[i], true))
			return ADDR_OWN;
		if (find_locals(l, &inner[i], false))
			class = ADDR_LAN;
	}
	return class;
}

enum addr_class addr_locals_classify(
	const struct addr_locals *l, const struct addr *a, struct addr_net *ret_range)
{
	struct addr_net range = {0};
	enum addr_class class = addr_classify(a, &range), inner;
	const struct addr_net *lan = class == ADDR_PUBLIC ? find_locals(l, a, false) : NULL;

	if (class != ADDR_LOOPBACK && find_locals(l, a, true)) {
		class = ADDR_OWN;
		range = addr_net_of(a, (uint8_t)(a->n * 8));
	} else if (lan) {
		class = ADDR_LAN;
		range = *lan;
	} else if (class == ADDR_PUBLIC) {
		inner = classify_inner(l, a);
		if (inner != ADDR_PUBLIC) {
			class = inner;
			range = addr_net_of(a, 128);
		}
	}
	if (ret_range)
		*ret_range = range;
	return class;
}
