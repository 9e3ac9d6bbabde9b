/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire - the data of the two ports, and the streams of sbx.ctl.
 *
 * How      port.c moves data between a port and lib/wire/wire. Each OPEN of the keeper passes a
 *          connected socket, which becomes a struct bridge tied to one HTTP/2 stream. From host to
 *          guest, data is read from the socket when the guest's window allows it. From guest to
 *          host, data is sent immediately; the rest waits in to_host, whose size is the window: a
 *          socket that is not read blocks only its own stream.
 * Trust    Data of the guest, through lib/wire/wire. Does not parse bodies.
 * Owns     The bridged sockets, the sockets of the ports.
 * Limits   EDGE_MAX_STREAMS, WIRE_STREAM_WINDOW a stream, EDGE_OUT bytes towards the guest.
 */
#pragma once

#include "src/edge/state/state.h"

/* port.c. For what one event reads, of a port or of a channel: used by one of them at a time. */
extern uint8_t port_buf[65536];
/* Takes fd. */
void port_start(struct edge *e, struct port *p, int fd, struct wire *wire);
void port_on_event(struct edge *e, struct port *p, uint32_t events);
/* Parses data that was read; called by port_on_event. */
void port_feed(struct edge *e, struct port *p, struct slice bytes);
/* Sends the output of the wire; called before the loop waits. */
void port_flush(struct edge *e, struct port *p);
/* Frees its buffer, if nothing waits in it. */
void port_trim(struct port *p);

/* guest.c */
void guest_start(struct edge *e, int fd, uint32_t ready_ms);
void guest_on_ready_timeout(struct edge *e);

/* bridge.c */
extern const struct wire_ops bridge_wire_ops;
/* Takes fd. */
void bridge_open(struct edge *e, uint32_t id, const char *path, int fd);
void bridge_on_event(struct edge *e, struct loop_event ev);
void bridge_on_linger(struct edge *e, struct loop_key key);
void bridge_free(struct edge *e, struct bridge *b);
