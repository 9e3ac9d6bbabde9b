/* SPDX-License-Identifier: Apache-2.0 */
#include "pack_path.h"

#include <errno.h>
#include <strings.h>
#include "lib/base/mem.h"

#define NAME_BYTES "abcdefghijklmnopqrstuvwxyz0123456789_"
#define LITERAL_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._~!$&'()+,:@-"

static bool has_only_bytes(struct slice s, const char *bytes)
{
	for (size_t i = 0; i < s.n; i++)
		if (!s.p[i] || !strchr(bytes, s.p[i]))
			return false;
	return true;
}

static struct slice cut_end(struct slice s, size_t n)
{
	return slice_of(s.p, s.n - n);
}

/* ---- reading ---- */

static int read_name(struct slice text, struct pack_seg *ret, struct err *err)
{
	struct slice name = slice_of(text.p + 1, text.n - 2);

	ret->kind = PACK_ONE;
	if (name.n > 2 && name.p[name.n - 1] == '*' && name.p[name.n - 2] == '*') {
		ret->kind = PACK_MANY;
		name = cut_end(name, 2);
	} else if (name.n > 1 && name.p[name.n - 1] == '/') {
		ret->kind = PACK_CODED;
		name = cut_end(name, 1);
	} else if (name.n > 1 && name.p[name.n - 1] == '#') {
		ret->kind = PACK_NUMBER;
		name = cut_end(name, 1);
	}
	ret->text = name;
	return name.n > 0 && name.n <= PACK_MAX_WORD && has_only_bytes(name, NAME_BYTES)
		       ? 0
		       : err_set(err, -EINVAL, "invalid placeholder '%.*s'", (int)text.n, text.p);
}

static int read_seg(struct slice text, struct pack_seg *ret, struct err *err)
{
	if (text.n > 2 && text.p[0] == '{' && text.p[text.n - 1] == '}')
		return read_name(text, ret, err);
	if (text.n > 3 && text.p[0] == '@' && text.p[1] == '{' && text.p[text.n - 1] == '}') {
		int r = read_name(slice_of(text.p + 1, text.n - 1), ret, err);

		if (r == 0 && ret->kind != PACK_ONE)
			return err_set(
				err, -EINVAL, "invalid placeholder '%.*s'", (int)text.n, text.p);
		ret->kind = PACK_AT;
		return r;
	}
	*ret = (struct pack_seg){.kind = PACK_LITERAL, .text = text};
	if (slice_eq_str(text, "**")) {
		*ret = (struct pack_seg){.kind = PACK_MANY};
		return 0;
	}
	return has_only_bytes(text, LITERAL_BYTES) && !slice_eq_str(text, ".") &&
			       !slice_eq_str(text, "..")
		       ? 0
		       : err_set(err, -EINVAL, "invalid segment '%.*s'", (int)text.n, text.p);
}

/* A slash inside {name/} is not the end of a segment. */
static struct slice next_seg(struct slice *rest)
{
	struct slice seg;
	size_t n = 0;

	while (n < rest->n && (rest->p[n] != '/' || (n + 1 < rest->n && rest->p[n + 1] == '}')))
		n++;
	seg = slice_of(rest->p, n);
	*rest = n < rest->n ? slice_of(rest->p + n + 1, rest->n - n - 1) : slice_of(NULL, 0);
	return seg;
}

static bool is_literal_at(const struct pack_path *path, size_t i)
{
	return i < path->n && path->seg[i].kind == PACK_LITERAL && path->seg[i].text.n > 0;
}

/* What is one or more segments must be next to a word: a row must not match nearly everything. */
static int check_path(const struct pack_path *path, struct err *err)
{
	for (size_t i = 0; i < path->n; i++) {
		const struct pack_seg *s = &path->seg[i];

		if (s->kind == PACK_LITERAL && s->text.n == 0 && i + 1 < path->n)
			return err_set(err, -EINVAL, "the path has an empty segment");
		for (size_t k = 0; s->text.n && s->kind != PACK_LITERAL && k < i; k++)
			if (path->seg[k].kind != PACK_LITERAL &&
				slice_eq(path->seg[k].text, s->text))
				return err_set(err, -EINVAL, "duplicate placeholder '%.*s'",
					(int)s->text.n, s->text.p);
		if (s->kind != PACK_MANY)
			continue;
		if (path->many != i)
			return err_set(err, -EINVAL, "the path has two parts with **");
		if (s->text.n == 0 && i + 1 < path->n)
			return err_set(err, -EINVAL, "** without a name must be the last segment");
		if (s->text.n > 0 && !is_literal_at(path, i + 1) &&
			(i == 0 || !is_literal_at(path, i - 1)))
			return err_set(err, -EINVAL, "{%.*s**} must be next to a fixed segment",
				(int)s->text.n, s->text.p);
	}
	return 0;
}

int pack_path_parse(
	struct slice text, const struct pack_path *base, struct pack_path *ret, struct err *err)
{
	struct pack_seg seg[PACK_MAX_SEGS];
	struct pack_path path = {.seg = seg};
	bool is_base = base->n > 0 && slice_eq_str(text, ".");
	struct slice rest = {0};
	int r = 0;

	if (!is_base && (text.n == 0 || text.p[0] != '/'))
		return err_set(err, -EINVAL, "a path must begin with '/'");
	for (; path.n < base->n; path.n++)
		seg[path.n] = base->seg[path.n];
	if (!is_base)
		rest = slice_of(text.p + 1, text.n - 1);
	while (r == 0 && rest.p) {
		if (path.n == PACK_MAX_SEGS)
			return err_set(err, -E2BIG, "more than %d segments", PACK_MAX_SEGS);
		r = read_seg(next_seg(&rest), &seg[path.n++], err);
	}
	path.many = 0;
	while (path.many < path.n && seg[path.many].kind != PACK_MANY)
		path.many++;
	if (r == 0)
		r = check_path(&path, err);
	if (r < 0)
		return r;
	*ret = path;
	ret->seg = xcalloc(path.n, sizeof(*seg));
	memcpy(ret->seg, seg, path.n * sizeof(*seg));
	return 0;
}

char *pack_path_text(const struct pack_path *path)
{
	static const char *const before[] = {[PACK_NUMBER] = "{",
		[PACK_AT] = "@{",
		[PACK_ONE] = "{",
		[PACK_CODED] = "{",
		[PACK_MANY] = "{"};
	static const char *const after[] = {[PACK_NUMBER] = "#}",
		[PACK_AT] = "}",
		[PACK_ONE] = "}",
		[PACK_CODED] = "/}",
		[PACK_MANY] = "**}"};
	char *text = xstrdup("");

	for (size_t i = 0; i < path->n; i++) {
		const struct pack_seg *s = &path->seg[i];
		bool is_plain = s->kind == PACK_LITERAL || s->text.n == 0;
		AUTO_FREE char *old = text;

		text = xasprintf("%s/%s%.*s%s", old, is_plain ? "" : before[s->kind],
			(int)s->text.n, s->text.p ? (const char *)s->text.p : "",
			!is_plain	       ? after[s->kind]
			: s->kind == PACK_MANY ? "**"
					       : "");
	}
	return text;
}

void pack_path_done(struct pack_path *path)
{
	free(path->seg);
	*path = (struct pack_path){0};
}

/* ---- requests ---- */

bool pack_path_split(struct slice path, struct pack_parts *ret)
{
	struct slice rest = path;

	ret->n = 0;
	if (path.n == 0 || path.p[0] != '/')
		return false;
	rest = slice_of(path.p + 1, path.n - 1);
	for (;;) {
		const uint8_t *slash = rest.n ? memchr(rest.p, '/', rest.n) : NULL;
		size_t n = slash ? (size_t)(slash - rest.p) : rest.n;

		if (ret->n == PACK_MAX_PATH)
			return false;
		ret->v[ret->n++] = slice_of(rest.p, n);
		if (!slash)
			return true;
		rest = slice_of(slash + 1, rest.n - n - 1);
	}
}

static bool is_escape(struct slice s, size_t i, const char *digits)
{
	return i + 2 < s.n && s.p[i] == '%' && s.p[i + 1] == (uint8_t)digits[0] &&
	       s.p[i + 2] == (uint8_t)digits[1];
}

static bool has_escape(struct slice s, const char *digits)
{
	for (size_t i = 0; i < s.n; i++)
		if (is_escape(s, i, digits))
			return true;
	return false;
}

/* Each part between escaped slashes: not empty, not ".", not "..", and no escaped backslash. */
static bool is_coded_value(struct slice s)
{
	size_t from = 0;

	if (has_escape(s, "5C"))
		return false;
	for (size_t i = 0; i <= s.n; i++) {
		struct slice part;

		if (i < s.n && !is_escape(s, i, "2F"))
			continue;
		part = slice_of(s.p + from, i - from);
		if (part.n == 0 || slice_eq_str(part, ".") || slice_eq_str(part, ".."))
			return false;
		from = i + 3;
	}
	return true;
}

static bool begins_with_at(struct slice s)
{
	return s.n > 1 && s.p[0] == '@';
}

static bool matches_one(const struct pack_seg *seg, struct slice part, bool *exact)
{
	if (seg->kind == PACK_LITERAL) {
		if (seg->text.n != part.n ||
			strncasecmp((const char *)seg->text.p, (const char *)part.p, part.n) != 0)
			return false;
		*exact = *exact && slice_eq(seg->text, part);
		return true;
	}
	if (part.n == 0)
		return false;
	if (seg->kind == PACK_NUMBER)
		return has_only_bytes(part, "0123456789");
	if (seg->kind == PACK_CODED)
		return is_coded_value(part);
	if (seg->kind == PACK_AT && !begins_with_at(part))
		return false;
	return !has_escape(part, "2F") && !has_escape(part, "5C");
}

bool pack_path_match(const struct pack_path *path, const struct pack_parts *parts, bool *ret_exact)
{
	size_t extra = parts->n - path->n;

	*ret_exact = true;
	if (parts->n < path->n || (path->many == path->n && extra > 0))
		return false;
	for (size_t i = 0, k = 0; i < path->n; i++, k++) {
		size_t last = i == path->many ? k + extra : k;

		for (; k < last; k++)
			if (!matches_one(&path->seg[i], parts->v[k], ret_exact))
				return false;
		if (!matches_one(&path->seg[i], parts->v[k], ret_exact))
			return false;
	}
	return true;
}

static size_t find_name(const struct pack_path *path, struct slice name)
{
	for (size_t i = 0; i < path->n; i++)
		if (path->seg[i].kind != PACK_LITERAL && slice_eq(path->seg[i].text, name))
			return i;
	return path->n;
}

bool pack_path_has(const struct pack_path *path, struct slice name)
{
	return name.n > 0 && find_name(path, name) < path->n;
}

bool pack_path_value(const struct pack_path *path, const struct pack_parts *parts,
	struct slice name, struct slice *ret)
{
	size_t i = find_name(path, name), extra = parts->n - path->n;
	const struct slice *from, *to;

	if (name.n == 0 || i == path->n)
		return false;
	from = &parts->v[i > path->many ? i + extra : i];
	to = i == path->many ? from + extra : from;
	*ret = slice_of(from->p, (size_t)(to->p + to->n - from->p));
	if (path->seg[i].kind == PACK_AT)
		*ret = slice_of(ret->p + 1, ret->n - 1);
	return true;
}

/* ---- two paths ---- */

/* Some text is matched by both. */
static bool can_share(const struct pack_seg *a, const struct pack_seg *b)
{
	if (b->kind == PACK_LITERAL) {
		const struct pack_seg *swap = a;

		a = b;
		b = swap;
	}
	if (a->kind != PACK_LITERAL)
		return !(a->kind == PACK_AT && b->kind == PACK_NUMBER) &&
		       !(a->kind == PACK_NUMBER && b->kind == PACK_AT);
	if (b->kind == PACK_LITERAL)
		return a->text.n == b->text.n && strncasecmp((const char *)a->text.p,
							 (const char *)b->text.p, a->text.n) == 0;
	/* an empty last segment is matched by no placeholder */
	return a->text.n > 0 && (b->kind != PACK_NUMBER || has_only_bytes(a->text, "0123456789")) &&
	       (b->kind != PACK_AT || begins_with_at(a->text));
}

/* can[i][k]: some request is matched by the first i segments of a and the first k of b, where the
 * last one of each may be a PACK_MANY that goes on. */
bool pack_path_meets(const struct pack_path *a, const struct pack_path *b)
{
	bool can[PACK_MAX_SEGS + 1][PACK_MAX_SEGS + 1] = {{false}};

	can[0][0] = true;
	for (size_t i = 1; i <= a->n; i++)
		for (size_t k = 1; k <= b->n; k++) {
			bool stay_a = i - 1 == a->many, stay_b = k - 1 == b->many;

			can[i][k] = can_share(&a->seg[i - 1], &b->seg[k - 1]) &&
				    (can[i - 1][k - 1] || (stay_a && can[i][k - 1]) ||
					    (stay_b && can[i - 1][k]));
		}
	return can[a->n][b->n];
}

/* Whether b matches everything that this one segment of a matches. */
static bool covers_seg(const struct pack_seg *a, const struct pack_seg *b)
{
	if (a->kind == PACK_LITERAL || b->kind == PACK_LITERAL)
		return a->kind == PACK_LITERAL && can_share(a, b);
	if (b->kind == PACK_NUMBER || b->kind == PACK_AT)
		return a->kind == b->kind;
	return a->kind != PACK_CODED || b->kind == PACK_CODED;
}

/* The segment at index i, when the PACK_MANY stands for `extra` segments more. */
static const struct pack_seg *seg_at(const struct pack_path *path, size_t i, size_t extra)
{
	return &path->seg[i <= path->many ? i : MAX(path->many, i - MIN(i, extra))];
}

/* a with `n` segments in the place of its PACK_MANY. */
static bool is_within_at(const struct pack_path *a, size_t n, const struct pack_path *b)
{
	size_t total = a->many < a->n ? a->n - 1 + n : a->n, extra = total - b->n;

	if (total < b->n || (b->many == b->n && extra > 0))
		return false;
	for (size_t i = 0; i < total; i++) {
		const struct pack_seg *in_a = seg_at(a, i, total - a->n);

		if (!covers_seg(in_a, seg_at(b, i, extra)))
			return false;
	}
	return true;
}

bool pack_path_is_within(const struct pack_path *a, const struct pack_path *b)
{
	for (size_t n = 1; n <= (a->many < a->n ? b->n + 1 : 1); n++)
		if (!is_within_at(a, n, b))
			return false;
	return true;
}

static int compare_count(size_t a, size_t b)
{
	return a < b ? -1 : a > b;
}

static size_t count_literals(const struct pack_path *path)
{
	size_t n = 0;

	for (size_t i = 0; i < path->n; i++)
		n += path->seg[i].kind == PACK_LITERAL;
	return n;
}

/* The wider a placeholder, the more it counts. */
static size_t count_width(const struct pack_path *path)
{
	size_t n = 0;

	for (size_t i = 0; i < path->n; i++)
		n += path->seg[i].kind == PACK_ONE ? 1 : path->seg[i].kind == PACK_CODED ? 2 : 0;
	return n;
}

int pack_path_order(const struct pack_path *a, const struct pack_path *b)
{
	int r = compare_count(a->many < a->n, b->many < b->n);

	if (r == 0 && a->many == a->n)
		r = compare_count(a->n, b->n);
	if (r == 0)
		r = compare_count(count_literals(b), count_literals(a));
	if (r == 0)
		r = compare_count(b->n, a->n);
	return r ? r : compare_count(count_width(a), count_width(b));
}
