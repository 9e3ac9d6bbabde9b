/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_path - the path of the stream for a connection that was caught or is held
 * (proto/PROTOCOL.net).
 *
 * How      Asks the kernel where the connection was going before the rules turned it, or reads that
 *          in its first packet.
 * Trust    The kernel; packets are what programs of the guest made them. What the address stands
 *          for is looked up by edge.
 * See      net_path_test.c
 */
#pragma once

#include <stddef.h>
#include <sys/socket.h>
#include "lib/base/attr.h"
#include "lib/base/slice.h"

#define NET_PATH_MAX 64

/* kind is "tcp" or "may". -EINVAL for an address that is neither IPv4 nor IPv6. */
int net_path_of(const char *kind, const struct sockaddr *to, char path[NET_PATH_MAX]) MUST_CHECK;
/* "/may/..." of an IP packet whose TCP header follows at once. -EINVAL for any other. */
int net_path_of_packet(struct slice packet, char path[NET_PATH_MAX]) MUST_CHECK;
/* -ENOENT for a connection that was made to the catching port itself. */
int net_path_caught(int fd, char path[NET_PATH_MAX]) MUST_CHECK;
