/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ports - published ports: listening sockets on the host for services in the guest.
 *
 * How      ports_open creates a listening socket for each port of the spec when the guest is about
 *          to run. A port that cannot be opened (in use, below 1024) keeps its errno; the sandbox
 *          starts anyway. ports_set changes the list of a running sandbox. An accepted connection
 *          is passed to edge as a stream /tcp/PORT; only its number is kept. No connection is
 *          accepted while edge is down, KEEPER_MAX_PORT_CONNS are open or the rate is exceeded:
 *          further ones wait in the backlog.
 * Trust    Input: connections from any host that can reach the address. No data is read here.
 *          A socket that sbxd passes (src/sbxd/keepers/wake.h) is used with its backlog.
 * Owns     The listening sockets, closed when the sandbox stops or the keeper exits. Accepted
 *          sockets belong to edge. They end with RST unless edge closes them in order, so that a
 *          cut connection never looks like a complete answer.
 * Limits   SPEC_MAX_PORTS, KEEPER_MAX_PORT_CONNS, KEEPER_PORT_*.
 * Never    Listens on a port that the user has not published; the guest cannot publish ports.
 * See      src/guest/net/tcp.h, ports_test.c
 */
#pragma once

#include "lib/os/ipc/keeper_ports.h"
#include "lib/os/loop/loop.h"

#define KEEPER_MAX_PORT_CONNS 192 /* of KEEPER_MAX_STREAMS: the rest is for users and requests */
#define KEEPER_PORT_BACKLOG 128
#define KEEPER_PORT_BATCH 8   /* connections accepted per turn of the loop */
#define KEEPER_PORT_BURST 200 /* accepted without delay; then ... */
#define KEEPER_PORT_RATE \
	500 /* ... this many per second: well below WIRE_JUNK_PER_S, as each may
				* end in a reset */
#define KEEPER_PORT_PAUSE_MS 10
#define KEEPER_PORT_IDLE_S 60 /* without traffic before keepalive probes */
#define KEEPER_PORT_PROBES 4

struct keeper;

struct listener {
	struct keeper_port port;
	int fd; /* -1: not open, see port.code */
	uint32_t gen;
	bool is_watched;
};

struct ports {
	struct listener list[KEEPER_MAX_PORTS];
	size_t n;
	unsigned n_conns;    /* accepted and open */
	uint64_t last_ms;    /* when a connection last began or ended; 0: never */
	uint64_t n_accepted; /* in this run */
	uint64_t spent_us;   /* when all accepted connections would be done at KEEPER_PORT_RATE */
	bool is_open;
	int given[KEEPER_MAX_PORTS]; /* listening sockets of sbxd, until ports_open */
	size_t n_given;
	struct loop_timer timer;
};

void ports_init(struct keeper *k);
bool ports_is_live(const struct keeper *k, struct loop_key key);
/* A listening socket that sbxd had while the sandbox was suspended: ports_open uses it if it is at
 * the address of a port. Takes fd. */
void ports_give(struct keeper *k, int fd);
/* Opens the ports of the spec. */
void ports_open(struct keeper *k);
/* Replaces the list; ports in both lists stay open. Returns -EBADMSG on an invalid address. */
int ports_set(struct keeper *k, const struct keeper_ports *wanted) MUST_CHECK;
void ports_close(struct keeper *k);
/* Sends the list of ports to sbxd. */
int ports_send(struct keeper *k, int sock, uint32_t id) MUST_CHECK;
/* Enables or disables the listeners, depending on the current state. */
void ports_watch(struct keeper *k);
void ports_on_accept(struct keeper *k, const struct loop_event *ev);
/* All connections are closed. */
void ports_on_edge_end(struct keeper *k);
