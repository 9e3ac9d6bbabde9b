/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the host puts into a workspace for a probe. A guest can write there: it may replace
 * any name by a symlink at any moment. No symlink is followed. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files.h"
#include "src/guest/probe/verb/verb.h"

#define PLANT_MAX_PATH 4096
#define PIPE_MAX_SECONDS 600

static int open_no_link(int at, const char *path, int flags, mode_t mode)
{
	struct open_how how = {.flags = (unsigned)flags | O_CLOEXEC,
		.mode = mode,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};

	return (int)syscall(SYS_openat2, at, path, &how, sizeof(how));
}

/* Cuts the last name off `path`. */
static const char *cut_name(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || slash == path || !slash[1]) {
		errno = EINVAL;
		return NULL;
	}
	*slash = '\0';
	return slash + 1;
}

static int make_folder(char *path)
{
	const char *name = cut_name(path);
	int above = name ? open_no_link(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0) : -1, fd = -1;

	if (above >= 0 && (mkdirat(above, name, 0777) == 0 || errno == EEXIST))
		fd = open_no_link(above, name, O_PATH | O_DIRECTORY, 0);
	if (above >= 0)
		(void)close(above);
	return fd;
}

/* The directory of the name, created if missing. `path` is cut. */
static int open_folder(char *path, const char **ret_name)
{
	int fd;

	*ret_name = cut_name(path);
	if (!*ret_name)
		return -1;
	fd = open_no_link(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
	return fd < 0 && errno == ENOENT ? make_folder(path) : fd;
}

/* A regular file is kept and gets new content: the holes of tests have a second name for it.
 * Anything else of that name is removed. */
static int open_file(int dir, const char *name)
{
	int fd = open_no_link(dir, name, O_WRONLY | O_NONBLOCK, 0);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && ftruncate(fd, 0) == 0)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return -1;
	return open_no_link(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0644);
}

static int put_file(int dir, const char *name, const char *text)
{
	int fd = open_file(dir, name), r;

	if (fd < 0)
		return -1;
	r = dprintf(fd, "%s\n", text) < 0 || fchmod(fd, 0644) < 0 ? -1 : 0;
	(void)close(fd);
	return r;
}

static bool is_pipe(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISFIFO(st.st_mode);
}

/* A symlink of that name is replaced; a pipe is kept. */
static int put_plant(const char *kind, int dir, const char *name, const char *text)
{
	if (strcmp(kind, "file") == 0)
		return put_file(dir, name, text);
	if (strcmp(kind, "pipe") == 0 && is_pipe(dir, name))
		return 0;
	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return -1;
	if (strcmp(kind, "pipe") == 0)
		return mkfifoat(dir, name, 0600);
	return symlinkat(text, dir, name);
}

int probe_plant(int argc, char **argv)
{
	static const char *const kinds[] = {"file", "link", "pipe"};
	char path[PLANT_MAX_PATH];
	const char *name, *kind = NULL;
	int dir, r;

	for (size_t i = 0; argc >= 2 && i < ARRAY_LEN(kinds); i++)
		if (strcmp(argv[0], kinds[i]) == 0 && argc == (i == 2 ? 2 : 3))
			kind = kinds[i];
	if (!kind || strlen(argv[1]) >= sizeof(path))
		return PROBE_USAGE;
	memcpy(path, argv[1], strlen(argv[1]) + 1);
	dir = open_folder(path, &name);
	r = dir < 0 ? -1 : put_plant(kind, dir, name, argc == 3 ? argv[2] : "");
	if (r < 0)
		(void)probe_refused("plant");
	else
		printf("planted\n");
	if (dir >= 0)
		(void)close(dir);
	return r < 0 ? PROBE_REFUSED : PROBE_POSSIBLE;
}

static int open_pipe(const char *path)
{
	int fd = open_no_link(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))) {
		(void)close(fd);
		errno = ENOTSUP;
		return -1;
	}
	return fd;
}

/* Prints the input of the first writer, until it closes. */
int probe_pipe(int argc, char **argv)
{
	struct pollfd p = {.events = POLLIN};
	long seconds = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
	char buf[512];
	ssize_t n = 1;

	if (seconds <= 0 || seconds > PIPE_MAX_SECONDS)
		return PROBE_USAGE;
	p.fd = open_pipe(argv[0]);
	if (p.fd < 0)
		return probe_refused("pipe");
	while (n > 0 && poll(&p, 1, (int)seconds * 1000) > 0) {
		n = read(p.fd, buf, sizeof(buf));
		if (n > 0 && fwrite(buf, 1, (size_t)n, stdout) != (size_t)n)
			n = 0;
		(void)fflush(stdout);
	}
	(void)close(p.fd);
	return PROBE_POSSIBLE;
}
