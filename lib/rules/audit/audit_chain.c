/* SPDX-License-Identifier: Apache-2.0 */
#include "audit_chain.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

static const struct {
	const char *name, *text;
} bad_names[] = {
	[AUDIT_OK] = {"ok", ""},
	[AUDIT_BAD_FORM] = {"form", "is not in canonical encoding"},
	[AUDIT_BAD_HASH] = {"hash", "was changed: its hash does not match"},
	[AUDIT_BAD_ORDER] = {"order", "is missing or out of order: found another number"},
	[AUDIT_BAD_CHAIN] = {"chain", "does not continue the previous record"},
	[AUDIT_BAD_SIGNATURE] = {"signature",
		"is a checkpoint without a valid signature: a record since the last valid checkpoint was changed"},
	[AUDIT_NO_HEAD] = {"missing-head", "requires a signed checkpoint before it"},
	[AUDIT_BAD_SEGMENT] = {"segment", "is not the first record of a file with this number"},
	[AUDIT_NO_SEGMENT] = {"missing-segment", "should be in a file that is missing"},
	[AUDIT_ROLLBACK] = {"rollback",
		"does not match the stored checkpoint: the log was rolled back"},
	[AUDIT_BAD_KEPT_HEAD] = {"kept-head", "has no stored checkpoint signed by this key"},
	[AUDIT_OTHER_KEY] = {"other-key", "was signed with the key of another installation"},
	[AUDIT_FOREIGN] = {"foreign", "belongs to another log"},
	[AUDIT_TORN_TAIL] = {"torn-tail", "is truncated"},
	[AUDIT_BAD_CUT] = {"cut", "has a pruning record that this key did not sign for this log"},
	[AUDIT_OLD_CUT] = {"cut-rollback",
		"begins before the last pruning that the log of sbxd records: the log was rolled back"},
	[AUDIT_BAD_FORMAT] = {"format", "is not in the format of its log"},
};
static_assert(ARRAY_LEN(bad_names) == AUDIT_N_BAD, "one text per fault");

const char *audit_bad_text(enum audit_bad bad)
{
	return (unsigned)bad < AUDIT_N_BAD ? bad_names[bad].text : "";
}

const char *audit_bad_name(enum audit_bad bad)
{
	return (unsigned)bad < AUDIT_N_BAD ? bad_names[bad].name : "";
}

static bool is_hash_of(struct audit_chain *c, struct slice line, const struct audit_record *rec)
{
	uint8_t hash[AUDIT_HASH_LEN];

	audit_hash_of(&c->hash, slice_of(line.p, rec->n_hashed), hash);
	return memcmp(hash, rec->hash, sizeof(hash)) == 0;
}

static bool is_signed(struct audit_chain *c, struct slice line, const struct audit_record *rec)
{
	return audit_check(c->expect.pub, slice_of(line.p, rec->n_signed), rec->sig) == 0;
}

static void read_kept_head(struct audit_chain *c)
{
	struct slice line = c->expect.kept_head;
	struct audit_record *rec = &c->rec;

	if (!line.n || audit_record_decode(line, rec) < 0 || rec->ev.kind != AUDIT_KIND_HEAD ||
		!is_hash_of(c, line, rec) || !is_signed(c, line, rec))
		return;
	c->has_kept = true;
	c->kept_seq = rec->seq;
	memcpy(c->kept_hash, rec->hash, sizeof(c->kept_hash));
	memcpy(c->kept_log, rec->log, sizeof(c->kept_log));
}

/* The chain begins after the cut as if the removed records had been read. */
static void begin_at_cut(struct audit_chain *c)
{
	bool is_plain = c->expect.flags & AUDIT_CHAIN_PLAIN;
	struct audit_cut cut;
	int r = is_plain ? audit_cut_decode(c->expect.cut, &cut)
			 : audit_cut_check(c->expect.cut, c->expect.pub, &cut);

	c->is_cut_bad = r < 0 || (c->sandbox[0] && strcmp(cut.sandbox, c->sandbox) != 0) ||
			(c->has_kept && memcmp(cut.log, c->kept_log, sizeof(cut.log)) != 0);
	if (c->is_cut_bad)
		return;
	(void)snprintf(c->sandbox, sizeof(c->sandbox), "%s", cut.sandbox);
	memcpy(c->log, cut.log, sizeof(c->log));
	memcpy(c->last, cut.hash, sizeof(c->last));
	c->next_seq = cut.seq + 1;
	c->segment = cut.segment - 1;
	c->report.cut_seq = cut.seq;
	c->report.cut_ms = cut.time_ms;
	c->report.cut_until_ms = cut.until_ms;
	c->report.cut_segment = cut.segment;
}

/* A word, of which the caller made sure: a cut one would be the name of another log. */
static void set_sandbox(struct audit_chain *c, struct slice s)
{
	int r = slice_to_cstr(s, c->sandbox, sizeof(c->sandbox));

	assert(r == 0 && s.n > 0);
}

void audit_chain_init(struct audit_chain *c, const struct audit_expect *expect)
{
	memset(c, 0, offsetof(struct audit_chain, line));
	c->n_line = 0;
	c->expect = *expect;
	c->next_seq = 1;
	audit_hash_init(&c->hash);
	if (expect->sandbox)
		set_sandbox(c, slice_from_str(expect->sandbox));
	if (expect->pub && !(expect->flags & AUDIT_CHAIN_PLAIN))
		read_kept_head(c);
	if (expect->cut.p)
		begin_at_cut(c);
	c->expect.kept_head = c->expect.cut = (struct slice){0};
}

uint64_t audit_chain_first(const struct audit_chain *c)
{
	return c->report.cut_seq ? c->report.cut_segment : 1;
}

void audit_chain_skip(struct audit_chain *c, uint64_t number)
{
	assert(c->expect.flags & AUDIT_CHAIN_PLAIN);
	c->segment = number - 1;
	c->n_line = 0;
	c->is_first = false;
}

void audit_chain_done(struct audit_chain *c)
{
	audit_hash_done(&c->hash);
}

static enum audit_bad check_log(struct audit_chain *c, const struct audit_record *rec)
{
	if (rec->ev.kind == AUDIT_KIND_OPEN) {
		if (memcmp(rec->key, c->expect.pub->b, sizeof(rec->key)) != 0)
			return AUDIT_OTHER_KEY;
	} else if ((c->is_begun || c->report.cut_seq) &&
		   memcmp(rec->log, c->log, sizeof(c->log)) != 0) {
		return AUDIT_FOREIGN;
	}
	if (c->has_kept && memcmp(rec->log, c->kept_log, sizeof(c->kept_log)) != 0)
		return AUDIT_FOREIGN;
	memcpy(c->log, rec->log, sizeof(c->log));
	return AUDIT_OK;
}

static enum audit_bad check_begin(const struct audit_chain *c, const struct audit_record *rec)
{
	enum audit_kind want = c->segment == 1 ? AUDIT_KIND_OPEN : AUDIT_KIND_SEGMENT;

	if (c->is_first)
		return rec->ev.kind == want &&
				       (want == AUDIT_KIND_OPEN || rec->segment == c->segment)
			       ? AUDIT_OK
			       : AUDIT_BAD_SEGMENT;
	return rec->ev.kind == AUDIT_KIND_OPEN || rec->ev.kind == AUDIT_KIND_SEGMENT
		       ? AUDIT_BAD_SEGMENT
		       : AUDIT_OK;
}

/* A record of the same number from another log is caught by the hash before it, one from another
 * sandbox already here. */
static enum audit_bad check_place(struct audit_chain *c, const struct audit_record *rec)
{
	bool is_free = !c->is_begun && (c->expect.flags & AUDIT_CHAIN_MIDDLE);

	if (!c->sandbox[0])
		set_sandbox(c, rec->sandbox);
	if (!slice_eq_str(rec->sandbox, c->sandbox))
		return AUDIT_FOREIGN;
	if (!is_free && rec->seq != c->next_seq)
		return AUDIT_BAD_ORDER;
	if (!is_free && memcmp(rec->prev, c->last, sizeof(c->last)) != 0)
		return AUDIT_BAD_CHAIN;
	return check_begin(c, rec);
}

/* OPEN begins with any format, SEGMENT has that of the log or a later one, FORMAT a later one. */
static enum audit_bad check_format(const struct audit_chain *c)
{
	const struct audit_record *rec = &c->rec;
	unsigned version = rec->version ? (unsigned)rec->version : 1;
	bool good = audit_record_format(rec) <= c->format;

	if (rec->ev.kind == AUDIT_KIND_OPEN)
		good = true;
	else if (rec->ev.kind == AUDIT_KIND_SEGMENT)
		good = version >= c->format && rec->version != 1;
	else if (rec->ev.kind == AUDIT_KIND_FORMAT)
		good = version > c->format;
	return good ? AUDIT_OK : AUDIT_BAD_FORMAT;
}

static enum audit_bad check_head(struct audit_chain *c, struct slice line)
{
	const struct audit_record *rec = &c->rec;

	if (rec->ev.kind == AUDIT_KIND_HEAD)
		return is_signed(c, line, rec) ? AUDIT_OK : AUDIT_BAD_SIGNATURE;
	/* A recovery may come between a torn write and the head that was due. */
	if (rec->ev.kind != AUDIT_KIND_RECOVERED && c->since_head >= AUDIT_HEAD_RECORDS)
		return AUDIT_NO_HEAD;
	return AUDIT_OK;
}

static enum audit_bad check_line(struct audit_chain *c, struct slice line)
{
	const struct audit_record *rec = &c->rec;
	enum audit_bad bad;

	if (audit_record_decode(line, &c->rec) < 0)
		return AUDIT_BAD_FORM;
	if (c->expect.flags & AUDIT_CHAIN_PLAIN)
		return AUDIT_OK;
	if (!is_hash_of(c, line, rec))
		return AUDIT_BAD_HASH;
	bad = check_place(c, rec);
	if (bad == AUDIT_OK && (rec->ev.kind <= AUDIT_KIND_HEAD))
		bad = check_log(c, rec);
	if (bad == AUDIT_OK)
		bad = check_format(c);
	if (bad == AUDIT_OK)
		bad = check_head(c, line);
	if (bad == AUDIT_OK && c->has_kept && rec->seq == c->kept_seq &&
		memcmp(rec->hash, c->kept_hash, sizeof(c->kept_hash)) != 0)
		bad = AUDIT_ROLLBACK;
	return bad;
}

static void accept_chain(struct audit_chain *c, size_t n)
{
	const struct audit_record *rec = &c->rec;
	struct audit_report *rep = &c->report;

	memcpy(c->last, rec->hash, sizeof(c->last));
	c->next_seq = rec->seq + 1;
	c->offset += n;
	c->is_begun = true;
	if (rec->version || rec->ev.kind == AUDIT_KIND_SEGMENT)
		c->format = rec->version ? (unsigned)rec->version : 1;
	c->is_first = false;
	rep->segment = c->segment;
	rep->seq = rec->seq;
	rep->n_records++;
	rep->n_recovered += rec->ev.kind == AUDIT_KIND_RECOVERED;
	if (rec->ev.kind == AUDIT_KIND_HEAD) {
		rep->n_heads++;
		rep->signed_seq = rec->seq;
		rep->signed_ms = rec->time_ms;
		c->since_head = 0;
		rep->n_unsigned = 0;
		return;
	}
	c->since_head += rec->ev.kind != AUDIT_KIND_RECOVERED;
	rep->n_unsigned++;
}

static bool is_about_log(enum audit_bad bad)
{
	return bad == AUDIT_BAD_KEPT_HEAD || bad == AUDIT_BAD_CUT || bad == AUDIT_OLD_CUT;
}

static bool is_before_known_cut(const struct audit_chain *c)
{
	const struct audit_mark *known = c->expect.pruned;

	return known && c->report.cut_seq < known->seq &&
	       (!c->has_kept || memcmp(known->log, c->kept_log, sizeof(known->log)) == 0);
}

/* Always -EBADMSG. */
static int fail_chain(struct audit_chain *c, enum audit_bad bad)
{
	if (c->report.bad == AUDIT_OK) {
		c->report.bad = bad;
		c->report.segment = c->segment;
		c->report.seq = is_about_log(bad) ? 0 : c->next_seq;
		c->report.offset = c->offset;
	}
	return -EBADMSG;
}

static int check_cut(struct audit_chain *c)
{
	if (c->report.bad != AUDIT_OK)
		return -EBADMSG;
	if (c->is_cut_bad)
		return fail_chain(c, AUDIT_BAD_CUT);
	if (is_before_known_cut(c))
		return fail_chain(c, AUDIT_OLD_CUT);
	return 0;
}

static int take_line(struct audit_chain *c, struct slice line)
{
	uint64_t at = c->offset;
	enum audit_bad bad = check_line(c, line);

	if (bad != AUDIT_OK)
		return fail_chain(c, bad);
	accept_chain(c, line.n);
	c->report.offset = at;
	return c->expect.fn ? c->expect.fn(c->expect.arg, &c->rec, line) : 0;
}

/* Keeps what is not a whole line yet; a whole one of AUDIT_MAX_RECORD fits. */
static int keep_chain(struct audit_chain *c, struct slice part)
{
	if (part.n > sizeof(c->line) - c->n_line)
		return fail_chain(c, AUDIT_BAD_FORM);
	memcpy(c->line + c->n_line, part.p, part.n);
	c->n_line += part.n;
	return 0;
}

static int take_part(struct audit_chain *c, struct slice part, bool is_whole)
{
	int r;

	if (is_whole && !c->n_line)
		return take_line(c, part);
	r = keep_chain(c, part);
	if (r < 0 || !is_whole)
		return r;
	r = take_line(c, slice_of(c->line, c->n_line));
	c->n_line = 0;
	return r;
}

int audit_chain_eat(struct audit_chain *c, struct slice bytes)
{
	int r = 0;

	if (c->report.bad != AUDIT_OK)
		return -EBADMSG;
	while (bytes.n && r >= 0) {
		const uint8_t *end = memchr(bytes.p, '\n', bytes.n);
		size_t n = end ? (size_t)(end - bytes.p) + 1 : bytes.n;

		r = take_part(c, slice_of(bytes.p, n), end != NULL);
		bytes = slice_of(bytes.p + n, bytes.n - n);
	}
	return r < 0 ? r : 0;
}

int audit_chain_segment(struct audit_chain *c, uint64_t number)
{
	if (check_cut(c) < 0)
		return -EBADMSG;
	/* Only the last segment may end in the middle of a record. */
	if (c->n_line)
		return fail_chain(c, AUDIT_BAD_FORM);
	if (number != c->segment + 1 && (c->segment || !(c->expect.flags & AUDIT_CHAIN_MIDDLE))) {
		c->segment++; /* the one that is missing is named */
		c->offset = 0;
		return fail_chain(c, AUDIT_NO_SEGMENT);
	}
	/* A segment without a record is only there when it could not be begun. */
	if (c->is_first)
		return fail_chain(c, AUDIT_BAD_SEGMENT);
	c->segment = number;
	c->offset = 0;
	c->is_first = true;
	return 0;
}

int audit_chain_end(struct audit_chain *c)
{
	if (check_cut(c) < 0)
		return -EBADMSG;
	if (c->n_line)
		return fail_chain(c, AUDIT_TORN_TAIL);
	if (c->expect.flags & (AUDIT_CHAIN_PLAIN | AUDIT_CHAIN_ALONE))
		return 0;
	if (!c->has_kept)
		return fail_chain(c, AUDIT_BAD_KEPT_HEAD);
	if (c->next_seq <= c->kept_seq)
		return fail_chain(c, AUDIT_ROLLBACK);
	return 0;
}
