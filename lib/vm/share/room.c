/* SPDX-License-Identifier: Apache-2.0 */
#include "room.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int next_of_socket(const struct room *r, struct room_wait *ret)
{
	uint32_t number;
	ssize_t n = recv(r->fd, &number, sizeof(number), MSG_DONTWAIT);

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (n != (ssize_t)sizeof(number))
		return -EPIPE;
	*ret = (struct room_wait){.number = number};
	return 0;
}

int room_next(const struct room *r, struct room_wait *ret)
{
	struct seccomp_notif req = {0};
	struct pollfd p = {.fd = r->fd, .events = POLLIN};

	if (r->is_socket)
		return next_of_socket(r, ret);
	/* Receiving would block when there is none. */
	if (poll(&p, 1, 0) <= 0)
		return -EAGAIN;
	if (!(p.revents & POLLIN))
		return -EPIPE; /* no process is left in the filter */
	if (ioctl(r->fd, SECCOMP_IOCTL_NOTIF_RECV, &req) < 0)
		return errno == ENOENT || errno == EINTR ? -EAGAIN : -errno;
	*ret = (struct room_wait){.id = req.id, .number = (unsigned)req.data.args[0]};
	return 0;
}

void room_go_on(const struct room *r, uint64_t id)
{
	struct seccomp_notif_resp resp = {.id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
	const char byte = 0;

	/* The process may have exited: then nothing waits. */
	if (r->is_socket)
		(void)!send(r->fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		(void)ioctl(r->fd, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}

int room_pair(struct room *ret_room, struct room_ask *ret_ask, struct err *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(err, -errno, "cannot create a socket pair");
	ret_room->fd = pair[0];
	ret_room->is_socket = true;
	ret_ask->sock = pair[1];
	return 0;
}

void room_ask(const struct room_ask *a, const struct seccomp_notif *req)
{
	uint32_t number = (uint32_t)req->data.args[0];
	struct pollfd p = {.fd = a->sock, .events = POLLIN};
	char byte;

	if (a->sock < 0 || req->data.nr != SYS_statx || number < a->full_at || number > INT32_MAX)
		return;
	/* An answer that came too late, to the last question. */
	while (poll(&p, 1, 0) > 0 && (p.revents & POLLIN) && read(a->sock, &byte, 1) > 0)
		;
	if (write(a->sock, &number, sizeof(number)) == (ssize_t)sizeof(number) &&
		poll(&p, 1, ROOM_WAIT_MS) > 0)
		(void)!read(a->sock, &byte, 1);
}
