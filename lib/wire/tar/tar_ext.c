/* SPDX-License-Identifier: Apache-2.0 */
#include "tar_internal.h"

#include <errno.h>

static int bad_ext(struct err *err, const char *what)
{
	return err_set(err, -EBADMSG, "the archive has an invalid extension record: %s", what);
}

/* Digits only; nothing after them. */
static int to_u64(struct slice s, uint64_t *ret)
{
	uint64_t v = 0;

	if (s.n == 0)
		return -EBADMSG;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return -EBADMSG;
		if (__builtin_mul_overflow(v, 10, &v) ||
			__builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
			return -EBADMSG;
	}
	*ret = v;
	return 0;
}

/* Splits at the first `sep`; false when there is none. */
static bool cut_ext(struct slice s, uint8_t sep, struct slice *ret_front, struct slice *ret_rest)
{
	const uint8_t *at = s.n ? memchr(s.p, sep, s.n) : NULL;

	if (!at)
		return false;
	*ret_front = slice_of(s.p, (size_t)(at - s.p));
	*ret_rest = slice_of(at + 1, s.n - ret_front->n - 1);
	return true;
}

static int to_nanoseconds(struct slice digits, uint32_t *ret)
{
	uint32_t ns = 0;
	uint64_t check;

	if (to_u64(slice_of(digits.p, MIN(digits.n, (size_t)18)), &check) < 0)
		return -EBADMSG;
	for (size_t i = 0; i < 9; i++)
		ns = ns * 10 + (i < digits.n ? (uint32_t)(digits.p[i] - '0') : 0);
	*ret = ns;
	return 0;
}

/* "-1.5" is half a second after -2: the parts are kept with ns counting upwards. */
static int take_mtime(struct tar_reader *r, struct slice v)
{
	bool negative = v.n > 0 && v.p[0] == '-';
	struct slice whole, part;
	uint32_t ns = 0;
	uint64_t s;

	if (negative)
		v = slice_of(v.p + 1, v.n - 1);
	if (!cut_ext(v, '.', &whole, &part)) {
		whole = v;
		part = slice_of("0", 1);
	}
	if (to_u64(whole, &s) < 0 || s > INT64_MAX / 2 || to_nanoseconds(part, &ns) < 0)
		return -EBADMSG;
	r->over.mtime_s = negative ? -(int64_t)s - (ns > 0) : (int64_t)s;
	r->over.mtime_ns = negative && ns > 0 ? 1000000000u - ns : ns;
	return 0;
}

static int take_id(struct slice v, uint32_t *ret)
{
	uint64_t n;

	if (to_u64(v, &n) < 0 || n > UINT32_MAX)
		return -EBADMSG;
	*ret = (uint32_t)n;
	return 0;
}

static int take_size(struct tar_reader *r, struct slice v)
{
	if (to_u64(v, &r->over.size) < 0 || r->over.size > INT64_MAX)
		return -EBADMSG;
	return 0;
}

static int take_value(struct tar_reader *r, uint32_t bit, struct slice v)
{
	switch (bit) {
	case TAR_SET_NAME:
		return slice_to_cstr(v, r->over.name, TAR_MAX_PATH);
	case TAR_SET_LINK:
		return slice_to_cstr(v, r->over.link, TAR_MAX_PATH);
	case TAR_SET_SIZE:
		return take_size(r, v);
	case TAR_SET_UID:
		return take_id(v, &r->over.uid);
	case TAR_SET_GID:
		return take_id(v, &r->over.gid);
	default:
		return take_mtime(r, v);
	}
}

static int take_record(struct tar_reader *r, struct slice key, struct slice value, struct err *err)
{
	static const struct {
		const char *key;
		uint32_t bit;
	} known[] = {
		{"path", TAR_SET_NAME},
		{"linkpath", TAR_SET_LINK},
		{"size", TAR_SET_SIZE},
		{"uid", TAR_SET_UID},
		{"gid", TAR_SET_GID},
		{"mtime", TAR_SET_MTIME},
	};

	if (key.n >= 10 && memcmp(key.p, "GNU.sparse", 10) == 0)
		return err_set(
			err, -EBADMSG, "the archive has a sparse file, which is not supported");
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (!slice_eq_str(key, known[i].key))
			continue;
		if (r->ext_kind == 'g')
			return bad_ext(err, "a global record that changes entries");
		if (r->set & known[i].bit)
			return bad_ext(err, "a duplicate key");
		if (take_value(r, known[i].bit, value) < 0)
			return bad_ext(err, known[i].key);
		r->set |= known[i].bit;
	}
	return 0; /* others (comments, access times, user names) say nothing that is used here */
}

/* "LENGTH KEY=VALUE\n", where LENGTH counts itself too. */
static int take_pax(struct tar_reader *r, struct err *err)
{
	struct slice rest = slice_of(r->ext, r->n_ext);

	while (rest.n > 0) {
		struct slice digits, body, key, value;
		uint64_t n;
		int k;

		if (!cut_ext(rest, ' ', &digits, &body) || digits.n > 8 || to_u64(digits, &n) < 0)
			return bad_ext(err, "missing length");
		if (n > rest.n || n < digits.n + 3 || rest.p[n - 1] != '\n')
			return bad_ext(err, "invalid length");
		body.n = (size_t)n - digits.n - 2;
		if (!cut_ext(body, '=', &key, &value) || key.n == 0)
			return bad_ext(err, "missing key");
		k = take_record(r, key, value, err);
		if (k < 0)
			return k;
		rest = slice_of(rest.p + n, rest.n - (size_t)n);
	}
	return TAR_EV_MORE;
}

static int take_gnu(struct tar_reader *r, uint32_t bit, char *to, struct err *err)
{
	struct slice name = slice_of(r->ext, strnlen((const char *)r->ext, r->n_ext));

	if (r->set & bit)
		return bad_ext(err, "a duplicate name");
	if (slice_to_cstr(name, to, TAR_MAX_PATH) < 0)
		return bad_ext(err, "a name that is too long");
	r->set |= bit;
	return TAR_EV_MORE;
}

int tar_take_ext(struct tar_reader *r, struct err *err)
{
	if (r->ext_kind == 'L')
		return take_gnu(r, TAR_SET_NAME, r->over.name, err);
	if (r->ext_kind == 'K')
		return take_gnu(r, TAR_SET_LINK, r->over.link, err);
	return take_pax(r, err);
}
