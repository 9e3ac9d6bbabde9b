/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"

void policy_file_managed(struct managed *ret)
{
	*ret = (struct managed){0};
	(void)managed_refresh(ret);
}

int policy_file_load(struct rules *ret, struct problem *p)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "policy"), *text = NULL;
	size_t n;
	int r = file_load(path, RULES_MAX_BYTES, &text, &n, &p->err);

	if (r == -ENOENT) {
		(void)err_set(&p->err, r, "no network policy is set: all traffic is denied");
		return problem_hint(p, r, "sbx policy set-default balanced");
	}
	if (r == 0)
		r = rules_decode(slice_of(text, n), path, ret, &p->err);
	if (r < 0) {
		(void)err_wrap(&p->err, r, "all traffic is denied: cannot read the policy");
		return problem_hint(p, r, "sbx policy reset");
	}
	return 0;
}

static int read_stdin(char **ret_text, size_t *ret_n, struct err *err)
{
	AUTO_FREE char *text = NULL;
	size_t n = 0, room = 0;

	for (;;) {
		ssize_t k;

		if (room - n < 65536) {
			room = 2 * room + 131072;
			text = xrealloc(text, room);
		}
		k = read(STDIN_FILENO, text + n, room - n - 1);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return err_errno(err, -errno, "cannot read stdin");
		n += (size_t)k;
		if (n > RULES_MAX_BYTES)
			return err_set(
				err, -E2BIG, "stdin contains more than %u bytes", RULES_MAX_BYTES);
		if (k == 0)
			break;
	}
	*ret_text = TAKE(text);
	*ret_n = n;
	return 0;
}

int policy_file_read(const char *path, char **ret_text, size_t *ret_n, struct problem *p)
{
	int r;

	if (strcmp(path, "-") == 0)
		return read_stdin(ret_text, ret_n, &p->err);
	r = file_load(path, RULES_MAX_BYTES, ret_text, ret_n, &p->err);
	return r == -ENOENT ? err_set(&p->err, r, "file '%s' not found", path) : r;
}

/* ---- differences ---- */

/* A rule and its line, by which rules are compared. */
struct entry {
	char *line;
	const struct rule *rule;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->line, ((const struct entry *)b)->line);
}

static struct entry *sorted_entries(const struct rules *rules)
{
	struct entry *e = xcalloc(rules->n + 1, sizeof(*e));

	for (size_t i = 0; i < rules->n; i++)
		e[i] = (struct entry){
			rule_print(&rules->rule[i], RULE_PRINT_PLAIN), &rules->rule[i]};
	qsort(e, rules->n, sizeof(*e), by_text);
	return e;
}

static void free_entries(struct entry *e, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(e[i].line);
	free(e);
}

static void keep_file(char ***list, size_t *n_shown, size_t *n, const char *line)
{
	if (!*list)
		*list = xcalloc(POLICY_DIFF_LINES, sizeof(**list));
	if (*n_shown < POLICY_DIFF_LINES)
		(*list)[(*n_shown)++] = xstrdup(line);
	++*n;
}

/* Names that mean this machine or its network, not a host of the internet. */
static bool is_local(const char *name)
{
	static const char *const ends[] = {
		".localhost", ".local", ".internal", ".lan", ".home.arpa", ".intranet"};

	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (str_ends(name, ends[i]))
			return true;
	return !strchr(name, '.');
}

static bool is_wide(const struct netrule *n)
{
	const struct netrule_ports p = n->ports;
	bool usual = p.lo == p.hi && (p.lo == 0 || p.lo == 80 || p.lo == 443);

	return n->form != NETRULE_NAME || n->deep || n->n_glob || !usual || is_local(n->name);
}

/* One resource a line: a line is cut when it is shown, and a rule can have a thousand. */
static void keep_wide(struct policy_diff *d, char mark, const struct rule *rule)
{
	bool all = mark == '-'; /* what is no longer denied or asked */

	if (all == (rule->effect == RULE_ALLOW) || (!all && rule->effect != RULE_ALLOW))
		return;
	for (size_t i = 0; i < rule->n_net; i++) {
		struct rule one = *rule;
		AUTO_FREE char *line = NULL;

		if (!all && !is_wide(&rule->net[i]))
			continue;
		one.net = &rule->net[i];
		one.n_net = 1;
		one.comment = NULL;
		line = rule_print(&one, RULE_PRINT_PLAIN);
		d->wide = xrealloc(d->wide, (d->n_wide + 1) * sizeof(*d->wide));
		d->wide[d->n_wide++] = xasprintf("%c %s", mark, line);
	}
}

void policy_diff_make(const struct rules *old, const struct rules *new, struct policy_diff *ret)
{
	struct entry *a = sorted_entries(old), *b = sorted_entries(new);
	size_t i = 0, k = 0;

	*ret = (struct policy_diff){0};
	while (i < old->n || k < new->n) {
		int order = i == old->n ? 1 : k == new->n ? -1 : strcmp(a[i].line, b[k].line);

		if (order < 0) {
			keep_file(&ret->removed, &ret->n_shown_removed, &ret->n_removed, a[i].line);
			keep_wide(ret, '-', a[i].rule);
		}
		if (order > 0) {
			keep_file(&ret->added, &ret->n_shown_added, &ret->n_added, b[k].line);
			keep_wide(ret, '+', b[k].rule);
		}
		i += order <= 0;
		k += order >= 0;
	}
	free_entries(a, old->n);
	free_entries(b, new->n);
}

void policy_diff_done(struct policy_diff *d)
{
	mem_free_list(d->added, d->n_shown_added);
	mem_free_list(d->removed, d->n_shown_removed);
	mem_free_list(d->wide, d->n_wide);
	*d = (struct policy_diff){0};
}
