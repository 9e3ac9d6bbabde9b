/* SPDX-License-Identifier: Apache-2.0 */
#include "mux_sock.h"

#include <errno.h>
#include <sys/socket.h>

int mux_recv(int fd, void *buf, size_t size, struct slice *ret)
{
	ssize_t n;

	do {
		n = recv(fd, buf, size, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return -EAGAIN;
	if (n <= 0)
		return -EPIPE;
	*ret = slice_of(buf, (size_t)n);
	return 0;
}

int mux_flush(struct mux *m, int fd)
{
	while (mux_out(m).n) {
		struct slice out = mux_out(m);
		ssize_t n = send(fd, out.p, out.n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -EAGAIN : -EPIPE;
		mux_sent(m, (size_t)n);
	}
	return 0;
}
