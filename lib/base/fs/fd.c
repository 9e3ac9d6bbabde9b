/* SPDX-License-Identifier: Apache-2.0 */
#include "fd.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/mem.h"

void fd_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	errno = saved;
}

void fd_raise_limit(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) == 0) {
		lim.rlim_cur = lim.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &lim);
	}
}

static int change_flag(int fd, int get, int set, int flag, bool on)
{
	int flags = fcntl(fd, get);

	if (flags < 0)
		return -errno;
	flags = on ? flags | flag : flags & ~flag;
	if (fcntl(fd, set, flags) < 0)
		return -errno;
	return 0;
}

int fd_set_nonblock(int fd, bool on)
{
	return change_flag(fd, F_GETFL, F_SETFL, O_NONBLOCK, on);
}

int fd_set_cloexec(int fd, bool on)
{
	return change_flag(fd, F_GETFD, F_SETFD, FD_CLOEXEC, on);
}

/* One more than may come is noticed. */
union control {
	struct cmsghdr align;
	char buf[CMSG_SPACE((FD_MAX_PASSED + 1) * sizeof(int))];
};

ssize_t fd_send(
	int sock, const struct iovec *iov, size_t n_iov, const int *fds, size_t n_fds, int flags)
{
	struct msghdr mh = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = n_iov};
	union control control = {0};
	struct cmsghdr *c;
	ssize_t n;

	assert(n_fds <= FD_MAX_PASSED);
	if (n_fds) {
		mh.msg_control = control.buf;
		mh.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	do {
		n = sendmsg(sock, &mh, flags | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* Keeps the first max and closes the others. Returns how many came. */
static size_t take_passed(struct msghdr *mh, int *fds, size_t max)
{
	size_t n = 0;
	int fd;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= c->cmsg_len; at += sizeof(int)) {
			memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
			if (n < max)
				fds[n] = fd;
			else
				fd_close(&fd);
			n++;
		}
	}
	return n;
}

/* What fd_recv returns. */
static ssize_t judge_packet(struct msghdr *mh, ssize_t n, int *fds, size_t max, size_t *n_fds)
{
	*n_fds = take_passed(mh, fds, max);
	if (*n_fds > max || mh->msg_flags & (MSG_CTRUNC | MSG_TRUNC)) {
		for (size_t i = 0; i < *n_fds && i < max; i++)
			fd_close(&fds[i]);
		*n_fds = max + 1;
	}
	return mh->msg_flags & MSG_TRUNC ? -EBADMSG : n;
}

ssize_t fd_recv(int sock, const struct iovec *iov, size_t n_iov, int *fds, size_t *n_fds, int flags)
{
	union control control;
	struct msghdr mh = {.msg_iov = (struct iovec *)(uintptr_t)iov,
		.msg_iovlen = n_iov,
		.msg_control = control.buf};
	size_t max = *n_fds;
	ssize_t n;

	assert(max <= FD_MAX_PASSED);
	*n_fds = 0;
	do {
		mh.msg_controllen = CMSG_SPACE((max + 1) * sizeof(int));
		n = recvmsg(sock, &mh, flags | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return judge_packet(&mh, n, fds, max, n_fds);
}

int fd_recv_many(int sock, struct fd_packet *list, size_t n)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(2 * sizeof(int))];
	} control[FD_MAX_MANY] = {0};
	struct mmsghdr heads[FD_MAX_MANY] = {0};
	int r;

	assert(n <= FD_MAX_MANY);
	for (size_t i = 0; i < n; i++)
		heads[i].msg_hdr = (struct msghdr){.msg_iov = &list[i].room,
			.msg_iovlen = 1,
			.msg_control = control[i].buf,
			.msg_controllen = sizeof(control[i].buf)};
	do {
		r = recvmmsg(sock, heads, (unsigned)n, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, NULL);
	} while (r < 0 && errno == EINTR);
	for (int i = 0; i < r; i++) {
		list[i].fd = -1;
		list[i].n = judge_packet(
			&heads[i].msg_hdr, heads[i].msg_len, &list[i].fd, 1, &list[i].n_fds);
	}
	return r < 0 ? -errno : r;
}

bool fd_is_unix_socket(int fd, int type)
{
	int has_type = 0, domain = 0;
	socklen_t n = sizeof(int), m = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &has_type, &n) == 0 && has_type == type &&
	       getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &m) == 0 && domain == AF_UNIX;
}

bool fd_is_tcp(int fd)
{
	int type = 0, domain = 0;
	socklen_t n = sizeof(int), m = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_STREAM &&
	       getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &m) == 0 &&
	       (domain == AF_INET || domain == AF_INET6);
}

bool fd_is_same_user(int sock)
{
	struct ucred cred;
	socklen_t n = sizeof(cred);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &n) == 0 && cred.uid == geteuid();
}

int fd_write_all(int fd, const void *p, size_t n)
{
	const char *c = p;

	while (n > 0) {
		ssize_t w = write(fd, c, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -errno;
		c += w;
		n -= (size_t)w;
	}
	return 0;
}

ssize_t fd_read_full(int fd, void *p, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t k = read(fd, (char *)p + got, n - got);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -errno;
		if (k == 0)
			break;
		got += (size_t)k;
	}
	return (ssize_t)got;
}

int fd_load(int fd, size_t max, char **ret, size_t *ret_n)
{
	size_t n = 0, size = 65536;
	AUTO_FREE char *text = xmalloc(size);

	for (;;) {
		ssize_t r = pread(fd, text + n, size - n - 1, (off_t)n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		n += (size_t)r;
		if (n > max)
			return -EFBIG;
		if (n == size - 1)
			text = xrealloc(text, size *= 2);
	}
	text[n] = '\0';
	*ret = TAKE(text);
	*ret_n = n;
	return 0;
}
