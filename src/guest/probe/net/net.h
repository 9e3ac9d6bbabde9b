/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net - the network verbs of sbx-probe, and their common parts: addresses, bytes, limited waits.
 *
 * How      net_parse accepts numbers only: the resolvers of host and guest are subjects of the
 *          probes. `gateway` is the address of the sandbox's own proxy and resolver. net_bytes
 *          undoes \r \n \0 \xNN in an argument.
 * Trust    The arguments of probes. answer.c handles data of peers.
 * Limits   NET_WAIT_MS for all of one verb; the variable PROBE_MS makes it shorter.
 * Never    Resolves a name. Waits without a limit.
 * See      README
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include "lib/base/attr.h"

#define NET_WAIT_MS 6000
#define NET_MAX_BYTES 16384
#define NET_GATEWAY "198.18.0.1"

struct net_addr {
	union {
		struct sockaddr sa;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	};
	socklen_t n;
};

int net_parse(const char *addr, const char *port, struct net_addr *ret) MUST_CHECK;
/* Rest of NET_WAIT_MS since `start`, a result of net_now. */
int net_now(void);
int net_left(int start);
/* Waits for events of poll(2); returns 1, or 0 on a timeout. */
int net_wait(int fd, short events, int ms);
/* Connects within the remaining time, or returns -errno. */
int net_connect(const struct net_addr *to, int start) MUST_CHECK;
/* Decodes escapes in text; returns the number of bytes, at most size. */
size_t net_bytes(const char *text, uint8_t *buf, size_t size);

/* Builds a ClientHello for the name (n_name 0: without one); returns its length. ech: with an
 * encrypted_client_hello, h2: ALPN has h2 only. */
size_t hello_make(const uint8_t *name, size_t n_name, bool ech, bool h2, uint8_t *buf, size_t size);
/* Sends one frame on the interface of that index, in a new AF_XDP socket; -errno. */
int xdp_send(unsigned index, const uint8_t *frame, size_t n) MUST_CHECK;

int probe_socket(int argc, char **argv);
int probe_peer(int argc, char **argv);
int probe_unix_connect(int argc, char **argv);
int probe_unix_listen(int argc, char **argv);
int probe_talk(int argc, char **argv);
int probe_dns(int argc, char **argv);
int probe_udp(int argc, char **argv);
int probe_raw(int argc, char **argv);
int probe_packet(int argc, char **argv);
int probe_xdp(int argc, char **argv);
int probe_vsock(int argc, char **argv);
int probe_listen(int argc, char **argv);
