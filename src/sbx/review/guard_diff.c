/* SPDX-License-Identifier: Apache-2.0 */
#include "guard_diff.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/client/api/api.h"

/* One side of a diff. */
struct side {
	bool exists;
	const char *fault; /* why it cannot be compared; NULL: text has it */
	char *text;
	size_t n;
};

static void side_done(struct side *s)
{
	free(s->text);
}

/* Never through a symbolic link, and never out of the directory. */
static int open_below(int dir, const char *path, uint64_t flags)
{
	struct open_how how = {.flags = flags | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static void load_side(int dir, const char *path, struct side *ret)
{
	AUTO_CLOSE int fd = dir < 0 ? -ENOENT : open_below(dir, path, O_RDONLY | O_NONBLOCK);
	struct stat st;

	ret->exists = fd != -ENOENT;
	if (fd == -ELOOP)
		ret->fault = "is a symbolic link, or is reached through one";
	else if (fd < 0 && fd != -ENOENT)
		ret->fault = "cannot be opened";
	if (fd < 0)
		return;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		ret->fault = S_ISDIR(st.st_mode) ? "is a directory" : "is not a regular file";
	else if (st.st_size > TEXTDIFF_MAX_BYTES ||
		 fd_load(fd, TEXTDIFF_MAX_BYTES, &ret->text, &ret->n) < 0)
		ret->fault = "is too large for a diff";
}

static bool has_mount(const json_t *sandbox, const char *field, const char *host)
{
	const json_t *w;
	size_t i;

	json_array_foreach (json_object_get(sandbox, field), i, w) {
		if (strcmp(api_str(w, "host"), host) == 0)
			return true;
	}
	return false;
}

/* The directory of a workspace of this sandbox; any other one is not opened. */
static int open_workspace(const json_t *sandbox, const char *host)
{
	if (!has_mount(sandbox, "workspaces", host) && !has_mount(sandbox, "mounts", host))
		return -EINVAL;
	return open(host, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void load_copy(const json_t *list, const json_t *row, struct side *ret)
{
	const char *state = api_str(row, "state");
	AUTO_FREE char *name = xasprintf("copy/%lld", api_int(row, "copy"));
	AUTO_CLOSE int dir = -1;

	if (strcmp(state, "new") == 0)
		return;
	ret->exists = true;
	if (strcmp(state, "was-link") == 0)
		ret->fault = "was a symbolic link";
	else if (strcmp(state, "changed") != 0)
		ret->fault = "was not a regular file";
	else if (!api_int(row, "copy"))
		ret->fault = "was too large for a copy";
	if (ret->fault)
		return;
	dir = open(api_str(list, "dir"), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	load_side(dir, name, ret);
	if (!ret->exists)
		ret->fault = "has no copy any more";
	ret->exists = true;
}

static void put_line(textdiff_put *put, void *arg, const char *fault)
{
	AUTO_FREE char *line = xasprintf("no diff: the file %s\n", fault);

	put(arg, line, strlen(line));
}

void guard_diff_print(
	const json_t *sandbox, const json_t *list, const json_t *row, textdiff_put *put, void *arg)
{
	CLEANUP(side_done) struct side old = {0}, new = {0};
	const char *path = api_str(row, "path");
	AUTO_CLOSE int dir = open_workspace(sandbox, api_str(row, "workspace"));
	AUTO_FREE char *a = xasprintf("a/%s", path), *b = xasprintf("b/%s", path);
	struct textdiff_side from, to;

	if (dir < 0) {
		put_line(put, arg, "is not in a workspace of the sandbox");
		return;
	}
	if (strcmp(api_str(row, "state"), "tree") == 0) {
		put_line(put, arg, "is a directory of many files");
		return;
	}
	load_copy(list, row, &old);
	load_side(dir, path, &new);
	if (old.fault || new.fault) {
		put_line(put, arg, old.fault ? old.fault : new.fault);
		return;
	}
	from = (struct textdiff_side){old.exists ? a : "/dev/null", slice_of(old.text, old.n)};
	to = (struct textdiff_side){new.exists ? b : "/dev/null", slice_of(new.text, new.n)};
	if (!old.exists && !new.exists)
		put_line(put, arg, "was removed again");
	else if (textdiff_write(&from, &to, put, arg) == TEXTDIFF_SAME)
		put_line(put, arg,
			old.exists == new.exists ? "has its earlier content again" : "is empty");
}

int guard_diff_file(
	const json_t *sandbox, const json_t *row, char **ret, size_t *ret_n, const char **ret_fault)
{
	CLEANUP(side_done) struct side now = {0};
	AUTO_CLOSE int dir = open_workspace(sandbox, api_str(row, "workspace"));

	if (dir < 0)
		now.fault = "is not in a workspace of the sandbox";
	else
		load_side(dir, api_str(row, "path"), &now);
	if (!now.fault && !now.text)
		now.fault = "does not exist";
	if (now.fault) {
		*ret_fault = now.fault;
		return -EINVAL;
	}
	*ret = TAKE(now.text);
	*ret_n = now.n;
	return 0;
}
