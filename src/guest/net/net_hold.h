/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_hold - refuses a denied connection when a program connects, not afterwards.
 *
 * How      The rules (net_rules.h) pass the first packet of each outgoing connection to the
 *          kernel's queue NET_HOLD_QUEUE, before it is redirected to the gateway. For each packet
 *          the host is queried on a stream /may/ADDR/PORT. Status 403 releases the packet with
 *          NET_HOLD_MARK, so that it is not redirected and the rules answer with a reset (connect()
 *          gives ECONNREFUSED). Any other status releases it unchanged, and so does any failure (no
 *          host, no answer within NET_HOLD_MS, table full): the connection is then made, and the
 *          host decides about its stream.
 * Trust    Packets of the guest's programs, the kernel's messages, and the host. Enforces nothing:
 *          the host's decision about the stream of the connection does.
 * Owns     The socket to the queue and the packets in it.
 * Limits   NET_MAX_HELD packets, NET_HOLD_MS each, NET_HOLD_COPY bytes of each are read.
 * See      net.h, proto/PROTOCOL.net, net_vm_test.c
 */
#pragma once

#include "lib/os/loop/loop.h"
#include "lib/wire/wire/wire.h"
#include "lib/base/err.h"

#define NET_HOLD_QUEUE 29538
#define NET_HOLD_MARK 0x73627801u
#define NET_HOLD_PASS 0x73627802u /* SO_MARK of a probe, which tests the host's decision */
#define NET_HOLD_COPY 128
#define NET_HOLD_MS 2000
#define NET_HOLD_SWEEP_MS 500
#define NET_MAX_HELD 64 /* with NET_MAX_CONNS less than WIRE_NET_STREAMS */

struct net_held {
	bool used;	 /* its stream exists */
	bool answered;	 /* the packet was released */
	uint32_t packet; /* the kernel's number of it */
	uint32_t id;	 /* stream */
	uint64_t at_ms;
};

struct net_hold {
	struct loop *loop;
	struct wire *wire; /* NULL while edge is away */
	int fd;		   /* -1: nothing is held */
	unsigned n;
	struct loop_timer timer;
	struct net_held held[NET_MAX_HELD];
};

/* Binds the queue. h->fd stays -1 if the kernel has no queues. */
int net_hold_start(struct net_hold *h, struct err *err) MUST_CHECK;
void net_hold_on_event(struct net_hold *h);
void net_hold_on_timer(struct net_hold *h);
void net_hold_on_reply(struct net_hold *h, uint32_t id, uint32_t idx, unsigned status);
void net_hold_on_close(struct net_hold *h, uint32_t id, uint32_t idx);
/* Edge has closed: releases all packets. */
void net_hold_drop_all(struct net_hold *h);
