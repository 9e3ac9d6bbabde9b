/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_path - the path of the stream for a redirected or held connection (proto/PROTOCOL.net).
 *
 * How      Queries the kernel for the original target of the connection, or reads it from its first
 *          packet.
 * Trust    The kernel; programs of the guest choose the packets. edge looks up the name of the
 *          address.
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
/* Returns "/may/..." of an IP packet directly followed by a TCP header, or -EINVAL. */
int net_path_of_packet(struct slice packet, char path[NET_PATH_MAX]) MUST_CHECK;
/* Returns -ENOENT for a connection to the redirect port itself. */
int net_path_caught(int fd, char path[NET_PATH_MAX]) MUST_CHECK;
