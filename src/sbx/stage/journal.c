/* SPDX-License-Identifier: Apache-2.0 */
#include "journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "words.h"

#define MAX_FILE (2ull << 30)
#define HEAD "sbx apply 1\n"
#define TAIL "end\n"
#define HOST_CHANGED 16u /* added to the kind of a step */

static void put_look(FILE *f, const struct look *l)
{
	char hex[2 * SHA256_BYTES + 1];

	hex_print(l->sha, sizeof(l->sha), hex);
	(void)fprintf(f, " %u %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " %s",
		(unsigned)l->type, (unsigned)l->mode, l->size, l->dev, l->ino, l->mtime_ns,
		l->ctime_ns, hex);
}

static void put_step(FILE *f, const struct plan_step *s)
{
	AUTO_FREE char *path = words_escape(s->path);

	(void)fprintf(f, "%u %zu", (unsigned)s->kind | (s->host_changed ? HOST_CHANGED : 0), s->ws);
	put_look(f, &s->old);
	put_look(f, &s->new);
	(void)fprintf(f, " %s\n", path);
}

int journal_write(const char *dir, const struct plan *p, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/journal", dir), *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return err_errno(err, -errno, "cannot write %s", path);
	(void)fputs(HEAD, f);
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].wanted)
			put_step(f, &p->v[i]);
	(void)fputs(TAIL, f);
	if (fclose(f) != 0)
		return err_errno(err, -errno, "cannot write %s", path);
	return file_save(path, slice_of(text, n), err);
}

static int get_look(const char **at, struct look *ret)
{
	unsigned type, mode;
	int n = 0;

	if (sscanf(*at, " %u %u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64 " %n",
		    &type, &mode, &ret->size, &ret->dev, &ret->ino, &ret->mtime_ns, &ret->ctime_ns,
		    &n) != 7 ||
		type > LOOK_OTHER || mode > 0777 || strlen(*at + n) < 2 * SHA256_BYTES ||
		hex_decode(slice_of(*at + n, 2 * SHA256_BYTES), ret->sha) < 0)
		return -EBADMSG;
	ret->type = (enum look_type)type;
	ret->mode = mode;
	*at += n + 2 * SHA256_BYTES;
	return 0;
}

static int get_step(const char *line, struct plan_step *ret)
{
	unsigned kind;
	int n = 0;

	if (sscanf(line, "%u %zu%n", &kind, &ret->ws, &n) != 2 ||
		(kind & ~HOST_CHANGED) >= PLAN_N_KINDS || ret->ws >= SPEC_MAX_WORKSPACES)
		return -EBADMSG;
	line += n;
	ret->kind = (enum plan_kind)(kind & ~HOST_CHANGED);
	ret->host_changed = kind & HOST_CHANGED;
	ret->wanted = true;
	if (get_look(&line, &ret->old) < 0 || get_look(&line, &ret->new) < 0 || *line != ' ')
		return -EBADMSG;
	ret->path = words_unescape(line + 1, strlen(line + 1));
	return ret->path ? 0 : -EBADMSG;
}

static int get_steps(char *text, struct plan *p)
{
	size_t room = 0;
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (p->n == room) {
			room = room ? room * 2 : 64;
			p->v = xrealloc(p->v, room * sizeof(*p->v));
		}
		p->v[p->n] = (struct plan_step){0};
		if (get_step(line, &p->v[p->n]) < 0)
			return -EBADMSG;
		p->n++;
	}
	return 0;
}

int journal_read(const char *dir, struct plan *ret, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/journal", dir), *text = NULL;
	AUTO_PLAN struct plan p = {0};
	size_t n = 0, head = strlen(HEAD), tail = strlen(TAIL);
	int r = file_load(path, MAX_FILE, &text, &n, err);

	if (r < 0)
		return r == -ENOENT ? err_set(err, r, "%s does not exist", path) : r;
	if (n < head + tail || memcmp(text, HEAD, head) != 0 || strcmp(text + n - tail, TAIL) != 0)
		return err_set(err, -EBADMSG, "%s is damaged", path);
	text[n - tail] = '\0';
	if (get_steps(text + head, &p) < 0)
		return err_set(err, -EBADMSG, "%s is damaged", path);
	*ret = p;
	p = (struct plan){0};
	return 0;
}

int journal_result(int fd, size_t step, bool skipped)
{
	char line[40];
	int n = snprintf(line, sizeof(line), "%zu %c\n", step, skipped ? 's' : 'd');

	return fd_write_all(fd, line, (size_t)n);
}

char *journal_skipped(const char *dir, size_t n)
{
	AUTO_FREE char *path = xasprintf("%s/results", dir), *text = NULL;
	char *skipped = xcalloc(n + 1, 1), *save = NULL, kind;
	size_t len = 0, step;

	if (file_load(path, MAX_FILE, &text, &len, NULL) < 0)
		return skipped;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (sscanf(line, "%zu %c", &step, &kind) == 2 && step < n)
			skipped[step] = kind == 's';
	return skipped;
}

int journal_set_done(const char *dir, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/done", dir);

	return file_save(path, slice_of("", 0), err);
}
