/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_dns - DNS queries of the guest, over UDP and TCP: one stream each.
 *
 * How      A datagram, or a message of a TCP connection without its two bytes of length, is the
 *          body of a stream; the body of the answer is returned the same way. One TCP connection
 *          may have many queries under way; answers are sent as they arrive.
 * Trust    Programs of the guest, and the host. Messages are not parsed here: edge does that.
 * Owns     Messages under way and the TCP connections.
 * Limits   NET_MAX_QUERIES at the same time (further datagrams are dropped: resolvers retry),
 *          NET_MAX_DNS_CONNS with NET_MAX_PIPELINE each, NET_MAX_DNS_UDP bytes of a datagram,
 *          NET_QUERY_MS for an answer, NET_DNS_IDLE_MS for a silent connection.
 * See      net.h
 */
#pragma once

#include <netinet/in.h>
#include <sys/types.h>
#include "lib/base/bufq.h"
#include "lib/os/loop/loop.h"
#include "lib/wire/wire/wire.h"

#define NET_MAX_QUERIES 256
#define NET_MAX_DNS_CONNS 64
#define NET_MAX_PIPELINE 16
#define NET_MAX_DNS_UDP 4096
#define NET_MAX_DNS 65535
#define NET_DNS_QUEUE (2 * (NET_MAX_DNS + 2))
#define NET_QUERY_MS 10000
#define NET_DNS_IDLE_MS 30000
#define NET_DNS_SWEEP_MS 1000

struct net_query {
	bool used;
	uint32_t id;	/* stream */
	uint64_t at_ms; /* time of the query */
	/* The client: a TCP connection, or a socket and its peer address. */
	bool is_tcp;
	uint32_t conn, conn_gen;
	int udp_fd;
	socklen_t from_len;
	struct sockaddr_in6 from;
	uint8_t *msg, *answer;
	size_t n_msg, at, n_answer;
};

struct net_dns_conn {
	bool used;
	int fd;
	uint32_t gen;
	unsigned n_open; /* queries under way */
	bool ended;	 /* the program sends no more queries */
	uint32_t events;
	uint64_t used_ms;
	size_t n_in;
	uint8_t *in; /* NET_MAX_DNS + 2 */
	struct bufq queue;
};

struct net_dns {
	struct loop *loop;
	struct wire *wire; /* NULL while edge is away */
	struct loop_timer sweep;
	unsigned n_queries, n_conns;
	struct net_query queries[NET_MAX_QUERIES];
	struct net_dns_conn conns[NET_MAX_DNS_CONNS];
};

/* Forwards a waiting datagram, or drops it while edge is away. */
void net_dns_on_datagram(struct net_dns *d, int fd);
/* Takes fd. */
void net_dns_open(struct net_dns *d, int fd);
void net_dns_on_event(struct net_dns *d, const struct loop_event *ev);
void net_dns_on_timer(struct net_dns *d);
ssize_t net_dns_pull(struct net_dns *d, uint32_t idx, uint8_t *buf, size_t n);
void net_dns_on_data(struct net_dns *d, uint32_t idx, struct slice bytes);
void net_dns_on_end(struct net_dns *d, uint32_t idx);
void net_dns_on_close(struct net_dns *d, uint32_t idx, int error);
void net_dns_drop_all(struct net_dns *d);
