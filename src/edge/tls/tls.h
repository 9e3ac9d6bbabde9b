/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls - interception of the guest's TLS.
 *
 * How      open.c sits between the channel and the HTTP engine, open_ca.c has the sandbox CA and
 *          the settings, open_bio.c the queues below TLS.
 * Trust    Parses untrusted input of the guest through OpenSSL. Holds the key of the sandbox CA.
 * Owns     c->open, e->opener.
 * Limits   OPEN_*.
 */
#pragma once

#include "src/edge/http/http.h"

/* open_ca.c: setup of TLS interception. opener_new is the first use of OpenSSL in the process. */
int opener_new(const struct edge_config *config, struct opener **ret, struct err *err) MUST_CHECK;
void opener_free(struct opener *o);
/* EDGE_CA to the keeper. */
int opener_tell(const struct opener *o, int sock) MUST_CHECK;

/*
 * open.c: the guest's TLS. open_begin gets a connection whose c->in begins with a complete
 * ClientHello that check.c accepted for c->target. From then on open_on_bytes and open_on_end get
 * the data of the wire, open_pull returns output, and engines see only plain data.
 */
void open_begin(struct edge *e, struct conn *c, const struct hello *h);
void open_on_bytes(struct edge *e, struct conn *c, struct slice bytes);
void open_on_end(struct edge *e, struct conn *c);
void open_on_room(struct edge *e, struct conn *c); /* data was pulled, or consumed from c->in */
void open_on_timer(struct edge *e, struct conn *c);
ssize_t open_pull(struct conn *c, uint8_t *buf, size_t n);
void open_deafen(struct edge *e, struct conn *c); /* drops input of the guest */
void open_free(struct conn *c);
/* Estimates what closing the connection frees here. */
size_t open_worth(const struct conn *c);
