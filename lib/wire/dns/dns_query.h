/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_query - one DNS query of the guest: bytes in, a question or an error code out.
 *
 * How      dns_query_parse reads a whole message: header, exactly one question, at most one OPT
 *          record, no bytes after it. dns_query_want then returns what is needed to answer it. The
 *          name stays what the guest sent: its wire form is echoed, and dns_query_host is its text
 *          for the canonicaliser. A name with a byte outside letters, digits, '-' and '_' (a NUL or
 *          a dot inside a label) has no text: it can only be denied.
 * Trust    Parses untrusted input. Runs in edge. Holds no secret.
 * Owns     Nothing; slices point into the message, which must outlive the query.
 * Limits   DNS_MAX_*. Above a limit: DNS_FORMERR.
 * Never    Recursion, compression pointers in a question, memory, I/O.
 * See      proto/PROTOCOL.dns, dns_reply.h, dns_query_test.c, dns_fuzz.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/slice.h"

#define DNS_HEADER 12
#define DNS_MAX_LABEL 63
#define DNS_MAX_NAME 255 /* wire form, the root's zero byte included */
#define DNS_MAX_HOST 253 /* the same as text, without a dot at the end */
/* Question, OPT and its options (cookie, padding to 468 bytes) with room to spare. */
#define DNS_MAX_QUERY 2048

enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
	DNS_BADVERS = 16,
};

enum dns_type {
	DNS_TYPE_A = 1,
	DNS_TYPE_SOA = 6,
	DNS_TYPE_PTR = 12,
	DNS_TYPE_AAAA = 28,
	DNS_TYPE_OPT = 41,
	DNS_TYPE_SVCB = 64,
	DNS_TYPE_HTTPS = 65,
	DNS_TYPE_META_FIRST = 128, /* 128 to 255 ask for something else than records of a name */
	DNS_TYPE_IXFR = 251,
	DNS_TYPE_AXFR = 252,
	DNS_TYPE_ANY = 255,
};

#define DNS_CLASS_IN 1

enum dns_via { DNS_OVER_UDP, DNS_OVER_STREAM };

enum dns_name_kind {
	DNS_NAME_HOST,	  /* dns_query_host is its text */
	DNS_NAME_ROOT,	  /* "." */
	DNS_NAME_INVALID, /* has bytes that no host name has */
};

struct dns_query {
	enum dns_via via;
	uint16_t id;
	uint8_t opcode;
	bool rd, cd;
	struct slice question; /* as it came, for the echo; empty when it could not be read */
	struct slice name;     /* the wire form of its name */
	enum dns_name_kind kind;
	uint8_t host[DNS_MAX_HOST];
	uint8_t n_host;
	uint16_t type, class;
	bool edns, dnssec_ok;
	uint16_t udp_size; /* what the client takes, at least 512 */
};

/*
 * 0; or an enum dns_rcode above zero that is the answer (the query is filled as far as an answer
 * needs it); or -EBADMSG when there must be no answer: no header, or a response itself.
 */
int dns_query_parse(struct slice msg, enum dns_via via, struct dns_query *ret) MUST_CHECK;

/* The name as text in the guest's own spelling, without a dot at the end; empty unless it is a
 * DNS_NAME_HOST. */
static inline struct slice dns_query_host(const struct dns_query *q)
{
	return slice_of(q->host, q->n_host);
}

enum dns_want {
	DNS_WANT_NOTHING, /* the answer is the same for all sandboxes */
	DNS_WANT_POLICY,  /* is dns_query_host allowed? */
	DNS_WANT_REVERSE, /* which name has the address that dns_query_reverse gives? */
};

enum dns_want dns_query_want(const struct dns_query *q);

struct dns_addr {
	uint8_t n; /* 4 or 16 */
	uint8_t b[16];
};

/* The address that a name below in-addr.arpa or ip6.arpa represents; false if it is not one
 * complete address. */
bool dns_query_reverse(const struct dns_query *q, struct dns_addr *ret);
