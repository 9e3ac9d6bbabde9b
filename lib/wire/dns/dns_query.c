/* SPDX-License-Identifier: Apache-2.0 */
#include "dns_query.h"

#include <errno.h>
#include "dns_internal.h"

#define FLAG_QR 0x8000
#define FLAG_TC 0x0200
#define FLAG_RD 0x0100
#define FLAG_CD 0x0010
#define EDNS_DO 0x8000
#define MIN_UDP 512

static bool is_host_byte(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

/* Appends a label to the text of the name; the length was checked with the wire form's. */
static bool add_label(struct dns_query *q, struct slice label)
{
	if (q->n_host > 0)
		q->host[q->n_host++] = '.';
	for (size_t i = 0; i < label.n; i++) {
		if (!is_host_byte(label.p[i]))
			return false;
		q->host[q->n_host++] = label.p[i];
	}
	return true;
}

/* The two high bits of a length say "pointer" or something never defined: both are over 63. */
static void parse_name(struct rd *rd, struct dns_query *q)
{
	struct rd from = *rd;
	uint8_t n;

	q->kind = DNS_NAME_ROOT;
	while ((n = rd_u8(rd)) > 0) {
		struct slice label = rd_bytes(rd, n);

		/* With the final zero byte still to come. */
		if (n > DNS_MAX_LABEL || from.n - rd->n + 1 > DNS_MAX_NAME)
			rd->bad = true;
		if (rd->bad)
			return;
		if (q->kind == DNS_NAME_ROOT)
			q->kind = DNS_NAME_HOST;
		if (q->kind == DNS_NAME_HOST && !add_label(q, label))
			q->kind = DNS_NAME_INVALID;
	}
	if (q->kind == DNS_NAME_INVALID)
		q->n_host = 0;
	q->name = slice_of(from.p, from.n - rd->n);
}

static bool parse_question(struct rd *rd, struct dns_query *q)
{
	struct rd from = *rd;

	parse_name(rd, q);
	q->type = rd_be16(rd);
	q->class = rd_be16(rd);
	if (rd->bad)
		return false;
	q->question = slice_of(from.p, from.n - rd->n);
	return true;
}

/* Unknown options are ignored, but they must be complete. */
static bool are_options_whole(struct slice options)
{
	struct rd rd = rd_init(options);

	while (rd.n > 0 && !rd.bad) {
		(void)rd_be16(&rd);
		(void)rd_bytes(&rd, rd_be16(&rd));
	}
	return !rd.bad;
}

/* The one record that may follow the question. */
static int parse_opt(struct rd *rd, struct dns_query *q)
{
	uint8_t root = rd_u8(rd);
	uint16_t type = rd_be16(rd), size = rd_be16(rd);
	uint8_t extended_rcode = rd_u8(rd), version = rd_u8(rd);
	uint16_t flags = rd_be16(rd);
	struct slice options = rd_bytes(rd, rd_be16(rd));

	(void)extended_rcode; /* means something in a response only */
	if (rd->bad || root != 0 || type != DNS_TYPE_OPT || !are_options_whole(options))
		return DNS_FORMERR;
	q->edns = true;
	q->dnssec_ok = flags & EDNS_DO;
	q->udp_size = MAX(size, MIN_UDP);
	return version == 0 ? 0 : DNS_BADVERS;
}

struct counts {
	uint16_t questions, answers, authorities, additionals;
};

static int parse_body(struct rd *rd, const struct counts *n, struct dns_query *q)
{
	int r = 0;

	if (n->questions != 1)
		return DNS_FORMERR;
	if (!parse_question(rd, q))
		return DNS_FORMERR;
	/* IXFR brings a record with it; what is refused anyway need not be read. */
	if (q->type == DNS_TYPE_AXFR || q->type == DNS_TYPE_IXFR)
		return DNS_REFUSED;
	if (n->answers > 0 || n->authorities > 0 || n->additionals > 1)
		return DNS_FORMERR;
	if (n->additionals == 1)
		r = parse_opt(rd, q);
	if (r != 0)
		return r;
	return rd->n > 0 ? DNS_FORMERR : 0;
}

/* Questions about something else than the records of a name on the Internet. */
static int check_kind(const struct dns_query *q)
{
	if (q->type == DNS_TYPE_OPT)
		return DNS_FORMERR;
	if (q->class != DNS_CLASS_IN)
		return DNS_REFUSED;
	if (q->type >= DNS_TYPE_META_FIRST && q->type < DNS_TYPE_ANY)
		return DNS_REFUSED;
	return 0;
}

int dns_query_parse(struct slice msg, enum dns_via via, struct dns_query *ret)
{
	struct rd rd = rd_init(msg);
	struct counts n;
	uint16_t flags;
	int r;

	*ret = (struct dns_query){.via = via, .udp_size = MIN_UDP};
	ret->id = rd_be16(&rd);
	flags = rd_be16(&rd);
	n = (struct counts){.questions = rd_be16(&rd)};
	n.answers = rd_be16(&rd);
	n.authorities = rd_be16(&rd);
	n.additionals = rd_be16(&rd);
	/* An answer to a response would be answered too, by its like, for ever. */
	if (rd.bad || (flags & FLAG_QR))
		return -EBADMSG;
	ret->opcode = (flags >> 11) & 15;
	ret->rd = flags & FLAG_RD;
	ret->cd = flags & FLAG_CD;
	if (ret->opcode != 0)
		return DNS_NOTIMP;
	if (msg.n > DNS_MAX_QUERY || (flags & FLAG_TC))
		return DNS_FORMERR;
	r = parse_body(&rd, &n, ret);
	return r != 0 ? r : check_kind(ret);
}
