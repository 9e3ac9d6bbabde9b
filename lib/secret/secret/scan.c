/* SPDX-License-Identifier: Apache-2.0 */
#include "scan.h"

#include <assert.h>
#include <string.h>
#include "lib/base/b64.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"

#define MAX_FORMS 12

struct pattern {
	uint16_t next; /* with the same hash: number + 1 */
	uint16_t owner;
	uint8_t n;
	uint8_t bytes[SCAN_MAX_LOOK];
};

static_assert(BOOK_MAX * MAX_FORMS + 1 < UINT16_MAX, "numbers of patterns");
static_assert(SCAN_MAX_LOOK >= VAULT_MAX_CONTROL, "a whole control is searched for");

static struct pattern *pattern_at(struct scan *s, size_t i)
{
	return (struct pattern *)(void *)s->patterns.p + i;
}

static uint32_t hash_of(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v * 2654435761U >> 16;
}

static bool is_there(struct scan *s, const struct pattern *p)
{
	for (uint16_t at = s->first[hash_of(p->bytes)]; at; at = pattern_at(s, at - 1)->next) {
		struct pattern *q = pattern_at(s, at - 1);

		if (q->owner == p->owner && q->n == p->n && memcmp(q->bytes, p->bytes, p->n) == 0)
			return true;
	}
	return false;
}

static void add_scan(struct scan *s, const struct pattern *p)
{
	uint32_t h = hash_of(p->bytes);

	/* a value of letters and digits looks the same in several forms: counted once */
	if (p->n < SCAN_MIN_LOOK || is_there(s, p))
		return;
	*pattern_at(s, s->n_patterns) = *p;
	pattern_at(s, s->n_patterns)->next = s->first[h];
	s->first[h] = (uint16_t)++s->n_patterns;
}

static void put_text(struct pattern *p, const char *text, size_t n)
{
	for (size_t i = 0; i < n && p->n < SCAN_MAX_LOOK; i++)
		p->bytes[p->n++] = (uint8_t)text[i];
}

static bool is_unreserved(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       strchr("-._~", c ? c : ' ');
}

static void add_plain(struct scan *s, uint16_t owner, struct slice v)
{
	struct pattern p = {.owner = owner};

	put_text(&p, (const char *)v.p, v.n);
	s->owners[owner].is_looked = v.n >= SCAN_MIN_LOOK;
	add_scan(s, &p);
	explicit_bzero(&p, sizeof(p));
}

/* "%2F" for all bytes, or for those that a URL must not have; without percent signs: hex. */
static void add_hex(
	struct scan *s, uint16_t owner, struct slice v, const char *digits, bool percent, bool all)
{
	struct pattern p = {.owner = owner};

	for (size_t i = 0; i < v.n && i < SCAN_MAX_LOOK; i++) {
		char text[3] = {'%', digits[v.p[i] >> 4], digits[v.p[i] & 15]};

		if (percent && !all && is_unreserved(v.p[i]))
			put_text(&p, (const char *)&v.p[i], 1);
		else
			put_text(&p, percent ? text : text + 1, percent ? 3 : 2);
	}
	add_scan(s, &p);
	explicit_bzero(&p, sizeof(p));
}

/* `skip` bytes of something else were before it: digits that share bits with those bytes or with
 * following ones are skipped. */
static void add_base64(
	struct scan *s, uint16_t owner, struct slice v, unsigned skip, const char *digits)
{
	struct pattern p = {.owner = owner};
	size_t first_bit = skip == 0 ? 0 : skip == 1 ? 4 : 2;

	for (size_t bit = first_bit; bit + 6 <= v.n * 8 && p.n < SCAN_MAX_LOOK; bit += 6) {
		unsigned two =
			(unsigned)v.p[bit / 8] << 8 | (bit / 8 + 1 < v.n ? v.p[bit / 8 + 1] : 0);
		char c = digits[two >> (10 - bit % 8) & 63];

		put_text(&p, &c, 1);
	}
	add_scan(s, &p);
	explicit_bzero(&p, sizeof(p));
}

static void add_forms(struct scan *s, uint16_t owner, struct slice v)
{
	static const char low[] = HEX_LOWER, high[] = HEX_UPPER;

	add_plain(s, owner, v);
	add_hex(s, owner, v, low, false, true);
	add_hex(s, owner, v, high, false, true);
	add_hex(s, owner, v, low, true, true);
	add_hex(s, owner, v, high, true, true);
	add_hex(s, owner, v, high, true, false);
	for (unsigned skip = 0; skip < 3; skip++) {
		add_base64(s, owner, v, skip, B64_DIGITS);
		add_base64(s, owner, v, skip, B64_LETTERS "-_");
	}
}

static void copy_owner(struct scan_owner *o, const struct vault_meta *meta)
{
	memcpy(o->name, meta->name, sizeof(o->name));
	memcpy(o->scope, meta->scope, sizeof(o->scope));
}

struct scan *scan_new(const struct book *b, const char *control, struct err *err)
{
	static const uint8_t zeros[4];
	struct scan *s = xcalloc(1, sizeof(*s));

	if (secret_init(&s->patterns, (b->n * MAX_FORMS + 2) * sizeof(struct pattern), err) < 0 ||
		secret_init(&s->window, SCAN_MAX_LOOK + SCAN_WINDOW, err) < 0) {
		scan_free(s);
		return NULL;
	}
	s->n_owners = b->n;
	for (size_t i = 0; i < b->n; i++) {
		copy_owner(&s->owners[i], &b->list[i]->meta);
		add_forms(s, (uint16_t)i, secret_slice(&b->list[i]->value));
	}
	add_plain(s, SCAN_CONTROL, slice_from_str(control));
	s->skips_zeros = s->first[hash_of(zeros)] == 0;
	return s;
}

void scan_free(struct scan *s)
{
	if (!s)
		return;
	secret_done(&s->patterns);
	secret_done(&s->window);
	free(s);
}

uint8_t *scan_room(struct scan *s, size_t *ret_n)
{
	*ret_n = SCAN_WINDOW;
	return s->window.p + s->carry;
}

static void look_scan(struct scan *s, size_t i, size_t all)
{
	const uint8_t *p = s->window.p + i;

	/* what ends inside the carry was counted the last time */
	for (uint16_t at = s->first[hash_of(p)]; at; at = pattern_at(s, at - 1)->next) {
		const struct pattern *q = pattern_at(s, at - 1);

		if (i + q->n > s->carry && i + q->n <= all && memcmp(q->bytes, p, q->n) == 0)
			s->owners[q->owner].times++;
	}
}

void scan_feed(struct scan *s, size_t n)
{
	size_t all = s->carry + n, keep = MIN(all, SCAN_MAX_LOOK - 1), i = 0;
	uint64_t eight;

	while (i + SCAN_MIN_LOOK <= all) {
		memcpy(&eight, s->window.p + i, sizeof(eight));
		/* most of a machine's memory: none of the first five places begins anything */
		if (eight == 0 && s->skips_zeros) {
			i += 5;
			continue;
		}
		if (s->first[hash_of(s->window.p + i)])
			look_scan(s, i, all);
		i++;
	}
	memmove(s->window.p, s->window.p + all - keep, keep);
	s->carry = keep;
	s->n_bytes += n;
}

void scan_skip(struct scan *s)
{
	s->carry = 0;
}
