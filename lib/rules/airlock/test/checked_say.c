/* SPDX-License-Identifier: Apache-2.0 */
/* For the oracles: reads `KIND PATH OLD-BYTES NEW-BYTES\n` and the two texts, again and again, and
 * answers each with `RESULT BYTES\n` and a text: what is to be written, or the reason. KIND is
 * git, claude or diff. */
#include <stdio.h>
#include <string.h>
#include "lib/base/mem.h"
#include "lib/rules/airlock/claude_settings.h"
#include "lib/rules/airlock/gitconfig.h"
#include "lib/rules/airlock/textdiff.h"

#define MAX_TEXT (8u << 20)

struct text_pair {
	char kind[16], path[256];
	char *old, *new;
	size_t n_old, n_new;
};

struct text_sink {
	char *p;
	size_t n;
};

static void put_into(void *arg, const char *text, size_t n)
{
	struct text_sink *sink = arg;

	sink->p = xrealloc(sink->p, sink->n + n + 1);
	if (n)
		memcpy(sink->p + sink->n, text, n);
	sink->n += n;
}

static bool read_pair(struct text_pair *p)
{
	char line[320];

	if (!fgets(line, sizeof(line), stdin) ||
		sscanf(line, "%15s %255s %zu %zu", p->kind, p->path, &p->n_old, &p->n_new) != 4 ||
		p->n_old > MAX_TEXT || p->n_new > MAX_TEXT)
		return false;
	p->old = xmalloc(p->n_old + 1);
	p->new = xmalloc(p->n_new + 1);
	return fread(p->old, 1, p->n_old, stdin) == p->n_old &&
	       fread(p->new, 1, p->n_new, stdin) == p->n_new;
}

static int answer_pair(const struct text_pair *p, struct text_sink *ret)
{
	struct gitconfig_place place = {.path = p->path};
	struct textdiff_side a = {"a", slice_of(p->old, p->n_old)},
			     b = {"b", slice_of(p->new, p->n_new)};
	struct err err = {0};
	int r;

	if (!strcmp(p->kind, "diff"))
		return (int)textdiff_write(&a, &b, put_into, ret);
	if (!strcmp(p->kind, "claude"))
		r = claude_settings_check(
			p->old, p->n_old, p->new, p->n_new, &ret->p, &ret->n, &err);
	else
		r = gitconfig_check(
			p->old, p->n_old, p->new, p->n_new, &place, &ret->p, &ret->n, &err);
	if (r < 0)
		put_into(ret, err.text, strlen(err.text));
	return r;
}

int main(void)
{
	struct text_pair p;

	while (read_pair(&p)) {
		struct text_sink sink = {0};
		int r = answer_pair(&p, &sink);

		(void)printf("%d %zu\n", r, sink.n);
		(void)fwrite(sink.p, 1, sink.n, stdout);
		(void)fflush(stdout);
		free(sink.p);
		free(p.old);
		free(p.new);
	}
	return 0;
}
