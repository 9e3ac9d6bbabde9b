/* SPDX-License-Identifier: Apache-2.0 */
#include "scrub_internal.h"

#include <assert.h>
#include <errno.h>
#include "lib/base/mem.h"

/* A full hold is never undecided, so there is always progress. */
static_assert(SCRUB_MAX_HIT + 2 * SCRUB_MAX_ESCAPE <= SCRUB_MAX_HOLD, "room for the last escape");
#define IDLE_LOOK 64 /* more than this is not searched for scrub_idle */
#define HOLD_STEP 64 /* bytes that are added to what is kept back, at least */

/* ---- the values ---- */

static bool may_begin(const struct scrub_value *v, const uint8_t *p, size_t n, unsigned form)
{
	struct scrub_look look = {.p = p, .n = n};

	return scrub_match_form(&look, v->bytes, form) == SCRUB_MORE;
}

/* What may follow two bytes that may begin a value. */
static void make_third(struct scrub_value *v, unsigned form, uint8_t *p)
{
	const uint16_t bit = (uint16_t)(1U << form);

	for (unsigned c = 0; c < 256; c++) {
		p[2] = (uint8_t)c;
		if (!(v->forms[2][c] & bit) && may_begin(v, p, 3, form))
			v->forms[2][c] |= bit;
	}
}

/* The tables are the matcher's results for one, two and three bytes, so they agree with it. */
static void make_form(struct scrub_value *v, unsigned form)
{
	const uint16_t bit = (uint16_t)(1U << form);
	uint8_t p[SCRUB_N_TABLES] = {0};

	for (unsigned a = 0; a < 256; a++) {
		p[0] = (uint8_t)a;
		if (!may_begin(v, p, 1, form))
			continue;
		v->forms[0][a] |= bit;
		for (unsigned b = 0; b < 256; b++) {
			unsigned pair = a | b << 8;

			p[1] = (uint8_t)b;
			if (!may_begin(v, p, 2, form))
				continue;
			v->forms[1][b] |= bit;
			v->pairs[pair / 8] |= (uint8_t)(1U << pair % 8);
			make_third(v, form, p);
		}
	}
}

static const struct scrub_value *find_value(const struct scrub_set *set, struct slice bytes)
{
	for (size_t i = 0; set && i < set->n_values; i++)
		if (slice_eq(set->values[i].bytes, bytes))
			return &set->values[i];
	return NULL;
}

/* Its own tables, and with them those of the set. */
static void make_tables(
	struct scrub_set *set, struct scrub_value *v, const struct scrub_value *same)
{
	if (same) {
		memcpy(v->forms, same->forms, sizeof(v->forms));
		memcpy(v->pairs, same->pairs, sizeof(v->pairs));
	}
	for (unsigned form = 0; !same && form < SCRUB_N_FORMS; form++)
		make_form(v, form);
	for (size_t i = 0; i < SCRUB_N_TABLES; i++)
		for (size_t c = 0; c < 256; c++)
			set->forms[i][c] |= v->forms[i][c];
	for (size_t i = 0; i < sizeof(set->pairs); i++)
		set->pairs[i] |= v->pairs[i];
}

static int add_values(struct scrub_set *set, const struct slice *values, size_t n_values,
	const struct scrub_set *like, struct err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < n_values; i++)
		n += values[i].n;
	int r = secret_init(&set->memory, n, err);

	for (size_t i = 0; r == 0 && i < n_values; i++) {
		if (!scrub_is_searched(values[i]))
			continue;
		struct scrub_value *v = &set->values[set->n_values++];

		v->bytes = slice_of(set->memory.p + set->memory.n, values[i].n);
		memcpy(set->memory.p + set->memory.n, values[i].p, values[i].n);
		set->memory.n += values[i].n;
		make_tables(set, v, find_value(like, v->bytes));
	}
	return r;
}

struct scrub_set *scrub_set_new(const struct slice *values, size_t n_values, struct err *err)
{
	return scrub_set_new_like(values, n_values, NULL, err);
}

struct scrub_set *scrub_set_new_like(
	const struct slice *values, size_t n_values, const struct scrub_set *like, struct err *err)
{
	if (n_values > SCRUB_MAX_VALUES) {
		(void)err_set(
			err, -E2BIG, "cannot search for more than %d values", SCRUB_MAX_VALUES);
		return NULL;
	}
	for (size_t i = 0; i < n_values; i++) {
		if (values[i].n <= SCRUB_MAX_VALUE)
			continue;
		(void)err_set(err, -E2BIG, "a value is longer than %d bytes", SCRUB_MAX_VALUE);
		return NULL;
	}
	struct scrub_set *set = xcalloc(1, sizeof(*set));

	if (add_values(set, values, n_values, like, err) < 0) {
		scrub_set_free(set);
		return NULL;
	}
	return set;
}

size_t scrub_set_values(const struct scrub_set *set, struct slice ret[SCRUB_MAX_VALUES])
{
	for (size_t i = 0; i < set->n_values; i++)
		ret[i] = set->values[i].bytes;
	return set->n_values;
}

void scrub_set_free(struct scrub_set *set)
{
	if (!set)
		return;
	secret_done(&set->memory);
	explicit_bzero(set, sizeof(*set)); /* the tables show how a value begins */
	free(set);
}

/* ---- one stream ---- */

void scrub_init(struct scrub *s, const struct scrub_set *set)
{
	*s = (struct scrub){.set = set};
}

void scrub_change(struct scrub *s, const struct scrub_set *set)
{
	s->set = set;
	s->is_waiting = false; /* what is kept back is decided again */
}

void scrub_done(struct scrub *s)
{
	if (s->hold)
		explicit_bzero(s->hold, SCRUB_MAX_HOLD);
	free(s->hold);
	*s = (struct scrub){0};
}

static inline unsigned pair_bit(const uint8_t *pairs, uint64_t pair)
{
	return (unsigned)(pairs[(pair & 0xffff) >> 3] >> (pair & 7)) & 1;
}

/* A bit for each of the 8 places from p on where a hit may begin; reads 9 bytes. */
static inline unsigned pair_bits(const uint8_t *pairs, const uint8_t *p)
{
	uint64_t a;

	memcpy(&a, p, 8);
	uint64_t b = a >> 56 | (uint64_t)p[8] << 8;

	return pair_bit(pairs, a) | pair_bit(pairs, a >> 8) << 1 | pair_bit(pairs, a >> 16) << 2 |
	       pair_bit(pairs, a >> 24) << 3 | pair_bit(pairs, a >> 32) << 4 |
	       pair_bit(pairs, a >> 40) << 5 | pair_bit(pairs, a >> 48) << 6 |
	       pair_bit(pairs, b) << 7;
}

/* Three bytes that begin no hit although the first two may. */
static inline bool is_third_wrong(const struct scrub_set *set, const uint8_t *p)
{
	return !(set->forms[0][p[0]] & set->forms[1][p[1]] & set->forms[2][p[2]]);
}

/* How many bytes from p on begin no hit; of the last one only the first table can tell. */
static size_t skip_clean(const struct scrub_set *set, const uint8_t *p, size_t n, bool last)
{
	size_t i = 0;

	for (; i + 10 <= n; i += 8)
		for (unsigned bits = pair_bits(set->pairs, p + i); bits; bits &= bits - 1) {
			size_t at = i + (size_t)__builtin_ctz(bits);

			if (!is_third_wrong(set, p + at))
				return at;
		}
	while (i + 1 < n && !pair_bit(set->pairs, p[i] | (unsigned)p[i + 1] << 8))
		i++;
	if (i + 1 == n && (last || !set->forms[0][p[i]]))
		i++;
	return i;
}

struct put {
	uint8_t *out;
	size_t n, size;
};

/* n decided bytes: those of a hit become '*', those that were shown before are not given again. */
static size_t put_bytes(struct scrub *s, struct put *put, const uint8_t *p, size_t n)
{
	size_t shown = MIN(s->n_shown, n);
	size_t take = MIN(n - shown, put->size - put->n) + shown;
	size_t stars = MIN(s->covered, take);

	if (stars > shown)
		memset(put->out + put->n, '*', stars - shown);
	size_t from = MAX(stars, shown);

	/* scrub_text works in place, and does not touch what stays as it is */
	if (take > from && put->out + put->n + (from - shown) != p + from)
		memcpy(put->out + put->n + (from - shown), p + from, take - from);
	put->n += take - shown;
	s->covered -= stars;
	s->n_shown -= shown;
	return take;
}

/* Decides as many of the n bytes as it can and gives their number. */
static size_t decide_scrub(struct scrub *s, const uint8_t *p, size_t n, bool last, struct put *put)
{
	size_t begin = 0, end = MIN(n, put->size - put->n + s->n_shown), i = 0;

	s->is_waiting = false;
	while (i < end) {
		i += skip_clean(s->set, p + i, n - i, last);
		if (i >= end)
			break;
		struct scrub_look look = {.p = p + i, .n = n - i, .last = last};
		ssize_t r = scrub_match(s->set, &look);

		if (r == SCRUB_MORE) {
			s->is_waiting = true;
			break;
		}
		if (r > 0) {
			/* An older hit has ended before here, or continues. */
			begin += put_bytes(s, put, p + begin, i - begin);
			s->n_hits += s->covered == 0;
			s->covered = MAX(s->covered, (size_t)r);
		}
		i++;
	}
	return begin + put_bytes(s, put, p + begin, MIN(i, end) - begin);
}

static void keep_back(struct scrub *s, struct slice *in, size_t n)
{
	if (!s->hold)
		s->hold = xmalloc(SCRUB_MAX_HOLD);
	memcpy(s->hold + s->n_hold, in->p, n);
	s->n_hold += n;
	*in = slice_of(in->p + n, in->n - n);
	s->is_waiting = false;
}

static void decide_hold(struct scrub *s, bool last, struct put *put)
{
	size_t used = decide_scrub(s, s->hold, s->n_hold, last, put);

	memmove(s->hold, s->hold + used, s->n_hold - used);
	s->n_hold -= used;
}

/* The kept bytes came with this input: they are searched there again, with the rest. */
static void give_back(struct scrub *s, struct slice *in, size_t *taken)
{
	*in = slice_of(in->p - s->n_hold, in->n + s->n_hold);
	*taken -= s->n_hold;
	s->n_hold = 0;
	s->is_waiting = false;
}

size_t scrub_feed(struct scrub *s, struct slice *in, uint8_t *out, size_t size)
{
	struct put put = {.out = out, .size = size};
	size_t taken = 0; /* of this input, by keep_back */

	for (;;) {
		if (s->n_hold > 0 && !s->is_waiting)
			decide_hold(s, false, &put);
		if (s->n_hold > 0 && s->n_hold <= taken)
			give_back(s, in, &taken);
		if (in->n == 0 || put.n == size)
			return put.n;
		if (s->n_hold > 0) { /* twice as much each time: what is kept back is read again */
			size_t step = MAX(s->n_hold, HOLD_STEP), room = SCRUB_MAX_HOLD - s->n_hold;

			step = MIN(in->n, MIN(step, room));
			keep_back(s, in, step);
			taken += step;
			continue;
		}
		size_t used = decide_scrub(s, in->p, in->n, false, &put);

		*in = slice_of(in->p + used, in->n - used);
		if (s->is_waiting) {
			keep_back(s, in, in->n);
			s->is_waiting = true;
			return put.n;
		}
	}
}

size_t scrub_end(struct scrub *s, uint8_t *out, size_t size)
{
	struct put put = {.out = out, .size = size};

	if (s->n_hold > 0)
		decide_hold(s, true, &put);
	return put.n;
}

/* No place in what is kept back agrees with more of a value than may be shown. */
static bool is_shallow(const struct scrub *s)
{
	if (s->n_hold > IDLE_LOOK)
		return false;
	for (size_t i = 0; i < s->n_hold; i++) {
		struct scrub_look look = {.p = s->hold + i, .n = s->n_hold - i};
		ssize_t r = scrub_match(s->set, &look);

		if (r > 0 || (r == SCRUB_MORE && look.depth > SCRUB_IDLE_SHOW))
			return false;
	}
	return true;
}

size_t scrub_idle(struct scrub *s, uint8_t *out, size_t size)
{
	size_t n = 0;

	if (!s->is_waiting || !is_shallow(s))
		return 0;
	for (; s->n_shown < s->n_hold && n < size; s->n_shown++)
		out[n++] = s->n_shown < s->covered ? '*' : s->hold[s->n_shown];
	return n;
}

uint64_t scrub_text(const struct scrub_set *set, uint8_t *text, size_t n)
{
	struct scrub s;
	struct put put = {.out = text, .size = n};

	scrub_init(&s, set);
	/* In place: a byte is read for the last time before it is overwritten, since a later hit
	 * needs only this byte or later ones. */
	(void)decide_scrub(&s, text, n, true, &put);
	return s.n_hits;
}
