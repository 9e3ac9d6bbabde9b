/* SPDX-License-Identifier: Apache-2.0 */
#include "dns_reply.h"

#include <assert.h>
#include <errno.h>
#include "dns_internal.h"

#define FLAG_QR 0x8000
#define FLAG_TC 0x0200
#define FLAG_RD 0x0100
#define FLAG_RA 0x0080
#define FLAG_CD 0x0010
#define EDNS_DO 0x8000
#define OPT_SIZE 11
#define EDE_OPTION 15
#define EDE_SIZE 6	     /* without its text */
#define QUESTION_NAME 0xc00c /* a pointer to the name after the header */

/* The answer; at most one record. */
struct answer {
	enum dns_rcode rcode;
	uint16_t type; /* of the record, 0 for none */
	uint32_t ttl;
	struct slice data;
	enum dns_ede ede;
	struct slice why;
};

/* Primary, mailbox, serial, refresh, retry, expire, negative TTL. */
static const uint8_t soa_data[] = "\7gateway\3sbx\10internal\0"
				  "\6nobody\7invalid\0"
				  "\0\0\0\1\0\0\16\20\0\0\2\130\0\1\121\200\0\0\0\5";
static_assert(DNS_TTL_NEGATIVE == 5, "soa_data ends with it");

static void say_nothing_there(struct answer *a, enum dns_rcode rcode)
{
	a->rcode = rcode;
	a->type = DNS_TYPE_SOA;
	a->ttl = DNS_TTL_NEGATIVE;
	a->data = slice_of(soa_data, sizeof(soa_data) - 1);
}

static void say_denied(struct answer *a, struct slice why, const char *otherwise)
{
	say_nothing_there(a, DNS_NXDOMAIN);
	a->ede = DNS_EDE_BLOCKED;
	a->why = why.n > 0 ? why : slice_from_str(otherwise);
}

/* The parser's own verdict: there is no name to decide about. */
static void say_status(struct answer *a, int status)
{
	a->rcode = (enum dns_rcode)status;
	if (status == DNS_REFUSED) {
		a->ede = DNS_EDE_PROHIBITED;
		a->why = slice_from_str("only records of class IN are supported");
	}
}

static void say_undecided(struct answer *a, struct slice why)
{
	a->rcode = DNS_SERVFAIL;
	a->ede = DNS_EDE_NOT_READY;
	a->why = why;
}

/* ANY is answered with one record that there is (RFC 8482). */
static void say_allowed(struct answer *a, const struct dns_query *q, const struct dns_facts *facts)
{
	bool any = q->type == DNS_TYPE_ANY;

	a->ttl = DNS_TTL_ADDRESS;
	if (facts->v4 && (any || q->type == DNS_TYPE_A)) {
		a->type = DNS_TYPE_A;
		a->data = slice_of(facts->v4, 4);
	} else if (facts->v6 && (any || q->type == DNS_TYPE_AAAA)) {
		a->type = DNS_TYPE_AAAA;
		a->data = slice_of(facts->v6, 16);
	} else {
		say_nothing_there(a, DNS_NOERROR);
	}
}

/* Text to wire form; false when it is not a name. */
static bool encode_name(struct slice text, struct wr *wr)
{
	struct rd rd = rd_init(text);

	while (rd.n > 0) {
		const uint8_t *dot = memchr(rd.p, '.', rd.n);
		size_t n = dot ? (size_t)(dot - rd.p) : rd.n;

		if (n == 0 || n > DNS_MAX_LABEL)
			return false;
		wr_u8(wr, (uint8_t)n);
		wr_bytes(wr, rd_bytes(&rd, n));
		if (dot)
			(void)rd_u8(&rd);
	}
	wr_u8(wr, 0);
	return wr_finish(wr) == 0 && wr->n > 1;
}

static void say_reverse(struct answer *a, const struct dns_facts *facts, struct wr *name)
{
	if (facts->verdict == DNS_UNDECIDED) {
		say_undecided(a, facts->why);
	} else if (facts->ptr.n == 0 || !encode_name(facts->ptr, name)) {
		say_denied(a, facts->why, "no name in this sandbox has this address");
	} else {
		a->type = DNS_TYPE_PTR;
		a->ttl = DNS_TTL_ADDRESS;
		a->data = slice_of(name->p, name->n);
	}
}

static void say_policy(struct answer *a, const struct dns_query *q, const struct dns_facts *facts)
{
	if (facts->verdict == DNS_ALLOWED)
		say_allowed(a, q, facts);
	else if (facts->verdict == DNS_UNDECIDED)
		say_undecided(a, facts->why);
	else
		say_denied(a, facts->why, "denied by the network policy of this sandbox");
}

static void decide_reply(struct answer *a, const struct dns_query *q, int status,
	const struct dns_facts *facts, struct wr *name)
{
	static const struct dns_facts denied = {.verdict = DNS_DENIED};
	enum dns_want want = dns_query_want(q);

	if (!facts)
		facts = &denied;
	if (status != 0)
		say_status(a, status);
	else if (q->kind == DNS_NAME_ROOT)
		/* NXDOMAIN for the root would say that nothing at all exists (RFC 8020). */
		say_nothing_there(a, DNS_NOERROR);
	else if (want == DNS_WANT_NOTHING)
		say_denied(a, (struct slice){0}, "not a host name");
	else if (want == DNS_WANT_REVERSE)
		say_reverse(a, facts, name);
	else
		say_policy(a, q, facts);
}

static size_t record_size(const struct answer *a)
{
	/* Type, class, TTL and length after the name: one byte for the root, two for a pointer. */
	return a->type == 0 ? 0 : (a->type == DNS_TYPE_SOA ? 1 : 2) + 10 + a->data.n;
}

static void write_record(struct wr *wr, const struct answer *a)
{
	if (a->type == 0)
		return;
	if (a->type == DNS_TYPE_SOA)
		wr_u8(wr, 0);
	else
		wr_be16(wr, QUESTION_NAME);
	wr_be16(wr, a->type);
	wr_be16(wr, DNS_CLASS_IN);
	wr_be32(wr, a->ttl);
	wr_be16(wr, (uint16_t)a->data.n);
	wr_bytes(wr, a->data);
}

static void write_head(struct wr *wr, const struct dns_query *q, const struct answer *a, bool tc)
{
	uint16_t flags = FLAG_QR | FLAG_RA;

	flags |= (uint16_t)(q->opcode << 11);
	flags |= (q->rd ? FLAG_RD : 0) | (q->cd ? FLAG_CD : 0) | (tc ? FLAG_TC : 0);
	wr_be16(wr, q->id);
	wr_be16(wr, (uint16_t)(flags | ((unsigned)a->rcode & 15)));
	wr_be16(wr, q->question.n > 0 ? 1 : 0);
	wr_be16(wr, a->type != 0 && a->type != DNS_TYPE_SOA ? 1 : 0);
	wr_be16(wr, a->type == DNS_TYPE_SOA ? 1 : 0);
	wr_be16(wr, q->edns ? 1 : 0);
	wr_bytes(wr, q->question);
}

/* The length of the UTF-8 character at the front of rd; 0 if it is invalid or a control
 * character. */
static size_t char_len(const struct rd *rd)
{
	uint8_t c = rd->p[0];
	size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;

	if (c < 0x20 || c == 0x7f || n > rd->n)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((rd->p[i] & 0xc0) != 0x80)
			return 0;
	/* Over-long forms, surrogates, and what is above U+10FFFF. */
	if (n >= 3 && ((c == 0xe0 && rd->p[1] < 0xa0) || (c == 0xed && rd->p[1] > 0x9f) ||
			      (c == 0xf0 && rd->p[1] < 0x90) || (c == 0xf4 && rd->p[1] > 0x8f)))
		return 0;
	return n;
}

/* EXTRA-TEXT must be UTF-8: what is not becomes '?', and the cut is between characters. */
static void copy_text(struct wr *wr, struct slice text)
{
	struct rd rd = rd_init(text);

	while (rd.n > 0) {
		size_t n = char_len(&rd);

		if (wr->size - wr->n < MAX(n, 1))
			return;
		if (n > 0) {
			wr_bytes(wr, rd_bytes(&rd, n));
		} else {
			(void)rd_u8(&rd);
			wr_u8(wr, '?');
		}
	}
}

static void write_opt(struct wr *wr, const struct dns_query *q, const struct answer *a)
{
	size_t room = wr->size - wr->n; /* at least OPT_SIZE */
	bool ede = a->ede != DNS_EDE_NONE && room >= OPT_SIZE + EDE_SIZE;
	uint8_t buf[DNS_MAX_WHY];
	struct wr text = wr_init(buf, ede ? MIN(room - OPT_SIZE - EDE_SIZE, sizeof(buf)) : 0);

	copy_text(&text, a->why);
	wr_u8(wr, 0);
	wr_be16(wr, DNS_TYPE_OPT);
	wr_be16(wr, DNS_MAX_REPLY);
	wr_u8(wr, (uint8_t)((unsigned)a->rcode >> 4));
	wr_u8(wr, 0);
	wr_be16(wr, q->dnssec_ok ? EDNS_DO : 0);
	wr_be16(wr, ede ? (uint16_t)(EDE_SIZE + text.n) : 0);
	if (!ede)
		return;
	wr_be16(wr, EDE_OPTION);
	wr_be16(wr, (uint16_t)(2 + text.n));
	wr_be16(wr, (uint16_t)a->ede);
	wr_bytes(wr, slice_of(buf, text.n));
}

int dns_reply_build(const struct dns_query *q, int status, const struct dns_facts *facts,
	uint8_t *buf, size_t size, size_t *ret_n)
{
	size_t limit = q->via == DNS_OVER_UDP ? MIN(q->udp_size, DNS_MAX_REPLY) : DNS_MAX_REPLY;
	size_t least = DNS_HEADER + q->question.n + (q->edns ? OPT_SIZE : 0);
	uint8_t ptr[DNS_MAX_NAME];
	struct wr name = wr_init(ptr, sizeof(ptr)), wr = wr_init(buf, MIN(limit, size));
	struct answer a = {.ede = DNS_EDE_NONE};
	bool tc = false;

	if (least > wr.size)
		return -EMSGSIZE;
	decide_reply(&a, q, status, facts, &name);
	if (least + record_size(&a) > wr.size) {
		if (q->via != DNS_OVER_UDP)
			return -EMSGSIZE;
		tc = true;
		a.type = 0;
	}
	write_head(&wr, q, &a, tc);
	write_record(&wr, &a);
	if (q->edns)
		write_opt(&wr, q, &a);
	*ret_n = wr.n;
	return wr_finish(&wr);
}
