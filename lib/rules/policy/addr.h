/* SPDX-License-Identifier: Apache-2.0 */
/*
 * addr - IPv4 and IPv6 addresses: strict text, and which of them are not the public Internet.
 *
 * How      addr_classify first extracts every IPv4 address that is embedded in an IPv6 one
 *          (addr_embedded), then looks all of them up in one table of ranges; the longest range
 *          wins. Anything that is not known to be public is not.
 * Trust    Parses addresses that a guest, a resolver or a peer chose. Pure: no I/O, no heap.
 * Never    Holds an IPv4-mapped address as IPv6: addr_from_v6 makes it the IPv4 address it is.
 * See      addr_test.c, host.h for spellings other than the strict one
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/slice.h"

#define ADDR_MAX_TEXT 46
#define ADDR_MAX_EMBEDDED 3

enum addr_class {
	ADDR_PUBLIC,
	ADDR_PRIVATE,
	ADDR_LOOPBACK,
	ADDR_LINK_LOCAL,
	ADDR_CGNAT,
	ADDR_METADATA, /* where clouds hand out credentials */
	ADDR_MULTICAST,
	ADDR_BROADCAST,
	ADDR_UNSPECIFIED,
	ADDR_BENCHMARK,
	ADDR_DOCUMENTATION,
	ADDR_TUNNEL, /* 6to4, Teredo, local NAT64: destination unknown */
	ADDR_RESERVED,
	ADDR_OWN, /* of this host: locals.h */
	ADDR_LAN, /* public, but on this host's own network: locals.h */
	ADDR_CLASSES,
};

struct addr {
	uint8_t b[16];
	uint8_t n; /* 4 or 16 */
};

struct addr_net {
	struct addr addr; /* bits after the prefix are 0 */
	uint8_t prefix;
};

/* The bits from the top, an IPv4 address in the first 32: orders the addresses of one family. */
typedef unsigned __int128 addr_bits;

struct addr addr_from_v4(const uint8_t b[4]);
struct addr addr_from_v6(const uint8_t b[16]);
/* Four decimal numbers, or IPv6 without brackets and zone. -EINVAL for every other spelling. */
int addr_parse(struct slice text, struct addr *ret) MUST_CHECK;
/* Lower case, shortest form; buf has ADDR_MAX_TEXT bytes. */
void addr_print(const struct addr *a, char *buf);
bool addr_eq(const struct addr *a, const struct addr *b);
addr_bits addr_key(const struct addr *a);

bool addr_net_has(const struct addr_net *net, const struct addr *a);
/* Whether `inner` lies wholly in `net`. */
bool addr_net_covers(const struct addr_net *net, const struct addr_net *inner);
/* The network with the bits after its prefix cleared. */
struct addr_net addr_net_of(const struct addr *a, uint8_t prefix);

/* The IPv4 addresses written inside an IPv6 one, at most ADDR_MAX_EMBEDDED; gives their number. */
size_t addr_embedded(const struct addr *a, struct addr *ret);
/* ret_range (may be NULL): the table's row that `a` is in; `a` alone when one inside it decided. */
enum addr_class addr_classify(const struct addr *a, struct addr_net *ret_range);
/* "private", "link-local" ... */
const char *addr_class_name(enum addr_class class);
