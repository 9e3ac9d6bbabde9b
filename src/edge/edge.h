/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edge - the parts of sbx-edge: main.c (start, seal, the switch), control.c (keeper's messages),
 *        port.c (bytes of the two wires), guest.c and bridge.c (sbx.ctl and its streams), net.h and
 *        its parts (sbx.net), selftest.c (--jail-selftest).
 *
 * How      Each OPEN of the keeper gives a connected socket; it becomes a struct bridge, tied to
 *          one HTTP/2 stream. Host to guest, the wire pulls straight out of the socket when the
 *          guest's window allows. Guest to host, bytes are sent at once, what the socket does not
 *          take waits in to_host, whose size is the window: a socket that nobody reads stops its
 *          own stream and nothing else.
 * Trust    Eats the guest's bytes (through lib/wire/wire) and never looks into a body.
 * Owns     The bridged sockets, the wire's socket, fd EDGE_CONTROL_FD.
 * Limits   EDGE_MAX_STREAMS, WIRE_STREAM_WINDOW a stream, EDGE_OUT bytes towards the guest.
 * See      README, lib/os/ipc/edge_chan.h, proto/PROTOCOL.wire
 */
#pragma once

#include "lib/base/bufq.h"
#include "lib/os/ipc/edge_chan.h"
#include "lib/os/loop/loop.h"
#include "lib/wire/wire/wire.h"

#define EDGE_CONTROL_FD 3
#define EDGE_OUT 65536
/* How long bytes of a closed socket may still go to the guest before its stream is reset. */
#define EDGE_LINGER_MS 1000
#define EDGE_PING_MS 1000
/* Heap of the whole process, counted by the allocator. Above it connections of sbx.net are closed,
 * the largest first: budget.c. */
#define EDGE_BUDGET (192 * 1024 * 1024)

enum edge_ev {
	EDGE_EV_CONTROL,
	EDGE_EV_GUEST,
	EDGE_EV_BRIDGE,
	EDGE_EV_READY_TIMEOUT,
	EDGE_EV_PING_TIMEOUT,
	EDGE_EV_LINGER,
	EDGE_EV_NET,
	EDGE_EV_CONN,
	EDGE_EV_CONN_TIMER,
};

/* Exit statuses, for the log of whoever started it. */
enum edge_exit { EDGE_EXIT_OK = 0, EDGE_EXIT_START = 1, EDGE_EXIT_LOST = 3, EDGE_EXIT_KEEPER = 4 };

struct bridge {
	bool used;
	bool stream;		   /* the HTTP/2 stream is there */
	bool guest_ended;	   /* the guest has ended its direction */
	bool host_ended;	   /* the socket has no more bytes */
	bool hup;		   /* the socket is closed in both directions */
	bool replied;		   /* the guest's head came */
	bool opened_due, over_due; /* to be said to the keeper; over_due: all is over but that */
	uint16_t status;
	enum edge_reason reason;
	int fd;
	uint32_t gen;
	uint32_t id;  /* keeper's */
	uint32_t sid; /* the stream's */
	struct bufq to_host;
	struct loop_timer linger;
};

struct edge;
struct net;
struct opener; /* the sandbox's CA: open_ca.c */

/* One of the guest's ports and the wire on it. */
struct port {
	const char *name; /* for people */
	enum edge_ev ev;
	int fd;
	struct wire *wire;
	bool blocked; /* the socket takes no more now; EPOLLOUT is asked for */
	uint8_t *out;
	size_t n_out, out_at;
	void (*on_fed)(struct edge *e); /* after each wire_feed; may be NULL */
};

struct edge {
	struct loop loop;
	enum edge_phase phase;
	struct port ctl;
	struct wire *wire;     /* of ctl */
	struct net *net;       /* NULL until the keeper says NET */
	struct opener *opener; /* NULL until CONFIG */
	struct bridge bridges[EDGE_MAX_STREAMS];
	struct loop_timer ready_timer, ping_timer;
	uint32_t ready_ms;
	uint32_t first_ms; /* for the guest's first bytes, and for its TLS handshake */
	/* The PING being answered, and the PONG that could not be sent yet. */
	bool pinging, pong_due;
	uint32_t ping_id, pong_ms;
	uint64_t ping_cookie, ping_at_ms;
	/* A refused OPEN that could not be told yet; only one, as nothing is read meanwhile. */
	bool refused_due;
	uint32_t refused_id;
	bool reports_due; /* fd 3 takes no more now */
	bool asks_due;	  /* the same for an ASK: verdicts are still read */
	bool done;
	enum edge_exit status;
};

/* control.c */
void control_on_event(struct edge *e, uint32_t events);
/* Says what is due about a bridge, or later when the keeper does not read; frees it at the end. */
void control_report(struct edge *e, struct bridge *b);
/* All bridges are taken. */
void control_refuse(struct edge *e, uint32_t id);
void control_ready(struct edge *e);
void control_on_pong(struct edge *e, uint64_t cookie);
void control_on_ping_timeout(struct edge *e);
/* The guest or the wire is lost: tells the keeper, and the loop ends. */
void control_lost(struct edge *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* An ASK goes out: 0, or -EAGAIN when the keeper does not read now (asks_flush is called when it
 * does again) or is gone. */
int control_send_ask(struct edge *e, uint32_t id, const struct edge_ask *ask) MUST_CHECK;

/* port.c. fd is taken. */
void port_start(struct edge *e, struct port *p, int fd, struct wire *wire);
void port_on_event(struct edge *e, struct port *p, uint32_t events);
/* What was read: port_on_event does it. */
void port_feed(struct edge *e, struct port *p, struct slice bytes);
/* Sends what the wire has; called before the loop waits. */
void port_flush(struct edge *e, struct port *p);

/* guest.c */
void guest_start(struct edge *e, int fd, uint32_t ready_ms);
void guest_on_ready_timeout(struct edge *e);

/* bridge.c */
extern const struct wire_ops bridge_wire_ops;
/* fd is taken. */
void bridge_open(struct edge *e, uint32_t id, const char *path, int fd);
void bridge_on_event(struct edge *e, struct loop_event ev);
void bridge_on_linger(struct edge *e, struct loop_key key);
void bridge_free(struct edge *e, struct bridge *b);

/* selftest.c */
int edge_selftest(void);
