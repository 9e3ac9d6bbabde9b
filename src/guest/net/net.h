/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net - the guest's end of sbx.ctl and sbx.net.
 *
 * How      port.h is a virtio-serial port, tcp.h the host's connections to published ports, why.h
 *          the reasons of refusals, opener.h the programs that pass a link to the host, netconf.h
 *          the settings of programs. netproc.h starts the process sbx-guest-net, whose main
 *          function is net_main (net_main.h).
 * Trust    Programs of the guest on one side, the host on the other. Enforces nothing.
 */
#pragma once

#include "netconf.h"
#include "netproc.h"
#include "opener.h"
#include "port.h"
#include "tcp.h"
#include "why.h"

#define NET_PROGRAM "sbx-guest-net"

/* Never returns. Writes one byte to NET_READY_FD when it is ready. */
void net_main(void) __attribute__((noreturn));
