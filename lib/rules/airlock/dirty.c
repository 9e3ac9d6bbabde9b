/* SPDX-License-Identifier: Apache-2.0 */
#include "dirty.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

static const char *const op_names[] = {
	[DIRTY_CREATE] = "create",
	[DIRTY_WRITE] = "write",
	[DIRTY_REMOVE] = "remove",
	[DIRTY_RENAME] = "rename",
	[DIRTY_LINK] = "link",
	[DIRTY_SYMLINK] = "symlink",
	[DIRTY_MODE] = "mode",
};
static_assert(ARRAY_LEN(op_names) == DIRTY_N_OPS, "a name for each");

static const char *const state_names[] = {
	[DIRTY_NEW] = "new",
	[DIRTY_CHANGED] = "changed",
	[DIRTY_WAS_LINK] = "was-link",
	[DIRTY_WAS_OTHER] = "was-other",
	[DIRTY_TREE] = "tree",
	[DIRTY_DENIED] = "denied",
};
static_assert(ARRAY_LEN(state_names) == DIRTY_N_STATES, "a name for each");

const char *dirty_op_name(enum dirty_op op)
{
	return (unsigned)op < DIRTY_N_OPS ? op_names[op] : "";
}

const char *dirty_state_name(enum dirty_state state)
{
	return (unsigned)state < DIRTY_N_STATES ? state_names[state] : "";
}

/* Relative, and every component a name: no "", "." and "..". */
static bool is_path(const char *path)
{
	for (const char *p = path;; p += strcspn(p, "/") + 1) {
		size_t n = strcspn(p, "/");

		if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		if (!p[n])
			return true;
	}
}

static bool is_row(const struct dirty_row *row)
{
	return row->kind <= DIRTY_MAX_KIND && (unsigned)row->op < DIRTY_N_OPS &&
	       (unsigned)row->state < DIRTY_N_STATES && row->mount[0] == '/' && is_path(row->path);
}

static bool is_plain(uint8_t c)
{
	return c > 0x20 && c < 0x7f && c != '%';
}

/* A field is never empty: "-" stands for that, and a real "-" at the start is escaped. */
static void put_field(struct wr *wr, const char *text)
{
	if (!text[0])
		wr_u8(wr, '-');
	for (size_t i = 0; text[i]; i++) {
		uint8_t c = (uint8_t)text[i];

		if (is_plain(c) && !(i == 0 && c == '-'))
			wr_u8(wr, c);
		else
			hex_put_percent(wr, c);
	}
}

int dirty_encode(struct wr *wr, const struct dirty_row *row)
{
	if (!is_row(row))
		return -EINVAL;
	wr_printf(wr, "%" PRIu64 " %u %s %s %" PRIu32 " ", row->time_ms, row->kind,
		op_names[row->op], state_names[row->state], row->copy);
	put_field(wr, row->mount);
	wr_u8(wr, ' ');
	put_field(wr, row->path);
	wr_u8(wr, ' ');
	put_field(wr, row->detail);
	wr_u8(wr, '\n');
	return wr_finish(wr);
}

/* Cuts a word off; the last one has no space after it. */
static struct slice next_word(struct slice *rest)
{
	const uint8_t *space = rest->n ? memchr(rest->p, ' ', rest->n) : NULL;
	struct slice word = slice_take(rest, space ? (size_t)(space - rest->p) : rest->n);

	if (rest->n)
		(void)slice_take(rest, 1);
	return word;
}

static bool get_number(struct slice *rest, uint64_t max, uint64_t *ret)
{
	char text[24];

	return slice_to_cstr(next_word(rest), text, sizeof(text)) == 0 &&
	       str_to_u64(text, 0, max, ret) == 0;
}

static bool get_name(struct slice *rest, const char *const *names, size_t n, unsigned *ret)
{
	struct slice word = next_word(rest);

	for (*ret = 0; *ret < n; (*ret)++)
		if (slice_eq_str(word, names[*ret]))
			return true;
	return false;
}

/* One character of a field: itself, or an escape. -1: neither. */
static int get_byte(struct slice *word)
{
	struct slice c = slice_take(word, 1), escape;
	int high, low;

	if (c.p[0] != '%')
		return is_plain(c.p[0]) ? c.p[0] : -1;
	escape = slice_take(word, 2);
	if (escape.n < 2)
		return -1;
	high = hex_digit(escape.p[0]);
	low = hex_digit(escape.p[1]);
	return high < 0 || low < 0 || high + low == 0 ? -1 : high * 16 + low;
}

static bool get_field(struct slice *rest, char *buf, size_t size)
{
	struct slice word = next_word(rest);
	size_t n = 0;

	if (word.n == 0)
		return false;
	if (slice_eq_str(word, "-"))
		word.n = 0;
	while (word.n) {
		int c = get_byte(&word);

		if (c < 0 || n + 1 >= size)
			return false;
		buf[n++] = (char)c;
	}
	buf[n] = '\0';
	return true;
}

static bool get_row(struct slice line, struct dirty_row *ret)
{
	uint64_t kind, copy;
	unsigned op, state;

	if (!get_number(&line, UINT64_MAX, &ret->time_ms) ||
		!get_number(&line, DIRTY_MAX_KIND, &kind) ||
		!get_name(&line, op_names, DIRTY_N_OPS, &op) ||
		!get_name(&line, state_names, DIRTY_N_STATES, &state) ||
		!get_number(&line, UINT32_MAX, &copy))
		return false;
	ret->kind = (unsigned)kind;
	ret->op = (enum dirty_op)op;
	ret->state = (enum dirty_state)state;
	ret->copy = (uint32_t)copy;
	return get_field(&line, ret->mount, sizeof(ret->mount)) &&
	       get_field(&line, ret->path, sizeof(ret->path)) &&
	       get_field(&line, ret->detail, sizeof(ret->detail)) && line.n == 0 && is_row(ret);
}

int dirty_next(struct slice *rest, struct dirty_row *ret)
{
	while (rest->n) {
		if (get_row(slice_next_line(rest), ret))
			return 1;
	}
	return 0;
}
