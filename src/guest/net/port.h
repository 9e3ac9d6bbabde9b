/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port - the virtio-serial port to the host and its HTTP/2 session.
 *
 * How      While the host holds its end open there is one session. When it closes, the session and
 *          all its streams end, and the port is polled every PORT_PROBE_MS until the host is back
 *          (the kernel reports a hang-up while it is away, so epoll would spin). read returns 0
 *          only if the host is away and no data is left, -EAGAIN if it is merely silent. The kernel
 *          learns about the host's presence and gets its data on different queues. So a host's
 *          first data may arrive before the hang-up of the previous one, or before the notice that
 *          it is present: a session with no other data is kept for PORT_PAUSE_MS, not ended.
 * Trust    Input: data of the host. A host that left and returned within one turn of the loop shows
 *          as its connection preface (or a server's SETTINGS) in the middle of the old session: a
 *          new session begins there. If a frame of the old session swallows it, the host gets no
 *          answer and has to leave for a moment (PROTOCOL.guest).
 * Owns     The port's fd and the session.
 * Limits   PORT_TURN bytes a turn, so that execs get theirs.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/os/loop/loop.h"
#include "lib/wire/wire/wire.h"

#define PORT_PROBE_MS 10
#define PORT_PAUSE_MS 1000
#define PORT_TURN (256 * 1024)
/* The kernel accepts at most this much per write. */
#define PORT_WRITE (32 * 1024)
#define PORT_HELLO 40

struct port {
	/* Set by the owner before port_start. */
	const char *name; /* to search for if fd is -1 */
	enum wire_role role;
	enum wire_port kind;
	struct loop_key key, probe_key;

	struct loop *loop;
	int fd;
	bool in_epoll, wants_out;
	uint64_t pause_end; /* 0, or: a session waits until the kernel reports the host */
	struct loop_timer probe;
	struct wire *wire; /* NULL while the host is away */
	const struct wire_ops *ops;
	void *ctx;
	void (*on_session)(void *ctx, struct wire *w); /* w is NULL after its end */
	struct slice last;			       /* data that was read last, while valid */
	uint8_t hello[PORT_HELLO];		       /* how the host's end of a session begins */
	size_t n_hello;
	size_t out_at, out_n;
	uint8_t out[PORT_WRITE];
};

/* Opens /dev/vportNpM of the named port, within 5 s. Returns the fd or a negative errno. */
int port_open_named(const char *name, struct err *err) MUST_CHECK;
/* Takes fd; -1: the port is searched until it exists. The host is first checked immediately. */
void port_start(struct port *p, struct loop *loop, int fd);
void port_on_event(struct port *p, uint32_t events);
void port_on_probe(struct port *p);
/* Client: the host does not answer. Drops the session and sends data that no server accepts, so
 * that the host's end breaks and reconnects. */
void port_kick(struct port *p);
/* Sends the session's output; the main loop calls it after every event. */
void port_pump(struct port *p);
