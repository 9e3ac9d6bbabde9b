/* SPDX-License-Identifier: Apache-2.0 */
#include "effect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "effect_internal.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"

static const char *const kinds[EFFECT_KINDS] = {
	[EFFECT_HTTP] = "http", [EFFECT_GIT] = "git", [EFFECT_API] = "api"};
static const char *const git_verbs[] = {"fetch", "push", "create", "delete", "force", "tag"};

const char *effect_kind_name(enum effect_kind kind)
{
	return kinds[kind];
}

int effect_kind_find(struct slice word, enum effect_kind *ret)
{
	for (size_t i = 0; i < EFFECT_KINDS; i++)
		if (slice_eq_str(word, kinds[i])) {
			*ret = (enum effect_kind)i;
			return 0;
		}
	return -ENOENT;
}

bool effect_is_git_verb(struct slice word)
{
	for (size_t i = 0; i < ARRAY_LEN(git_verbs); i++)
		if (slice_eq_str(word, git_verbs[i]))
			return true;
	return false;
}

/* ---- printing ---- */

/* Takes the whole text, keeps the first bytes and hashes all of them. */
struct sink {
	char *buf;
	size_t n, max;	     /* n: of the whole text */
	struct sha256 *hash; /* NULL: none */
	size_t word_end;     /* from this length on bytes of the word are dropped; 0: never */
};

static void put_bytes(struct sink *s, const char *p, size_t n)
{
	if (s->word_end && s->n + n > s->word_end)
		return;
	if (s->hash)
		sha256_add(s->hash, slice_of(p, n));
	for (size_t i = 0; i < n; i++, s->n++)
		if (s->n < s->max)
			s->buf[s->n] = p[i];
}

static void put_str(struct sink *s, const char *p)
{
	put_bytes(s, p, strlen(p));
}

/* No blank, no percent sign, nothing but printable ASCII. An escape is written whole or not at
 * all. */
static void put_word(struct sink *s, struct slice word)
{
	for (size_t i = 0; i < word.n; i++) {
		uint8_t c = word.p[i];
		const char escape[3] = {'%', HEX_UPPER[c >> 4], HEX_UPPER[c & 15]};

		if (s->word_end && s->n >= s->word_end)
			return;
		if (c > 0x20 && c < 0x7f && c != '%')
			put_bytes(s, (const char *)&word.p[i], 1);
		else
			put_bytes(s, escape, sizeof(escape));
	}
}

static void put_field(struct sink *s, const char *name, struct slice value)
{
	put_str(s, " ");
	put_str(s, name);
	put_str(s, "=");
	put_word(s, value);
}

static void put_host(struct sink *s, const struct effect *e)
{
	bool v6 = e->host.n && memchr(e->host.p, ':', e->host.n);
	char port[8];

	if (v6)
		put_str(s, "[");
	put_word(s, e->host);
	if (v6)
		put_str(s, "]");
	if (e->port == EFFECT_HTTPS_PORT)
		return;
	(void)snprintf(port, sizeof(port), ":%u", e->port);
	put_str(s, port);
}

static void put_target(struct sink *s, const struct effect *e)
{
	if (e->kind != EFFECT_API)
		put_host(s, e);
	if (e->kind == EFFECT_GIT)
		put_str(s, "/");
	if (e->kind != EFFECT_HTTP)
		put_word(s, e->target);
}

/* `-` is an object that is not known; an object that is a hyphen is escaped. */
static void put_object(struct sink *s, const struct effect *e)
{
	if (slice_eq_str(e->object, "-"))
		put_str(s, "%2D");
	else if (e->object.n)
		put_word(s, e->object);
	else
		put_str(s, "-");
}

/* The first three words. */
static void put_front(struct sink *s, const struct effect *e, bool is_cut)
{
	put_str(s, e->is_unknown ? EFFECT_WORD_UNKNOWN : kinds[e->kind]);
	put_str(s, ":");
	if (e->is_unknown)
		put_str(s, kinds[e->kind]);
	s->word_end = is_cut ? s->n + EFFECT_CUT_VERB : 0;
	if (!e->is_unknown)
		put_word(s, e->verb);
	s->word_end = 0;
	put_str(s, " ");
	s->word_end = is_cut ? s->n + EFFECT_CUT_TARGET : 0;
	put_target(s, e);
	s->word_end = 0;
	put_str(s, " ");
	s->word_end = is_cut ? s->n + EFFECT_CUT_OBJECT : 0;
	put_object(s, e);
	s->word_end = 0;
}

static int compare_headers(const void *va, const void *vb)
{
	const struct effect_header *a = va, *b = vb;
	const struct slice x[] = {a->name, a->value}, y[] = {b->name, b->value};

	for (size_t i = 0; i < 2; i++) {
		size_t n = MIN(x[i].n, y[i].n);
		int r = n ? memcmp(x[i].p, y[i].p, n) : 0;

		if (r)
			return r;
		if (x[i].n != y[i].n)
			return x[i].n < y[i].n ? -1 : 1;
	}
	return 0;
}

static void put_headers(struct sink *s, const struct effect *e)
{
	struct effect_header sorted[EFFECT_MAX_HEADERS];
	size_t n = MIN(e->n_headers, (size_t)EFFECT_MAX_HEADERS);

	if (n == 0)
		return;
	memcpy(sorted, e->header, n * sizeof(sorted[0]));
	qsort(sorted, n, sizeof(sorted[0]), compare_headers);
	for (size_t i = 0; i < n; i++) {
		put_str(s, " " EFFECT_HEADER);
		put_word(s, sorted[i].name);
		put_str(s, "=");
		put_word(s, sorted[i].value);
	}
}

/* In the order of their names. */
static void put_fields(struct sink *s, const struct effect *e)
{
	put_headers(s, e);
	if (e->is_odd)
		put_str(s, " odd=yes");
	if (e->path.n)
		put_field(s, "path", e->path);
	if (e->has_query)
		put_field(s, "query", e->query);
	if (e->risk.n)
		put_field(s, "risk", e->risk);
	if (e->why.n)
		put_field(s, "why", e->why);
}

static size_t print_cut(const struct effect *e, struct slice hash, char *buf)
{
	struct sink s = {.buf = buf, .max = EFFECT_MAX_TEXT};

	put_front(&s, e, true);
	put_field(&s, "cut", hash);
	buf[s.n] = '\0';
	return s.n;
}

size_t effect_print(const struct effect *e, char *buf)
{
	struct sha256 hash;
	struct sink s = {.buf = buf, .max = EFFECT_MAX_TEXT, .hash = &hash};
	uint8_t sum[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];

	if (e->cut.n)
		return print_cut(e, e->cut, buf);
	sha256_begin(&hash);
	put_front(&s, e, false);
	put_fields(&s, e);
	if (s.n <= EFFECT_MAX_TEXT) {
		buf[s.n] = '\0';
		return s.n;
	}
	sha256_end(&hash, sum);
	hex_print(sum, sizeof(sum), hex);
	return print_cut(e, slice_from_str(hex), buf);
}

/* ---- the digest ---- */

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void effect_digest(
	const struct effect *list, size_t n, struct slice body, uint8_t ret[EFFECT_DIGEST])
{
	AUTO_FREE char *bytes = xmalloc(n * (EFFECT_MAX_TEXT + 1) + 1);
	AUTO_FREE char **text = xcalloc(n + 1, sizeof(*text));
	struct sha256 hash;

	for (size_t i = 0; i < n; i++) {
		text[i] = bytes + i * (EFFECT_MAX_TEXT + 1);
		(void)effect_print(&list[i], text[i]);
	}
	qsort(text, n, sizeof(*text), compare_texts);
	sha256_begin(&hash);
	for (size_t i = 0; i < n; i++) {
		sha256_add(&hash, slice_from_str(text[i]));
		sha256_add(&hash, slice_from_str("\n"));
	}
	sha256_add(&hash, body);
	sha256_end(&hash, ret);
}
