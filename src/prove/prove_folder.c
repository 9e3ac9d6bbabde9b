/* SPDX-License-Identifier: Apache-2.0 */
#include "prove_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "prove_job.h"

#define SECONDS 60

static void print_prefix(char *buf, size_t size)
{
	(void)snprintf(buf, size, "sbx-prove-%u-", (unsigned)geteuid());
}

static int take_lock(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid())
		return -EPERM;
	return flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : TAKE_FD(fd);
}

int prove_folder_make(struct prove_folder *f, const char *top, struct err *err)
{
	char prefix[64];

	print_prefix(prefix, sizeof(prefix));
	str_random_hex(f->word, PROVE_WORD / 2);
	f->path = xasprintf("%s/%s%s", top, prefix, f->word);
	f->lock = -1;
	if (mkdir(f->path, 0700) < 0)
		return err_errno(err, -errno, "cannot create %s", f->path);
	f->lock = take_lock(f->path);
	return f->lock < 0 ? err_errno(err, f->lock, "cannot lock %s", f->path) : 0;
}

void prove_folder_remove(struct prove_folder *f)
{
	/* A part may have left unreadable directories. */
	const char *const argv[] = {"/bin/sh", "-c",
		"rm -rf -- \"$1\" 2>/dev/null || { chmod -R u+rwX -- \"$1\"; rm -rf -- \"$1\"; }",
		"sh", f->path, NULL};
	const struct prove_job_spec spec = {.argv = argv, .seconds = SECONDS};
	AUTO_FREE struct prove_job *job = xcalloc(1, sizeof(*job));

	if (f->path)
		(void)!prove_job_run(job, &spec, &(struct err){0});
	fd_close(&f->lock);
	free(TAKE(f->path));
}

bool prove_folder_is_left(const struct prove_folder *f)
{
	AUTO_CLOSE int fd = take_lock(f->path);

	return fd >= 0;
}

bool prove_folder_find_left(const char *top, struct prove_folder *ret)
{
	AUTO_DIR DIR *d = opendir(top);
	const struct dirent *e;
	char prefix[64];
	bool found = false;

	print_prefix(prefix, sizeof(prefix));
	while (!found && (e = dir_next(d))) {
		const char *word = e->d_name + strlen(prefix);

		if (!str_starts(e->d_name, prefix) || !hex_is(word, PROVE_WORD))
			continue;
		*ret = (struct prove_folder){.path = xasprintf("%s/%s", top, e->d_name)};
		(void)!str_copy(ret->word, sizeof(ret->word), word);
		ret->lock = take_lock(ret->path);
		found = ret->lock >= 0;
		if (!found)
			free(TAKE(ret->path));
	}
	return found;
}
