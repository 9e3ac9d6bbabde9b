/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list up to the first NUL, then a path. A path has the same mode whether it is judged at once or
 * directory by directory, a name that is refused has a row, and GUARD_OFF refuses nothing.
 */
#include <assert.h>
#include <string.h>
#include "lib/base/mem.h"
#include "lib/rules/airlock/autorun.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first half of the path leaves a memo, which the whole path may use. */
static void check_memo(const struct autorun_list *l, const char *path)
{
	AUTO_FREE char *half = xstrndup(path, strlen(path) / 2);
	struct autorun_memo memo = {0};
	struct autorun_match near, alone;
	size_t near_tree, alone_tree;

	autorun_find_near(l, &memo, half, GUARD_DEFAULT, &near, &near_tree);
	autorun_find_near(l, &memo, path, GUARD_DEFAULT, &near, &near_tree);
	autorun_find(l, path, GUARD_DEFAULT, &alone, &alone_tree);
	assert(near.mode == alone.mode && near.row == alone.row && near.anchor == alone.anchor &&
		near_tree == alone_tree);
}

static void check_steps(const struct autorun_list *l, const char *path)
{
	struct autorun_match whole, m = {0};
	struct autorun_place at;
	size_t tree;

	autorun_find(l, path, GUARD_DEFAULT, &whole, &tree);
	assert(tree <= strlen(path));
	assert((whole.mode > AUTORUN_ALLOW) == (whole.row != NULL));
	autorun_root(l, &at);
	for (const char *p = path; *p; p += *p == '/') {
		size_t n = strcspn(p, "/");

		autorun_match(l, &at, p, n, GUARD_DEFAULT, &m);
		autorun_enter(l, &at, p, n, &at);
		p += n;
	}
	assert(tree || (m.mode == whole.mode && m.row == whole.row && m.anchor == whole.anchor));
	assert(autorun_same(l, &at, &at, GUARD_STRICT));
	autorun_find(l, path, GUARD_OFF, &m, &tree);
	assert(m.mode <= AUTORUN_ALLOW);
	autorun_find(l, path, GUARD_REPORT, &m, &tree);
	assert(m.mode <= AUTORUN_REPORT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, 0, size);
	size_t n = end ? (size_t)(end - data) : size;
	AUTO_AUTORUN struct autorun_list *l = NULL;
	AUTO_FREE char *path = NULL;
	struct err err = {0};

	if (autorun_parse((const char *)data, n, &l, &err) < 0) {
		assert(err.text[0] && !l);
		return 0;
	}
	path = xstrndup(end ? (const char *)end + 1 : "", end ? size - n - 1 : 0);
	check_steps(l, path);
	check_memo(l, path);
	(void)!autorun_except(l, path, NULL);
	check_steps(l, path);
	return 0;
}
