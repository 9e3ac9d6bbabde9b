/* SPDX-License-Identifier: Apache-2.0 */
#include "gitobject.h"

#include <errno.h>

/* A line "WORD VALUE" in front of *rest. */
static bool take_line(struct slice *rest, const char *word, struct slice *ret)
{
	size_t n = strlen(word);
	const uint8_t *end;

	if (rest->n <= n || memcmp(rest->p, word, n) != 0 || rest->p[n] != ' ')
		return false;
	end = memchr(rest->p, '\n', rest->n);
	if (!end)
		return false;
	*ret = slice_take(rest, (size_t)(end - rest->p));
	(void)slice_take(rest, 1);
	(void)slice_take(ret, n + 1);
	return true;
}

static bool take_oid(struct slice *rest, const char *word, struct git_oid *ret)
{
	struct slice value;

	return take_line(rest, word, &value) && gitoid_parse(value, ret);
}

static struct slice without_time(struct slice author)
{
	const uint8_t *end = author.n > 0 ? memrchr(author.p, '>', author.n) : NULL;

	return end ? slice_of(author.p, (size_t)(end - author.p) + 1) : author;
}

/* The head ends with an empty line; lines of it may go on in the next, with a space in front. */
static struct slice find_subject(struct slice rest)
{
	const uint8_t *end = rest.n > 1 ? memmem(rest.p, rest.n, "\n\n", 2) : NULL;
	struct slice message, line = {0};

	if (!end)
		return slice_of(rest.p, 0);
	message = slice_of(end + 2, rest.n - (size_t)(end + 2 - rest.p));
	while (message.n > 0 && line.n == 0)
		line = slice_trim(slice_next_line(&message));
	return line;
}

int gitcommit_parse(struct slice content, struct gitcommit *ret)
{
	struct slice rest = content, author;

	ret->n_parents = 0;
	if (!take_oid(&rest, "tree", &ret->tree))
		return -EBADMSG;
	while (rest.n >= 7 && memcmp(rest.p, "parent ", 7) == 0) {
		if (ret->n_parents == GITCOMMIT_MAX_PARENTS ||
			!take_oid(&rest, "parent", &ret->parent[ret->n_parents]))
			return -EBADMSG;
		ret->n_parents++;
	}
	if (!take_line(&rest, "author", &author))
		return -EBADMSG;
	ret->author = without_time(author);
	ret->subject = find_subject(rest);
	return 0;
}

int gittag_parse(struct slice content, struct git_oid *ret)
{
	struct slice rest = content, value;

	return take_oid(&rest, "object", ret) && take_line(&rest, "type", &value) &&
			       take_line(&rest, "tag", &value)
		       ? 0
		       : -EBADMSG;
}

/* ---- trees ---- */

void gittree_init(struct gittree *t, struct slice content)
{
	*t = (struct gittree){.rest = content};
}

static bool is_mode(uint32_t mode)
{
	return mode == GITMODE_TREE || mode == GITMODE_FILE || mode == GITMODE_GROUP ||
	       mode == GITMODE_PROGRAM || mode == GITMODE_LINK || mode == GITMODE_COMMIT;
}

/* Octal digits without a zero in front, then a space. */
static bool take_mode(struct slice *rest, uint32_t *ret)
{
	uint32_t mode = 0;

	for (unsigned i = 0; i < 7 && i < rest->n; i++) {
		uint8_t c = rest->p[i];

		if (c == ' ') {
			(void)slice_take(rest, i + 1);
			*ret = mode;
			return is_mode(mode);
		}
		if (c < '0' || c > '7' || (i == 0 && c == '0'))
			return false;
		mode = mode * 8 + (uint32_t)(c - '0');
	}
	return false;
}

static bool is_name(struct slice name)
{
	return name.n > 0 && !memchr(name.p, '/', name.n) && !slice_eq_str(name, ".") &&
	       !slice_eq_str(name, "..");
}

static int end_of(const struct gittree *t, size_t at)
{
	if (at < t->name.n)
		return t->name.p[at];
	return t->mode == GITMODE_TREE ? '/' : 0;
}

int gittree_compare(const struct gittree *a, const struct gittree *b)
{
	size_t n = MIN(a->name.n, b->name.n);
	int order = memcmp(a->name.p, b->name.p, n);

	if (order != 0)
		return order;
	if (a->name.n == b->name.n && a->mode == b->mode)
		return 0;
	return end_of(a, n) - end_of(b, n);
}

static bool take_entry(struct gittree *t)
{
	const uint8_t *nul;
	struct slice oid;

	if (!take_mode(&t->rest, &t->mode))
		return false;
	nul = t->rest.n > 0 ? memchr(t->rest.p, 0, t->rest.n) : NULL;
	if (!nul)
		return false;
	t->name = slice_take(&t->rest, (size_t)(nul - t->rest.p));
	(void)slice_take(&t->rest, 1);
	oid = slice_take(&t->rest, GITOID_BYTES);
	if (oid.n < GITOID_BYTES)
		return false;
	memcpy(t->oid.b, oid.p, GITOID_BYTES);
	return is_name(t->name);
}

int gittree_next(struct gittree *t)
{
	struct gittree before = *t;

	if (t->rest.n == 0)
		return 0;
	if (!take_entry(t))
		return -EBADMSG;
	if (before.name.n == 0)
		return 1;
	/* the same name as a file and as a directory beside each other is wrong too */
	return gittree_compare(&before, t) < 0 && !slice_eq(before.name, t->name) ? 1 : -EBADMSG;
}
