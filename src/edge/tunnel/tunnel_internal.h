/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tunnel_internal - shared by caught.c, check.c, name.c and tunnel.c.
 */
#pragma once

#include "tunnel.h"

/* check.c */
void check_begin(struct edge *e, struct conn *c);
/* Whether the server's data must wait until the guest's first data is checked. */
bool check_holds(const struct conn *c);
/* CONN_TUNNEL: data of the server, empty at its end. The rest follows in tunnel_on_room. */
void check_on_server(struct edge *e, struct conn *c, struct slice bytes);
/* Checks new data of c->in, and c->in_end. False: the connection was cut. */
bool check_second(struct edge *e, struct conn *c);

/* name.c */
bool name_is_gateway(const struct addr *a);
bool name_is_synthetic(const struct addr *a);
