/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper_ports - PORTS and PORTS_ARE of keeper_chan.h: the ports to publish, and their state.
 *
 * How      PORTS has the whole list to publish; the keeper opens and closes what differs and
 *          answers with PORTS_ARE. The keeper also sends PORTS_ARE, with id 0, when a connection of
 *          sbxd begins and when the state of a port changes.
 * Trust    As keeper_chan.h. Addresses are texts here: the keeper parses them strictly, sbxd shows
 *          them.
 * Limits   KEEPER_MAX_PORTS.
 * See      proto/PROTOCOL.ipc, keeper_ports_test.c, keeper_chan_fuzz.c
 */
#pragma once

#include "keeper_chan.h"

#define KEEPER_MAX_PORTS 64
#define KEEPER_MAX_IP 46

struct keeper_port {
	char ip[KEEPER_MAX_IP];
	uint16_t host_port; /* as in the request: 0 is any */
	uint16_t port;	    /* in the guest */
	/* Of PORTS_ARE only. */
	uint16_t bound; /* the published port of the host; 0: none */
	int32_t code;	/* 0: it is open; -EINPROGRESS: opened when the guest runs; else why not */
};

struct keeper_ports {
	size_t n;
	struct keeper_port v[KEEPER_MAX_PORTS];
};

int keeper_ask_ports(int sock, uint32_t id, const struct keeper_ports *ports) MUST_CHECK;
int keeper_send_ports(int sock, uint32_t id, const struct keeper_ports *ports) MUST_CHECK;
/* 0 or -EBADMSG. */
int keeper_get_ports(const struct ipc_msg *msg, struct keeper_ports *ret) MUST_CHECK;
int keeper_get_ports_are(const struct ipc_msg *msg, struct keeper_ports *ret) MUST_CHECK;
