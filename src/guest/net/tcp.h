/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp - connections of the host to services of the guest: the streams /tcp/PORT.
 *
 * How      Each stream connects to 127.0.0.1:PORT and, when nobody listens there, to [::1]:PORT;
 *          the answer's head (200) says that it is connected, a reset that it is not. What the
 *          host sends before that waits in the queue. Then bytes pass: what the service says is
 *          read when the wire asks for it, so a full window stops the service; what the host says
 *          goes to the socket, and what the service does not take yet into a queue of one window.
 *          Each direction ends by itself; a reset on one side is a reset on the other.
 *
 *          Loopback does not leave by eth0, so the rules of net_rules.c do not see it. A socket
 *          that the kernel connected to itself (its own port was the one asked for) is reset.
 * Trust    Services of the guest, and the host.
 * Owns     The sockets and queues.
 * Limits   TCP_MAX; beyond, the stream is reset. TCP_CONNECT_MS for one address.
 *          WIRE_STREAM_WINDOW bytes of queue.
 * See      proto/PROTOCOL.guest, tcp_test.c, src/keeper/network/ports.h
 */
#pragma once

#include <sys/types.h>
#include "lib/base/bufq.h"
#include "lib/os/loop/loop.h"
#include "lib/wire/wire/wire.h"

#define TCP_MAX WIRE_MAX_STREAMS
#define TCP_CONNECT_MS 10000

struct tcp {
	bool used;
	bool is_connected;
	bool is_v6; /* the second try */
	int fd;
	uint16_t port;
	uint32_t gen;
	uint32_t id;	 /* stream; 0: it is over, and the queue's rest goes out */
	bool waits;	 /* the wire wants bytes and the service has said nothing */
	bool host_ended; /* no more will come for the queue */
	bool hung_up;	 /* both directions are over for the kernel: no use in waiting */
	bool in_epoll;
	uint32_t events;
	struct bufq queue; /* towards the service */
	struct loop_timer timer;
};

struct tcps {
	struct loop *loop;
	struct wire *wire;
	unsigned n_used;
	struct tcp slots[TCP_MAX];
};

/* Whether it is a path of these streams; then *ret_port is 1 to 65535, or 0 when it is none. */
bool tcp_is_path(const char *path, uint16_t *ret_port);
int tcp_open(struct tcps *t, uint32_t id, uint16_t port, uint32_t *ret_idx) MUST_CHECK;
void tcp_on_event(struct tcps *t, const struct loop_event *ev);
ssize_t tcp_pull(struct tcps *t, uint32_t idx, uint8_t *buf, size_t n);
void tcp_on_data(struct tcps *t, uint32_t idx, struct slice bytes);
void tcp_on_end(struct tcps *t, uint32_t idx);
void tcp_on_close(struct tcps *t, uint32_t idx, int error);
/* Edge is gone: all that had a stream is reset. */
void tcp_drop_all(struct tcps *t);
