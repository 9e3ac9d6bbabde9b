/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "worker_internal.h"

/* In front of the body. */
struct head {
	uint16_t kind;
	uint16_t n_fds;
	int32_t code;
};

union control {
	char buf[CMSG_SPACE(sizeof(int) * WORKER_MAX_FDS)];
	struct cmsghdr align;
};

#define CROWDED_STEP_MS 10

/* The kernel counts the descriptors that all processes of the user have sent and no process has
 * received: others may have used them up, and no event tells when that is over. */
static int send_all(int sock, const struct msghdr *mh)
{
	uint64_t until = clock_mono_ms() + WORKER_CROWDED_MS;
	ssize_t n;

	for (;;) {
		n = sendmsg(sock, mh, MSG_NOSIGNAL);
		if (n >= 0)
			return 0;
		if (errno == ETOOMANYREFS && clock_mono_ms() < until)
			(void)poll(NULL, 0, CROWDED_STEP_MS);
		else if (errno != EINTR)
			return -errno;
	}
}

int packet_send(int sock, const struct worker_msg *m)
{
	struct head h = {.kind = m->kind, .n_fds = (uint16_t)m->n_fds, .code = m->code};
	struct iovec iov[] = {{&h, sizeof(h)}, {(void *)(uintptr_t)m->body, m->n}};
	struct msghdr mh = {.msg_iov = iov, .msg_iovlen = 2};
	union control ctl = {0};

	if (m->n > WORKER_MAX_BODY || m->n_fds > WORKER_MAX_FDS)
		return -EMSGSIZE;
	if (m->n_fds) {
		struct cmsghdr *c;

		mh.msg_control = ctl.buf;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * m->n_fds);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * m->n_fds);
		memcpy(CMSG_DATA(c), m->fds, sizeof(int) * m->n_fds);
	}
	return send_all(sock, &mh);
}

/* All that came, so that none is left open whatever the rest of the packet is. */
static void take_fds(struct msghdr *mh, struct worker_msg *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n && m->n_fds < WORKER_MAX_FDS; i++)
			memcpy(&m->fds[m->n_fds++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
	}
}

static int wait_for(int sock, int timeout_ms)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	int n;

	do {
		n = poll(&p, 1, timeout_ms);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == 0 ? -ETIMEDOUT : 0;
}

int packet_recv(int sock, struct worker_msg *m, int timeout_ms)
{
	struct head h = {0};
	struct iovec iov[] = {{&h, sizeof(h)}, {m->body, sizeof(m->body)}};
	union control ctl = {0};
	struct msghdr mh = {.msg_iov = iov,
		.msg_iovlen = 2,
		.msg_control = ctl.buf,
		.msg_controllen = sizeof(ctl.buf)};
	int r = wait_for(sock, timeout_ms);
	ssize_t n;

	m->n = m->n_fds = 0;
	if (r < 0)
		return r;
	do {
		n = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 && errno != ECONNRESET ? -errno : 0;
	take_fds(&mh, m);
	if ((mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || (size_t)n < sizeof(h) ||
		h.n_fds != m->n_fds) {
		worker_msg_done(m);
		return -EBADMSG;
	}
	m->kind = h.kind;
	m->code = h.code;
	m->n = (size_t)n - sizeof(h);
	return 1;
}

void worker_msg_done(struct worker_msg *m)
{
	for (size_t i = 0; i < m->n_fds; i++)
		fd_close(&m->fds[i]);
	m->n_fds = 0;
}

int worker_take_fd(struct worker_msg *m, size_t i)
{
	return i < m->n_fds ? TAKE_FD(m->fds[i]) : -1;
}
