/* SPDX-License-Identifier: Apache-2.0 */
#include "canon.h"

#include <assert.h>
#include <errno.h>

static const char *const verdicts[] = {
	[CANON_AGREE] = "the names agree",
	[CANON_NO_TARGET] = "the request names no host, and the connection has none",
	[CANON_AUTHORITY_DIFFERS] = "the target of the request is not the one of the connection",
	[CANON_HOST_DIFFERS] = "the Host header is not the target",
	[CANON_SNI_DIFFERS] = "the TLS server name is not the target",
	[CANON_SNI_MISSING] = "TLS without a server name",
};
static_assert(ARRAY_LEN(verdicts) == CANON_N_VERDICTS, "a text for each verdict");

const char *canon_verdict_text(enum canon_verdict v)
{
	return v < CANON_N_VERDICTS ? verdicts[v] : "unknown";
}

uint16_t canon_default_port(enum http_scheme scheme)
{
	return scheme == HTTP_SCHEME_HTTPS ? 443 : 80;
}

/* Canonical names never end in a number, canonical addresses always do or have a colon. */
bool canon_host_is_address(struct slice host)
{
	size_t n = host.n;

	if (n > 0 && memchr(host.p, ':', n))
		return true;
	while (n > 0 && host.p[n - 1] >= '0' && host.p[n - 1] <= '9')
		n--;
	return n < host.n && n > 0 && host.p[n - 1] == '.';
}

static bool is_same(const struct canon_name *a, const struct canon_name *b, uint16_t other_port)
{
	uint16_t pa = a->port ? a->port : other_port, pb = b->port ? b->port : other_port;

	return slice_eq(a->host, b->host) && pa == pb;
}

/* A server name has no port, and an address is never sent as one. */
static enum canon_verdict check_sni(const struct canon_names *names)
{
	bool is_address = canon_host_is_address(names->target.host);

	/* The TLS of a CONNECT is inside it and not there yet. */
	if (names->scheme != HTTP_SCHEME_HTTPS || names->is_connect)
		return CANON_AGREE;
	if (!names->sni.given)
		return is_address ? CANON_AGREE : CANON_SNI_MISSING;
	if (is_address || !slice_eq(names->sni.host, names->target.host))
		return CANON_SNI_DIFFERS;
	return CANON_AGREE;
}

enum canon_verdict canon_agree(const struct canon_names *names)
{
	const struct canon_name *target = &names->target;
	uint16_t port = names->is_connect ? target->port : canon_default_port(names->scheme);

	if (!target->given || target->host.n == 0)
		return CANON_NO_TARGET;
	if (names->authority.given && !is_same(&names->authority, target, port))
		return CANON_AUTHORITY_DIFFERS;
	if (names->host.given && !is_same(&names->host, target, port))
		return CANON_HOST_DIFFERS;
	return check_sni(names);
}

static int parse_port(struct slice s, uint16_t *ret)
{
	uint64_t v;

	if (s.n > 5 || !canon_text_to_u64(s, &v) || v == 0 || v > UINT16_MAX || s.p[0] == '0')
		return -EINVAL;
	*ret = (uint16_t)v;
	return 0;
}

int canon_split_authority(struct slice text, struct slice *ret_host, uint16_t *ret_port)
{
	struct slice host = text, rest;
	const uint8_t *mark;
	size_t n;

	*ret_port = 0;
	if (text.n == 0)
		return -EINVAL;
	mark = memchr(text.p, text.p[0] == '[' ? ']' : ':', text.n);
	n = mark ? (size_t)(mark - text.p) : text.n;
	if (text.p[0] == '[') {
		if (!mark)
			return -EINVAL;
		host = canon_text_cut(text, 1, n - 1);
		rest = canon_text_cut(text, n + 1, text.n);
		if (host.n == 0 || !memchr(host.p, ':', host.n))
			return -EINVAL;
	} else {
		host = canon_text_cut(text, 0, n);
		rest = canon_text_cut(text, n, text.n);
	}
	if (host.n == 0 || host.n > HTTP_MAX_HOST || (rest.n > 0 && rest.p[0] != ':'))
		return -EINVAL;
	if (rest.n > 0 && parse_port(canon_text_cut(rest, 1, rest.n), ret_port) < 0)
		return -EINVAL;
	*ret_host = host;
	return 0;
}
