/* SPDX-License-Identifier: Apache-2.0 */
#include "audit_record.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include "lib/base/hex.h"
#include "audit_record_internal.h"

#define BIT(kind) (UINT32_C(1) << AUDIT_KIND_##kind)
#define ALL ((UINT32_C(1) << AUDIT_N_KINDS) - 1)
#define FRAME (BIT(OPEN) | BIT(SEGMENT) | BIT(HEAD))
#define EVENTS (ALL & ~(FRAME | BIT(FORMAT)))
#define VERSIONS (BIT(OPEN) | BIT(SEGMENT) | BIT(FORMAT))
#define LONGEST_FRAME 760 /* of a line: keys, numbers, words and hashes, without texts */
#define AT(member) offsetof(struct audit_record, member)

const struct audit_field audit_fields[AUDIT_N_FIELDS] = {
	{"{\"seq\":", SHAPE_NUMBER, AUDIT_MAX_NUMBER, AT(seq), ALL, ALL},
	{",\"time\":", SHAPE_NUMBER, AUDIT_MAX_NUMBER, AT(time_ms), ALL, ALL},
	[AUDIT_FIELD_KIND] = {",\"kind\":", SHAPE_KIND, 0, AT(ev.kind), ALL, ALL},
	{",\"sandbox\":", SHAPE_WORD, AUDIT_MAX_WORD, AT(sandbox), ALL, ALL},
	{",\"name\":", SHAPE_TEXT, AUDIT_MAX_NAME, AT(name), 0, ALL},
	{",\"decision\":", SHAPE_VERDICT, 0, AT(ev.decision), BIT(DECISION), EVENTS},
	{",\"action\":", SHAPE_WORD, AUDIT_MAX_WORD, AT(ev.action), 0, EVENTS},
	{",\"type\":", SHAPE_WORD, AUDIT_MAX_WORD, AT(ev.type), 0, EVENTS},
	{",\"host\":", SHAPE_TEXT, AUDIT_MAX_HOST, AT(ev.host), 0, EVENTS},
	{",\"port\":", SHAPE_NUMBER, 65535, AT(ev.port), 0, EVENTS},
	{",\"path\":", SHAPE_WORD, AUDIT_MAX_WORD, AT(ev.path), 0, EVENTS},
	{",\"op\":", SHAPE_TEXT, AUDIT_MAX_OP, AT(ev.op), 0, EVENTS},
	{",\"rule\":", SHAPE_TEXT, AUDIT_MAX_RULE, AT(ev.rule), 0, EVENTS},
	{",\"reason\":", SHAPE_TEXT, AUDIT_MAX_REASON, AT(ev.reason), 0, EVENTS},
	{",\"effects\":", SHAPE_TEXT, AUDIT_MAX_EFFECTS, AT(ev.effects), 0, EVENTS},
	[AUDIT_FIELD_DIGEST] = {",\"digest\":", SHAPE_HEX, AUDIT_DIGEST_LEN, AT(ev.digest), 0,
		EVENTS},
	{",\"hold\":", SHAPE_TEXT, AUDIT_MAX_HOLD, AT(ev.hold), 0, EVENTS},
	{",\"from\":", SHAPE_TEXT, AUDIT_MAX_FROM, AT(ev.from), 0, EVENTS},
	{",\"count\":", SHAPE_NUMBER, AUDIT_MAX_NUMBER, AT(ev.count), 0, EVENTS},
	{",\"cut\":", SHAPE_NUMBER, AUDIT_MAX_NUMBER, AT(cut), 0, EVENTS},
	{",\"version\":", SHAPE_NUMBER, AUDIT_FORMAT, AT(version), BIT(OPEN) | BIT(FORMAT),
		VERSIONS},
	{",\"segment\":", SHAPE_NUMBER, 99999999, AT(segment), BIT(SEGMENT), BIT(SEGMENT)},
	{",\"log\":", SHAPE_HEX, AUDIT_LOG_LEN, AT(log), FRAME, FRAME},
	{",\"key\":", SHAPE_HEX, AUDIT_KEY_LEN, AT(key), BIT(OPEN), BIT(OPEN)},
	{",\"prev\":", SHAPE_HEX, AUDIT_HASH_LEN, AT(prev), ALL, ALL},
	[AUDIT_FIELD_SIG] = {",\"sig\":", SHAPE_HEX, AUDIT_SIG_LEN, AT(sig), BIT(HEAD), BIT(HEAD)},
	[AUDIT_FIELD_HASH] = {",\"hash\":", SHAPE_HEX, AUDIT_HASH_LEN, AT(hash), ALL, ALL},
};

static const char *const kind_names[] = {
	[AUDIT_KIND_OPEN] = "open",
	[AUDIT_KIND_SEGMENT] = "segment",
	[AUDIT_KIND_HEAD] = "head",
	[AUDIT_KIND_RECOVERED] = "recovered",
	[AUDIT_KIND_FORMAT] = "format",
	[AUDIT_KIND_DECISION] = "decision",
	[AUDIT_KIND_POLICY_CHANGE] = "policy-change",
	[AUDIT_KIND_LIFECYCLE] = "lifecycle",
	[AUDIT_KIND_WORKER_VIOLATION] = "worker-violation",
	[AUDIT_KIND_CREDENTIAL_USE] = "credential-use",
	[AUDIT_KIND_APPROVAL] = "approval",
	[AUDIT_KIND_SIGNATURE] = "signature",
};
static_assert(ARRAY_LEN(kind_names) == AUDIT_N_KINDS, "one name per kind");

static const char *const verdict_names[] = {
	[AUDIT_NONE] = "",
	[AUDIT_ALLOW] = "allow",
	[AUDIT_DENY] = "deny",
};
static_assert(ARRAY_LEN(verdict_names) == AUDIT_N_VERDICTS, "one name per verdict");

const char *audit_kind_name(enum audit_kind kind)
{
	return (unsigned)kind < AUDIT_N_KINDS ? kind_names[kind] : "";
}

const char *audit_verdict_name(enum audit_verdict v)
{
	return (unsigned)v < AUDIT_N_VERDICTS ? verdict_names[v] : "";
}

bool audit_is_word(struct slice s)
{
	for (size_t i = 0; i < s.n; i++) {
		uint8_t c = s.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
			    c == ':' || c == '-'))
			return false;
	}
	return s.n > 0 && s.n <= AUDIT_MAX_WORD;
}

static bool is_zero(const uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (b[i])
			return false;
	return true;
}

unsigned audit_record_format(const struct audit_record *rec)
{
	const struct audit_event *ev = &rec->ev;

	return ev->kind == AUDIT_KIND_FORMAT || (ev->kind == AUDIT_KIND_SEGMENT && rec->version) ||
			       ev->effects.n || ev->hold.n || ev->from.n ||
			       !is_zero(ev->digest, sizeof(ev->digest))
		       ? 2
		       : 1;
}

static size_t text_size(uint8_t c)
{
	return audit_is_plain(c) ? 1 : 6;
}

/* All of a line but the effects, if every number and word is as long as it can be. */
static size_t size_without_effects(const struct audit_record *rec)
{
	size_t n = LONGEST_FRAME;

	for (size_t i = 0; i < AUDIT_N_FIELDS; i++) {
		const struct audit_field *f = &audit_fields[i];
		const struct slice *s = (const struct slice *)((const char *)rec + f->offset);

		if (f->shape == SHAPE_TEXT && s != &rec->ev.effects)
			for (size_t k = 0; k < s->n; k++)
				n += text_size(s->p[k]);
	}
	return n;
}

/* After a whole effect, unless the first one is too long already. */
static void trim_effects(struct audit_record *rec)
{
	struct slice *s = &rec->ev.effects;
	size_t room = AUDIT_MAX_RECORD - size_without_effects(rec), n = 0, whole = 0;

	while (n < s->n && n < AUDIT_MAX_EFFECTS && room >= text_size(s->p[n])) {
		if (n + 1 < s->n && s->p[n] == ';' && s->p[n + 1] == ' ')
			whole = n;
		room -= text_size(s->p[n++]);
	}
	if (n == s->n)
		return;
	n = whole ? whole : n;
	rec->cut += s->n - n;
	s->n = n;
}

void audit_record_trim(struct audit_record *rec)
{
	rec->cut = 0;
	for (size_t i = 0; i < AUDIT_N_FIELDS; i++) {
		const struct audit_field *f = &audit_fields[i];
		struct slice *s = (struct slice *)((char *)rec + f->offset);

		if (f->shape != SHAPE_TEXT || s == &rec->ev.effects || s->n <= f->max)
			continue;
		/* The name is ours and already checked; only texts of a guest are counted. */
		if (s != &rec->name)
			rec->cut += s->n - f->max;
		s->n = f->max;
	}
	trim_effects(rec);
}

static void put_str(struct wr *wr, const char *s)
{
	wr_bytes(wr, slice_from_str(s));
}

static void put_text(struct wr *wr, struct slice s)
{
	size_t from = 0;

	for (size_t i = 0; i < s.n; i++) {
		char escape[6] = {'\\', 'u', '0', '0'};

		if (audit_is_plain(s.p[i]))
			continue;
		wr_bytes(wr, slice_of(s.p + from, i - from));
		hex_encode(&s.p[i], 1, escape + 4);
		wr_bytes(wr, slice_of(escape, sizeof(escape)));
		from = i + 1;
	}
	if (from < s.n)
		wr_bytes(wr, slice_of(s.p + from, s.n - from));
}

static void put_hex(struct wr *wr, const uint8_t *b, size_t n)
{
	char hex[2 * AUDIT_SIG_LEN];

	hex_encode(b, n, hex);
	wr_bytes(wr, slice_of(hex, 2 * n));
}

static bool is_empty(const struct audit_field *f, const void *value)
{
	switch (f->shape) {
	case SHAPE_NUMBER:
		return *(const uint64_t *)value == 0;
	case SHAPE_VERDICT:
		return *(const enum audit_verdict *)value == AUDIT_NONE;
	case SHAPE_WORD:
	case SHAPE_TEXT:
		return ((const struct slice *)value)->n == 0;
	case SHAPE_KIND:
	case SHAPE_HEX:
		break;
	}
	return false;
}

static bool is_valid(const struct audit_field *f, const void *value)
{
	switch (f->shape) {
	case SHAPE_NUMBER:
		return *(const uint64_t *)value <= f->max;
	case SHAPE_KIND:
		return *(const enum audit_kind *)value < AUDIT_N_KINDS;
	case SHAPE_VERDICT:
		return *(const enum audit_verdict *)value < AUDIT_N_VERDICTS;
	case SHAPE_WORD:
		return audit_is_word(*(const struct slice *)value);
	case SHAPE_TEXT:
		return ((const struct slice *)value)->n <= f->max;
	case SHAPE_HEX:
		break;
	}
	return true;
}

static void put_value(struct wr *wr, const struct audit_field *f, const void *value)
{
	if (f->shape == SHAPE_NUMBER) {
		wr_printf(wr, "%" PRIu64, *(const uint64_t *)value);
		return;
	}
	put_str(wr, "\"");
	if (f->shape == SHAPE_KIND)
		put_str(wr, audit_kind_name(*(const enum audit_kind *)value));
	else if (f->shape == SHAPE_VERDICT)
		put_str(wr, audit_verdict_name(*(const enum audit_verdict *)value));
	else if (f->shape == SHAPE_HEX)
		put_hex(wr, value, f->max);
	else
		put_text(wr, *(const struct slice *)value);
	put_str(wr, "\"");
}

static int put_field(struct wr *wr, const struct audit_field *f, const struct audit_record *rec)
{
	const void *value = (const char *)rec + f->offset;
	uint32_t bit = UINT32_C(1) << rec->ev.kind;

	if (f->shape == SHAPE_HEX && !(f->must & bit) &&
		(!(f->may & bit) || is_zero(value, f->max)))
		return 0;
	if (is_empty(f, value))
		return f->must & bit ? -EINVAL : 0;
	if (!(f->may & bit) || !is_valid(f, value))
		return -EINVAL;
	put_str(wr, f->key);
	put_value(wr, f, value);
	return 0;
}

int audit_record_encode(struct wr *wr, const struct audit_record *rec)
{
	if ((unsigned)rec->ev.kind >= AUDIT_N_KINDS)
		return -EINVAL;
	for (size_t i = 0; i < AUDIT_FIELD_SIG; i++) {
		int r = put_field(wr, &audit_fields[i], rec);

		if (r < 0)
			return r;
	}
	return wr_finish(wr);
}

int audit_record_encode_sig(struct wr *wr, const struct audit_record *rec)
{
	int r = put_field(wr, &audit_fields[AUDIT_FIELD_SIG], rec);

	return r < 0 ? r : wr_finish(wr);
}

int audit_record_encode_hash(struct wr *wr, const struct audit_record *rec)
{
	int r = put_field(wr, &audit_fields[AUDIT_FIELD_HASH], rec);

	put_str(wr, "}\n");
	return r < 0 ? r : wr_finish(wr);
}
