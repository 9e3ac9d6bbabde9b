/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_reply - the answer to a query, from the policy's decision only.
 *
 * How      The caller determines what dns_query_want requires, fills struct dns_facts, and
 *          dns_reply_build writes the whole message into its buffer: the question echoed byte for
 *          byte (case included), then at most one record, then OPT when the query had one. A
 *          negative answer carries a synthetic SOA, so that no client caches it longer than
 *          DNS_TTL_NEGATIVE, and an Extended DNS Error (RFC 8914) with the reason.
 * Trust    Answers untrusted queries; the facts are the caller's. Runs in edge. Holds no secret.
 * Owns     Nothing.
 * Limits   DNS_MAX_REPLY bytes suffice for every answer; what does not fit the client's UDP size or
 *          the buffer is omitted, and TC is set. The explanation is shortened before that.
 * Never    Gives an address, or HTTPS and SVCB records (they carry ECH keys), without the facts.
 * See      proto/PROTOCOL.dns, dns_reply_test.c
 */
#pragma once

#include "dns_query.h"

#define DNS_MAX_REPLY 1232 /* also the UDP size that we say we take */
#define DNS_MAX_WHY 255
#define DNS_TTL_ADDRESS 60
#define DNS_TTL_NEGATIVE 5

enum dns_verdict {
	DNS_DENIED,
	DNS_ALLOWED,
	DNS_UNDECIDED, /* no resolver responded, or no address is free: "try again" */
};

/* Extended DNS Errors that we send. */
enum dns_ede {
	DNS_EDE_NONE = -1,
	DNS_EDE_NOT_READY = 14,
	DNS_EDE_BLOCKED = 15,
	DNS_EDE_PROHIBITED = 18,
};

struct dns_facts {
	enum dns_verdict verdict;
	struct slice why;  /* for people: the rule or its absence; cut at DNS_MAX_WHY */
	const uint8_t *v4; /* ALLOWED: 4 bytes, or NULL when the name has none */
	const uint8_t *v6; /* ALLOWED: 16 bytes, or NULL */
	struct slice ptr;  /* DNS_WANT_REVERSE: the name as text, empty when there is none */
};

/*
 * status is what dns_query_parse gave, 0 or above. Without facts everything is denied. 0, or
 * -EMSGSIZE when the buffer does not even hold header and question, or on a stream the answer.
 */
int dns_reply_build(const struct dns_query *q, int status, const struct dns_facts *facts,
	uint8_t *buf, size_t size, size_t *ret_n) MUST_CHECK;
