/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp - connections of the host to services of the guest: the streams /tcp/PORT.
 *
 * How      Each stream connects to 127.0.0.1:PORT and, if the connection is refused, to [::1]:PORT.
 *          The answer's head (200) reports the connection, a reset the failure. Data of the host
 *          waits in the queue until then. The connection is in a table of net_conn.h, whose
 *          functions pass its data, end and close.
 *
 *          Loopback traffic does not use eth0, so the rules of net_rules.c do not apply. A socket
 *          that the kernel connected to itself (its own port was the requested one) is reset.
 * Trust    Services of the guest, and the host.
 * Limits   TCP_MAX; beyond, the stream is reset. TCP_CONNECT_MS for one address.
 * See      proto/PROTOCOL.guest, tcp_test.c, src/keeper/network/ports.h
 */
#pragma once

#include "net_conn.h"

#define TCP_MAX WIRE_MAX_STREAMS
#define TCP_CONNECT_MS 10000

/* Whether it is a path of these streams; then *ret_port is 1 to 65535, or 0 if invalid. */
bool tcp_is_path(const char *path, uint16_t *ret_port);
int tcp_open(struct net_conns *t, uint32_t id, uint16_t port, uint32_t *ret_idx) MUST_CHECK;
void tcp_on_event(struct net_conns *t, const struct loop_event *ev);
