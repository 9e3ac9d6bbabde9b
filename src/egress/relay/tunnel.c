/* SPDX-License-Identifier: Apache-2.0 */
/*
 * splice moves data through a pipe without a copy to user space. Compared with read and write of 64
 * KiB, it takes a third of the time from TCP to the socket of edge, and two thirds in the other
 * direction (README). One pipe serves all tunnels, because it is empty again after each step. Only
 * a direction whose reader is slow keeps a pipe, with at most 64 KiB in it. When all EGRESS_PIPES
 * are in use, further directions use MSG_PEEK, send what the reader takes and then consume that:
 * slower, but without extra memory.
 */
#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE 65536
#define ROUNDS 16 /* then other events are handled */

static bool take_pipe(struct egress *e, struct way *w)
{
	if (w->pipe[0] >= 0)
		return true;
	if (e->idle_pipe[0] >= 0) {
		w->pipe[0] = TAKE_FD(e->idle_pipe[0]);
		w->pipe[1] = TAKE_FD(e->idle_pipe[1]);
		return true;
	}
	if (e->n_pipes == EGRESS_PIPES || pipe2(w->pipe, O_NONBLOCK | O_CLOEXEC) < 0) {
		w->pipe[0] = w->pipe[1] = -1;
		return false;
	}
	e->n_pipes++;
	return true;
}

/* Data that is still in the pipe is lost. */
static void give_pipe(struct egress *e, struct way *w)
{
	if (w->pipe[0] < 0)
		return;
	if (w->n_held == 0 && e->idle_pipe[0] < 0) {
		e->idle_pipe[0] = TAKE_FD(w->pipe[0]);
		e->idle_pipe[1] = TAKE_FD(w->pipe[1]);
		return;
	}
	fd_close(&w->pipe[0]);
	fd_close(&w->pipe[1]);
	w->n_held = 0;
	e->n_pipes--;
}

enum moved { MOVED, MOVED_NOT, MOVED_END, MOVED_NO_READER, MOVED_BROKEN };

static enum moved moved_of(ssize_t r, enum moved at_error)
{
	if (r >= 0)
		return r ? MOVED : MOVED_END;
	return errno == EAGAIN || errno == EINTR ? MOVED_NOT : at_error;
}

static enum moved move_by_pipe(struct way *w, int from, int to, uint64_t *n_bytes)
{
	ssize_t r;
	enum moved moved;

	if (w->n_held == 0) {
		r = splice(from, NULL, w->pipe[1], NULL, PIECE, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
		moved = moved_of(r, MOVED_BROKEN);
		if (moved != MOVED)
			return moved;
		w->n_held = (size_t)r;
	}
	r = splice(w->pipe[0], NULL, to, NULL, w->n_held, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	moved = moved_of(r, MOVED_NO_READER);
	if (moved != MOVED)
		return moved == MOVED_END ? MOVED_NO_READER : moved;
	w->n_held -= (size_t)r;
	*n_bytes += (uint64_t)r;
	return MOVED;
}

static enum moved move_by_peek(int from, int to, uint64_t *n_bytes)
{
	static uint8_t buf[PIECE];
	ssize_t n = recv(from, buf, sizeof(buf), MSG_PEEK | MSG_DONTWAIT);
	enum moved moved = moved_of(n, MOVED_BROKEN);

	if (moved != MOVED)
		return moved;
	n = send(to, buf, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
	moved = moved_of(n, MOVED_NO_READER);
	if (moved != MOVED)
		return moved;
	*n_bytes += (uint64_t)n;
	while (n > 0) {
		ssize_t r = recv(from, buf, (size_t)n, MSG_DONTWAIT);

		if (r <= 0)
			return MOVED_BROKEN;
		n -= r;
	}
	return MOVED;
}

static enum moved move_tunnel(struct egress *e, struct exchange *x, int dir)
{
	struct way *w = &x->way[dir];
	struct out *first = dir == WAY_UP ? &x->to_upstream : &x->to_edge;
	int from = dir == WAY_UP ? x->edge_fd : x->upstream_fd;
	int to = dir == WAY_UP ? x->upstream_fd : x->edge_fd;
	uint64_t n = 0;
	int r = out_flush(first, to, dir == WAY_UP ? &x->n_bytes[dir] : &n);

	if (r < 0)
		return r == -EAGAIN ? MOVED_NOT : MOVED_NO_READER;
	if (w->ended && w->n_held == 0)
		return MOVED_END;
	if (take_pipe(e, w))
		return move_by_pipe(w, from, to, &x->n_bytes[dir]);
	return move_by_peek(from, to, &x->n_bytes[dir]);
}

/* Closes this direction. */
static void close_way(struct egress *e, struct exchange *x, int dir)
{
	struct way *w = &x->way[dir];

	give_pipe(e, w);
	out_done(dir == WAY_UP ? &x->to_upstream : &x->to_edge);
	w->ended = w->shut = true;
}

/* Returns true if there may be more data. False also if the exchange has ended. */
static bool pump_way(struct egress *e, struct exchange *x, int dir)
{
	struct way *w = &x->way[dir];
	enum moved moved = MOVED;

	for (unsigned i = 0; i < ROUNDS && moved == MOVED; i++)
		moved = w->shut ? MOVED_NOT : move_tunnel(e, x, dir);
	switch (moved) {
	case MOVED_END:
		close_way(e, x, dir);
		(void)shutdown(dir == WAY_UP ? x->upstream_fd : x->edge_fd, SHUT_WR);
		break;
	case MOVED_NO_READER:
		close_way(e, x, dir);
		exchange_set_timer(e, x, EGRESS_LINGER_MS);
		break;
	case MOVED_BROKEN:
		/* A close by edge is not an error; a reset by the server is passed on. */
		if (dir == WAY_UP) {
			close_way(e, x, dir);
			(void)shutdown(x->upstream_fd, SHUT_WR);
			break;
		}
		e->ops->finish(e, x);
		return false;
	default:
		break;
	}
	if (w->n_held == 0)
		give_pipe(e, w);
	return moved == MOVED;
}

void tunnel_pump(struct egress *e, struct exchange *x)
{
	const uint32_t events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
	uint32_t gen = x->gen;
	bool more_up, more_down;

	more_up = pump_way(e, x, WAY_UP);
	if (x->gen != gen || x->state != EXCHANGE_TUNNEL)
		return;
	more_down = pump_way(e, x, WAY_DOWN);
	if (x->gen != gen || x->state != EXCHANGE_TUNNEL)
		return;
	if (x->way[WAY_UP].shut && x->way[WAY_DOWN].shut) {
		e->ops->finish(e, x);
		return;
	}
	/* Setting an edge-triggered event again reports it again. */
	if (more_up)
		(void)!loop_mod(&e->loop, x->edge_fd, events, exchange_key(e, x, EGRESS_EV_EDGE));
	if (more_down)
		(void)!loop_mod(
			&e->loop, x->upstream_fd, events, exchange_key(e, x, EGRESS_EV_UPSTREAM));
}

void tunnel_on_edge(struct egress *e, struct exchange *x, uint32_t events)
{
	/* Edge has closed; its earlier data is still sent, but not for long. */
	if (events & (EPOLLHUP | EPOLLERR) && !x->way[WAY_DOWN].shut) {
		close_way(e, x, WAY_DOWN);
		exchange_set_timer(e, x, EGRESS_LINGER_MS);
	}
	tunnel_pump(e, x);
}

void tunnel_drop(struct egress *e, struct exchange *x)
{
	give_pipe(e, &x->way[WAY_UP]);
	give_pipe(e, &x->way[WAY_DOWN]);
}

void tunnel_run(struct egress *e, struct exchange *x)
{
	talk_free(TAKE(x->talk));
	loop_timer_clear(&e->loop, &x->timer);
	x->state = EXCHANGE_TUNNEL;
	tunnel_pump(e, x);
}

void tunnel_put_head(struct exchange *x)
{
	const struct http_resp resp = {.status = 200, .body = {.kind = HTTP_BODY_TUNNEL}};
	struct wr wr = out_wr(&x->to_edge, 256);

	if (canon_put_resp(&wr, EGRESS_STREAM, &resp) == 0)
		out_put_wr(&x->to_edge, &wr);
}
