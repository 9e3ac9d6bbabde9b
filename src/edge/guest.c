#include "edge.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define IN_BYTES 65536
/* Buffers moved before the loop looks at the other events again. */
#define ROUNDS 8

static const struct loop_key guest_key = {.kind = EDGE_EV_GUEST};

void guest_start(struct edge *e, int fd, uint32_t ready_ms)
{
	e->guest_fd = fd;
	e->ready_ms = ready_ms;
	if (fd_set_nonblock(fd, true) < 0 || loop_add(&e->loop, fd, EPOLLIN, guest_key) < 0) {
		control_lost(e, "what came as the guest's wire cannot be watched");
		return;
	}
	e->wire = wire_new(WIRE_CLIENT, WIRE_CTL, &bridge_wire_ops, e);
	loop_timer_set(&e->loop, &e->ready_timer, clock_mono_ms() + ready_ms,
		(struct loop_key){.kind = EDGE_EV_READY_TIMEOUT});
}

void guest_on_ready_timeout(struct edge *e)
{
	if (e->phase == EDGE_PHASE_CONNECT)
		control_lost(e, "the guest did not answer within %u ms", e->ready_ms);
}

static void lost_protocol(struct edge *e)
{
	control_lost(e, "the guest broke the protocol: %s", wire_error(e->wire));
}

/* One read; whether there may be more. */
static bool read_once(struct edge *e)
{
	static uint8_t buf[IN_BYTES];
	ssize_t n;

	do {
		n = read(e->guest_fd, buf, sizeof(buf));
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0) {
		control_lost(e, "the wire to the guest ended%s%s", n < 0 ? ": " : "",
			n < 0 ? strerror(errno) : "");
		return false;
	}
	if (wire_feed(e->wire, slice_of(buf, (size_t)n), clock_mono_ms()) < 0) {
		lost_protocol(e);
		return false;
	}
	return n == sizeof(buf);
}

/* Fills the buffer of outgoing bytes; whether there are any. */
static bool fill_out(struct edge *e)
{
	ssize_t n;

	if (e->n_out)
		return true;
	if (!wire_wants_write(e->wire))
		return false;
	if (!e->out)
		e->out = xmalloc(EDGE_OUT);
	n = wire_pull(e->wire, e->out, EDGE_OUT);
	if (n < 0) {
		lost_protocol(e);
		return false;
	}
	e->out_at = 0;
	e->n_out = (size_t)n;
	return n > 0;
}

/* One write; whether the socket takes more. */
static bool write_once(struct edge *e)
{
	ssize_t n;

	do {
		n = send(e->guest_fd, e->out + e->out_at, e->n_out, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n < 0) {
		control_lost(e, "the wire to the guest ended: %s", strerror(errno));
		return false;
	}
	e->out_at += (size_t)n;
	e->n_out -= (size_t)n;
	return true;
}

static void set_blocked(struct edge *e, bool blocked)
{
	if (e->guest_blocked == blocked || e->done)
		return;
	e->guest_blocked = blocked;
	if (loop_mod(&e->loop, e->guest_fd, blocked ? EPOLLIN | EPOLLOUT : EPOLLIN, guest_key) < 0)
		control_lost(e, "the wire to the guest cannot be watched");
}

static void write_rounds(struct edge *e)
{
	for (unsigned i = 0; i < ROUNDS && !e->done; i++) {
		if (!fill_out(e)) {
			set_blocked(e, false);
			return;
		}
		if (!write_once(e))
			break;
	}
	/* Full, or enough for now: EPOLLOUT says when to go on. */
	set_blocked(e, true);
}

void guest_on_event(struct edge *e, uint32_t events)
{
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
		for (unsigned i = 0; i < ROUNDS && !e->done && read_once(e); i++)
			;
	}
	if (events & EPOLLOUT && !e->done)
		write_rounds(e);
}

void guest_flush(struct edge *e)
{
	if (e->wire && !e->guest_blocked && !e->done)
		write_rounds(e);
}
