/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port - the virtio-serial port to the host and the HTTP/2 session that is on it.
 *
 * How      While the host holds its end open there is one session; when it closes, the session
 *          and all its streams go, and the port is looked at every PORT_PROBE_MS until the host
 *          is back (the kernel reports a hang-up for as long as it is away, so waiting in epoll
 *          would spin). The kernel gives 0 from read only when the host is away and nothing is
 *          left, -EAGAIN when it is merely silent. It learns that the host went or came on another
 *          queue than that of the bytes, so a host's first bytes may come before the hang-up of the
 *          one before it, or before the word that it is there: a session that has heard no more
 *          than these is kept for PORT_PAUSE_MS, not ended.
 * Trust    The host's bytes. A host that left and came back within one turn of the loop shows as
 *          its connection preface (or a server's SETTINGS, where the host is that) in the middle of
 *          the old session: a new session begins there. If the old one was inside a frame that
 *          swallows it, the host hears nothing and has to leave for a moment (PROTOCOL.guest).
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
/* The kernel takes at most this much a write. */
#define PORT_WRITE (32 * 1024)
#define PORT_HELLO 40

struct port {
	/* Set by the owner before port_start. */
	const char *name; /* to look for when fd is -1 */
	enum wire_role role;
	enum wire_port kind;
	struct loop_key key, probe_key;

	struct loop *loop;
	int fd;
	bool in_epoll, wants_out;
	uint64_t pause_end; /* 0, or: a session waits until the kernel knows of the host */
	struct loop_timer probe;
	struct wire *wire; /* NULL while the host is away */
	const struct wire_ops *ops;
	void *ctx;
	void (*on_session)(void *ctx, struct wire *w); /* w is NULL when it has ended */
	struct slice last;			       /* what was read last, while it is there */
	uint8_t hello[PORT_HELLO];		       /* how the host's end of a session begins */
	size_t n_hello;
	size_t out_at, out_n;
	uint8_t out[PORT_WRITE];
};

/* Opens /dev/vportNpM of the named port; waits for it at most 5 s. The fd or a negative errno. */
int port_open_named(const char *name, struct err *err) MUST_CHECK;
/* Takes fd; -1: the port is looked for until it is there. The first look for the host happens at
 * once. */
void port_start(struct port *p, struct loop *loop, int fd);
void port_on_event(struct port *p, uint32_t events);
void port_on_probe(struct port *p);
/* Client: the host does not answer. Drops the session and says what no server can take, so that the
 * host's end breaks and comes again. */
void port_kick(struct port *p);
/* Sends what the session has to say; the main loop calls it after every event. */
void port_pump(struct port *p);
