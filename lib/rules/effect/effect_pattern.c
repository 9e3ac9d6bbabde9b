/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include "effect_internal.h"
#include "effect_terms.h"
#include "lib/base/hex.h"
#include "lib/base/text/star.h"

/* ---- checking ---- */

static bool is_unreserved(uint8_t c)
{
	return isalnum(c) || (c && strchr("-._~", c));
}

/* As canon_normal_path writes it: an escape in upper case, of nothing that needs none. */
static int check_escape(struct slice s, size_t i, struct err *err)
{
	int hi = i + 2 < s.n ? hex_digit(s.p[i + 1]) : -1, lo = hi < 0 ? -1 : hex_digit(s.p[i + 2]),
	    c = hi * 16 + lo;

	if (lo < 0 || islower(s.p[i + 1]) || islower(s.p[i + 2]))
		return err_set(err, -EINVAL, "expected two upper-case hex digits after '%%'");
	if (is_unreserved((uint8_t)c) || c < 0x20 || c == 0x7f || c == '/' || c == '\\')
		return err_set(err, -EINVAL, "an escape that no normal path has: %%%.2s",
			(const char *)&s.p[i + 1]);
	return 0;
}

static int check_byte(enum effect_kind kind, struct slice s, size_t i, struct err *err)
{
	uint8_t c = s.p[i];

	if (kind == EFFECT_HTTP && c == '%')
		return check_escape(s, i, err);
	if (kind == EFFECT_HTTP && c == '?')
		return err_set(err, -EINVAL,
			"'?' begins the query: a rule names its fields with the option 'query'");
	if (c <= 0x20 || c >= 0x7f || c == ',' || strchr("?[]\\", c))
		return err_set(err, -EINVAL, "byte 0x%02x in a pattern", c);
	if (kind == EFFECT_HTTP && !is_unreserved(c) && !strchr("!$&'()*+:;=@/", c))
		return err_set(err, -EINVAL, "byte 0x%02x in a path", c);
	return 0;
}

/* A segment is plain text, has single stars, or is `**`. */
static int check_segment(struct slice s, bool is_last, bool may_be_empty, struct err *err)
{
	if (s.n == 0 && !(is_last && may_be_empty))
		return err_set(err, -EINVAL, "an empty part between two slashes");
	if (slice_eq_str(s, ".") || slice_eq_str(s, ".."))
		return err_set(err, -EINVAL, "'.' and '..' are not parts of a normal path");
	for (size_t i = 1; i < s.n && s.n > 2; i++)
		if (s.p[i] == '*' && s.p[i - 1] == '*')
			return err_set(err, -EINVAL, "'**' must be alone between slashes");
	return 0;
}

static int check_stars(struct slice s, struct err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++)
		n += s.p[i] == '*';
	return n <= 2 * EFFECT_MAX_STARS ? 0 : err_set(err, -E2BIG, "too many stars");
}

int effect_pattern_check(enum effect_kind kind, struct slice pattern, struct err *err)
{
	struct slice rest = pattern;
	int r = check_stars(pattern, err);

	if (pattern.n == 0 || pattern.n > EFFECT_MAX_PATTERN)
		return err_set(err, -EINVAL, "a pattern has 1 to %d bytes", EFFECT_MAX_PATTERN);
	if (kind == EFFECT_HTTP && pattern.p[0] != '/')
		return err_set(err, -EINVAL, "a path begins with a slash");
	for (size_t i = 0; r == 0 && i < pattern.n; i++)
		r = check_byte(kind, pattern, i, err);
	if (kind == EFFECT_HTTP)
		rest = slice_of(pattern.p + 1, pattern.n - 1);
	if (!rest.n)
		return r;
	while (r == 0 && rest.p) {
		struct slice segment = effect_cut_until(&rest, '/');

		r = check_segment(segment, !rest.p, kind == EFFECT_HTTP, err);
	}
	return r;
}

size_t effect_pattern_literal(struct slice pattern)
{
	size_t n = 0;

	for (size_t i = 0; i < pattern.n; i++) {
		if (pattern.p[i] == '*')
			return n;
		if (pattern.p[i] == '/')
			n = i + 1;
	}
	return pattern.n;
}

/* ---- matching ---- */

/* A place in a text of segments; p is NULL behind the last one. */
static bool match_segments(struct slice pattern, struct slice text, bool fold)
{
	struct slice after = {0}, again = {0};
	bool has_star = false;

	for (;;) {
		struct slice p = pattern, t = text, glob = effect_cut_until(&p, '/'), segment;

		if (pattern.p && slice_eq_str(glob, "**")) {
			if (!p.p)
				return text.p != NULL;
			has_star = true;
			pattern = after = p;
			again = text;
			continue;
		}
		if (!pattern.p && !text.p)
			return true;
		segment = effect_cut_until(&t, '/');
		if (pattern.p && text.p && star_match(glob, segment, fold)) {
			pattern = p;
			text = t;
		} else if (has_star && again.p) {
			(void)effect_cut_until(&again, '/');
			pattern = after;
			text = again;
		} else {
			return false;
		}
	}
}

bool effect_pattern_match(struct slice pattern, struct slice text, bool fold)
{
	if (!text.p)
		text = slice_from_str("");
	return match_segments(pattern, text, fold);
}
