/* SPDX-License-Identifier: Apache-2.0 */
#include "vault_sock.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"

char *vault_sock_path(void)
{
	return paths_get(PATHS_RUNTIME, "vault.sock");
}

static int make_sock(const char *path, struct sockaddr_un *ret, struct err *err)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (fd < 0)
		return err_errno(err, -errno, "cannot create a socket");
	if (str_copy(ret->sun_path, sizeof(ret->sun_path), path) < 0) {
		(void)close(fd);
		return err_set(err, -ENAMETOOLONG,
			"%s is too long for a socket path: set XDG_RUNTIME_DIR to a shorter directory",
			path);
	}
	return fd;
}

int vault_sock_connect(struct err *err)
{
	AUTO_FREE char *path = vault_sock_path();
	struct sockaddr_un sa;
	AUTO_CLOSE int fd = make_sock(path, &sa, err);

	if (fd < 0)
		return fd;
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		return TAKE_FD(fd);
	if (errno == ENOENT || errno == ECONNREFUSED)
		return err_set(
			err, -ECONNREFUSED, "cannot connect to %s: connection refused", path);
	return err_errno(err, -errno, "cannot connect to %s", path);
}

int vault_sock_listen(struct err *err)
{
	AUTO_FREE char *path = vault_sock_path();
	struct sockaddr_un sa;
	AUTO_CLOSE int fd = make_sock(path, &sa, err);
	mode_t old;
	int r;

	if (fd < 0)
		return fd;
	(void)unlink(path);
	/* 0600 from the first moment. */
	old = umask(0177);
	r = bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ? -errno : 0;
	(void)umask(old);
	if (r < 0)
		return err_errno(err, r, "cannot bind %s", path);
	if (listen(fd, VAULT_SOCK_BACKLOG) < 0)
		return err_errno(err, -errno, "cannot listen on %s", path);
	return TAKE_FD(fd);
}
