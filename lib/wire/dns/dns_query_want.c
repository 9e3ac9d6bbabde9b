/* SPDX-License-Identifier: Apache-2.0 */
/* The subject of a parsed question: a name for the policy, or a synthetic address. */
#include "dns_query.h"

static bool next_label(struct rd *rd, struct slice *ret)
{
	*ret = rd_bytes(rd, rd_u8(rd));
	return !rd->bad && ret->n > 0;
}

static bool is_label(struct slice label, const char *lower)
{
	if (label.n != strlen(lower))
		return false;
	for (size_t i = 0; i < label.n; i++) {
		uint8_t c = label.p[i];

		if ((c >= 'A' && c <= 'Z' ? c + 32 : c) != (uint8_t)lower[i])
			return false;
	}
	return true;
}

/* "in-addr" or "ip6", then "arpa", then the end. */
static bool ends_with(struct rd *rd, const char *zone)
{
	struct slice label;

	if (!next_label(rd, &label) || !is_label(label, zone))
		return false;
	if (!next_label(rd, &label) || !is_label(label, "arpa"))
		return false;
	return rd->n == 1;
}

static bool read_decimal(struct slice label, uint8_t *ret)
{
	unsigned v = 0;

	if (label.n > 3 || (label.n > 1 && label.p[0] == '0'))
		return false;
	for (size_t i = 0; i < label.n; i++) {
		if (label.p[i] < '0' || label.p[i] > '9')
			return false;
		v = v * 10 + (label.p[i] - '0');
	}
	*ret = (uint8_t)v;
	return v <= 255;
}

static bool read_nibble(struct slice label, uint8_t *ret)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *at = label.n == 1 ? memchr(digits, label.p[0], sizeof(digits) - 1) : NULL;

	if (!at)
		return false;
	*ret = (uint8_t)((at - digits) & 15);
	return true;
}

static bool read_v4(struct rd rd, struct dns_addr *ret)
{
	struct slice label;

	ret->n = 4;
	for (int i = 3; i >= 0; i--)
		if (!next_label(&rd, &label) || !read_decimal(label, &ret->b[i]))
			return false;
	return ends_with(&rd, "in-addr");
}

static bool read_v6(struct rd rd, struct dns_addr *ret)
{
	struct slice label;
	uint8_t nibble;

	*ret = (struct dns_addr){.n = 16};
	for (int i = 31; i >= 0; i--) {
		if (!next_label(&rd, &label) || !read_nibble(label, &nibble))
			return false;
		ret->b[i / 2] |= (uint8_t)(i & 1 ? nibble : nibble << 4);
	}
	return ends_with(&rd, "ip6");
}

bool dns_query_reverse(const struct dns_query *q, struct dns_addr *ret)
{
	struct rd rd = rd_init(q->name);
	struct dns_addr a = {0};

	if (!read_v4(rd, &a) && !read_v6(rd, &a))
		return false;
	*ret = a;
	return true;
}

enum dns_want dns_query_want(const struct dns_query *q)
{
	struct dns_addr addr;

	if (q->kind != DNS_NAME_HOST)
		return DNS_WANT_NOTHING;
	if (q->type == DNS_TYPE_PTR && dns_query_reverse(q, &addr))
		return DNS_WANT_REVERSE;
	return DNS_WANT_POLICY;
}
