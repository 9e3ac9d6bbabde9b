#include "policy_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/base/paths.h"

int policy_file_load(struct rules *ret, struct problem *p)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "policy"), *text = NULL;
	size_t n;
	int r = file_load(path, RULES_MAX_BYTES, &text, &n, &p->err);

	if (r == -ENOENT) {
		(void)err_set(&p->err, r, "there is no policy yet, so nothing is allowed");
		return problem_hint(p, r, "sbx policy set-default balanced");
	}
	if (r == 0)
		r = rules_decode(slice_of(text, n), path, ret, &p->err);
	if (r < 0) {
		(void)err_wrap(&p->err, r, "the policy cannot be read, so nothing is allowed");
		return problem_hint(p, r, "sbx policy import FILE, or sbx policy reset");
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
			return err_errno(err, -errno, "reading stdin");
		n += (size_t)k;
		if (n > RULES_MAX_BYTES)
			return err_set(
				err, -E2BIG, "stdin has more than %u bytes", RULES_MAX_BYTES);
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
	return r == -ENOENT ? err_set(&p->err, r, "there is no file '%s'", path) : r;
}

/* ---- differences ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char **sorted_lines(const struct rules *rules)
{
	char **line = xcalloc(rules->n + 1, sizeof(*line));

	for (size_t i = 0; i < rules->n; i++)
		line[i] = rule_print(&rules->rule[i], RULE_PRINT_PLAIN);
	qsort(line, rules->n, sizeof(*line), by_text);
	return line;
}

static void keep(char ***list, size_t *n_shown, size_t *n, const char *line)
{
	if (!*list)
		*list = xcalloc(POLICY_DIFF_LINES, sizeof(**list));
	if (*n_shown < POLICY_DIFF_LINES)
		(*list)[(*n_shown)++] = xstrdup(line);
	++*n;
}

static void free_lines(char **line, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(line[i]);
	free(line);
}

void policy_diff_make(const struct rules *old, const struct rules *new, struct policy_diff *ret)
{
	char **a = sorted_lines(old), **b = sorted_lines(new);
	size_t i = 0, k = 0;

	*ret = (struct policy_diff){0};
	while (i < old->n || k < new->n) {
		int order = i == old->n ? 1 : k == new->n ? -1 : strcmp(a[i], b[k]);

		if (order < 0)
			keep(&ret->removed, &ret->n_shown_removed, &ret->n_removed, a[i]);
		if (order > 0)
			keep(&ret->added, &ret->n_shown_added, &ret->n_added, b[k]);
		i += order <= 0;
		k += order >= 0;
	}
	free_lines(a, old->n);
	free_lines(b, new->n);
}

void policy_diff_done(struct policy_diff *d)
{
	free_lines(d->added, d->n_shown_added);
	free_lines(d->removed, d->n_shown_removed);
	*d = (struct policy_diff){0};
}
