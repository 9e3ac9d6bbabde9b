/* SPDX-License-Identifier: Apache-2.0 */
/* The value of a part of an argument: literals, variables, defaults. */
#include <errno.h>
#include <sys/types.h>
#include "graphql_internal.h"
#include "lib/base/hex.h"
#include "lib/base/json/jtext.h"

/* ---- strings ---- */

struct out {
	uint8_t *p;
	size_t n, size;
};

static int put_byte(struct out *o, unsigned c)
{
	if (o->n == o->size)
		return -EMSGSIZE;
	o->p[o->n++] = (uint8_t)c;
	return 0;
}

static unsigned read_hex(const uint8_t *p)
{
	unsigned c = 0;

	for (size_t i = 0; i < 4; i++)
		c = c << 4 | (unsigned)hex_digit(p[i]);
	return c;
}

static int put_char(struct out *o, unsigned c)
{
	int r = 0;

	if (c < 0x80)
		return put_byte(o, c);
	if (c < 0x800)
		r = put_byte(o, 0xc0 | c >> 6);
	else if (c < 0x10000)
		r = put_byte(o, 0xe0 | c >> 12);
	else
		r = put_byte(o, 0xf0 | c >> 18);
	if (r == 0 && c >= 0x10000)
		r = put_byte(o, 0x80 | (c >> 12 & 0x3f));
	if (r == 0 && c >= 0x800)
		r = put_byte(o, 0x80 | (c >> 6 & 0x3f));
	return r < 0 ? r : put_byte(o, 0x80 | (c & 0x3f));
}

/* *i is at the backslash, and then behind the escape. */
static int put_escape(struct out *o, struct slice raw, size_t *i)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	unsigned c;

	if (raw.p[*i + 1] != 'u') {
		c = (unsigned)to[strchr(from, raw.p[*i + 1]) - from];
		*i += 2;
		return put_byte(o, c);
	}
	c = read_hex(raw.p + *i + 2);
	*i += 6;
	if (c >= 0xd800 && c < 0xdc00 && *i + 5 < raw.n && raw.p[*i] == '\\' &&
		raw.p[*i + 1] == 'u') {
		unsigned low = read_hex(raw.p + *i + 2);

		if (low < 0xdc00 || low > 0xdfff)
			return -EBADMSG;
		*i += 6;
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	}
	return c >= 0xd800 && c < 0xe000 ? -EBADMSG : put_char(o, c);
}

static ssize_t decode_string(struct slice raw, struct out *o)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < raw.n;)
		r = raw.p[i] == '\\' ? put_escape(o, raw, &i) : put_byte(o, raw.p[i++]);
	return r < 0 ? r : (ssize_t)o->n;
}

static struct slice next_line(struct slice *rest)
{
	size_t n = 0, end;
	struct slice line;

	while (n < rest->n && rest->p[n] != '\n' && rest->p[n] != '\r')
		n++;
	line = slice_of(rest->p, n);
	end = n + (n < rest->n);
	if (n + 1 < rest->n && rest->p[n] == '\r' && rest->p[n + 1] == '\n')
		end++;
	*rest = end > n ? slice_of(rest->p + end, rest->n - end) : slice_of(NULL, 0);
	return line;
}

static size_t count_blanks(struct slice line)
{
	size_t n = 0;

	while (n < line.n && (line.p[n] == ' ' || line.p[n] == '\t'))
		n++;
	return n;
}

/* The lines that count, without the common indentation of all but the first. */
struct block {
	size_t first, end, indent;
};

static struct block measure_block(struct slice raw)
{
	struct block b = {.first = SIZE_MAX, .indent = SIZE_MAX};
	struct slice rest = raw;

	for (size_t i = 0; rest.p; i++) {
		struct slice line = next_line(&rest);
		size_t blanks = count_blanks(line);

		if (blanks == line.n)
			continue;
		if (i > 0)
			b.indent = MIN(b.indent, blanks);
		b.first = MIN(b.first, i);
		b.end = i + 1;
	}
	return b;
}

static int put_line(struct out *o, struct slice line)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < line.n; i++) {
		if (line.p[i] == '\\' && i + 3 < line.n && memcmp(line.p + i + 1, "\"\"\"", 3) == 0)
			continue;
		r = put_byte(o, line.p[i]);
	}
	return r;
}

static ssize_t decode_block(struct slice raw, struct out *o)
{
	struct block b = measure_block(raw);
	struct slice rest = raw;
	int r = 0;

	for (size_t i = 0; r == 0 && rest.p && i < b.end; i++) {
		struct slice line = next_line(&rest);
		size_t cut = i > 0 ? MIN(b.indent, line.n) : 0;

		if (i < b.first)
			continue;
		if (i > b.first)
			r = put_byte(o, '\n');
		if (r == 0)
			r = put_line(o, slice_of(line.p + cut, line.n - cut));
	}
	return r < 0 ? r : (ssize_t)o->n;
}

/* Length of the decoded text of a string or block string; -EBADMSG or -EMSGSIZE. */
static ssize_t decode_text(struct slice raw, bool is_block, uint8_t *buf, size_t size)
{
	struct out o = {.p = buf, .size = size};

	return is_block ? decode_block(raw, &o) : decode_string(raw, &o);
}

/* ---- values ---- */

struct query {
	const struct graphql *doc;
	const struct graphql_op *op;
	struct slice vars;
	uint8_t *buf;
	size_t size;
	struct slice rest; /* of the path: NAME/NAME */
	struct slice *ret;
};

static bool next_name(struct slice *rest, struct slice *ret)
{
	const uint8_t *slash = rest->n ? memchr(rest->p, '/', rest->n) : NULL;
	size_t n = slash ? (size_t)(slash - rest->p) : rest->n;

	*ret = slice_of(rest->p, n);
	*rest = slash ? slice_of(slash + 1, rest->n - n - 1) : slice_of(NULL, 0);
	return n > 0;
}

static enum graphql_fact take_text(struct query *q, ssize_t n)
{
	*q->ret = slice_of(q->buf, n < 0 ? 0 : (size_t)n);
	return n < 0 ? GRAPHQL_UNKNOWN : GRAPHQL_KNOWN;
}

static enum graphql_fact take_member(struct query *q, const struct jtext_member *m)
{
	if (m->kind == JTEXT_LITERAL && slice_eq_str(m->value, "null"))
		return GRAPHQL_ABSENT;
	if (q->rest.n || m->kind == JTEXT_OBJECT || m->kind == JTEXT_ARRAY)
		return GRAPHQL_UNKNOWN;
	if (m->kind == JTEXT_STRING)
		return take_text(
			q, jtext_decode(slice_of(m->value.p + 1, m->value.n - 2), q->buf, q->size));
	*q->ret = m->value;
	return GRAPHQL_KNOWN;
}

static enum graphql_fact find_member(struct slice text, struct slice key, struct jtext_member *ret)
{
	struct jtext_walk w = jtext_begin(text, JTEXT_MAX_DEPTH);
	enum graphql_fact found = GRAPHQL_ABSENT;
	struct jtext_member m;
	int r;

	while ((r = jtext_next(&w, &m)) == 1) {
		uint8_t buf[128];
		ssize_t n;

		if (m.depth != 1)
			continue;
		n = jtext_decode(m.key, buf, sizeof(buf));
		if (n < 0)
			return GRAPHQL_UNKNOWN;
		if (!slice_eq(slice_of(buf, (size_t)n), key))
			continue;
		if (found != GRAPHQL_ABSENT)
			return GRAPHQL_UNKNOWN;
		found = GRAPHQL_KNOWN;
		*ret = m;
	}
	return r < 0 ? GRAPHQL_UNKNOWN : found;
}

static enum graphql_fact find_in_vars(struct query *q, struct slice name)
{
	struct slice text = q->vars;

	for (unsigned depth = 0; depth < GRAPHQL_MAX_PATH; depth++) {
		struct jtext_member m = {0};
		enum graphql_fact found = find_member(text, name, &m);
		size_t from, end;

		if (found != GRAPHQL_KNOWN)
			return found;
		if (m.kind != JTEXT_OBJECT || !next_name(&q->rest, &name))
			return take_member(q, &m);
		from = (size_t)(m.value.p - text.p);
		end = jtext_end(text, from);
		text = slice_of(text.p + from, end - from);
	}
	return GRAPHQL_UNKNOWN;
}

static bool has_variable(struct slice vars, struct slice name, enum graphql_fact *ret)
{
	struct jtext_member m;

	*ret = vars.n ? find_member(vars, name, &m) : GRAPHQL_ABSENT;
	return *ret != GRAPHQL_ABSENT;
}

/* The token of the default value of a variable; 0 if it has none, UINT32_MAX if it is not defined.
 * The definitions were parsed: behind the name is a colon, the type, maybe "=". */
static uint32_t find_default(const struct query *q, struct slice name)
{
	const struct graphql *doc = q->doc;
	uint32_t end = q->op->vars ? doc->token[q->op->vars].pair : 0;

	for (uint32_t i = q->op->vars; i < end; i++) {
		if (graphql_kind(doc, i) != '$' || !slice_eq(graphql_word(doc, i + 1), name))
			continue;
		for (i += 2; i < end && graphql_kind(doc, i) != '$'; i++)
			if (graphql_kind(doc, i) == '=')
				return i + 1;
		return 0;
	}
	return UINT32_MAX;
}

/* The token of the value of a name in the brackets at `open`; 0 if it has none. */
static uint32_t find_pair(const struct graphql *doc, uint32_t open, struct slice name)
{
	uint32_t end = doc->token[open].pair;

	for (uint32_t i = open + 1; i < end; i = graphql_skip_value(doc, i + 2))
		if (slice_eq(graphql_word(doc, i), name))
			return i + 2;
	return 0;
}

static enum graphql_fact take_literal(struct query *q, uint32_t i)
{
	struct slice word = graphql_word(q->doc, i);
	uint8_t kind = graphql_kind(q->doc, i);
	size_t quotes = kind == GRAPHQL_BLOCK ? 3 : 1;

	if (kind == GRAPHQL_NAME && slice_eq_str(word, "null"))
		return GRAPHQL_ABSENT;
	if (q->rest.n || kind == '[' || kind == '{' || kind == '$')
		return GRAPHQL_UNKNOWN;
	*q->ret = word;
	if (kind == GRAPHQL_NAME || kind == GRAPHQL_NUMBER)
		return GRAPHQL_KNOWN;
	return take_text(q, decode_text(slice_of(word.p + quotes, word.n - 2 * quotes),
				    kind == GRAPHQL_BLOCK, q->buf, q->size));
}

/* Down through objects, to a literal or a variable. */
static uint32_t go_down(struct query *q, uint32_t i)
{
	struct slice name;

	while (i && graphql_kind(q->doc, i) == '{' && next_name(&q->rest, &name))
		i = find_pair(q->doc, i, name);
	return i;
}

static enum graphql_fact find_variable(struct query *q, struct slice name)
{
	uint32_t def = find_default(q, name);
	enum graphql_fact found;

	if (def == UINT32_MAX)
		return GRAPHQL_UNKNOWN;
	if (has_variable(q->vars, name, &found))
		return found == GRAPHQL_KNOWN ? find_in_vars(q, name) : found;
	def = go_down(q, def);
	return def ? take_literal(q, def) : GRAPHQL_ABSENT;
}

enum graphql_fact graphql_find_value(const struct graphql *doc, const struct graphql_root *root,
	struct slice path, struct slice vars, uint8_t *buf, size_t size, struct slice *ret)
{
	struct query q = {.doc = doc, .op = root->op, .vars = vars, .buf = buf, .size = size};
	struct slice name;
	uint32_t i;

	*ret = slice_of(NULL, 0);
	q.ret = ret;
	q.rest = slice_of(path.p + 1, path.n - 1);
	if (!root->args || !next_name(&q.rest, &name))
		return GRAPHQL_ABSENT;
	i = go_down(&q, find_pair(doc, root->args, name));
	if (i == 0)
		return GRAPHQL_ABSENT;
	return graphql_kind(doc, i) == '$' ? find_variable(&q, graphql_word(doc, i + 1))
					   : take_literal(&q, i);
}
