/* SPDX-License-Identifier: Apache-2.0 */
#include "jedit.h"

#include <errno.h>
#include "lib/base/json/jtext.h"

static bool is_at(struct slice t, size_t at, char c)
{
	return at < t.n && t.p[at] == (uint8_t)c;
}

bool jedit_is(struct slice t, struct jedit v, char first)
{
	return is_at(t, v.at, first);
}

int jedit_check(struct slice t, struct jedit *ret)
{
	ret->at = jtext_skip(t, 0);
	ret->end = is_at(t, ret->at, '{') ? jtext_end(t, ret->at) : 0;
	return ret->end == 0 || jtext_skip(t, ret->end) != t.n ? -EBADMSG : 0;
}

/* Finds the value at or after `at`, after blanks and one comma; false at the end of v. */
static bool find_value(struct slice t, struct jedit v, size_t at, struct jedit *ret)
{
	at = jtext_skip(t, at);
	if (is_at(t, at, ','))
		at = jtext_skip(t, at + 1);
	if (at >= v.end - 1)
		return false;
	ret->at = at;
	ret->end = jtext_end(t, at);
	return ret->end > 0;
}

bool jedit_next(struct slice t, struct jedit v, struct jedit *item)
{
	if (!jedit_is(t, v, '['))
		return false;
	return find_value(t, v, item->end ? item->end : v.at + 1, item);
}

bool jedit_member(struct slice t, struct jedit v, const char *name, struct jedit *ret)
{
	struct jedit key, value;
	bool found = false;
	size_t at = v.at + 1;

	if (!jedit_is(t, v, '{'))
		return false;
	while (find_value(t, v, at, &key)) {
		/* after the colon */
		at = jtext_skip(t, key.end) + 1;
		if (!find_value(t, v, at, &value))
			return false;
		at = value.end;
		if (!slice_eq_str(slice_of(t.p + key.at + 1, key.end - key.at - 2), name))
			continue;
		*ret = value;
		found = true;
	}
	return found;
}

int jedit_string(struct slice t, struct jedit v, char *buf, size_t size)
{
	ssize_t n;

	if (!jedit_is(t, v, '"'))
		return -EINVAL;
	n = jtext_decode(slice_of(t.p + v.at + 1, v.end - v.at - 2), (uint8_t *)buf, size - 1);
	if (n < 0)
		return n == -EMSGSIZE ? -ENAMETOOLONG : -EINVAL;
	buf[n] = '\0';
	return memchr(buf, 0, (size_t)n) ? -EINVAL : 0;
}

void jedit_quote(FILE *out, const char *s)
{
	fputc('"', out);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if ((unsigned char)*s < ' ')
			fprintf(out, "\\u%04x", (unsigned char)*s);
		else
			fputc(*s, out);
	}
	fputc('"', out);
}
