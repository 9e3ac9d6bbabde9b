/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits - times, sizes and event numbers of sbx-edge.
 *
 * How      Constants only.
 * Trust    Internal.
 */
#pragma once

#include "lib/os/ipc/edge_chan.h"
#include "lib/os/worker/control.h"
#include "lib/wire/wire/wire.h"

#define EDGE_OUT 65536
/* How long data of a closed socket may still be sent to the guest before its stream is reset. */
#define EDGE_LINGER_MS 1000
/* Heap of the whole process, counted by the allocator. Above it connections of sbx.net are closed,
 * the largest first: budget.c. */
#define EDGE_BUDGET (192 * 1024 * 1024)

#define NET_MAX_CONNS WIRE_NET_STREAMS
#define CONN_OUT 65536
#define CONN_SNIFF_MS 250    /* silence after which a redirected connection is asked about */
#define CONN_OPEN_MS 120000  /* for egress to connect: longer than all its own attempts */
#define CONN_END_MS 120000   /* without progress of the last data */
#define PROXY_HEAD_MS 30000  /* for a request's head to be complete */
#define PROXY_IDLE_MS 120000 /* between two requests */
/* So few that all their verdicts, each with an fd, fit into the keeper's socket in any case. */
#define NET_ASKS 64
#define NET_GATHER 16 /* pieces of one connection that are sent together */
/* Of an intercepted connection: plain data in each direction, and the records for the guest. TLS
 * itself holds one incomplete record per direction. */
#define OPEN_IN 16384
#define OPEN_OUT 24576
#define OPEN_RECORD 16128  /* so that a record is not longer than a frame of the wire */
#define OPEN_RECORDS 17408 /* one record and some bytes of TLS itself */

enum edge_ev {
	EDGE_EV_CONTROL,
	EDGE_EV_GUEST,
	EDGE_EV_BRIDGE,
	EDGE_EV_READY_TIMEOUT,
	EDGE_EV_LINGER,
	EDGE_EV_NET,
	EDGE_EV_CONN,
	EDGE_EV_CHANNEL,
	EDGE_EV_CONN_TIMER,
};

/* The exit status after LOST; the others are enum control_exit. */
#define EDGE_EXIT_LOST 3
