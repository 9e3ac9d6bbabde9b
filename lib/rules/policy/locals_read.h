/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locals_read - reads this host's addresses and on-link prefixes from the kernel.
 *
 * How      Three rtnetlink dumps: all addresses, and the routes of the tables `local` and `main`.
 *          An address is one of the host, and so is each address of a local route: packets for it
 *          arrive here, from whatever address. A unicast route without a gateway is an on-link
 *          prefix. Prefixes that are shorter than LOCALS_MIN_V4 or LOCALS_MIN_V6 are ignored: the
 *          default route of a VPN, or a local route for everything. Local routes of other tables
 *          are not read.
 * Trust    Reads the kernel's messages. Runs in the keeper and in sbxd.
 * Limits   LOCALS_MAX_BYTES of each dump, LOCALS_WAIT_MS for each message, ADDR_MAX_LOCALS.
 * See      locals_test.c
 */
#pragma once

#include "locals.h"

#define LOCALS_MAX_BYTES 1048576
#define LOCALS_WAIT_MS 1000
#define LOCALS_MIN_V4 8
#define LOCALS_MIN_V6 32

/* 0 with a new list, -errno with *ret as it was. */
int locals_read(struct addr_locals *ret) MUST_CHECK;
/* One packet of a dump. 1 at its end, 0 when more follows, or -errno. */
int locals_parse(struct addr_locals *l, const void *packet, size_t n) MUST_CHECK;
