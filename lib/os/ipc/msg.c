/* SPDX-License-Identifier: Apache-2.0 */
#include "msg.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "chan.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/base/trace.h"

/* ---- tracing ---- */

static struct traced {
	int sock;
	const struct chan *chan;
	unsigned side;
	char label[IPC_MAX_LABEL];
} * traced;
static size_t n_traced;

static struct traced *find_traced(int sock)
{
	for (size_t i = 0; i < n_traced; i++)
		if (traced[i].sock == sock)
			return &traced[i];
	return NULL;
}

void ipc_trace(int sock, const struct chan *chan, unsigned side, const char *label)
{
	struct traced *t;

	if (!trace_on(TRACE_IPC))
		return;
	t = find_traced(sock); /* of a channel that was closed */
	if (!t) {
		traced = xrealloc(traced, (n_traced + 1) * sizeof(*traced));
		t = &traced[n_traced++];
	}
	*t = (struct traced){.sock = sock, .chan = chan, .side = side};
	(void)!str_copy(t->label, sizeof(t->label), label);
}

/* Never the body: it may have a key or the name of a file. */
static void trace_message(int sock, bool is_sent, uint16_t type, uint32_t id, size_t n, bool has_fd)
{
	const struct traced *t = trace_on(TRACE_IPC) ? find_traced(sock) : NULL;
	unsigned from;

	if (!t)
		return;
	from = is_sent ? t->side : !t->side;
	trace_line(TRACE_IPC, "%s->%s %s%s(%u) id=%u %zu bytes%s", t->chan->sides[from],
		t->chan->sides[!from], t->label, chan_name(t->chan, type), type, id, n,
		has_fd ? " fd" : "");
}

/* ---- messages ---- */

int ipc_pair(int fds[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return -errno;
	return 0;
}

int ipc_send(int sock, uint16_t type, uint32_t id, struct slice body, int pass_fd)
{
	uint8_t header[IPC_HEADER];
	struct wr wr = wr_init(header, sizeof(header));
	struct iovec iov[2] = {{header, sizeof(header)}, {(void *)body.p, body.n}};
	ssize_t r;

	if (body.n > IPC_MAX_BODY)
		return -EMSGSIZE;
	wr_u16(&wr, type);
	wr_u16(&wr, 0);
	wr_u32(&wr, id);
	wr_u32(&wr, (uint32_t)body.n);
	r = fd_send(sock, iov, 2, &pass_fd, pass_fd >= 0, MSG_DONTWAIT);
	if (r < 0)
		return (int)r;
	trace_message(sock, true, type, id, body.n, pass_fd >= 0);
	return 0;
}

int ipc_parse(struct slice packet, struct ipc_msg *ret_msg)
{
	struct rd rd = rd_init(packet);
	uint16_t type = rd_u16(&rd), flags = rd_u16(&rd);
	uint32_t id = rd_u32(&rd), n = rd_u32(&rd);
	struct slice body = rd_bytes(&rd, n);

	if (rd_finish(&rd) < 0 || flags != 0 || n > IPC_MAX_BODY)
		return -EBADMSG;
	ret_msg->type = type;
	ret_msg->id = id;
	ret_msg->n = n;
	ret_msg->fd = -1;
	if (n)
		memcpy(ret_msg->body, body.p, n);
	return 0;
}

/* What ipc_recv returns. Takes fd. */
static int take_packet(int sock, struct slice packet, int fd, size_t n_fds, struct ipc_msg *ret_msg)
{
	AUTO_CLOSE int own = fd;
	int r;

	if (n_fds > 1)
		return -EBADMSG;
	if (packet.n == 0 && own < 0)
		return 0;
	r = ipc_parse(packet, ret_msg);
	if (r < 0)
		return r;
	ret_msg->fd = TAKE_FD(own);
	trace_message(sock, false, ret_msg->type, ret_msg->id, ret_msg->n, ret_msg->fd >= 0);
	return 1;
}

int ipc_recv(int sock, struct ipc_msg *ret_msg)
{
	UNINITIALIZED uint8_t packet[IPC_HEADER + IPC_MAX_BODY];
	struct iovec iov = {packet, sizeof(packet)};
	AUTO_CLOSE int fd = -1;
	size_t n_fds = 1;
	ssize_t n = fd_recv(sock, &iov, 1, &fd, &n_fds, MSG_DONTWAIT);

	if (n < 0)
		return n == -ECONNRESET ? 0 : (int)n;
	return take_packet(sock, slice_of(packet, (size_t)n), TAKE_FD(fd), n_fds, ret_msg);
}

int ipc_batch_recv(int sock, struct ipc_batch *b)
{
	int n;

	for (size_t i = 0; i < FD_MAX_MANY; i++)
		b->list[i].room = (struct iovec){b->packets[i], sizeof(b->packets[i])};
	n = fd_recv_many(sock, b->list, FD_MAX_MANY);
	b->n = n < 0 ? 0 : (size_t)n;
	b->at = 0;
	/* as the end, which has no bytes and no descriptor */
	if (n == -ECONNRESET)
		b->list[b->n++] = (struct fd_packet){.room = b->list[0].room, .fd = -1};
	return n < 0 && n != -ECONNRESET ? n : 0;
}

int ipc_batch_next(int sock, struct ipc_batch *b, struct ipc_msg *ret_msg)
{
	struct fd_packet *p = &b->list[b->at];
	int r;

	if (b->at == b->n)
		return -EAGAIN;
	b->at++;
	if (p->n < 0)
		return (int)p->n;
	r = take_packet(
		sock, slice_of(p->room.iov_base, (size_t)p->n), TAKE_FD(p->fd), p->n_fds, ret_msg);
	explicit_bzero(p->room.iov_base, (size_t)p->n); /* it may have a key */
	return r;
}

void ipc_batch_done(struct ipc_batch *b)
{
	for (; b->at < b->n; b->at++) {
		struct fd_packet *p = &b->list[b->at];

		fd_close(&p->fd);
		explicit_bzero(p->room.iov_base, (size_t)MAX(p->n, 0));
	}
}

void ipc_msg_done(struct ipc_msg *msg)
{
	fd_close(&msg->fd);
}

int ipc_send_wr(int sock, uint16_t type, uint32_t id, const struct wr *wr, int pass_fd)
{
	int r = wr_finish(wr);

	return r < 0 ? r : ipc_send(sock, type, id, slice_of(wr->p, wr->n), pass_fd);
}
