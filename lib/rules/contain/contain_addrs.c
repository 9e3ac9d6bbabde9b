/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses: the edges of all networks of rules, of the classes around them, and of each /8. */
#include "contain_internal.h"

static addr_bits bit_of(uint8_t prefix)
{
	return prefix == 0 ? 0 : (addr_bits)1 << (128 - prefix);
}

/* The bits from the top, as addr_key has them. */
static struct addr addr_of(addr_bits key, uint8_t n)
{
	uint8_t b[16];

	for (size_t i = 0; i < sizeof(b); i++)
		b[i] = (uint8_t)(key >> (120 - 8 * i));
	return n == 4 ? addr_from_v4(b) : addr_from_v6(b);
}

static bool try_addr(struct contain *c, const struct addr *a)
{
	struct host host;

	host_from_addr(a, &host);
	return contain_try(c, &host);
}

/* NAT64 and 6to4: forms of IPv6 that have an IPv4 address in them. */
static bool try_with_forms(struct contain *c, const struct addr *a)
{
	uint8_t nat64[16] = {0x00, 0x64, 0xff, 0x9b}, six[16] = {0x20, 0x02};
	struct addr one, two;

	if (try_addr(c, a))
		return true;
	if (a->n == 16)
		return false;
	memcpy(nat64 + 12, a->b, 4);
	memcpy(six + 2, a->b, 4);
	one = addr_from_v6(nat64);
	two = addr_from_v6(six);
	return try_addr(c, &one) || try_addr(c, &two);
}

/* Both ends of a network, and what is next to them. */
static bool try_edges(struct contain *c, const struct addr_net *net)
{
	uint8_t n = net->addr.n, prefix = net->prefix;
	addr_bits unit = bit_of(n == 4 ? 32 : 128), first = addr_key(&net->addr);
	addr_bits size = prefix ? bit_of(prefix) : 0;
	addr_bits edge[4] = {first, first - unit, first + size - unit, first + size};

	for (size_t i = 0; i < ARRAY_LEN(edge); i++) {
		struct addr a = addr_of(edge[i], n);

		if (try_with_forms(c, &a))
			return true;
	}
	return false;
}

static bool try_net(struct contain *c, const struct addr_net *net)
{
	struct addr_net range;

	if (try_edges(c, net))
		return true;
	return addr_classify(&net->addr, &range) != ADDR_PUBLIC && try_edges(c, &range);
}

bool contain_try_addrs(struct contain *c)
{
	static const uint8_t wide[][2] = {
		{0x26, 0}, {0x2a, 0}, {0x20, 0x01}, {0xfd, 0}, {0xfe, 0x80}};

	for (size_t i = 0; i < c->n_rows; i++)
		if (c->row[i].net->form == NETRULE_ADDR && try_net(c, &c->row[i].net->net))
			return true;
	for (unsigned i = 0; i < 256; i++) {
		struct addr_net net = {.addr = {.n = 4, .b = {(uint8_t)i}}, .prefix = 8};

		if (try_net(c, &net))
			return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(wide); i++) {
		struct addr_net net = {
			.addr = {.n = 16, .b = {wide[i][0], wide[i][1]}}, .prefix = 16};

		if (try_net(c, &net))
			return true;
	}
	return false;
}
