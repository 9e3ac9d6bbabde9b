/* SPDX-License-Identifier: Apache-2.0 */
#include "gitconfig.h"

#include <errno.h>
#include <stdio.h>
#include "gitconfig_internal.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/base/text/text.h"

#define MAX_COMMENT 512

/* ---- comparison ---- */

static bool is_same_section(const struct gitconfig_entry *a, const struct gitconfig_entry *b)
{
	return slice_eq(a->section, b->section) && a->has_sub == b->has_sub &&
	       slice_eq(a->sub, b->sub);
}

static bool is_same_entry(const struct gitconfig_entry *a, const struct gitconfig_entry *b)
{
	return is_same_section(a, b) && slice_eq(a->key, b->key) && a->has_value == b->has_value &&
	       slice_eq(a->value, b->value);
}

static bool has_entry(const struct gitconfig *c, const struct gitconfig_entry *e)
{
	for (size_t i = 0; i < c->n; i++)
		if (!gitconfig_is_comment(&c->entry[i]) && is_same_entry(&c->entry[i], e))
			return true;
	return false;
}

/* "section.sub.key", printable, for messages. */
static int refuse_key(const struct gitconfig_entry *e, const char *why, struct err *err)
{
	char sub[80];

	(void)snprintf(sub, sizeof(sub), "%.*s", (int)MIN(e->sub.n, sizeof(sub) - 1),
		e->sub.n ? (const char *)e->sub.p : "");
	str_make_printable(sub);
	return err_set(err, -EACCES, "%.*s%s%s.%.*s: %s", (int)MIN(e->section.n, (size_t)40),
		(const char *)e->section.p, e->has_sub ? "." : "", e->has_sub ? sub : "",
		(int)MIN(e->key.n, (size_t)40), (const char *)e->key.p, why);
}

/* The next entry from *at on that is not on the allow list; NULL at the end. */
static const struct gitconfig_entry *next_fixed(const struct gitconfig *c, size_t *at)
{
	for (; *at < c->n; (*at)++) {
		const struct gitconfig_entry *e = &c->entry[*at];

		if (!gitconfig_is_comment(e) && !gitconfig_find_rule(e))
			return &c->entry[(*at)++];
	}
	return NULL;
}

/* Entries that are not on the allow list are the same in both, in the same order. */
static int check_fixed(const struct gitconfig *old, const struct gitconfig *new, struct err *err)
{
	size_t i = 0, j = 0;

	for (;;) {
		const struct gitconfig_entry *a = next_fixed(old, &i), *b = next_fixed(new, &j);

		if (!a && !b)
			return 0;
		if (!b)
			return refuse_key(a, "key cannot be removed in a sandbox", err);
		if (!a || !is_same_entry(a, b))
			return refuse_key(b, "key cannot be set in a sandbox", err);
	}
}

static bool is_url_of_remote(const struct gitconfig_entry *e)
{
	return e->has_sub && slice_eq_str(e->section, "remote") && slice_eq_str(e->key, "url");
}

/* The new remote that has the URL of an old one, after `git remote rename`; empty: none. */
static struct slice renamed_to(
	const struct gitconfig *old, const struct gitconfig *new, struct slice remote)
{
	for (size_t i = 0; i < old->n; i++) {
		const struct gitconfig_entry *a = &old->entry[i];

		for (size_t j = 0; is_url_of_remote(a) && slice_eq(a->sub, remote) && j < new->n;
			j++) {
			const struct gitconfig_entry *b = &new->entry[j];

			if (is_url_of_remote(b) && slice_eq(a->value, b->value) &&
				gitconfig_find_rule(b) && !gitconfig_is_bound(old, b->sub))
				return b->sub;
		}
	}
	return (struct slice){0};
}

/* A branch whose remote lost its URL: git would use the name as a path. `git remote rename` makes
 * such a text for a moment, so the branch gets the new name; otherwise it loses the entry. What the
 * old text has without a URL was written on the host. */
static void repair_branch(
	struct gitconfig_entry *e, const struct gitconfig *old, const struct gitconfig *new)
{
	if (!gitconfig_is_remote_name(e) || !gitconfig_is_bound(old, e->value) ||
		gitconfig_is_bound(new, e->value))
		return;
	e->value = renamed_to(old, new, e->value);
	e->is_dropped = e->value.n == 0;
}

static int check_values(
	const struct gitconfig *old, struct gitconfig *new, const char *path, struct err *err)
{
	struct gitconfig_scene scene = {.config = new, .path = path};

	for (size_t i = 0; i < new->n; i++) {
		struct gitconfig_entry *e = &new->entry[i];

		if (gitconfig_is_comment(e))
			continue;
		scene.rule = gitconfig_find_rule(e);
		if (!scene.rule || scene.rule->accept(e, &scene))
			continue;
		if (!has_entry(old, e))
			return refuse_key(e, "value cannot be set in a sandbox", err);
		repair_branch(e, old, new);
	}
	return 0;
}

/* ---- serialisation ---- */

static void put_text(struct wr *wr, const char *s)
{
	wr_bytes(wr, slice_from_str(s));
}

static void put_header(struct wr *wr, const struct gitconfig_entry *e)
{
	put_text(wr, "[");
	wr_bytes(wr, e->section);
	if (e->has_sub) {
		put_text(wr, " \"");
		for (size_t i = 0; i < e->sub.n; i++) {
			if (e->sub.p[i] == '"' || e->sub.p[i] == '\\')
				wr_u8(wr, '\\');
			wr_u8(wr, e->sub.p[i]);
		}
		put_text(wr, "\"");
	}
	put_text(wr, "]\n");
}

/* Whether a value is read back as it is without quotes. */
static bool is_bare_value(struct slice v)
{
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] < ' ' || v.p[i] == '"' || v.p[i] == '\\' || v.p[i] == '#' ||
			v.p[i] == ';')
			return false;
	return v.n == 0 || (v.p[0] != ' ' && v.p[v.n - 1] != ' ');
}

static void put_quoted(struct wr *wr, struct slice v)
{
	static const char plain[] = "\t\n\b\"\\", escape[] = "tnb\"\\";

	put_text(wr, "\"");
	for (size_t i = 0; i < v.n; i++) {
		const char *at = memchr(plain, v.p[i], sizeof(plain) - 1);

		if (at)
			wr_u8(wr, '\\');
		wr_u8(wr, at ? (uint8_t)escape[at - plain] : v.p[i]);
	}
	put_text(wr, "\"");
}

static void put_entry(struct wr *wr, const struct gitconfig_entry *e)
{
	put_text(wr, "\t");
	wr_bytes(wr, e->key);
	if (e->has_value) {
		put_text(wr, e->value.n ? " = " : " =");
		if (is_bare_value(e->value))
			wr_bytes(wr, e->value);
		else
			put_quoted(wr, e->value);
	}
	put_text(wr, "\n");
}

static struct slice trim_end(struct slice text)
{
	while (text.n && (text.p[text.n - 1] == ' ' || text.p[text.n - 1] == '\t'))
		text.n--;
	return text;
}

/* A comment that other readers could misunderstand is left out. */
static bool is_left_out(const struct gitconfig_entry *e)
{
	struct slice text = trim_end(e->value);

	if (!gitconfig_is_comment(e))
		return e->is_dropped;
	return text.n > MAX_COMMENT || !text_is_all_plain(text) || text.p[text.n - 1] == '\\';
}

static void put_config(struct wr *wr, const struct gitconfig *c)
{
	const struct gitconfig_entry *before = NULL;

	for (size_t i = 0; i < c->n; i++) {
		const struct gitconfig_entry *e = &c->entry[i];

		if (is_left_out(e))
			continue;
		if (e->section.n && (!before || !is_same_section(before, e)))
			put_header(wr, e);
		if (gitconfig_is_comment(e)) {
			wr_bytes(wr, trim_end(e->value));
			put_text(wr, "\n");
		} else {
			put_entry(wr, e);
		}
		before = e;
	}
}

/* Escapes at most double the bytes; each entry adds a header's and a line's marks. */
static int serialise_config(
	const struct gitconfig *c, size_t text_n, char **ret, size_t *ret_len, struct err *err)
{
	size_t size = 2 * text_n + 16 * c->n + 16;
	AUTO_FREE char *buf = xmalloc(size + 1);
	struct wr wr = wr_init(buf, size);

	put_config(&wr, c);
	if (wr_finish(&wr) < 0 || wr.n > GITCONFIG_MAX_BYTES)
		return err_set(err, -E2BIG, "larger than %d bytes", GITCONFIG_MAX_BYTES);
	buf[wr.n] = '\0';
	*ret_len = wr.n;
	*ret = TAKE(buf);
	return 0;
}

int gitconfig_check(const char *old, size_t old_len, const char *new, size_t new_len,
	const struct gitconfig_place *place, char **ret, size_t *ret_len, struct err *err)
{
	AUTO_GITCONFIG struct gitconfig a = {0}, b = {0};
	int r = gitconfig_parse(slice_of(old, old_len), &a, err);

	if (r < 0)
		return err_wrap(err, r, "the present configuration");
	r = gitconfig_parse(slice_of(new, new_len), &b, err);
	if (r == 0)
		r = check_fixed(&a, &b, err);
	if (r == 0)
		r = check_values(&a, &b, place->path, err);
	return r < 0 ? r : serialise_config(&b, new_len, ret, ret_len, err);
}
