/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
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

static_assert(WORKER_MAX_FDS <= FD_MAX_PASSED, "a packet takes them all");

#define CROWDED_STEP_MS 10

/* The kernel counts the descriptors that all processes of the user have sent and no process has
 * received: others may have used up the limit, and no event reports when it is free. */
int packet_send(int sock, const struct worker_msg *m)
{
	struct head h = {.kind = m->kind, .n_fds = (uint16_t)m->n_fds, .code = m->code};
	struct iovec iov[] = {{&h, sizeof(h)}, {(void *)(uintptr_t)m->body, m->n}};
	uint64_t until = clock_mono_ms() + WORKER_CROWDED_MS;
	ssize_t n;

	if (m->n > WORKER_MAX_BODY || m->n_fds > WORKER_MAX_FDS)
		return -EMSGSIZE;
	for (;;) {
		n = fd_send(sock, iov, 2, m->fds, m->n_fds, 0);
		if (n != -ETOOMANYREFS || clock_mono_ms() >= until)
			return n < 0 ? (int)n : 0;
		(void)poll(NULL, 0, CROWDED_STEP_MS);
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
	size_t n_fds = WORKER_MAX_FDS;
	int r = wait_for(sock, timeout_ms);
	ssize_t n;

	m->n = m->n_fds = 0;
	if (r < 0)
		return r;
	n = fd_recv(sock, iov, 2, m->fds, &n_fds, 0);
	if (n <= 0)
		return n == -ECONNRESET ? 0 : (int)n;
	if (n_fds > WORKER_MAX_FDS)
		return -EBADMSG;
	m->n_fds = n_fds;
	if ((size_t)n < sizeof(h) || h.n_fds != n_fds) {
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

int worker_give_fd(struct worker_msg *a, int fd)
{
	if (fd < 0)
		return fd;
	a->fds[a->n_fds++] = fd;
	return 0;
}
