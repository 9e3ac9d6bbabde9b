/* SPDX-License-Identifier: Apache-2.0 */
/* One port of the guest: data of its wire in and out. Used for sbx.ctl and sbx.net. */
#include "wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

/* Buffers moved before the loop handles other events. */
#define ROUNDS 8

static struct loop_key key_of(const struct port *p)
{
	return (struct loop_key){.kind = (uint8_t)p->ev};
}

void port_start(struct edge *e, struct port *p, int fd, struct wire *wire)
{
	p->fd = fd;
	p->wire = wire;
	if (fd_set_nonblock(fd, true) < 0 || loop_add(&e->loop, fd, EPOLLIN, key_of(p)) < 0)
		e->keeper->lost(e, "cannot watch %s", p->name);
}

static void lost_protocol(struct edge *e, const struct port *p)
{
	e->keeper->lost(e, "protocol error on %s: %s", p->name, wire_error(p->wire));
}

uint8_t port_buf[65536];

/* One read; returns true if there may be more. */
static bool read_once(struct edge *e, struct port *p)
{
	ssize_t n;

	do {
		n = read(p->fd, port_buf, sizeof(port_buf));
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0) {
		e->keeper->lost(e, "%s was closed%s%s", p->name, n < 0 ? ": " : "",
			n < 0 ? strerror(errno) : "");
		return false;
	}
	port_feed(e, p, slice_of(port_buf, (size_t)n));
	/* Wiped: an attacker who compromises this process must not find it. */
	explicit_bzero(port_buf, (size_t)n);
	return n == sizeof(port_buf);
}

void port_feed(struct edge *e, struct port *p, struct slice bytes)
{
	int r = wire_feed(p->wire, bytes, clock_mono_ms());

	if (p->on_fed)
		p->on_fed(e);
	if (r < 0)
		lost_protocol(e, p);
}

/* Fills the output buffer; returns true if it has data. */
static bool fill_out(struct edge *e, struct port *p)
{
	ssize_t n;

	if (p->n_out)
		return true;
	if (!wire_wants_write(p->wire))
		return false;
	if (!p->out)
		p->out = xmalloc(EDGE_OUT);
	n = wire_pull(p->wire, p->out, EDGE_OUT);
	if (n < 0) {
		lost_protocol(e, p);
		return false;
	}
	p->out_at = 0;
	p->n_out = (size_t)n;
	return n > 0;
}

/* One write; returns true if the socket accepts more. */
static bool write_once(struct edge *e, struct port *p)
{
	ssize_t n;

	do {
		n = send(p->fd, p->out + p->out_at, p->n_out, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n < 0) {
		e->keeper->lost(e, "%s was closed: %s", p->name, strerror(errno));
		return false;
	}
	p->out_at += (size_t)n;
	p->n_out -= (size_t)n;
	return true;
}

static void set_blocked(struct edge *e, struct port *p, bool blocked)
{
	if (p->blocked == blocked || e->control.done)
		return;
	p->blocked = blocked;
	if (loop_mod(&e->loop, p->fd, blocked ? EPOLLIN | EPOLLOUT : EPOLLIN, key_of(p)) < 0)
		e->keeper->lost(e, "cannot watch %s", p->name);
}

static void write_rounds(struct edge *e, struct port *p)
{
	for (unsigned i = 0; i < ROUNDS && !e->control.done; i++) {
		if (!fill_out(e, p)) {
			set_blocked(e, p, false);
			return;
		}
		if (!write_once(e, p))
			break;
	}
	/* Full, or enough for now: EPOLLOUT continues. */
	set_blocked(e, p, true);
}

void port_on_event(struct edge *e, struct port *p, uint32_t events)
{
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
		for (unsigned i = 0; i < ROUNDS && !e->control.done && read_once(e, p); i++)
			;
	}
	if (events & EPOLLOUT && !e->control.done)
		write_rounds(e, p);
}

void port_trim(struct port *p)
{
	if (!p->n_out)
		free(TAKE(p->out));
}

void port_flush(struct edge *e, struct port *p)
{
	if (p->wire && !p->blocked && !e->control.done)
		write_rounds(e, p);
}
