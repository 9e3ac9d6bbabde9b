/* SPDX-License-Identifier: Apache-2.0 */
#include "pack_describe.h"

#include <ctype.h>
#include "pack_fact.h"
#include "pack_path.h"

/* ---- texts ---- */

struct text {
	char *p;
	size_t n, size; /* size: without the NUL */
	bool is_cut;
};

static void add_byte(struct text *t, char c)
{
	if (t->n < t->size)
		t->p[t->n++] = c;
	else
		t->is_cut = true;
	t->p[t->n] = '\0';
}

/* An escaped slash of a {name/} as a slash, in upper case as canon_normal_path writes it. */
static size_t add_slash(struct text *t, struct slice s, size_t i)
{
	bool is_slash = i + 2 < s.n && s.p[i + 1] == '2' && s.p[i + 2] == 'F';

	add_byte(t, is_slash ? '/' : '%');
	return is_slash ? i + 2 : i;
}

static void add_path_value(struct text *t, struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] == '%')
			i = add_slash(t, s, i);
		else
			add_byte(t, (char)s.p[i]);
}

/* Text of a body: what is not printable ASCII is escaped. */
static void add_value(struct text *t, struct slice s)
{
	static const char digits[] = "0123456789ABCDEF";

	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] >= 0x20 && s.p[i] < 0x7f && s.p[i] != '%') {
			add_byte(t, (char)s.p[i]);
			continue;
		}
		add_byte(t, '%');
		add_byte(t, digits[s.p[i] >> 4]);
		add_byte(t, digits[s.p[i] & 15]);
	}
}

static enum pack_fact find_argument(const struct pack_filler *f, struct slice at,
	uint8_t buf[PACK_MAX_VALUE], struct slice *ret)
{
	static const enum pack_fact facts[] = {[GRAPHQL_ABSENT] = PACK_ABSENT,
		[GRAPHQL_KNOWN] = PACK_KNOWN,
		[GRAPHQL_UNKNOWN] = PACK_UNKNOWN};

	return facts[graphql_find_value(f->doc, f->root, at, f->vars, buf, PACK_MAX_VALUE, ret)];
}

static void add_shown(struct text *t, struct pack_filler *f, struct slice name)
{
	uint8_t buf[PACK_MAX_VALUE];
	struct slice value = {0};
	enum pack_fact found = PACK_ABSENT;

	if (f->parts && pack_path_value(&f->row->path, f->parts, name, &value)) {
		add_path_value(t, value);
		return;
	}
	for (size_t i = 0; i < f->row->n_shows; i++) {
		const struct pack_show *show = &f->row->show[i];

		if (!slice_eq(show->name, name))
			continue;
		if (show->source == PACK_FROM_PATH) {
			(void)pack_path_value(&f->row->path, f->parts, show->at, &value);
			add_path_value(t, value);
			return;
		}
		found = show->source == PACK_FROM_ARG
				? find_argument(f, show->at, buf, &value)
				: pack_fact_find(f->req, show->source, show->at, buf, &value);
	}
	if (found == PACK_KNOWN)
		add_value(t, value);
	else
		add_byte(t, '?');
	f->is_known = f->is_known && found == PACK_KNOWN;
}

static void fill_text(struct text *t, struct pack_filler *f, struct slice from)
{
	for (size_t i = 0; i < from.n; i++) {
		size_t n = 0;

		if (from.p[i] != '{') {
			add_byte(t, (char)from.p[i]);
			continue;
		}
		while (from.p[i + 1 + n] != '}')
			n++;
		add_shown(t, f, slice_of(from.p + i + 1, n));
		i += n + 1;
	}
}

static void fold_text(char *s)
{
	for (; *s; s++)
		*s = (char)tolower((unsigned char)*s);
}

void pack_describe(const struct pack *p, struct pack_filler *f, struct pack_effect *ret)
{
	const struct pack_object *object = &p->object[f->row->object];
	struct text t = {.p = ret->object, .size = PACK_MAX_OBJECT};
	struct text say = {.p = ret->say, .size = PACK_MAX_SAY};

	f->is_known = true;
	fill_text(&t, f, object->text);
	if (object->is_folded)
		fold_text(ret->object);
	if (t.is_cut || !f->is_known) {
		ret->why = t.is_cut ? "the object is too long" : "the object is not known";
		return;
	}
	ret->row = f->row;
	fill_text(&say, f, f->row->say);
	if (say.is_cut)
		memcpy(ret->say + PACK_MAX_SAY - 3, "...", 3);
}
