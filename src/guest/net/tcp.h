/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp - connections of the host to services of the guest: the streams /tcp/PORT.
 *
 * How      Each stream connects to 127.0.0.1:PORT and, if the connection is refused, to [::1]:PORT.
 *          The answer's head (200) reports the connection, a reset the failure. Data of the host
 *          waits in the queue until then. Data of the service is read when the wire requests it, so
 *          a full window stops the service. Data of the host is sent to the socket; what the
 *          service does not accept yet waits in a queue of one window. Each direction ends
 *          separately; a reset on one side is a reset on the other.
 *
 *          Loopback traffic does not use eth0, so the rules of net_rules.c do not apply. A socket
 *          that the kernel connected to itself (its own port was the requested one) is reset.
 * Trust    Services of the guest, and the host.
 * Owns     The sockets and queues.
 * Limits   TCP_MAX; beyond, the stream is reset. TCP_CONNECT_MS for one address. WIRE_STREAM_WINDOW
 *          bytes of queue.
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
	uint32_t id;	 /* stream; 0: closed, and the rest of the queue is sent */
	bool waits;	 /* the wire requests data and the service has sent none */
	bool host_ended; /* no more data for the queue */
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

/* Whether it is a path of these streams; then *ret_port is 1 to 65535, or 0 if invalid. */
bool tcp_is_path(const char *path, uint16_t *ret_port);
int tcp_open(struct tcps *t, uint32_t id, uint16_t port, uint32_t *ret_idx) MUST_CHECK;
void tcp_on_event(struct tcps *t, const struct loop_event *ev);
ssize_t tcp_pull(struct tcps *t, uint32_t idx, uint8_t *buf, size_t n);
void tcp_on_data(struct tcps *t, uint32_t idx, struct slice bytes);
void tcp_on_end(struct tcps *t, uint32_t idx);
void tcp_on_close(struct tcps *t, uint32_t idx, int error);
/* Edge has closed: resets all connections with a stream. */
void tcp_drop_all(struct tcps *t);
