/* SPDX-License-Identifier: Apache-2.0 */
#include "mux_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"

struct row {
	struct mux_stream *s; /* NULL: free */
	int fd;
	bool is_shut, is_ended;
	bool may_send; /* an origin does not answer before the request */
};

/* One for each process. */
static int channel = -1;
static bool moved, is_origin;
static struct mux mux;
static uint8_t input[65536];
static struct row rows[MUX_RIG_STREAMS];

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	abort();
}

static void end_row(struct row *w)
{
	moved = true;
	mux_close(w->s);
	(void)close(w->fd);
	*w = (struct row){0};
}

/* Test to stream. */
static void push_row(struct row *w, short events)
{
	static uint8_t buf[MUX_DATA_MAX];
	size_t max = MIN(sizeof(buf), w->s->credit), n = 0;
	ssize_t r = -1;

	errno = 0;
	if (max && mux_out(&mux).n < MUX_OUT && !w->is_ended && w->may_send)
		r = recv(w->fd, buf, max, MSG_DONTWAIT);
	moved = moved || r > 0;
	if (r > 0)
		n = mux_send(w->s, slice_of(buf, (size_t)r), (struct slice){0});
	must(r <= 0 || n == (size_t)r, "a stream takes what it has credit for");
	if (r == 0 && !w->is_ended && !(events & POLLHUP))
		mux_shut(w->s);
	w->is_ended = w->is_ended || r == 0 || (r < 0 && errno == ECONNRESET);
	/* closed: what the peer does not take is lost */
	if (events & POLLHUP && (w->is_ended || !w->s->credit))
		end_row(w);
}

/* Stream to test. */
static void pull_row(struct row *w)
{
	struct slice in = mux_peek(w->s);
	ssize_t r = 0;

	w->may_send = w->may_send || in.n || mux_is_at_end(w->s);
	if (in.n)
		r = send(w->fd, in.p, in.n, MSG_DONTWAIT | MSG_NOSIGNAL);
	moved = moved || r > 0;
	if (r > 0)
		mux_take(w->s, (size_t)r);
	if (r < 0 && errno == EPIPE)
		mux_take(w->s, in.n);
	if (!mux_is_at_end(w->s))
		return;
	if (!w->is_shut)
		(void)shutdown(w->fd, SHUT_WR);
	w->is_shut = true;
	if (w->s->is_gone)
		end_row(w);
}

void mux_rig_add_here(uint32_t id, int fd)
{
	struct row *w = rows;

	while (w->s)
		w++;
	must(w < rows + MUX_RIG_STREAMS, "too many streams");
	*w = (struct row){.s = mux_open(&mux, id), .fd = fd, .may_send = !is_origin};
	must(w->s, "a stream is opened twice");
}

static void take_stream(int sock)
{
	uint32_t id;
	int fd = -1;
	size_t n_fds = 1;
	const struct iovec iov = {&id, sizeof(id)};

	if (fd_recv(sock, &iov, 1, &fd, &n_fds, 0) <= 0)
		_exit(0);
	mux_rig_add_here(id, fd);
	(void)!write(sock, "", 1);
}

static void read_channel(void)
{
	struct slice in;
	int r = mux_recv(channel, input, sizeof(input), &in);

	moved = moved || r == 0;
	if (r == 0)
		do {
			r = mux_feed(&mux, &in);
		} while (r == 1);
	must(r != -EBADMSG, "the channel has a bad frame");
	if (r != -EPIPE)
		return;
	fd_close(&channel);
	mux_restart(&mux);
}

static void turn(int sock, int ms)
{
	static struct pollfd p[MUX_RIG_STREAMS + 2];
	size_t at[MUX_RIG_STREAMS], n = 2;
	unsigned events;

	p[0] = (struct pollfd){.fd = channel, .events = POLLIN};
	p[1] = (struct pollfd){.fd = sock, .events = POLLIN};
	if (mux_out(&mux).n)
		p[0].events |= POLLOUT;
	for (size_t i = 0; i < MUX_RIG_STREAMS; i++) {
		struct row *w = &rows[i];

		if (!w->s)
			continue;
		at[n - 2] = i;
		p[n] = (struct pollfd){.fd = w->fd};
		if (w->s->credit && !w->is_ended && w->may_send && mux_out(&mux).n < MUX_OUT)
			p[n].events |= POLLIN;
		if (mux_peek(w->s).n)
			p[n].events |= POLLOUT;
		n++;
	}
	(void)poll(p, n, ms);
	for (size_t i = 2; i < n; i++) {
		struct row *w = &rows[at[i - 2]];

		if (p[i].revents & (POLLIN | POLLHUP))
			push_row(w, p[i].revents);
		if (w->s)
			pull_row(w);
	}
	if (p[0].revents & (POLLIN | POLLHUP))
		read_channel();
	while (mux_next(&mux, &events))
		;
	for (size_t i = 0; i < MUX_RIG_STREAMS; i++)
		if (rows[i].s)
			pull_row(&rows[i]);
	moved = moved || (channel >= 0 && mux_out(&mux).n);
	if (channel >= 0 && mux_flush(&mux, channel) == -EAGAIN)
		moved = false;
	if (p[1].revents)
		take_stream(sock);
}

void mux_rig_begin(int own)
{
	is_origin = true;
	channel = own;
}

bool mux_rig_turn(void)
{
	moved = false;
	turn(-1, 0);
	return moved;
}

void mux_rig_end(void)
{
	for (size_t i = 0; i < MUX_RIG_STREAMS; i++)
		if (rows[i].s)
			end_row(&rows[i]);
	mux_done(&mux);
	fd_close(&channel);
}

void mux_rig_start(struct mux_rig *r, int own, bool plays_origin)
{
	int pair[2];

	is_origin = plays_origin;
	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0, "no sockets");
	r->sock = pair[0];
	if (fork() == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		own = fcntl(own, F_DUPFD, 100);
		(void)dup2(fcntl(pair[1], F_DUPFD, 100), 4);
		(void)dup2(own, 3);
		(void)close_range(5, ~0U, 0);
		for (channel = 3;;)
			turn(4, -1);
	}
	(void)close(pair[1]);
	(void)close(own);
}

void mux_rig_stop(struct mux_rig *r)
{
	fd_close(&r->sock);
}

int mux_rig_add(struct mux_rig *r, uint32_t id)
{
	const struct iovec iov = {&id, sizeof(id)};
	int pair[2];
	char c;

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "no sockets");
	must(fd_send(r->sock, &iov, 1, &pair[1], 1, 0) == sizeof(id), "cannot pass a stream");
	must(read(r->sock, &c, 1) == 1, "the process of the streams has exited");
	(void)close(pair[1]);
	return pair[0];
}
