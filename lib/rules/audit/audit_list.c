/* SPDX-License-Identifier: Apache-2.0 */
#include "audit_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "audit_internal.h"

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Names that begin with a dot are not logs. */
static bool is_log_name(const char *name)
{
	return name[0] != '.' && strcmp(name, "heads") != 0 && strcmp(name, "cuts") != 0 &&
	       strcmp(name, "key") != 0 && strcmp(name, "key.pub") != 0 &&
	       audit_is_word(slice_from_str(name));
}

static void add_list(struct audit_list *l, const char *name)
{
	if (l->n % 64 == 0)
		l->id = xrealloc(l->id, (l->n + 64) * sizeof(*l->id));
	(void)snprintf(l->id[l->n++], sizeof(*l->id), "%s", name);
}

static bool is_kind(int dirfd, const char *name, mode_t kind)
{
	struct stat st;

	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & S_IFMT) == kind;
}

static int add_folder(const char *dir, mode_t kind, struct audit_list *l, struct err *err)
{
	AUTO_DIR DIR *d = opendir(dir);
	struct dirent *e;

	if (!d && errno == ENOENT)
		return 0;
	if (!d)
		return err_errno(err, -errno, "cannot read %s", dir);
	while (l->n < AUDIT_LIST_MAX && (e = dir_next(d)))
		if (is_log_name(e->d_name) && is_kind(dirfd(d), e->d_name, kind))
			add_list(l, e->d_name);
	return 0;
}

static void drop_twins(struct audit_list *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		if (n == 0 || strcmp(l->id[n - 1], l->id[i]) != 0)
			memmove(l->id[n++], l->id[i], sizeof(*l->id));
	l->n = n;
}

int audit_list(const char *dir, struct audit_list *ret, struct err *err)
{
	AUTO_FREE char *heads = xasprintf("%s/heads", dir), *cuts = xasprintf("%s/cuts", dir);
	AUTO_AUDIT_LIST struct audit_list l = {0};
	int r;

	r = add_folder(dir, S_IFDIR, &l, err);
	if (r == 0)
		r = add_folder(heads, S_IFREG, &l, err);
	if (r == 0)
		r = add_folder(cuts, S_IFREG, &l, err);
	if (r < 0)
		return r;
	if (l.n)
		qsort(l.id, l.n, sizeof(*l.id), by_text);
	drop_twins(&l);
	*ret = l;
	l = (struct audit_list){0};
	return 0;
}

void audit_list_free(struct audit_list *l)
{
	free(l->id);
	*l = (struct audit_list){0};
}

/* The end of a file, up to size bytes; the count. */
static ssize_t read_end(const char *path, uint8_t *buf, size_t size)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -ENOENT;
	if (st.st_size > (off_t)size && lseek(fd, st.st_size - (off_t)size, SEEK_SET) < 0)
		return -errno;
	return fd_read_full(fd, buf, size);
}

/* The last whole line that is a record, going back from the end. */
static int last_record(struct slice text, struct audit_record *ret, struct slice *ret_line)
{
	size_t end = text.n;

	while (end > 0) {
		const uint8_t *nl = memrchr(text.p, '\n', end), *before;
		size_t from;

		if (!nl)
			break;
		end = (size_t)(nl - text.p) + 1;
		before = memrchr(text.p, '\n', end - 1);
		from = before ? (size_t)(before - text.p) + 1 : 0;
		*ret_line = slice_of(text.p + from, end - from);
		if (audit_record_decode(*ret_line, ret) == 0)
			return 0;
		end = from;
	}
	return -ENOENT;
}

int audit_read_last(const char *path, uint8_t buf[AUDIT_END_BYTES], struct audit_record *ret,
	struct slice *ret_line)
{
	ssize_t n = read_end(path, buf, AUDIT_END_BYTES);

	return n < 0 ? (int)n : last_record(slice_of(buf, (size_t)n), ret, ret_line);
}

int audit_last_name(const char *dir, const char *sandbox, char ret[AUDIT_MAX_NAME + 1])
{
	AUTO_FREE char *folder = xasprintf("%s/%s", dir, sandbox);
	AUTO_FREE uint8_t *buf = xmalloc(AUDIT_END_BYTES);
	AUTO_FREE struct audit_record *rec = xcalloc(1, sizeof(*rec));
	uint64_t last = 0;
	int r = audit_last_segment(folder, &last, NULL);

	/* A segment that was just begun may have no record yet. */
	for (int i = 0; i < 2 && r == 0 && last > 0; i++, last--) {
		AUTO_FREE char *path = audit_segment_path(folder, last);
		struct slice line;

		if (audit_read_last(path, buf, rec, &line) == 0)
			return slice_to_cstr(rec->name, ret, AUDIT_MAX_NAME + 1);
	}
	return r < 0 ? r : -ENOENT;
}
