/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open_rig - for open_test.c and open_flow_test.c: TLS clients of the guest, each OpenSSL's own
 * over
 *            one connection of net_rig.
 *
 * How      client_new opens the connection as `plan` says, and answers the question about it by
 *          `opened`. Bytes of the wire go through memory BIOs; client_pump moves what can be moved.
 *          What came out of TLS is in `got`.
 * Trust    Test program.
 */
#pragma once

#include <openssl/ssl.h>
#include "src/edge/test/net_rig.h"

#define OPEN_RIG_GOT (12 * 1024 * 1024)

struct client_plan {
	const char *host; /* of the CONNECT, or what a caught address stands for; NET_RIG_HOST */
	const char *name; /* of the ClientHello; "": none. The host when NULL */
	const char *verified; /* what the certificate must be for; the host when NULL */
	const char *alpn;     /* as it is on the wire; NULL: none */
	SSL_SESSION *session; /* to go on with */
	int version;	      /* 0: any */
	uint16_t port;	      /* 443 when 0 */
	bool caught;	      /* the connection was caught on its way */
	bool distrust;	      /* the sandbox's CA is not known */
};

struct client {
	struct net_rig *n;
	struct net_conn *c;
	SSL_CTX *ctx;
	SSL *ssl;
	BIO *from, *to;
	bool shaken, goodbye; /* goodbye: close_notify came */
	bool cut;	      /* the end came without it */
	int error;	      /* the reason by which TLS failed; 0 */
	bool held;	      /* bytes for the wire stay in `to` */
	size_t crumb;	      /* not 0: they go in pieces of this size */
	uint8_t *got;
	size_t n_got;
};

struct client *client_new(struct net_rig *n, const struct client_plan *plan);
/* The same, and the handshake is complete. */
struct client *client_up(struct net_rig *n, const struct client_plan *plan);
void client_free(struct client *cl);
void client_pump(struct client *cl);
/* Says it inside TLS: all of it is taken. */
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

/* The request that is asked about now, inside TLS, is allowed; its frames are kept as they come. */
struct net_way *client_allow(struct client *cl, const char *method, const char *url);
/* HEAD of a request with https to NET_RIG_HOST has come. */
bool way_has_request(const struct net_way *w, const char *path);
/* The whole answer of a request. */
void way_answer(struct net_way *w, const char *body);
