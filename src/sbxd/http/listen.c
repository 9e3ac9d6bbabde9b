/* SPDX-License-Identifier: Apache-2.0 */
#include "listen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"

#define BACKLOG 128
#define FIRST_PASSED_FD 3

int listen_check_folder(const char *dir, struct err *err)
{
	struct stat st;
	int r = paths_make(dir, err);

	if (r < 0)
		return r;
	if (lstat(dir, &st) < 0)
		return err_errno(err, -errno, "cannot read the attributes of %s", dir);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return err_set(err, -EPERM, "%s is not a directory of this user", dir);
	if (st.st_mode & 077)
		return err_set(err, -EPERM,
			"%s is accessible to other users (mode %o): run chmod 700 %s", dir,
			st.st_mode & 07777, dir);
	return 0;
}

int listen_lock(struct err *err)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "sbxd.lock");
	int fd = file_lock(path, LISTEN_LOCK_MS, err);

	if (fd == -EBUSY)
		return err_set(err, fd, "another sbxd is running for this state directory");
	return fd;
}

/* Returns the number of fds that were passed to this process, else 0. */
static uint64_t count_passed(void)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	uint64_t want, n = 0;

	if (!pid || !fds || str_to_u64(pid, 1, INT32_MAX, &want) < 0 ||
		want != (uint64_t)getpid() || str_to_u64(fds, 1, 64, &n) < 0)
		n = 0;
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_FDNAMES");
	return n;
}

static int take_passed(struct err *err)
{
	int fd = FIRST_PASSED_FD, listening = 0, domain = 0, r;
	socklen_t n = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &n) < 0 || !listening ||
		getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) < 0 || domain != AF_UNIX)
		return err_set(err, -EINVAL, "the passed fd is not a listening Unix socket");
	r = fd_set_cloexec(fd, true);
	if (r == 0)
		r = fd_set_nonblock(fd, true);
	return r < 0 ? err_errno(err, r, "cannot set up the passed socket") : fd;
}

static int make_socket(struct err *err)
{
	AUTO_FREE char *path = paths_get(PATHS_RUNTIME, "sbxd.sock");
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	mode_t old;
	int r;

	if (fd < 0)
		return err_errno(err, -errno, "cannot create a socket");
	if (str_copy(sa.sun_path, sizeof(sa.sun_path), path) < 0)
		return err_set(err, -ENAMETOOLONG,
			"%s is too long for a socket name: set XDG_RUNTIME_DIR to a shorter path",
			path);
	(void)unlink(path);
	/* 0600 from the first moment. */
	old = umask(0177);
	r = bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ? -errno : 0;
	(void)umask(old);
	if (r < 0)
		return err_errno(err, r, "cannot bind %s", path);
	if (listen(fd, BACKLOG) < 0)
		return err_errno(err, -errno, "cannot listen on %s", path);
	return TAKE_FD(fd);
}

int listen_open(bool *ret_passed, struct err *err)
{
	uint64_t n = count_passed();

	*ret_passed = n > 0;
	if (n > 1)
		return err_set(err, -EINVAL, "more than one socket was passed");
	return n ? take_passed(err) : make_socket(err);
}

void listen_end(int fd)
{
	AUTO_FREE char *path = paths_get(PATHS_RUNTIME, "sbxd.sock");

	(void)unlink(path);
	/* Also for clients that have resolved the name: refused, and not left in a queue. */
	(void)shutdown(fd, SHUT_RD);
}
