/* SPDX-License-Identifier: Apache-2.0 */
/* Both texts are first brought into one form: no white space, strings with the fewest escapes. Two
 * values are the same if these forms are. */
#include "claude_settings.h"

#include <errno.h>
#include "lib/base/json/jtext.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/base/text/text.h"

#define MAX_MEMBERS 256
#define INDENT 2

struct json_member {
	struct slice key, value; /* the key with its quotes */
};

struct json_object {
	struct json_member member[MAX_MEMBERS];
	size_t n;
};

struct rule_list {
	struct slice rule[CLAUDE_SETTINGS_MAX_RULES]; /* with quotes */
	size_t n;
};

/* ---- one form ---- */

static void put_plain_string(struct wr *wr, struct slice s)
{
	static const char raw[] = "\"\\\b\f\n\r\t", escape[] = "\"\\bfnrt";

	wr_u8(wr, '"');
	for (size_t i = 0; i < s.n; i++) {
		const char *at = memchr(raw, s.p[i], sizeof(raw) - 1);

		if (at) {
			wr_u8(wr, '\\');
			wr_u8(wr, (uint8_t)escape[at - raw]);
		} else if (s.p[i] < ' ') {
			wr_printf(wr, "\\u%04x", s.p[i]);
		} else {
			wr_u8(wr, s.p[i]);
		}
	}
	wr_u8(wr, '"');
}

static bool is_utf8(struct slice s)
{
	uint32_t v;
	size_t n;

	for (; s.n > 0; s = slice_of(s.p + n, s.n - n)) {
		n = text_character(s, &v);
		if (n == 0)
			return false;
	}
	return true;
}

/* `s` begins with a string; returns its length with the quotes, 0 if it is not a text. */
static size_t put_same_string(struct wr *wr, struct slice s, uint8_t *scratch)
{
	size_t end = jtext_end(s, 0);
	ssize_t n = end < 2 ? -1 : jtext_decode(slice_of(s.p + 1, end - 2), scratch, end);

	if (n < 0 || !is_utf8(slice_of(scratch, (size_t)n)))
		return 0;
	put_plain_string(wr, slice_of(scratch, (size_t)n));
	return end;
}

/* Whether the text is one object and nothing else. */
static bool is_object_text(struct slice text)
{
	size_t at = jtext_skip(text, 0), end;

	if (at == text.n || text.p[at] != '{')
		return false;
	end = jtext_end(text, at);
	return end && jtext_skip(text, end) == text.n;
}

/* The form is never longer than the text. *buf belongs to the caller. */
static int make_form(struct slice text, char **buf, struct slice *ret, struct err *err)
{
	AUTO_FREE uint8_t *scratch = xmalloc(text.n + 1);
	struct wr wr;

	if (text.n > CLAUDE_SETTINGS_MAX_BYTES)
		return err_set(err, -E2BIG, "larger than %d bytes", CLAUDE_SETTINGS_MAX_BYTES);
	if (!is_object_text(text))
		return err_set(err, -EBADMSG, "not a JSON object");
	*buf = xmalloc(text.n + 1);
	wr = wr_init(*buf, text.n);
	for (size_t at = 0; (at = jtext_skip(text, at)) < text.n;) {
		size_t n = 1;

		if (text.p[at] == '"')
			n = put_same_string(&wr, slice_of(text.p + at, text.n - at), scratch);
		else
			wr_u8(&wr, text.p[at]);
		if (n == 0 || wr.bad)
			return err_set(err, -EBADMSG, "invalid UTF-8 or escape in a string");
		at += n;
	}
	*ret = slice_of(*buf, wr.n);
	return 0;
}

/* ---- members ---- */

/* The value at *at of a form; *at is behind it. */
static struct slice take_value(struct slice form, size_t *at)
{
	size_t from = *at;

	*at = jtext_end(form, from);
	return slice_of(form.p + from, *at - from);
}

static const struct json_member *find_member(const struct json_object *o, struct slice key)
{
	for (size_t i = 0; i < o->n; i++)
		if (slice_eq(o->member[i].key, key))
			return &o->member[i];
	return NULL;
}

static bool is_key(struct slice key, const char *name)
{
	return key.n == strlen(name) + 2 && slice_eq_str(slice_of(key.p + 1, key.n - 2), name);
}

/* The key for a message, printable. */
static int refuse_member(struct slice key, const char *inside, const char *why, struct err *err)
{
	AUTO_FREE char *name = xstrndup((const char *)key.p + 1, MIN(key.n - 2, (size_t)80));

	str_make_printable(name);
	return err_set(err, -EACCES, "%s%s: %s", inside, name, why);
}

/* `form` is that of an object. */
static int read_object(struct slice form, struct json_object *ret, struct err *err)
{
	ret->n = 0;
	for (size_t at = 1; form.p[at] != '}'; at += form.p[at] == ',') {
		struct json_member m;

		m.key = take_value(form, &at);
		at++;
		m.value = take_value(form, &at);
		if (ret->n == MAX_MEMBERS)
			return err_set(err, -E2BIG, "more than %d members", MAX_MEMBERS);
		if (find_member(ret, m.key))
			return refuse_member(m.key, "", "duplicate member", err);
		ret->member[ret->n++] = m;
	}
	return 0;
}

/* An array of strings; false for anything else, and for too many. */
static bool read_rules(struct slice form, struct rule_list *ret)
{
	ret->n = 0;
	if (form.p[0] != '[')
		return false;
	for (size_t at = 1; form.p[at] != ']'; at += form.p[at] == ',') {
		if (form.p[at] != '"' || ret->n == CLAUDE_SETTINGS_MAX_RULES)
			return false;
		ret->rule[ret->n++] = take_value(form, &at);
	}
	return true;
}

static bool has_rule(const struct rule_list *l, struct slice rule)
{
	for (size_t i = 0; i < l->n; i++)
		if (slice_eq(l->rule[i], rule))
			return true;
	return false;
}

/* ---- comparison ---- */

static bool is_rules_key(struct slice key)
{
	return is_key(key, "allow") || is_key(key, "deny") || is_key(key, "ask");
}

static int check_rules(
	struct slice key, const struct rule_list *old, const struct rule_list *new, struct err *err)
{
	for (size_t i = 0; i < new->n; i++) {
		struct slice rule = new->rule[i];

		if ((rule.n > CLAUDE_SETTINGS_MAX_RULE || !text_is_all_plain(rule)) &&
			!has_rule(old, rule))
			return refuse_member(key, "permissions.", "invalid rule", err);
	}
	for (size_t i = 0; !is_key(key, "allow") && i < old->n; i++)
		if (!has_rule(new, old->rule[i]))
			return refuse_member(
				key, "permissions.", "a rule cannot be removed in a sandbox", err);
	return 0;
}

/* Compares the array allow, deny or ask. NULL: the text does not have the array. */
static int check_array(struct slice key, const struct json_member *old,
	const struct json_member *new, struct err *err)
{
	AUTO_FREE struct rule_list *a = xcalloc(1, sizeof(*a)), *b = xcalloc(1, sizeof(*b));

	if (old && new &&slice_eq(old->value, new->value))
		return 0;
	if ((old && !read_rules(old->value, a)) || (new && !read_rules(new->value, b)))
		return refuse_member(
			key, "permissions.", "not an array of strings, or too many", err);
	return check_rules(key, a, b, err);
}

/* Objects whose members must be the same, except those of one kind. */
static int check_same(const struct json_object *old, const struct json_object *new,
	const char *inside, bool (*is_free)(struct slice key), struct err *err)
{
	for (size_t i = 0; i < old->n; i++)
		if (!is_free(old->member[i].key) && !find_member(new, old->member[i].key))
			return refuse_member(old->member[i].key, inside,
				"member cannot be removed in a sandbox", err);
	for (size_t i = 0; i < new->n; i++) {
		const struct json_member *m = &new->member[i], *was = find_member(old, m->key);

		if (!is_free(m->key) && (!was || !slice_eq(was->value, m->value)))
			return refuse_member(
				m->key, inside, "member cannot be set in a sandbox", err);
	}
	return 0;
}

static bool is_permissions_key(struct slice key)
{
	return is_key(key, "permissions");
}

static int check_arrays(
	const struct json_object *old, const struct json_object *new, struct err *err)
{
	static const char *const keys[] = {"\"allow\"", "\"deny\"", "\"ask\""};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		struct slice key = slice_from_str(keys[i]);
		int r = check_array(key, find_member(old, key), find_member(new, key), err);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Compares the objects `permissions`. A text without the object counts as "{}". */
static int check_permissions(struct slice old, struct slice new, struct err *err)
{
	AUTO_FREE struct json_object *a = xcalloc(1, sizeof(*a)), *b = xcalloc(1, sizeof(*b));
	int r;

	if (slice_eq(old, new))
		return 0;
	if (old.p[0] != '{' || new.p[0] != '{')
		return err_set(err, -EACCES, "permissions: not an object");
	r = read_object(old, a, err);
	if (r == 0)
		r = read_object(new, b, err);
	if (r == 0)
		r = check_same(a, b, "permissions.", is_rules_key, err);
	return r < 0 ? r : check_arrays(a, b, err);
}

static struct slice permissions_of(const struct json_object *o)
{
	const struct json_member *m = find_member(o, slice_from_str("\"permissions\""));

	return m ? m->value : slice_from_str("{}");
}

static int check_forms(struct slice old, struct slice new, struct err *err)
{
	AUTO_FREE struct json_object *a = xcalloc(1, sizeof(*a)), *b = xcalloc(1, sizeof(*b));
	int r = read_object(old, a, err);

	if (r == 0)
		r = read_object(new, b, err);
	if (r == 0)
		r = check_same(a, b, "", is_permissions_key, err);
	return r < 0 ? r : check_permissions(permissions_of(a), permissions_of(b), err);
}

/* ---- the text to write ---- */

static void put_newline(struct wr *wr, size_t depth)
{
	wr_u8(wr, '\n');
	for (size_t i = 0; i < depth * INDENT; i++)
		wr_u8(wr, ' ');
}

/* The byte at `at` of a form, outside of a string. */
static void put_mark(struct wr *wr, struct slice form, size_t at, size_t *depth)
{
	uint8_t c = form.p[at], next = at + 1 < form.n ? form.p[at + 1] : '\0';

	if ((c == '}' || c == ']') && form.p[at - 1] != c - 2)
		put_newline(wr, --*depth);
	wr_u8(wr, c);
	/* In ASCII a closing bracket is the opening one plus two. */
	if ((c == '{' || c == '[') && next != c + 2)
		put_newline(wr, ++*depth);
	else if (c == ',')
		put_newline(wr, *depth);
	else if (c == ':')
		wr_u8(wr, ' ');
}

static int write_form(struct slice form, char **ret, size_t *ret_len, struct err *err)
{
	AUTO_FREE char *buf = xmalloc(CLAUDE_SETTINGS_MAX_BYTES + 1);
	struct wr wr = wr_init(buf, CLAUDE_SETTINGS_MAX_BYTES);
	size_t depth = 0;

	for (size_t at = 0; at < form.n && !wr.bad;) {
		if (form.p[at] == '"')
			wr_bytes(&wr, take_value(form, &at));
		else
			put_mark(&wr, form, at++, &depth);
	}
	wr_u8(&wr, '\n');
	if (wr_finish(&wr) < 0)
		return err_set(err, -E2BIG, "larger than %d bytes", CLAUDE_SETTINGS_MAX_BYTES);
	buf[wr.n] = '\0';
	*ret_len = wr.n;
	*ret = TAKE(buf);
	return 0;
}

int claude_settings_check(const char *old, size_t old_len, const char *new, size_t new_len,
	char **ret, size_t *ret_len, struct err *err)
{
	AUTO_FREE char *a_buf = NULL, *b_buf = NULL;
	struct slice a, b;
	int r = make_form(old_len ? slice_of(old, old_len) : slice_from_str("{}"), &a_buf, &a, err);

	if (r < 0)
		return err_wrap(err, r, "the present settings");
	r = make_form(slice_of(new, new_len), &b_buf, &b, err);
	if (r == 0)
		r = check_forms(a, b, err);
	return r < 0 ? r : write_form(b, ret, ret_len, err);
}
