/* SPDX-License-Identifier: Apache-2.0 */
/* The extensions that say something about where a connection goes, and what was learned from
 * them. */
#include "hello_internal.h"

#define EXT_SERVER_NAME 0
#define EXT_ALPN 16
#define EXT_SESSION_TICKET 35
#define EXT_PRE_SHARED_KEY 41
#define EXT_EARLY_DATA 42
#define EXT_SUPPORTED_VERSIONS 43
#define EXT_ECH 0xfe0d
#define EXT_ECH_DRAFTS 0xfe08 /* to EXT_ECH - 1 */
#define EXT_ESNI 0xffce
#define ECH_OUTER 0
#define NAME_HOST 0

size_t hello_ext_wanted(uint16_t type, size_t n)
{
	switch (type) {
	case EXT_SERVER_NAME:
	case EXT_ALPN:
	case EXT_SUPPORTED_VERSIONS:
		return n;
	case EXT_ECH:
		return MIN(n, 1);
	default:
		return 0;
	}
}

/* RFC 6066 allows a list, of one name of each type, and knows one type. */
static enum hello_why parse_server_name(struct hello *h, struct slice data)
{
	struct rd rd = rd_init(data);
	uint16_t n_list = rd_be16(&rd);
	bool whole = n_list == rd.n;
	uint8_t type = rd_u8(&rd);
	struct slice name = rd_bytes(&rd, rd_be16(&rd));

	if (rd_finish(&rd) < 0 || !whole || type != NAME_HOST)
		return HELLO_E_NAME;
	if (name.n == 0 || name.n > HELLO_MAX_NAME)
		return HELLO_E_NAME;
	memcpy(h->name, name.p, name.n);
	h->n_name = (uint8_t)name.n;
	h->has_name = true;
	return HELLO_E_NONE;
}

static enum hello_why parse_alpn(struct hello *h, struct slice data)
{
	struct rd rd = rd_init(data);
	uint16_t n_list = rd_be16(&rd);
	struct slice list = slice_of(rd.p, rd.n);

	if (rd.bad || n_list != list.n || list.n == 0 || list.n > HELLO_MAX_ALPN)
		return HELLO_E_ALPN;
	while (rd.n > 0) {
		struct slice protocol = rd_bytes(&rd, rd_u8(&rd));

		if (rd.bad || protocol.n == 0)
			return HELLO_E_ALPN;
	}
	memcpy(h->alpn, list.p, list.n);
	h->n_alpn = (uint16_t)list.n;
	return HELLO_E_NONE;
}

/* 0x0a0a, 0x1a1a ... 0xfafa: values that clients send so that servers keep ignoring unknown
 * ones. */
static bool is_grease(uint16_t v)
{
	return (v & 0x0f0f) == 0x0a0a && v >> 8 == (v & 0xff);
}

static enum hello_why parse_versions(struct hello *h, struct slice data)
{
	struct rd rd = rd_init(data);
	uint8_t n = rd_u8(&rd);

	if (n != rd.n || n % 2 != 0)
		return HELLO_E_VERSIONS;
	while (rd.n > 0) {
		uint16_t v = rd_be16(&rd);

		if (is_grease(v))
			continue;
		if (h->n_versions == HELLO_MAX_VERSIONS)
			return HELLO_E_VERSIONS;
		h->versions[h->n_versions++] = v;
	}
	return h->n_versions > 0 ? HELLO_E_NONE : HELLO_E_VERSIONS;
}

static enum hello_why parse_ech(struct hello *h, struct slice data)
{
	if (data.n == 0 || data.p[0] != ECH_OUTER)
		return HELLO_E_ECH;
	h->ech = HELLO_ECH_OUTER;
	return HELLO_E_NONE;
}

enum hello_why hello_ext_parse(struct hello *h, uint16_t type, size_t n, struct slice data)
{
	switch (type) {
	case EXT_SERVER_NAME:
		return data.n == n ? parse_server_name(h, data) : HELLO_E_NAME;
	case EXT_ALPN:
		return data.n == n ? parse_alpn(h, data) : HELLO_E_ALPN;
	case EXT_SUPPORTED_VERSIONS:
		return data.n == n ? parse_versions(h, data) : HELLO_E_VERSIONS;
	case EXT_ECH:
		return parse_ech(h, data);
	case EXT_SESSION_TICKET:
		h->ticket = n > 0;
		break;
	case EXT_PRE_SHARED_KEY:
		h->psk = true;
		break;
	case EXT_EARLY_DATA:
		h->early_data = true;
		break;
	default:
		if ((type >= EXT_ECH_DRAFTS && type < EXT_ECH) || type == EXT_ESNI)
			h->ech = HELLO_ECH_OUTER;
	}
	return HELLO_E_NONE;
}

bool hello_hides_name(const struct hello *h)
{
	return h->ech == HELLO_ECH_OUTER;
}
