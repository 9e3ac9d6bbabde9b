/* SPDX-License-Identifier: Apache-2.0 */
#include "inventory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/fs/dir.h"
#include "lib/base/fs/file.h"
#include "lib/base/log.h"

extern char **environ;

struct list {
	FILE *out;
	size_t n;
};

static void add_line(struct list *l, const char *kind, const char *text)
{
	if (l->n++ >= INVENTORY_MAX_LINES)
		return;
	(void)fprintf(l->out, "%s ", kind);
	for (const char *p = text; *p; p++)
		(void)fputc((unsigned char)*p < ' ' || *p == 0x7f ? '?' : *p, l->out);
	(void)fputc('\n', l->out);
}

static void add_descriptors(struct list *l)
{
	AUTO_DIR DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;

	while ((e = dir_next(dir))) {
		char target[PATH_MAX], line[PATH_MAX + 300];
		ssize_t n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);

		if (n < 0)
			continue; /* . and .. */
		target[n] = '\0';
		(void)snprintf(line, sizeof(line), "%s %s", e->d_name, target);
		add_line(l, "fd", line);
	}
}

static int fill_inventory(int fd)
{
	struct list l = {.out = fdopen(fd, "w")};
	int r;

	if (!l.out)
		return -errno;
	add_descriptors(&l);
	for (char **e = environ; e && *e; e++)
		add_line(&l, "env", *e);
	if (l.n > INVENTORY_MAX_LINES)
		(void)fprintf(l.out, "more %zu\n", l.n - INVENTORY_MAX_LINES);
	r = ferror(l.out) ? -EIO : 0;
	return fclose(l.out) != 0 ? -errno : r;
}

void inventory_write(const char *path)
{
	AUTO_FILE_NEW struct file_new f = {.fd = -1};
	struct err err = {0};
	int r = file_new_open(&f, path, &err);
	int copy = r < 0 ? -1 : fcntl(f.fd, F_DUPFD_CLOEXEC, 3);

	if (r == 0)
		r = copy < 0 ? -errno : fill_inventory(copy);
	if (r == 0)
		r = file_new_keep(&f, 0600, &err);
	if (r < 0)
		log_error("cannot write %s: %s", path, err_text(&err, r));
}
