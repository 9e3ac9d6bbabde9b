/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include "lib/base/hex.h"
#include "audit_record_internal.h"

/* Where the decoder stands: the line, and the room for the texts in it. */
struct cursor {
	struct rd in;
	struct wr text;
};

static bool eat_str(struct rd *in, const char *s)
{
	size_t n = strlen(s);

	if (in->n < n || memcmp(in->p, s, n) != 0)
		return false;
	(void)rd_bytes(in, n);
	return true;
}

static bool next_is_digit(const struct rd *in)
{
	return in->n && in->p[0] >= '0' && in->p[0] <= '9';
}

/* No sign, no leading zero; zero itself is never written. */
static int get_number(struct rd *in, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	if (!next_is_digit(in) || in->p[0] == '0')
		return -EBADMSG;
	while (next_is_digit(in)) {
		v = v * 10 + (uint64_t)(rd_u8(in) - '0');
		if (v > max)
			return -EBADMSG;
	}
	*ret = v;
	return 0;
}

static int get_escape(struct rd *in, uint8_t *ret)
{
	if (!eat_str(in, "u00") || hex_decode(rd_bytes(in, 2), ret) < 0 || in->bad)
		return -EBADMSG;
	return audit_is_plain(*ret) ? -EBADMSG : 0;
}

static struct slice get_plain(struct rd *in)
{
	size_t n = 0;

	while (n < in->n && audit_is_plain(in->p[n]))
		n++;
	return rd_bytes(in, n);
}

/* Up to and with the closing quote. */
static int get_text(struct cursor *at, size_t max, struct slice *ret)
{
	size_t from = at->text.n;

	for (;;) {
		uint8_t c;

		wr_bytes(&at->text, get_plain(&at->in));
		c = rd_u8(&at->in);
		if (c == '"')
			break;
		if (c != '\\' || get_escape(&at->in, &c) < 0)
			return -EBADMSG;
		wr_u8(&at->text, c);
	}
	*ret = slice_of(at->text.p + from, at->text.n - from);
	return at->in.bad || at->text.bad || ret->n == 0 || ret->n > max ? -EBADMSG : 0;
}

static int get_hex(struct rd *in, size_t n, uint8_t *ret)
{
	struct slice hex = rd_bytes(in, 2 * n);

	if (in->bad || hex_decode(hex, ret) < 0)
		return -EBADMSG;
	return eat_str(in, "\"") ? 0 : -EBADMSG;
}

static int get_kind(struct cursor *at, enum audit_kind *ret)
{
	struct slice s;

	if (get_text(at, AUDIT_MAX_WORD, &s) < 0)
		return -EBADMSG;
	for (unsigned i = 0; i < AUDIT_N_KINDS; i++) {
		*ret = (enum audit_kind)i;
		if (slice_eq_str(s, audit_kind_name(*ret)))
			return 0;
	}
	return -EBADMSG;
}

static int get_verdict(struct cursor *at, enum audit_verdict *ret)
{
	struct slice s;

	if (get_text(at, AUDIT_MAX_WORD, &s) < 0)
		return -EBADMSG;
	*ret = slice_eq_str(s, "allow") ? AUDIT_ALLOW : AUDIT_DENY;
	return slice_eq_str(s, audit_verdict_name(*ret)) ? 0 : -EBADMSG;
}

static int get_value(struct cursor *at, const struct audit_field *f, void *value)
{
	if (f->shape == SHAPE_NUMBER)
		return get_number(&at->in, f->max, value);
	if (!eat_str(&at->in, "\""))
		return -EBADMSG;
	if (f->shape == SHAPE_KIND)
		return get_kind(at, value);
	if (f->shape == SHAPE_VERDICT)
		return get_verdict(at, value);
	if (f->shape == SHAPE_HEX)
		return get_hex(&at->in, f->max, value);
	if (get_text(at, f->max, value) < 0)
		return -EBADMSG;
	return f->shape == SHAPE_TEXT || audit_is_word(*(struct slice *)value) ? 0 : -EBADMSG;
}

static bool has_digest(const struct audit_record *rec)
{
	static const uint8_t none[AUDIT_DIGEST_LEN];

	return memcmp(rec->ev.digest, none, sizeof(none)) != 0;
}

static int get_field(struct cursor *at, const struct audit_field *f, struct audit_record *rec)
{
	uint32_t bit = UINT32_C(1) << rec->ev.kind;

	if (!(f->may & bit) || !eat_str(&at->in, f->key))
		return f->must & bit ? -EBADMSG : 0;
	if (get_value(at, f, (char *)rec + f->offset) < 0)
		return -EBADMSG;
	return f == &audit_fields[AUDIT_FIELD_DIGEST] && !has_digest(rec) ? -EBADMSG : 0;
}

static void clear_decode(struct audit_record *rec)
{
	memset(rec, 0, offsetof(struct audit_record, text));
}

int audit_record_decode(struct slice line, struct audit_record *ret)
{
	struct cursor at = {rd_init(line), wr_init(ret->text, sizeof(ret->text))};

	if (line.n > AUDIT_MAX_RECORD)
		return -EBADMSG;
	clear_decode(ret);
	for (size_t i = 0; i < AUDIT_N_FIELDS; i++) {
		if (i == AUDIT_FIELD_SIG)
			ret->n_signed = line.n - at.in.n;
		if (i == AUDIT_FIELD_HASH)
			ret->n_hashed = line.n - at.in.n;
		if (get_field(&at, &audit_fields[i], ret) < 0)
			return -EBADMSG;
	}
	return eat_str(&at.in, "}\n") && at.in.n == 0 ? 0 : -EBADMSG;
}
