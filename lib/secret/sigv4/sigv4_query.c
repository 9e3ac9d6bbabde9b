/* SPDX-License-Identifier: Apache-2.0 */
#include "sigv4_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include "lib/base/hex.h"

static const char *const field_name[] = {
	[SIGV4_F_ALGORITHM] = "X-Amz-Algorithm",
	[SIGV4_F_CREDENTIAL] = "X-Amz-Credential",
	[SIGV4_F_DATE] = "X-Amz-Date",
	[SIGV4_F_EXPIRES] = "X-Amz-Expires",
	[SIGV4_F_SIGNED] = "X-Amz-SignedHeaders",
	[SIGV4_F_SIGNATURE] = "X-Amz-Signature",
	[SIGV4_F_TOKEN] = "X-Amz-Security-Token",
	[SIGV4_F_PAYLOAD] = "X-Amz-Content-Sha256",
};
static_assert(ARRAY_LEN(field_name) == SIGV4_N_FIELDS, "one name per field");

const char *sigv4_field_name(enum sigv4_field f)
{
	return field_name[f];
}

int sigv4_cmp(struct slice a, struct slice b)
{
	size_t n = MIN(a.n, b.n);
	int d = n ? memcmp(a.p, b.p, n) : 0;

	return d ? d : (a.n > b.n) - (a.n < b.n);
}

/* Bytes that AWS does not percent-encode. */
static bool is_unreserved(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_' || c == '.' || c == '~';
}

struct wr sigv4_text(struct arena *arena, size_t max)
{
	uint8_t *p = arena_alloc(arena, max ? max : 1);

	return p ? wr_init(p, max) : (struct wr){.bad = true};
}

static void put_byte(struct wr *wr, uint8_t c)
{
	if (is_unreserved(c))
		wr_u8(wr, c);
	else
		hex_put_percent(wr, c);
}

struct slice sigv4_encode(struct slice s, struct arena *arena)
{
	struct wr wr = sigv4_text(arena, 3 * s.n);

	for (size_t i = 0; i < s.n && !wr.bad; i++)
		put_byte(&wr, s.p[i]);
	return wr.bad ? slice_of(NULL, 0) : slice_of(wr.p, wr.n);
}

/* One character from *at on: an escape, or the byte itself. -EBADMSG for a broken escape. */
static int next_byte(struct slice s, size_t *at)
{
	uint8_t c = s.p[(*at)++];
	int high, low;

	if (c != '%')
		return c;
	if (s.n - *at < 2)
		return -EBADMSG;
	high = hex_digit(s.p[*at]);
	low = hex_digit(s.p[*at + 1]);
	*at += 2;
	return high < 0 || low < 0 ? -EBADMSG : high << 4 | low;
}

int sigv4_decode(struct slice s, struct arena *arena, struct slice *ret)
{
	struct wr wr = sigv4_text(arena, s.n);

	for (size_t i = 0; i < s.n;) {
		int c = next_byte(s, &i);

		if (c < 0)
			return c;
		wr_u8(&wr, (uint8_t)c);
	}
	if (wr.bad)
		return -ENOBUFS;
	*ret = slice_of(wr.p, wr.n);
	return 0;
}

bool sigv4_next_pair(struct slice *query, struct sigv4_pair *ret)
{
	while (query->n > 0) {
		const uint8_t *end = memchr(query->p, '&', query->n), *is;
		size_t n = end ? (size_t)(end - query->p) : query->n;
		struct slice field = slice_of(query->p, n);

		*query = canon_text_cut(*query, end ? n + 1 : n, query->n);
		if (n == 0)
			continue;
		is = memchr(field.p, '=', n);
		ret->has_value = is;
		ret->name = slice_of(field.p, is ? (size_t)(is - field.p) : n);
		ret->value = is ? canon_text_cut(field, ret->name.n + 1, n) : slice_of(NULL, 0);
		return true;
	}
	return false;
}

/* Whether it is the word when escapes are read and letters folded. */
static bool is_disguised(struct slice name, const char *word)
{
	size_t n = strlen(word), k = 0;

	for (size_t i = 0; i < name.n; k++) {
		int c = next_byte(name, &i);

		if (c < 0 || k == n ||
			canon_text_lower((uint8_t)c) != canon_text_lower((uint8_t)word[k]))
			return false;
	}
	return k == n;
}

int sigv4_which(struct slice name)
{
	for (int f = 0; f < SIGV4_N_FIELDS; f++) {
		if (slice_eq_str(name, field_name[f]))
			return f;
		if (is_disguised(name, field_name[f]))
			return -EBADMSG;
	}
	return SIGV4_F_OTHER;
}

int sigv4_read_fields(
	struct slice query, struct slice ret[SIGV4_N_FIELDS], bool ret_has[SIGV4_N_FIELDS])
{
	struct sigv4_pair pair;

	memset(ret, 0, SIGV4_N_FIELDS * sizeof(*ret));
	memset(ret_has, 0, SIGV4_N_FIELDS * sizeof(*ret_has));
	while (sigv4_next_pair(&query, &pair)) {
		int f = sigv4_which(pair.name);

		if (f == SIGV4_F_OTHER)
			continue;
		if (f < 0 || ret_has[f])
			return -EBADMSG;
		ret[f] = pair.value;
		ret_has[f] = true;
	}
	return 0;
}

/* Escapes read, "+" as a space, all written again in AWS's encoding. */
static int encode_field(struct slice s, struct arena *arena, struct slice *ret)
{
	struct wr wr = sigv4_text(arena, 3 * s.n);

	for (size_t i = 0; i < s.n;) {
		bool is_plus = s.p[i] == '+';
		int c = next_byte(s, &i);

		if (c < 0)
			return c;
		put_byte(&wr, is_plus ? ' ' : (uint8_t)c);
	}
	if (wr.bad)
		return -ENOBUFS;
	*ret = slice_of(wr.p, wr.n);
	/* What was not needed goes back: a query of long plain fields needs its own size only. */
	return arena_extend(arena, wr.p, wr.n ? wr.n : 1) ? 0 : -ENOBUFS;
}

static int compare_pairs(const void *va, const void *vb)
{
	const struct sigv4_pair *a = va, *b = vb;
	int d = sigv4_cmp(a->name, b->name);

	return d ? d : sigv4_cmp(a->value, b->value);
}

static size_t count_pairs(struct slice query)
{
	struct sigv4_pair pair;
	size_t n = 0;

	while (sigv4_next_pair(&query, &pair))
		n++;
	return n;
}

int sigv4_sum_query(struct sigv4_sum *sum, struct slice query, struct arena *arena)
{
	size_t max = count_pairs(query), n = 0;
	struct sigv4_pair *list, pair;
	int r;

	if (max == 0)
		return 0;
	if (max > SIGV4_MAX_FIELDS)
		return -ENOBUFS;
	list = arena_calloc(arena, max, sizeof(*list));
	if (!list)
		return -ENOBUFS;
	while (sigv4_next_pair(&query, &pair)) {
		if (slice_eq_str(pair.name, field_name[SIGV4_F_SIGNATURE]))
			continue;
		r = encode_field(pair.name, arena, &list[n].name);
		if (r == 0)
			r = encode_field(pair.value, arena, &list[n].value);
		if (r < 0)
			return r;
		n++;
	}
	qsort(list, n, sizeof(*list), compare_pairs);
	for (size_t i = 0; i < n; i++) {
		sigv4_sum_add_str(sum, i ? "&" : "");
		sigv4_sum_add(sum, list[i].name);
		sigv4_sum_add_str(sum, "=");
		sigv4_sum_add(sum, list[i].value);
	}
	return 0;
}

/* Empty and "." segments go, ".." takes the one before with it; a "/" at the end stays. */
static struct slice normal_path(struct slice path, struct arena *arena)
{
	struct wr wr = sigv4_text(arena, path.n + 1);
	bool is_dir = true;

	for (size_t i = 0; i < path.n && !wr.bad;) {
		size_t from = i + 1, to = from;
		struct slice seg;

		while (to < path.n && path.p[to] != '/')
			to++;
		seg = slice_of(path.p + from, to - from);
		i = to;
		is_dir = seg.n == 0 || slice_eq_str(seg, ".") || slice_eq_str(seg, "..");
		if (slice_eq_str(seg, ".."))
			while (wr.n > 0 && wr.p[--wr.n] != '/')
				;
		if (is_dir)
			continue;
		wr_u8(&wr, '/');
		wr_bytes(&wr, seg);
	}
	if (is_dir)
		wr_u8(&wr, '/');
	return wr.bad ? slice_of(NULL, 0) : slice_of(wr.p, wr.n);
}

int sigv4_sum_path(struct sigv4_sum *sum, struct slice path, bool is_s3, struct arena *arena)
{
	struct slice from = is_s3 ? path : normal_path(path, arena);
	struct wr wr = sigv4_text(arena, 3 * from.n);

	for (size_t i = 0; i < from.n && !wr.bad;) {
		/* S3's path is encoded once, and is so already; others are encoded over that. */
		bool is_slash = from.p[i] == '/';
		int c = is_s3 ? next_byte(from, &i) : from.p[i++];

		if (c < 0)
			return c;
		if (is_slash)
			wr_u8(&wr, '/');
		else
			put_byte(&wr, (uint8_t)c);
	}
	if (wr.bad || from.n == 0)
		return -ENOBUFS;
	sigv4_sum_add(sum, slice_of(wr.p, wr.n));
	return 0;
}
