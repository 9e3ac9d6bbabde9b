/* SPDX-License-Identifier: Apache-2.0 */
#include "canon.h"

#include <errno.h>
#include "lib/base/hex.h"

static bool is_path_byte(uint8_t c)
{
	return c > 0x20 && c < 0x7f && c != '#' && c != '"' && c != '<' && c != '>' && c != '\\' &&
	       c != '`';
}

static bool is_unreserved(int c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

/* The byte at the front of *s, escapes decoded, and *s moves after it. -1 for a broken escape. */
static int next_byte(struct slice *s, bool *ret_coded)
{
	int hi, lo;

	*ret_coded = s->p[0] == '%';
	if (!*ret_coded) {
		int c = s->p[0];

		*s = canon_text_cut(*s, 1, s->n);
		return c;
	}
	if (s->n < 3)
		return -1;
	hi = hex_digit(s->p[1]);
	lo = hex_digit(s->p[2]);
	*s = canon_text_cut(*s, 3, s->n);
	return hi < 0 || lo < 0 ? -1 : hi << 4 | lo;
}

/* The next segment, without its slash; *path moves after it and is NULL at the end. */
static struct slice next_segment(struct slice *path)
{
	struct slice rest = canon_text_cut(*path, 1, path->n);
	const uint8_t *slash = rest.n ? memchr(rest.p, '/', rest.n) : NULL;
	size_t n = slash ? (size_t)(slash - rest.p) : rest.n;

	*path = slash ? canon_text_cut(rest, n, rest.n) : (struct slice){0};
	return canon_text_cut(rest, 0, n);
}

/* 1 for ".", 2 for "..", else 0; escapes decoded, and text after a ";" ignored. */
static int count_dots(struct slice segment, bool *ret_semicolon)
{
	int dots = 0;
	bool coded;

	*ret_semicolon = false;
	while (segment.n > 0) {
		int c = next_byte(&segment, &coded);

		if (c == ';' && dots > 0) {
			*ret_semicolon = true;
			return dots;
		}
		if (c != '.' || dots == 2)
			return 0;
		dots++;
	}
	return dots;
}

static int check_depth(struct slice path)
{
	int depth = 0;
	bool semicolon;

	while (path.p) {
		struct slice segment = next_segment(&path);
		int dots = count_dots(segment, &semicolon);

		if (dots == 2)
			depth--;
		else if (dots == 0 && segment.n > 0)
			depth++;
		if (depth < 0)
			return -EINVAL;
	}
	return 0;
}

int canon_check_path(struct slice path)
{
	struct slice rest = path;
	bool coded;

	if (path.n == 0 || path.p[0] != '/')
		return -EINVAL;
	for (size_t i = 0; i < path.n; i++)
		if (!is_path_byte(path.p[i]) || path.p[i] == '?')
			return -EINVAL;
	while (rest.n > 0)
		if (next_byte(&rest, &coded) <= 0)
			return -EINVAL;
	return check_depth(path);
}

int canon_check_query(struct slice query)
{
	for (size_t i = 0; i < query.n; i++)
		if (!is_path_byte(query.p[i]))
			return -EINVAL;
	return 0;
}

static unsigned int copy_segment(struct wr *out, struct slice segment)
{
	unsigned int odd = 0;
	bool coded;

	while (segment.n > 0) {
		int c = next_byte(&segment, &coded);

		if (!coded || is_unreserved(c)) {
			wr_u8(out, (uint8_t)c);
			odd |= coded ? CANON_ODD_CODED_ASCII : 0;
			continue;
		}
		hex_put_percent(out, (uint8_t)c);
		odd |= c == '/' || c == '\\' ? CANON_ODD_CODED_SLASH : 0;
		odd |= c < 0x20 || c == 0x7f ? CANON_ODD_CODED_CTRL : 0;
	}
	return odd;
}

/* Back to before the last segment. */
static void drop_segment(struct wr *out)
{
	while (out->n > 0 && out->p[out->n - 1] != '/')
		out->n--;
	if (out->n > 0)
		out->n--;
}

static unsigned int add_segment(struct wr *out, struct slice segment, bool is_last)
{
	bool semicolon;
	int dots = count_dots(segment, &semicolon);
	unsigned int odd = 0;

	if (dots > 0 && !semicolon)
		odd |= CANON_ODD_DOTS;
	if (semicolon)
		odd |= CANON_ODD_SEMICOLON;
	if (segment.n == 0 && !is_last)
		odd |= CANON_ODD_SLASHES;
	if (dots == 2 && !semicolon)
		drop_segment(out);
	if ((dots == 0 || semicolon) && segment.n > 0) {
		wr_u8(out, '/');
		return odd | copy_segment(out, segment);
	}
	if (is_last)
		wr_u8(out, '/');
	return odd;
}

int canon_normal_path(
	struct slice path, struct arena *arena, struct slice *ret, unsigned int *ret_odd)
{
	uint8_t *buf = arena_alloc(arena, path.n + 1);
	struct wr out = wr_init(buf, buf ? path.n + 1 : 0);
	unsigned int odd = 0;

	if (!buf)
		return -ENOBUFS;
	if (canon_check_path(path) < 0)
		return -EINVAL;
	while (path.p) {
		struct slice segment = next_segment(&path);

		odd |= add_segment(&out, segment, !path.p);
	}
	if (wr_finish(&out) < 0)
		return -ENOBUFS;
	*ret = slice_of(buf, out.n);
	*ret_odd = odd;
	return 0;
}
