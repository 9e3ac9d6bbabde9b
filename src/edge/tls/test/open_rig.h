/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open_rig - for open_test.c and open_flow_test.c: TLS clients of the guest, each a real OpenSSL
 * client on one connection of net_rig.
 *
 * How      client_new opens the connection according to `plan`, and answers the ask about it by
 *          `opened`. Memory BIOs carry the data of the wire; client_pump moves all data it can.
 *          Decrypted data is in `got`.
 * Trust    Test program.
 */
#pragma once

#include <openssl/ssl.h>
#include "src/edge/test/net_rig.h"

#define OPEN_RIG_GOT (12 * 1024 * 1024)

struct client_plan {
	const char *host;     /* of the CONNECT, or of a redirected address; NET_RIG_HOST */
	const char *name;     /* of the ClientHello; "": none. The host when NULL */
	const char *verified; /* name that the certificate must have; NULL: the host */
	const char *alpn;     /* in wire format; NULL: none */
	SSL_SESSION *session; /* to resume */
	int version;	      /* 0: any */
	uint16_t port;	      /* 443 when 0 */
	bool caught;	      /* the connection was redirected */
	bool distrust;	      /* the sandbox CA is not trusted */
};

struct client {
	struct net_rig *n;
	struct net_conn *c;
	SSL_CTX *ctx;
	SSL *ssl;
	BIO *from, *to;
	bool shaken, goodbye; /* goodbye: close_notify was received */
	bool cut;	      /* closed without close_notify */
	int error;	      /* error of a TLS failure; 0 */
	bool held;	      /* data for the wire stays in `to` */
	size_t crumb;	      /* not 0: sent in pieces of this size */
	uint8_t *got;
	size_t n_got;
};

struct client *client_new(struct net_rig *n, const struct client_plan *plan);
/* The same, and the handshake is complete. */
struct client *client_up(struct net_rig *n, const struct client_plan *plan);
void client_free(struct client *cl);
void client_pump(struct client *cl);
/* Sends it inside TLS; all of it is accepted. */
void client_say(struct client *cl, const void *p, size_t len);
void client_say_text(struct client *cl, const char *text);
/* close_notify */
void client_goodbye(struct client *cl);
bool client_got_text(const struct client *cl, const char *text);
#define client_until(cl, cond)                                                             \
	do {                                                                               \
		uint64_t _end = clock_mono_ms() + 60000;                                   \
		while (!(cond)) {                                                          \
			net_step((cl)->n, 20);                                             \
			client_pump(cl);                                                   \
			if (clock_mono_ms() > _end)                                        \
				fail_msg("line %d: never came true: %s", __LINE__, #cond); \
		}                                                                          \
	} while (0)

/* Allows the request inside TLS that is asked about; its frames are kept. */
struct net_way *client_allow(struct client *cl, const char *method, const char *url);
/* HEAD of an https request to NET_RIG_HOST was received. */
bool way_has_request(const struct net_way *w, const char *path);
/* The whole answer of a request. */
void way_answer(struct net_way *w, const char *body);
