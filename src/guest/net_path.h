/*
 * net_path - the path of the stream for a connection that was caught (proto/PROTOCOL.net).
 *
 * How      Asks the kernel where the connection was going before the rules turned it.
 * Trust    The kernel. What the address stands for is looked up by edge.
 * See      net_path_test.c
 */
#pragma once

#include <stddef.h>
#include <sys/socket.h>
#include "lib/base/attr.h"

#define NET_PATH_MAX 64

/* -EINVAL for an address that is neither IPv4 nor IPv6. */
int net_path_of(const struct sockaddr *to, char path[NET_PATH_MAX]) MUST_CHECK;
/* -ENOENT for a connection that was made to the catching port itself. */
int net_path_caught(int fd, char path[NET_PATH_MAX]) MUST_CHECK;
