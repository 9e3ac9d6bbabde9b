/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the cut of a pruned log, and as a log, cut into segments at NUL bytes, whole and in
 * pieces: the same verdict. Whatever decodes must encode to the very same bytes. A byte in front
 * says how large the pieces are.
 */
#include <assert.h>
#include "lib/rules/audit/audit_chain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int encode_again(void *arg, const struct audit_record *rec, struct slice line)
{
	uint8_t buf[AUDIT_MAX_RECORD];
	struct wr wr = wr_init(buf, sizeof(buf));

	assert(audit_record_encode(&wr, rec) == 0);
	assert(audit_record_encode_sig(&wr, rec) == 0);
	assert(audit_record_encode_hash(&wr, rec) == 0);
	assert(slice_eq(slice_of(buf, wr.n), line));
	return 0;
}

static struct audit_report run(struct slice log, size_t piece, const struct audit_expect *e)
{
	AUTO_CHAIN struct audit_chain c;
	uint64_t number = 1;
	int r;

	audit_chain_init(&c, e);
	r = audit_chain_segment(&c, number);
	while (log.n && r == 0) {
		const uint8_t *end = memchr(log.p, 0, log.n);
		size_t n = end ? (size_t)(end - log.p) : log.n;

		for (size_t at = 0; at < n && r == 0; at += piece)
			r = audit_chain_eat(&c, slice_of(log.p + at, MIN(piece, n - at)));
		if (end && r == 0)
			r = audit_chain_segment(&c, ++number);
		n += end != NULL;
		log = slice_of(log.p + n, log.n - n);
	}
	if (r == 0)
		r = audit_chain_end(&c);
	assert((r == 0) == (c.report.bad == AUDIT_OK));
	return c.report;
}

/* What decodes has one form only: no other byte decodes to the same. */
static void run_cut(struct slice line)
{
	struct audit_cut cut, again;
	uint8_t buf[AUDIT_MAX_CUT];

	if (audit_cut_decode(line, &cut) < 0)
		return;
	assert(line.n <= sizeof(buf) && cut.n_signed < line.n && cut.segment > 1 && cut.seq > 0);
	for (size_t i = 0; i < line.n; i++) {
		memcpy(buf, line.p, line.n);
		buf[i] ^= 0x20;
		assert(audit_cut_decode(slice_of(buf, line.n), &again) < 0 ||
			memcmp(&cut, &again, sizeof(cut)) != 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* The key of the corpus' logs: its seed is 32 bytes of 1. */
	static const struct audit_pub pub = {{0x8a, 0x88, 0xe3, 0xdd, 0x74, 0x09, 0xf1, 0x95, 0xfd,
		0x52, 0xdb, 0x2d, 0x3c, 0xba, 0x5d, 0x72, 0xca, 0x67, 0x09, 0xbf, 0x1d, 0x94, 0x12,
		0x1b, 0xf3, 0x74, 0x88, 0x01, 0xb4, 0x0f, 0x6f, 0x5c}};
	struct audit_expect plain = {.flags = AUDIT_CHAIN_PLAIN, .fn = encode_again};
	struct audit_expect strict = {.pub = &pub, .flags = AUDIT_CHAIN_ALONE};
	struct audit_report a, b;
	struct slice log;

	if (size < 1)
		return 0;
	log = slice_of(data + 1, size - 1);
	run_cut(log);
	(void)run(log, SIZE_MAX / 2, &plain);
	a = run(log, SIZE_MAX / 2, &strict);
	b = run(log, (size_t)data[0] + 1, &strict);
	assert(a.bad == b.bad && a.seq == b.seq && a.offset == b.offset);
	return 0;
}
