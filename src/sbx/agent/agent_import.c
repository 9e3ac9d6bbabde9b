/* SPDX-License-Identifier: Apache-2.0 */
#include "agent_import.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/rules/agent/clean.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/spec/spec.h"
#include "src/sbx/session/session.h"

void import_done(struct import *im)
{
	for (size_t i = 0; i < im->n; i++) {
		free(im->v[i].path);
		free(im->v[i].text);
	}
	im->n = 0;
}

static void PRINTF_LIKE(2, 3) tell(const struct import *im, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (im->tell)
		im->tell(im->arg, line);
}

static void leave_import(struct import *im, const char *path, const char *why)
{
	im->n_left++;
	tell(im, "  skip   %s: %s", path, why);
}

static struct import_file *find_import(struct import *im, const char *path)
{
	for (size_t i = 0; i < im->n; i++)
		if (strcmp(im->v[i].path, path) == 0)
			return &im->v[i];
	return NULL;
}

/* ---- reading ---- */

/* Never through a symlink, and never out of the home. */
static int open_below(int home, const char *path)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, home, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

struct left_out {
	char text[300];
};

static void on_left_out(void *arg, const char *key)
{
	struct left_out *l = arg;
	size_t n = strlen(l->text);

	(void)snprintf(l->text + n, sizeof(l->text) - n, "%s%.60s", n ? ", " : "", key);
}

static size_t drops_of(const struct agent *a, const char *path, const char *drop[AGENT_MAX_LIST])
{
	size_t n = 0;

	for (size_t i = 0; i < a->drop.n; i++)
		if (strcmp(a->drop.v[i].a, path) == 0)
			drop[n++] = a->drop.v[i].b;
	return n;
}

static int read_text(int fd, char **ret, size_t *ret_n)
{
	char *text = xmalloc(CLEAN_MAX_BYTES + 2);
	ssize_t n = fd_read_full(fd, text, CLEAN_MAX_BYTES + 1);

	if (n < 0) {
		free(text);
		return (int)n;
	}
	text[n] = '\0';
	*ret = text;
	*ret_n = (size_t)n;
	return 0;
}

static void take_file(struct import *im, const struct agent *a, const char *path, int fd)
{
	const char *drop[AGENT_MAX_LIST];
	size_t n_drop = drops_of(a, path, drop), n = 0;
	AUTO_FREE char *text = NULL, *clean = NULL;
	struct left_out left = {0};
	struct err err = {0};
	int r = read_text(fd, &text, &n);

	if (r < 0) {
		leave_import(im, path, strerror(-r));
		return;
	}
	if (clean_settings(
		    path, slice_of(text, n), drop, n_drop, on_left_out, &left, &clean, &err) < 0) {
		leave_import(im, path, err.text);
		return;
	}
	if (im->n == IMPORT_MAX_FILES) {
		leave_import(im, path, "too many files");
		return;
	}
	tell(im, "  copy   %s%s%s%s", path, left.text[0] ? " (removed: " : "", left.text,
		left.text[0] ? ")" : "");
	im->v[im->n++] = (struct import_file){.path = xstrdup(path), .text = TAKE(clean)};
}

/* Directories that are still to be searched: a list instead of recursion. */
struct todo {
	char *v[IMPORT_MAX_FILES];
	size_t n;
};

static void todo_done(struct todo *t)
{
	while (t->n)
		free(t->v[--t->n]);
}

static size_t depth_of(const char *path)
{
	size_t n = 0;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

static void take_folder(struct import *im, struct todo *todo, const char *path, int fd)
{
	struct dirent **found = NULL;
	char self[64];
	int n;

	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	n = scandir(self, &found, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		const char *name = found[i]->d_name;

		if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
			if (todo->n < IMPORT_MAX_FILES)
				todo->v[todo->n++] = xasprintf("%s/%s", path, name);
			else
				leave_import(im, path, "too many files");
		}
		free(found[i]);
	}
	free(found);
}

static void take_path(
	struct import *im, const struct agent *a, struct todo *todo, int home, const char *path)
{
	AUTO_CLOSE int fd = -1;
	struct stat st;

	if (clean_is_secret_name(path)) {
		leave_import(im, path, "the file name is that of a credential");
		return;
	}
	fd = open_below(home, path);
	if (fd == -ENOENT)
		return;
	if (fd < 0 || fstat(fd, &st) < 0) {
		leave_import(im, path,
			fd == -ELOOP ? "is a symlink or is inside a symlinked directory"
				     : strerror(fd < 0 ? -fd : errno));
		return;
	}
	if (S_ISREG(st.st_mode))
		take_file(im, a, path, fd);
	else if (!S_ISDIR(st.st_mode))
		leave_import(im, path, "not a regular file");
	else if (depth_of(path) >= IMPORT_MAX_DEPTH)
		leave_import(im, path, "too many directory levels");
	else
		take_folder(im, todo, path, fd);
}

int import_collect(struct import *im, const struct agent *a, const char *home, struct err *err)
{
	AUTO_CLOSE int fd = open(home, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(err, -errno, "cannot open your home directory '%s'", home);
	for (size_t i = 0; i < a->import.n; i++) {
		CLEANUP(todo_done) struct todo todo = {0};
		size_t n = strlen(a->import.v[i].a);
		bool folder = a->import.v[i].a[n - 1] == '/';

		todo.v[todo.n++] = xstrndup(a->import.v[i].a, folder ? n - 1 : n);
		while (todo.n) {
			AUTO_FREE char *path = todo.v[--todo.n];

			take_path(im, a, &todo, fd, path);
		}
	}
	return 0;
}

/* ---- seeds ---- */

/* All lines of the agent's file for one path, filled in; NULL for an earlier path. */
static char *whole_seed(
	const struct agent_list *l, size_t first, const char *workspace, const char *id)
{
	char *text = xstrdup("");

	for (size_t i = 0; i < l->n; i++) {
		AUTO_FREE char *old = text, *line = NULL;

		if (strcmp(l->v[i].a, l->v[first].a) != 0) {
			text = TAKE(old);
			continue;
		}
		if (i < first)
			return NULL;
		line = agent_fill_seed(l->v[i].b, workspace, id);
		text = xasprintf("%s%s\n", old, line);
	}
	return text;
}

static char *merge_json(const char *have, const char *seed)
{
	json_t *a = json_loads(have, 0, NULL), *b = json_loads(seed, 0, NULL);
	char *out;

	if (json_is_object(a) && json_is_object(b))
		(void)json_object_update_missing(a, b);
	out = a ? json_dumps(a, JSON_INDENT(2)) : NULL;
	json_decref(a);
	json_decref(b);
	return out ? out : xstrdup(have);
}

static bool has_line(const char *text, const char *key, size_t n)
{
	for (; text; text = strchr(text, '\n')) {
		text += *text == '\n';
		if (strncmp(text, key, n) == 0)
			return true;
		if (!*text)
			return false;
	}
	return false;
}

/* Our missing keys are put first, before any table; our tables last. */
static char *merge_toml(const char *have, const char *seed)
{
	const char *table = seed[0] == '[' ? seed : strstr(seed, "\n[");
	AUTO_FREE char *keys = table ? xstrndup(seed, (size_t)(table - seed)) : xstrdup(seed),
		       *front = xstrdup("");

	for (char *save = NULL, *line = strtok_r(keys, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save)) {
		AUTO_FREE char *old = front;

		front = has_line(have, line, strcspn(line, " =")) ? xstrdup(old)
								  : xasprintf("%s%s\n", old, line);
	}
	return xasprintf("%s%s%s", front, have, table ? table : "");
}

void import_seed(
	struct import *im, const struct agent_list *seeds, const char *workspace, const char *id)
{
	for (size_t i = 0; i < seeds->n; i++) {
		AUTO_FREE char *seed = whole_seed(seeds, i, workspace, id), *had = NULL;
		struct import_file *f = find_import(im, seeds->v[i].a);

		if (!seed || (!f && im->n == IMPORT_MAX_FILES))
			continue;
		if (!f) {
			im->v[im->n++] = (struct import_file){
				.path = xstrdup(seeds->v[i].a), .text = TAKE(seed)};
			continue;
		}
		had = f->text;
		if (str_ends(f->path, ".json"))
			f->text = merge_json(had, seed);
		else if (str_ends(f->path, ".toml"))
			f->text = merge_toml(had, seed);
		else
			f->text = TAKE(had);
	}
}

/* ---- writing ---- */

int import_write(const struct import *im, const char *ref, bool over, struct problem *p)
{
	static const char script[] =
		"set -eu; umask 077; [ \"$2\" = over ] || [ ! -e \"$1\" ] || exit 0; "
		"mkdir -p \"$(dirname \"$1\")\"; cat > \"$1\"";

	for (size_t i = 0; i < im->n; i++) {
		AUTO_FREE char *path = xasprintf(SPEC_HOME "/%s", im->v[i].path);
		const char *argv[] = {
			"sh", "-c", script, "write", path, over ? "over" : "keep", NULL};
		struct guest_run g = {
			.ref = ref, .argv = argv, .in = slice_from_str(im->v[i].text)};
		int r = guest_run(&g, p);

		free(g.out);
		if (r < 0)
			return err_wrap(&p->err, r, "cannot write %s in the sandbox", path);
	}
	return 0;
}
