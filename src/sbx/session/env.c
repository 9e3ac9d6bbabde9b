/* SPDX-License-Identifier: Apache-2.0 */
#include "env.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/client/api/out_place.h"

void env_done(struct env *e)
{
	mem_free_list(e->v, e->n);
	*e = (struct env){0};
}

static bool is_name(const char *s, size_t n)
{
	if (n == 0 || isdigit((unsigned char)s[0]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '_')
			return false;
	return true;
}

static int put_env(struct env *e, size_t n_name, char *pair, struct err *err)
{
	for (size_t i = 0; i < e->n; i++)
		if (strncmp(e->v[i], pair, n_name + 1) == 0) {
			free(e->v[i]);
			e->v[i] = pair;
			return 0;
		}
	if (e->n >= ENV_MAX_VARS) {
		free(pair);
		return err_set(err, -E2BIG, "more than %d environment variables", ENV_MAX_VARS);
	}
	e->v = xrealloc(e->v, (e->n + 2) * sizeof(*e->v));
	e->v[e->n++] = pair;
	e->v[e->n] = NULL;
	return 0;
}

int env_add(struct env *e, const char *word, struct err *err)
{
	size_t n = strcspn(word, "=");
	const char *value;

	if (!is_name(word, n))
		return err_set(err, -EINVAL,
			"invalid variable '%.100s': expected NAME=VALUE or NAME", word);
	if (word[n] == '=')
		return put_env(e, n, xstrdup(word), err);
	value = getenv(word);
	return value ? put_env(e, n, xasprintf("%s=%s", word, value), err) : 0;
}

static int add_line(struct env *e, struct slice s, struct err *err)
{
	AUTO_FREE char *text = NULL;
	char *from;
	size_t n;

	if (s.n > 0 && s.p[s.n - 1] == '\r')
		s.n--;
	text = slice_dup(s);
	if (!text)
		return err_set(err, -EINVAL, "the file contains a NUL byte");
	from = text + strspn(text, " \t");
	n = strlen(from);
	if (n == 0 || from[0] == '#')
		return 0;
	/* A guest may have written the file: it must not read variables of the host. */
	if (!strchr(from, '='))
		return err_set(err, -EINVAL,
			"missing '=' in '%.100s': to pass a host variable, use -e %.100s", from,
			from);
	return env_add(e, from, err);
}

int env_add_text(struct env *e, struct slice text, const char *name, struct err *err)
{
	unsigned line = 1;

	for (; text.n > 0; line++) {
		const uint8_t *nl = memchr(text.p, '\n', text.n);
		size_t n = nl ? (size_t)(nl - text.p) : text.n;
		int r = add_line(e, slice_of(text.p, n), err);

		if (r < 0)
			return err_wrap(err, r, "%s, line %u", name, line);
		n += nl != NULL;
		text = slice_of(text.p + n, text.n - n);
	}
	return 0;
}

static int add_file(struct env *e, const char *path, struct problem *p)
{
	AUTO_FREE char *buf = xmalloc(ENV_MAX_FILE + 1);
	AUTO_CLOSE int fd = out_place_open_source(path, p);
	ssize_t n;

	if (fd < 0)
		return err_wrap(&p->err, fd, "--env-file");
	n = fd_read_full(fd, buf, ENV_MAX_FILE + 1);
	if (n < 0)
		return err_errno(&p->err, (int)n, "cannot read environment file '%s'", path);
	if (n > (ssize_t)ENV_MAX_FILE)
		return err_set(&p->err, -EFBIG, "environment file '%s' is larger than 1 MiB", path);
	return env_add_text(e, slice_of(buf, (size_t)n), path, &p->err);
}

int env_from_opts(struct env *e, const struct opt_list *files, const struct opt_list *words,
	struct problem *p)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < files->n; i++)
		r = add_file(e, files->v[i], p);
	for (size_t i = 0; r == 0 && i < words->n; i++)
		r = env_add(e, words->v[i], &p->err);
	return r;
}
