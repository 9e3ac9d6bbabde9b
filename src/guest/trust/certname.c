/* SPDX-License-Identifier: Apache-2.0 */
#include "certname.h"

#include <ctype.h>
#include <errno.h>
#include "lib/base/hash/sha1.h"

enum tag {
	TAG_INTEGER = 0x02,
	TAG_OID = 0x06,
	TAG_UTF8 = 0x0c,
	TAG_PRINTABLE = 0x13,
	TAG_IA5 = 0x16,
	TAG_SEQUENCE = 0x30,
	TAG_SET = 0x31,
	TAG_VERSION = 0xa0,
};

/* The next value: its tag and its content. Errors are sticky, as in struct rd. */
static struct slice get_value(struct rd *rd, uint8_t *ret_tag)
{
	size_t n;

	*ret_tag = rd_u8(rd);
	n = rd_u8(rd);
	if (n & 0x80) {
		unsigned k = n & 0x7f;

		if (k == 0 || k > 3)
			rd->bad = true;
		n = 0;
		while (!rd->bad && k-- > 0)
			n = n << 8 | rd_u8(rd);
	}
	return rd_bytes(rd, n);
}

static struct slice get_tagged(struct rd *rd, enum tag tag)
{
	uint8_t got;
	struct slice s = get_value(rd, &got);

	if (got != tag)
		rd->bad = true;
	return s;
}

static int find_subject(struct slice der, struct slice *ret)
{
	struct rd cert = rd_init(der), outer, tbs;

	outer = rd_init(get_tagged(&cert, TAG_SEQUENCE));
	tbs = rd_init(get_tagged(&outer, TAG_SEQUENCE));
	if (tbs.n > 0 && tbs.p[0] == TAG_VERSION)
		(void)get_tagged(&tbs, TAG_VERSION);
	(void)get_tagged(&tbs, TAG_INTEGER);
	(void)get_tagged(&tbs, TAG_SEQUENCE); /* algorithm */
	(void)get_tagged(&tbs, TAG_SEQUENCE); /* issuer */
	(void)get_tagged(&tbs, TAG_SEQUENCE); /* validity */
	*ret = get_tagged(&tbs, TAG_SEQUENCE);
	return cert.bad || outer.bad || tbs.bad ? -EBADMSG : 0;
}

static bool is_text(uint8_t tag)
{
	return tag == TAG_UTF8 || tag == TAG_PRINTABLE || tag == TAG_IA5;
}

static bool is_blank(uint8_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static size_t fold_certname(struct slice s, uint8_t *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		if (!is_blank(s.p[i]))
			ret[n++] = s.p[i] < 0x80 ? (uint8_t)tolower(s.p[i]) : s.p[i];
		else if (n > 0 && ret[n - 1] != ' ')
			ret[n++] = ' ';
	}
	return n > 0 && ret[n - 1] == ' ' ? n - 1 : n;
}

static void put_head(struct wr *wr, uint8_t tag, size_t n)
{
	wr_u8(wr, tag);
	if (n >= 0x100) {
		wr_u8(wr, 0x82);
		wr_u8(wr, (uint8_t)(n >> 8));
	} else if (n >= 0x80) {
		wr_u8(wr, 0x81);
	}
	wr_u8(wr, (uint8_t)n);
}

static size_t head_size(size_t n)
{
	return n >= 0x100 ? 4 : n >= 0x80 ? 3 : 2;
}

/* One part of the name: a set of one attribute, a pair of identifier and value. */
static int put_part(struct wr *wr, struct slice set)
{
	struct rd rd = rd_init(set), pair;
	uint8_t folded[CERTNAME_MAX_SUBJECT], tag;
	struct slice oid, value;
	size_t n;

	pair = rd_init(get_tagged(&rd, TAG_SEQUENCE));
	oid = get_tagged(&pair, TAG_OID);
	value = get_value(&pair, &tag);
	if (rd.bad || rd_finish(&pair) < 0)
		return -EBADMSG;
	if (rd.n > 0 || value.n > sizeof(folded))
		return -ENOTSUP;
	if (is_text(tag)) {
		value = slice_of(folded, fold_certname(value, folded));
		tag = TAG_UTF8;
	}
	n = head_size(oid.n) + oid.n + head_size(value.n) + value.n;
	put_head(wr, TAG_SET, head_size(n) + n);
	put_head(wr, TAG_SEQUENCE, n);
	put_head(wr, TAG_OID, oid.n);
	wr_bytes(wr, oid);
	put_head(wr, tag, value.n);
	wr_bytes(wr, value);
	return 0;
}

int certname_hash(struct slice der, uint32_t *ret)
{
	uint8_t canon[2 * CERTNAME_MAX_SUBJECT], sum[SHA1_BYTES];
	struct wr wr = wr_init(canon, sizeof(canon));
	struct slice subject;
	struct sha1 sha;
	struct rd rd;
	int r = find_subject(der, &subject);

	if (r == 0 && subject.n > CERTNAME_MAX_SUBJECT)
		r = -ENOTSUP;
	if (r < 0)
		return r;
	rd = rd_init(subject);
	while (r == 0 && rd.n > 0 && !rd.bad) {
		struct slice set = get_tagged(&rd, TAG_SET);

		if (!rd.bad)
			r = put_part(&wr, set);
	}
	if (r < 0 || rd.bad || wr_finish(&wr) < 0)
		return r < 0 ? r : -EBADMSG;
	sha1_init(&sha);
	sha1_add(&sha, slice_of(canon, wr.n));
	sha1_end(&sha, sum);
	*ret = (uint32_t)sum[3] << 24 | (uint32_t)sum[2] << 16 | (uint32_t)sum[1] << 8 | sum[0];
	return 0;
}
