/* SPDX-License-Identifier: Apache-2.0 */
#include "env.h"

#include <string.h>
#include "lib/base/mem.h"

void env_done(struct env *e)
{
	mem_free_list(e->v, e->n);
	*e = (struct env){0};
}

static char **find_env(const struct env *e, const char *name, size_t n)
{
	for (size_t i = 0; i < e->n; i++)
		if (!strncmp(e->v[i], name, n) && e->v[i][n] == '=')
			return &e->v[i];
	return NULL;
}

static void put_owned(struct env *e, char *s)
{
	char **old = find_env(e, s, strcspn(s, "="));

	if (old) {
		free(*old);
		*old = s;
		return;
	}
	if (e->n + 1 >= e->room) {
		e->room = e->room ? 2 * e->room : 32;
		e->v = xrealloc(e->v, e->room * sizeof(*e->v));
	}
	e->v[e->n++] = s;
	e->v[e->n] = NULL;
}

void env_put(struct env *e, const char *assignment)
{
	put_owned(e, xstrdup(assignment));
}

void env_set(struct env *e, const char *name, const char *value)
{
	put_owned(e, xasprintf("%s=%s", name, value));
}

const char *env_get(const struct env *e, const char *name)
{
	size_t n = strlen(name);
	char **s = find_env(e, name, n);

	return s ? *s + n + 1 : NULL;
}

void env_put_all(struct env *e, char *const *assignments)
{
	for (; assignments && *assignments; assignments++)
		env_put(e, *assignments);
}
