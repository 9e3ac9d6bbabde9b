/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ports - the published ports: sockets of the host that listen for the guest's services.
 *
 * How      ports_open makes a listening socket for each port of the spec when the guest is about to
 *          run; what cannot be opened (in use, below 1024) keeps its errno and does not keep the
 *          sandbox from starting. ports_set changes the list of a running one. An accepted
 *          connection goes to edge as a stream /tcp/PORT and is forgotten but for its number.
 *          While edge is away, KEEPER_MAX_PORT_CONNS are open or they came too fast, nothing is
 *          accepted: who connects waits in the backlog of the kernel.
 * Trust    Whoever can reach the address. Not one byte is read here.
 * Owns     The listening sockets; they are closed when the sandbox stops, and by the kernel when
 *          the keeper dies. Accepted ones are edge's. They are set to end by RST unless edge says
 *          otherwise, so that a cut connection never looks like a whole answer.
 * Limits   SPEC_MAX_PORTS, KEEPER_MAX_PORT_CONNS, KEEPER_PORT_*.
 * Never    Listens for anything that the user has not published; the guest has no say in it.
 * See      src/guest/net/tcp.h, ports_test.c
 */
#pragma once

#include "lib/os/ipc/keeper_ports.h"
#include "lib/os/loop/loop.h"

#define KEEPER_MAX_PORT_CONNS 192 /* of KEEPER_MAX_STREAMS: the rest is for users and questions */
#define KEEPER_PORT_BACKLOG 128
#define KEEPER_PORT_BATCH 8   /* connections taken in one turn of the loop */
#define KEEPER_PORT_BURST 200 /* taken as fast as they come; then ... */
#define KEEPER_PORT_RATE \
	500 /* ... so many a second: well below WIRE_JUNK_PER_S, as each may end
				* in a reset */
#define KEEPER_PORT_PAUSE_MS 10
#define KEEPER_PORT_IDLE_S 60 /* of silence, then the client's host is asked whether it is there */
#define KEEPER_PORT_PROBES 4

struct keeper;

struct listener {
	struct keeper_port port;
	int fd; /* -1: not open, port.code says why */
	uint32_t gen;
	bool is_watched;
};

struct ports {
	struct listener list[KEEPER_MAX_PORTS];
	size_t n;
	unsigned n_conns;    /* accepted and open */
	uint64_t last_ms;    /* when a connection began or ended; 0: never */
	uint64_t n_accepted; /* in this run */
	uint64_t spent_us;   /* when those so far would have been taken at KEEPER_PORT_RATE */
	bool is_open;
	struct loop_timer timer;
};

void ports_init(struct keeper *k);
bool ports_is_live(const struct keeper *k, struct loop_key key);
/* Opens what the spec says. */
void ports_open(struct keeper *k);
/* Another list from now on: what is in both stays open. -EBADMSG when an address is none. */
int ports_set(struct keeper *k, const struct keeper_ports *wanted) MUST_CHECK;
void ports_close(struct keeper *k);
/* Tells sbxd what there is. */
int ports_send(struct keeper *k, int sock, uint32_t id) MUST_CHECK;
/* Waits for connections, or does not, as things are now. */
void ports_watch(struct keeper *k);
void ports_on_accept(struct keeper *k, const struct loop_event *ev);
/* All connections are over. */
void ports_on_edge_end(struct keeper *k);
