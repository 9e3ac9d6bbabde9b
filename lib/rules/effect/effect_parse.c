/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include "effect.h"
#include "effect_internal.h"
#include "lib/base/hex.h"

/* A text on its way through the parser; `n` bytes of the copy are used. */
struct reader {
	struct effect_copy *to;
	size_t n;
};

/* The escapes undone. What is not canonical is found when the result is printed again. */
static struct slice take_word(struct reader *rd, struct slice s)
{
	uint8_t *from = rd->to->bytes + rd->n;
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		int hi = s.p[i] == '%' && i + 2 < s.n ? hex_digit(s.p[i + 1]) : -1,
		    lo = hi < 0 ? -1 : hex_digit(s.p[i + 2]);

		from[n++] = lo < 0 ? s.p[i] : (uint8_t)(hi << 4 | lo);
		i += lo < 0 ? 0 : 2;
	}
	rd->n += n;
	return slice_of(from, n);
}

static int take_kind(struct reader *rd, struct slice word)
{
	struct effect *e = &rd->to->effect;
	struct slice kind = effect_cut_until(&word, ':');

	e->is_unknown = slice_eq_str(kind, EFFECT_WORD_UNKNOWN);
	if (e->is_unknown)
		return effect_kind_find(word, &e->kind);
	e->verb = take_word(rd, word);
	return e->verb.n ? effect_kind_find(kind, &e->kind) : -EINVAL;
}

static int take_port(struct slice s, uint16_t *ret)
{
	uint32_t v = 0;

	*ret = EFFECT_HTTPS_PORT;
	if (!s.p)
		return 0;
	for (size_t i = 0; i < s.n && v <= UINT16_MAX; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return -EINVAL;
		v = v * 10 + (s.p[i] - '0');
	}
	*ret = (uint16_t)v;
	return v <= UINT16_MAX ? 0 : -EINVAL;
}

/* `HOST`, `HOST:PORT`, `[V6]` or `[V6]:PORT`. */
static int take_host(struct reader *rd, struct slice s)
{
	struct effect *e = &rd->to->effect;
	struct slice host;

	if (s.n && s.p[0] == '[') {
		s = slice_of(s.p + 1, s.n - 1);
		host = effect_cut_until(&s, ']');
		if (s.n && s.p[0] != ':')
			return -EINVAL;
		s = s.n ? slice_of(s.p + 1, s.n - 1) : slice_of(NULL, 0);
	} else {
		host = effect_cut_until(&s, ':');
	}
	e->host = take_word(rd, host);
	return e->host.n ? take_port(s, &e->port) : -EINVAL;
}

static int take_target(struct reader *rd, struct slice s)
{
	struct effect *e = &rd->to->effect;
	int r = 0;

	if (e->kind == EFFECT_HTTP)
		return take_host(rd, s);
	if (e->kind == EFFECT_GIT)
		r = take_host(rd, effect_cut_until(&s, '/'));
	e->target = take_word(rd, s);
	return r;
}

static int take_header(struct reader *rd, struct slice name, struct slice value)
{
	struct effect *e = &rd->to->effect;
	struct effect_header *h = &rd->to->header[e->n_headers];

	if (e->n_headers == EFFECT_MAX_HEADERS)
		return -EINVAL;
	*h = (struct effect_header){take_word(rd, name), take_word(rd, value)};
	e->n_headers++;
	e->header = rd->to->header;
	return 0;
}

static int take_field(struct reader *rd, struct slice word)
{
	static const size_t n_prefix = sizeof(EFFECT_HEADER) - 1;
	struct effect *e = &rd->to->effect;
	struct slice value = word, name = effect_cut_until(&value, '=');
	struct slice *to = slice_eq_str(name, "path")	 ? &e->path
			   : slice_eq_str(name, "query") ? &e->query
			   : slice_eq_str(name, "risk")	 ? &e->risk
			   : slice_eq_str(name, "why")	 ? &e->why
			   : slice_eq_str(name, "cut")	 ? &e->cut
							 : NULL;

	if (name.n > n_prefix && memcmp(name.p, EFFECT_HEADER, n_prefix) == 0)
		return take_header(rd, slice_of(name.p + n_prefix, name.n - n_prefix), value);
	if (slice_eq_str(name, "odd")) {
		e->is_odd = true;
		return 0;
	}
	if (!to)
		return -EINVAL;
	e->has_query = e->has_query || to == &e->query;
	*to = take_word(rd, value);
	return 0;
}

static bool is_hash(struct slice s)
{
	uint8_t sum[SHA256_BYTES];

	return s.n == 2 * sizeof(sum) && hex_decode(s, sum) == 0;
}

static int take_text(struct reader *rd, struct slice rest)
{
	struct effect *e = &rd->to->effect;
	struct slice object;
	int r = take_kind(rd, effect_cut_until(&rest, ' '));

	if (r == 0)
		r = take_target(rd, effect_cut_until(&rest, ' '));
	object = effect_cut_until(&rest, ' ');
	if (r == 0 && !slice_eq_str(object, "-"))
		e->object = take_word(rd, object);
	while (r == 0 && rest.p)
		r = take_field(rd, effect_cut_until(&rest, ' '));
	return r == 0 && e->cut.n && !is_hash(e->cut) ? -EINVAL : r;
}

int effect_parse(struct slice text, struct effect_copy *ret, struct err *err)
{
	struct reader rd = {.to = ret};
	char again[EFFECT_MAX_TEXT + 1];
	int r = text.n <= EFFECT_MAX_TEXT ? 0 : -EINVAL;

	ret->effect = (struct effect){0};
	if (r == 0)
		r = take_text(&rd, text);
	if (r == 0 && slice_eq(slice_of(again, effect_print(&ret->effect, again)), text))
		return 0;
	return err_set(err, -EINVAL, "not the text of an effect");
}
