/* SPDX-License-Identifier: Apache-2.0 */
#include "glob.h"

#include <errno.h>

bool glob_is_pattern(struct slice label)
{
	for (size_t i = 0; i < label.n; i++)
		if (memchr("*?[]", label.p[i], 4))
			return true;
	return false;
}

static bool is_plain(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* Where the set that begins at `at` ends; 0 when it is not a proper one. */
static size_t set_end(struct slice s, size_t at)
{
	size_t i = at + 1;

	while (i < s.n && is_plain(s.p[i])) {
		if (i + 2 < s.n && s.p[i + 1] == '-' && s.p[i + 2] != ']') {
			if (!is_plain(s.p[i + 2]) || s.p[i + 2] < s.p[i])
				return 0;
			i += 2;
		}
		i++;
	}
	return i < s.n && s.p[i] == ']' && i > at + 1 ? i : 0;
}

int glob_check(struct slice pattern, struct err *err)
{
	if (pattern.n == 0)
		return err_set(err, -EINVAL, "an empty label");
	for (size_t i = 0; i < pattern.n; i++) {
		uint8_t c = pattern.p[i];

		if (c == '*' && i > 0 && pattern.p[i - 1] == '*')
			return err_set(err, -EINVAL, "'**' is only allowed as the first label");
		if (c == '[') {
			i = set_end(pattern, i);
			if (i == 0)
				return err_set(
					err, -EINVAL, "a set must look like [abc] or [a-c0-9]");
		} else if (c != '*' && c != '?' && !is_plain(c)) {
			return err_set(err, -EINVAL,
				"byte 0x%02x in a pattern: only a-z, 0-9, '-', '_', '*', '?' and "
				"sets are allowed",
				c);
		}
	}
	return 0;
}

static bool in_set(struct slice set, uint8_t c)
{
	for (size_t i = 0; i < set.n; i++) {
		if (i + 2 < set.n && set.p[i + 1] == '-') {
			if (c >= set.p[i] && c <= set.p[i + 2])
				return true;
			i += 2;
		} else if (c == set.p[i]) {
			return true;
		}
	}
	return false;
}

/* How many bytes of the pattern match c; 0: no match. */
static size_t match_one(struct slice p, size_t at, uint8_t c)
{
	size_t end;

	if (p.p[at] == '?' || p.p[at] == c)
		return 1;
	if (p.p[at] != '[')
		return 0;
	end = set_end(p, at);
	return end && in_set(slice_of(p.p + at + 1, end - at - 1), c) ? end + 1 - at : 0;
}

bool glob_match(struct slice p, struct slice s)
{
	size_t i = 0, j = 0, star = SIZE_MAX, mark = 0;

	while (j < s.n) {
		size_t n;

		if (i < p.n && p.p[i] == '*') {
			star = i++;
			mark = j;
		} else if (i < p.n && (n = match_one(p, i, s.p[j])) > 0) {
			i += n;
			j++;
		} else if (star != SIZE_MAX) {
			i = star + 1;
			j = ++mark;
		} else {
			return false;
		}
	}
	while (i < p.n && p.p[i] == '*')
		i++;
	return i == p.n;
}

static bool is_meta(uint8_t c)
{
	return c == '*' || c == '?' || c == '[' || c == ']';
}

bool glob_may_meet(struct slice a, struct slice b)
{
	if (!glob_is_pattern(a))
		return glob_match(b, a);
	if (!glob_is_pattern(b))
		return glob_match(a, b);
	/* What is written out at both beginnings, or at both ends, must agree. */
	for (size_t i = 0; i < a.n && i < b.n && !is_meta(a.p[i]) && !is_meta(b.p[i]); i++)
		if (a.p[i] != b.p[i])
			return false;
	for (size_t i = 1; i <= a.n && i <= b.n; i++) {
		uint8_t x = a.p[a.n - i], y = b.p[b.n - i];

		if (is_meta(x) || is_meta(y))
			break;
		if (x != y)
			return false;
	}
	return true;
}
