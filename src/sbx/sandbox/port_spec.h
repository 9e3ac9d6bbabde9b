/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port_spec - parses and prints the syntax of published ports.
 *
 * How      port_spec_parse parses [[HOST_IP:]HOST_PORT:]SANDBOX_PORT[/PROTOCOL]. Without an address
 *          the host address is 127.0.0.1 (tcp4, and the default), ::1 (tcp6) or both (tcp);
 *          `localhost` is both unless the protocol selects one. IPv6 addresses are enclosed in
 *          brackets. An empty or missing HOST_PORT is any free port.
 * Trust    The user's arguments; texts of sbxd.
 * Owns     Nothing.
 * See      port_spec_test.c, man/sbx-ports.1.scd
 */
#pragma once

#include <jansson.h>
#include "lib/base/err.h"
#include "lib/client/cli/opt.h"

#define PORT_SPEC_MAX_IP 46

struct port_spec {
	char ip[2][PORT_SPEC_MAX_IP];
	size_t n_ips;
	bool has_ip; /* an address was given */
	unsigned host_port, port;
	char protocol[8]; /* as given, or "" */
};

int port_spec_parse(const char *text, struct port_spec *ret, struct err *err) MUST_CHECK;
/* The list for sbxd of all values of an option; warns about ports that other hosts can reach. */
int port_spec_list(const struct opt_list *specs, json_t *list, struct err *err) MUST_CHECK;
/* "127.0.0.1:18081", "[::1]:18081", "127.0.0.1:any" on the heap. */
char *port_spec_address(const json_t *port);
/* For sbx ls: "127.0.0.1:8080->3000/tcp4 (+1)" or "-", on the heap. */
char *port_spec_summary(const json_t *list);
