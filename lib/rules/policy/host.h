/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host - the host of a target in its one canonical form: a name or an address.
 *
 * How      host_from_wire takes what protocols carry: ASCII letters, digits, '-', '_' and dots,
 *          made lower case, 1 to 63 bytes a label, 253 in all. host_from_text also takes user
 *          input: other letters go through IDNA (UTS 46, non-transitional), and an A-label must be
 *          a valid one. A text that ends in a number is an IPv4 address in one of inet_aton's
 *          spellings (0x7f.1, 2130706433, 017700000001) or is refused: it never is a name. IPv6
 *          with or without brackets, no zone. One dot at the end marks an absolute name, which all
 *          names here are: it is dropped, so that a host has only one name. Two are rejected.
 * Trust    Parses untrusted input. host.c needs no libidn2, so that edge can link it (host_dep).
 * Owns     Nothing on the heap.
 * Never    Lets a byte through that a resolver, a log or a C string could read in another way.
 * See      host_test.c, addr.h
 */
#pragma once

#include "addr.h"
#include "lib/base/err.h"

#define HOST_MAX_NAME 253
#define HOST_MAX_LABEL 63
#define HOST_MAX_INPUT 1024 /* bytes of a name before IDNA */

struct host {
	bool is_addr;
	uint8_t n;		      /* bytes of name */
	char name[HOST_MAX_NAME + 1]; /* an address as addr_print writes it */
	struct addr addr;	      /* when is_addr */
};

/* -EINVAL with a message that names the wrong byte or label. */
int host_from_wire(struct slice text, struct host *ret, struct err *err) MUST_CHECK;
int host_from_text(struct slice text, struct host *ret, struct err *err) MUST_CHECK;
void host_from_addr(const struct addr *a, struct host *ret);
/* Whether this name represents the host of the sandbox: host.docker.internal and
 * gateway.docker.internal. Only a rule with that name and a port allows it, and it is found at
 * 127.0.0.1 and ::1 of the host. */
bool host_is_here(const struct host *h);
/* Whether resolvers map this name to the loopback without a query (RFC 6761): localhost,
 * *.localhost. */
bool host_is_localhost(const struct host *h);

static inline struct slice host_slice(const struct host *h)
{
	return slice_of(h->name, h->n);
}

/*
 * Cuts "host", "host:port", "[v6]", "[v6]:port" or a bare "v6" in two; *ret_port is 0 if there is
 * none. The host is not checked. A port is 1 to 65535 in plain decimal digits.
 */
int host_split(struct slice target, struct slice *ret_host, uint16_t *ret_port,
	struct err *err) MUST_CHECK;
/* Decimal digits only, 1 to 65535, no leading zero. */
int host_parse_port(struct slice text, uint16_t *ret) MUST_CHECK;
