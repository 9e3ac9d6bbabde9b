/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single changes to a log of some thousand records: each must be found, and the first bad record
 * named exactly. Usage: audit_tamper_test [CHANGES [SEED]]
 */
#include "audit_fixture.h"

#include <inttypes.h>
#include <time.h>
#include "lib/rules/audit/audit_chain.h"

#define N_RECORDS 2000
#define MAX_LINES 2400
#define MAX_SEGMENTS 16
#define MAX_BYTES (2u << 20)

/* A log in memory: the bytes of all segments one behind the other, and where each record is. */
struct image {
	uint8_t *bytes;
	size_t n_bytes, n_lines, n_segments;
	size_t line[MAX_LINES + 1];	  /* offsets; one more for the end */
	size_t segment[MAX_SEGMENTS + 1]; /* numbers of lines */
	char *kept;
	size_t n_kept;
	struct audit_pub pub;
};

enum { OWN, OTHER_SANDBOX, OTHER_LOG, OTHER_KEY, N_IMAGES };

static struct image images[N_IMAGES];
static struct fixture fixtures[2]; /* of the own key, of another */
static uint64_t random_state;

static uint64_t next_random(void)
{
	uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static size_t below(size_t n)
{
	return (size_t)(next_random() % n);
}

static void write_log(const struct fixture *f, const char *id)
{
	struct audit *a = fixture_open(f, id);

	fixture_fill(a, N_RECORDS);
	assert_int_equal(audit_close(a, NULL), 0);
}

static void add_segment(struct image *im, const char *path)
{
	AUTO_FREE char *text = NULL;
	size_t n, at = im->n_bytes;

	assert_int_equal(file_load(path, MAX_BYTES - im->n_bytes, &text, &n, NULL), 0);
	memcpy(im->bytes + at, text, n);
	im->segment[im->n_segments++] = im->n_lines;
	for (im->n_bytes += n; at < im->n_bytes;) {
		im->line[im->n_lines++] = at;
		at = (size_t)((uint8_t *)memchr(im->bytes + at, '\n', im->n_bytes - at) -
			      im->bytes) +
		     1;
	}
	im->line[im->n_lines] = im->n_bytes;
	im->segment[im->n_segments] = im->n_lines;
}

static void load_image(struct image *im, const struct fixture *f, const char *id)
{
	AUTO_FREE char *kept = xasprintf("%s/heads/%s", f->dir, id);

	*im = (struct image){.bytes = xmalloc(MAX_BYTES), .pub = *audit_key_pub(f->key)};
	assert_int_equal(file_load(kept, AUDIT_MAX_RECORD, &im->kept, &im->n_kept, NULL), 0);
	for (unsigned i = 1; i < MAX_SEGMENTS; i++) {
		AUTO_FREE char *path = fixture_segment(f, id, i);

		if (access(path, F_OK) == 0)
			add_segment(im, path);
	}
	assert_true(im->n_segments > 3 && im->n_lines > N_RECORDS);
}

/* So that the next log of this id is another one of the same key. */
static void forget_log(const struct fixture *f, const char *id)
{
	AUTO_FREE char *rm = xasprintf("rm -r %s/%s %s/heads/%s", f->dir, id, f->dir, id);

	assert_int_equal(system(rm), 0);
}

static void make_image(int which, struct fixture *f, const char *id)
{
	f->head_records = 250;
	f->segment_bytes = 150000;
	write_log(f, id);
	load_image(&images[which], f, id);
	forget_log(f, id);
}

static void make_images(void)
{
	fixture_up(&fixtures[0]);
	fixture_up(&fixtures[1]);
	make_image(OWN, &fixtures[0], FIXTURE_ID);
	make_image(OTHER_LOG, &fixtures[0], FIXTURE_ID);
	make_image(OTHER_SANDBOX, &fixtures[0], "ba9876543210");
	make_image(OTHER_KEY, &fixtures[1], FIXTURE_ID);
}

/* The changed log: lines taken from images or made, in segments. */
struct draft {
	uint8_t *bytes;
	size_t n, segment[MAX_SEGMENTS + 1], n_segments;
	const char *kept;
	size_t n_kept;
	uint64_t seq;	  /* of the first bad record */
	uint32_t reasons; /* that may be given for it */
};

static struct draft d;

#define WHY(bad) (UINT32_C(1) << AUDIT_##bad)

static void expect(uint64_t seq, uint32_t reasons)
{
	d.seq = seq;
	d.reasons = reasons;
}

static void put(const void *p, size_t n)
{
	assert_true(d.n + n <= 2 * MAX_BYTES);
	memcpy(d.bytes + d.n, p, n);
	d.n += n;
}

static struct slice line_of(const struct image *im, size_t i)
{
	return slice_of(im->bytes + im->line[i], im->line[i + 1] - im->line[i]);
}

/* Begins a segment in the draft where the image has one. */
static void put_mark(const struct image *im, size_t i)
{
	for (size_t s = 0; s < im->n_segments; s++)
		if (im->segment[s] == i)
			d.segment[d.n_segments++] = d.n;
}

static void put_lines(const struct image *im, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		struct slice s = line_of(im, i);

		put_mark(im, i);
		put(s.p, s.n);
	}
}

static bool is_head(const struct image *im, size_t i)
{
	struct slice s = line_of(im, i);

	return memmem(s.p, s.n, "\"kind\":\"head\"", 13) != NULL;
}

static size_t head_from(const struct image *im, size_t i)
{
	while (!is_head(im, i))
		i++;
	return i;
}

static void change_byte(const struct image *im, bool one_bit)
{
	size_t at = below(im->n_bytes), i = 0;

	put_lines(im, 0, im->n_lines);
	while (im->line[i + 1] <= at)
		i++;
	d.bytes[at] ^= one_bit ? (uint8_t)(1 << below(8)) : (uint8_t)(1 + below(255));
	expect(i + 1, WHY(BAD_FORM) | WHY(BAD_HASH) | WHY(TORN_TAIL));
}

static void flip(const struct image *im)
{
	change_byte(im, true);
}

static void change(const struct image *im)
{
	change_byte(im, false);
}

static void drop(const struct image *im)
{
	size_t i = below(im->n_lines);

	put_lines(im, 0, i);
	put_mark(im, i);
	put_lines(im, i + 1, im->n_lines);
	expect(i + 1, i + 1 == im->n_lines ? WHY(ROLLBACK) : WHY(BAD_ORDER));
}

static void swap(const struct image *im)
{
	size_t i = below(im->n_lines - 1), j = i + 1 + below(im->n_lines - i - 1);
	struct slice a = line_of(im, i), b = line_of(im, j);

	put_lines(im, 0, i);
	put_mark(im, i);
	put(b.p, b.n);
	put_lines(im, i + 1, j);
	put_mark(im, j);
	put(a.p, a.n);
	put_lines(im, j + 1, im->n_lines);
	expect(i + 1, WHY(BAD_ORDER));
}

static void cut_tail(const struct image *im)
{
	size_t at = below(im->n_bytes), i = 0;

	while (im->line[i + 1] <= at)
		i++;
	put_lines(im, 0, i + 1);
	d.n = at;
	expect(i + 1, at == im->line[i] ? WHY(ROLLBACK) : WHY(TORN_TAIL));
}

static void cut_middle(const struct image *im)
{
	size_t s = below(im->n_segments), i = 0;
	size_t from = im->line[im->segment[s]], to = im->line[im->segment[s + 1]];
	size_t at = from + below(to - from), n = 1 + below(MIN(to - at, (size_t)3000));

	put_lines(im, 0, im->n_lines);
	while (im->line[i + 1] <= at)
		i++;
	memmove(d.bytes + at, d.bytes + at + n, d.n - at - n);
	d.n -= n;
	for (size_t k = s + 1; k < d.n_segments; k++)
		d.segment[k] -= n;
	expect(i + 1, UINT32_MAX);
}

static void splice_in(const struct image *im)
{
	const struct image *other = &images[1 + below(N_IMAGES - 1)];
	size_t i = below(im->n_lines), n = 1 + below(20);

	put_lines(im, 0, i);
	for (size_t k = i; k < im->n_lines; k++) {
		struct slice s = line_of(k < i + n && k < other->n_lines ? other : im, k);

		put_mark(im, k);
		put(s.p, s.n);
	}
	expect(i + 1, WHY(FOREIGN) | WHY(BAD_CHAIN) | WHY(OTHER_KEY));
}

static void roll_back(const struct image *im)
{
	size_t last = im->n_lines - 1, i = 1 + below(last - 1);

	while (!is_head(im, i))
		i--;
	put_lines(im, 0, i + 1);
	expect(i + 2, WHY(ROLLBACK));
}

/* The whole log of another, with and without its kept head. */
static void replace_log(const struct image *im)
{
	size_t which = 1 + below(N_IMAGES - 1);

	im = &images[which];
	put_lines(im, 0, im->n_lines);
	if (which == OTHER_KEY && below(2)) {
		d.kept = im->kept;
		d.n_kept = im->n_kept;
	}
	expect(1, which == OTHER_KEY ? WHY(OTHER_KEY) : WHY(FOREIGN));
}

static void duplicate(const struct image *im)
{
	size_t i = below(im->n_lines), j = i + below(im->n_lines - i);
	struct slice s = line_of(im, i);

	put_lines(im, 0, j + 1);
	put(s.p, s.n);
	put_lines(im, j + 1, im->n_lines);
	expect(j + 2, WHY(BAD_ORDER));
}

/* What somebody without the key can do: write records that are right in all but the signature. */
struct forger {
	struct audit_hash hash;
	uint8_t last[AUDIT_HASH_LEN];
	uint64_t seq;
	const struct audit_key *key; /* NULL: leave the signatures */
};

static void forge(struct forger *f, struct audit_record *rec)
{
	uint8_t buf[AUDIT_MAX_RECORD];
	struct wr wr = wr_init(buf, sizeof(buf));

	rec->seq = ++f->seq;
	memcpy(rec->prev, f->last, sizeof(rec->prev));
	assert_int_equal(audit_record_encode(&wr, rec), 0);
	if (f->key && rec->ev.kind == AUDIT_KIND_HEAD)
		assert_int_equal(audit_sign(f->key, slice_of(buf, wr.n), rec->sig), 0);
	assert_int_equal(audit_record_encode_sig(&wr, rec), 0);
	audit_hash_of(&f->hash, slice_of(buf, wr.n), rec->hash);
	memcpy(f->last, rec->hash, sizeof(f->last));
	assert_int_equal(audit_record_encode_hash(&wr, rec), 0);
	put(buf, wr.n);
}

static void edit(struct audit_record *rec)
{
	if (rec->ev.kind != AUDIT_KIND_DECISION)
		rec->time_ms++;
	else if (below(2))
		rec->ev.decision = rec->ev.decision == AUDIT_ALLOW ? AUDIT_DENY : AUDIT_ALLOW;
	else
		rec->ev.host = slice_from_str("innocent.example");
}

static void decode(const struct image *im, size_t i, struct audit_record *ret)
{
	assert_int_equal(audit_record_decode(line_of(im, i), ret), 0);
}

/* Edits record i and makes everything behind it right again, without the heads if so wanted. */
static void rewrite(const struct image *im, size_t i, bool with_heads, const struct audit_key *key)
{
	struct forger f = {.seq = i, .key = key};
	struct audit_record rec;

	audit_hash_init(&f.hash);
	put_lines(im, 0, i);
	decode(im, i, &rec);
	memcpy(f.last, rec.prev, sizeof(f.last));
	for (size_t k = i; k < im->n_lines; k++) {
		decode(im, k, &rec);
		put_mark(im, k);
		if (k == i)
			edit(&rec);
		if (with_heads || rec.ev.kind != AUDIT_KIND_HEAD)
			forge(&f, &rec);
	}
	audit_hash_done(&f.hash);
	d.seq = f.seq;
}

static void edit_and_chain(const struct image *im)
{
	size_t i = below(im->n_lines);

	rewrite(im, i, true, NULL);
	expect(head_from(im, i) + 1, WHY(BAD_SIGNATURE));
}

static void edit_and_sign_with_another_key(const struct image *im)
{
	size_t i = below(im->n_lines);

	rewrite(im, i, true, fixtures[1].key);
	expect(head_from(im, i) + 1, WHY(BAD_SIGNATURE));
}

static void edit_and_leave_heads_out(const struct image *im)
{
	size_t i = below(im->n_lines), last_head = i;
	uint64_t limit;

	rewrite(im, i, false, NULL);
	while (last_head > 0 && !is_head(im, last_head - 1))
		last_head--;
	/* Too many records without a head, or too few in all. */
	limit = last_head + AUDIT_HEAD_RECORDS + 1;
	if (d.seq >= limit)
		expect(limit, WHY(NO_HEAD));
	else
		expect(d.seq + 1, WHY(ROLLBACK));
}

static void drop_segment(const struct image *im)
{
	size_t s = below(im->n_segments);

	put_lines(im, 0, im->segment[s]);
	put_lines(im, im->segment[s + 1], im->n_lines);
	expect(im->segment[s] + 1, s + 1 == im->n_segments ? WHY(ROLLBACK) : WHY(BAD_ORDER));
}

static const struct {
	const char *name;
	void (*make)(const struct image *im);
	unsigned weight;
} changes[] = {
	{"flip a bit", flip, 6},
	{"change a byte", change, 3},
	{"drop a record", drop, 2},
	{"swap two records", swap, 2},
	{"cut the tail", cut_tail, 2},
	{"cut in the middle", cut_middle, 2},
	{"splice from another log", splice_in, 2},
	{"roll back to a head", roll_back, 2},
	{"replace the log", replace_log, 1},
	{"repeat a record", duplicate, 2},
	{"edit and chain anew", edit_and_chain, 1},
	{"edit and sign with another key", edit_and_sign_with_another_key, 1},
	{"edit and leave the heads out", edit_and_leave_heads_out, 1},
	{"drop a segment", drop_segment, 1},
};

static int verify_segments(const struct slice *segments, size_t n,
	const struct audit_expect *expect, struct audit_report *ret)
{
	AUTO_CHAIN struct audit_chain c;
	int r = 0;

	audit_chain_init(&c, expect);
	for (size_t i = 0; i < n && r >= 0; i++) {
		r = audit_chain_segment(&c, audit_chain_first(&c) + i);
		if (r >= 0)
			r = audit_chain_eat(&c, segments[i]);
	}
	if (r >= 0)
		r = audit_chain_end(&c);
	*ret = c.report;
	return r;
}

static int check(const struct image *im, struct audit_report *rep)
{
	struct audit_expect want = {
		.pub = &im->pub, .sandbox = FIXTURE_ID, .kept_head = slice_of(d.kept, d.n_kept)};
	struct slice segments[MAX_SEGMENTS];

	d.segment[d.n_segments] = d.n;
	for (size_t i = 0; i < d.n_segments; i++)
		segments[i] = slice_of(d.bytes + d.segment[i], d.segment[i + 1] - d.segment[i]);
	return verify_segments(segments, d.n_segments, &want, rep);
}

static void reset(const struct image *im)
{
	uint8_t *bytes = d.bytes;

	d = (struct draft){.bytes = bytes, .kept = im->kept, .n_kept = im->n_kept};
}

static void one_change(size_t which)
{
	const struct image *im = &images[OWN];
	struct audit_report rep;
	int r;

	reset(im);
	changes[which].make(im);
	r = check(im, &rep);
	if (r == -EBADMSG && rep.seq == d.seq && (d.reasons & UINT32_C(1) << rep.bad))
		return;
	fail_msg("%s: record %" PRIu64 " is the first bad one, found was %" PRIu64 " (%s)",
		changes[which].name, d.seq, rep.seq, audit_bad_name(rep.bad));
}

static size_t pick(void)
{
	size_t total = 0, at;

	for (size_t i = 0; i < ARRAY_LEN(changes); i++)
		total += changes[i].weight;
	at = below(total);
	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		if (at < changes[i].weight)
			return i;
		at -= changes[i].weight;
	}
	return 0;
}

static unsigned long n_changes = 1000;

static void the_log_itself_is_good(void **state)
{
	struct audit_report rep;

	reset(&images[OWN]);
	put_lines(&images[OWN], 0, images[OWN].n_lines);
	assert_int_equal(check(&images[OWN], &rep), 0);
	assert_int_equal(rep.n_records, images[OWN].n_lines);
	assert_int_equal(rep.n_unsigned, 0);
}

static void every_change_is_found_where_it_was_made(void **state)
{
	size_t count[ARRAY_LEN(changes)] = {0};

	for (unsigned long i = 0; i < n_changes; i++) {
		/* Each kind at least once, then as it comes. */
		size_t which = i < ARRAY_LEN(changes) ? (size_t)i : pick();

		one_change(which);
		count[which]++;
	}
	for (size_t i = 0; i < ARRAY_LEN(changes); i++)
		print_message("%7zu  %s\n", count[i], changes[i].name);
	print_message("%lu changes, all found\n", n_changes);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_log_itself_is_good),
		cmocka_unit_test(every_change_is_found_where_it_was_made),
	};
	int r;

	if (argc > 1)
		n_changes = strtoul(argv[1], NULL, 10);
	random_state = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
	print_message("seed %" PRIu64 "\n", random_state);
	d.bytes = xmalloc(2 * MAX_BYTES);
	make_images();
	r = cmocka_run_group_tests(tests, NULL, NULL);
	for (size_t i = 0; i < N_IMAGES; i++) {
		free(images[i].bytes);
		free(images[i].kept);
	}
	fixture_down(&fixtures[0]);
	fixture_down(&fixtures[1]);
	free(d.bytes);
	return r;
}
