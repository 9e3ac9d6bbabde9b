/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin_rig - for the tests of src/origin: a real sbx-origin; keeper, edge, vault and server are
 * the test.
 *
 * How      Executes origin as the keeper does; it enters its jail itself. A socket pair replaces
 *          the connection from egress; at the other end the test is a TLS server, with a CA and
 *          certificates that are created at the start.
 * Trust    Test program.
 */
#pragma once

#include <openssl/ssl.h>
#include <sys/types.h>
#include "lib/wire/http/canon/canon_frame.h"
#include "lib/os/ipc/origin_chan.h"
#include "lib/os/ipc/vault_frame.h"
#include "lib/wire/mux/test/mux_rig.h"

#define RIG_HOST "api.example.com"
#define RIG_VALUE "sk-live-CANARY-7f3a9b51c2"
#define RIG_SENTINEL "sk-proxy-managed-000000"
#define RIG_IDS 600

struct rig_cert {
	X509 *cert;
	EVP_PKEY *key;
};

/* Fields of a certificate; zero is a valid one for RIG_HOST. */
struct rig_cert_want {
	const char *san;	       /* "DNS:x" or "IP:x"; NULL: RIG_HOST */
	int from_s, to_s;	       /* relative to now; 0, 0: yesterday to tomorrow */
	const struct rig_cert *issuer; /* NULL: rig_ca */
	bool is_self_signed, is_ca;
};

extern struct rig_cert rig_ca, rig_good;
/* A service with a bearer slot, a basic slot at /git, known places; see origin_rig.c. */
extern const char rig_service[];

void rig_make_cert(struct rig_cert *ret, const struct rig_cert_want *want);
/* Once, at the start of main. */
void rig_make_pki(void);

struct rig_seen {
	bool has_result, closed;
	struct origin_result result;
	uint64_t up, down;
};

struct rig {
	pid_t pid;
	int keeper;
	struct mux_rig edge;
	uint32_t n_ids;
	struct rig_seen seen[RIG_IDS];
	struct ipc_msg msg; /* the last WANT, NEED or TOKENS */
	unsigned n_wants, n_needs;
	struct origin_need need;
};

struct rig *rig_start(const char *arg);
/* HELLO, CONFIG, ROOTS. */
void rig_up(struct rig *r, const char *host, uint8_t has);
/* Other rules than that all hosts are allowed: for later requests. */
void rig_policy(struct rig *r, const char *rules);
/* With another service than rig_service. */
void rig_up_as(struct rig *r, const char *host, uint8_t has, const char *service);
/* Both, for RIG_HOST with a secret. */
struct rig *rig_new(void);
void rig_free(struct rig *r);
/* Reads the next WANT or NEED within ms into r->msg; false if none arrives. Results are noted. */
bool rig_next(struct rig *r, int ms);
/* The next message must be this; returns its id. */
uint32_t rig_expect(struct rig *r, enum origin_msg type);
struct origin_result *rig_result(struct rig *r, uint32_t id);
void rig_until_closed(struct rig *r, uint32_t id);
int rig_exit(struct rig *r);
/* An unnamed file with the text. */
int rig_file(const char *text, size_t n);
/* Private dirty memory of origin. */
uint64_t rig_memory(const struct rig *r);

/* One request. */
struct rig_req {
	const char *method, *path, *query; /* NULL: GET, "/", none */
	const char *headers;		   /* "name: value\n" each */
	enum http_body_kind body;
	uint64_t length;
	bool websocket, expect, te;
	const char *host; /* NULL: RIG_HOST */
	uint16_t port;	  /* 0: 443 */
	bool is_plain;	  /* scheme http */
};

/* Another channel, as for another edge. */
void rig_channel(struct rig *r);
/* Sends OPEN with a ticket for the request; returns edge's end of the stream (blocking, 20 s at
 * most); its id is r->n_ids. */
int rig_open(struct rig *r, const struct rig_req *req);
/* The same with a socket, as for a clerk that has read a push; returns the clerk's end. */
int rig_open_clerk(struct rig *r, const struct rig_req *req);
void rig_send_head(int fd, const struct rig_req *req);
void rig_send_data(int fd, const void *p, size_t n);
void rig_send_end(int fd, const char *trailer); /* "name: value" or NULL */
/* Sends the head and, without content, the end. */
int rig_ask(struct rig *r, const struct rig_req *req);

struct rig_answer {
	uint16_t status;
	char headers[4096], trailers[512], reason[512];
	uint8_t *body;
	size_t n_body, size; /* of the content, of its memory */
	bool ended, reset;
};

/* Reads one frame into it: false at end-of-file. */
bool rig_read_frame(int fd, struct rig_answer *a);
/* Reads everything until END, RESET or end-of-file. */
void rig_read_answer(int fd, struct rig_answer *a);
void rig_answer_done(struct rig_answer *a);

/* Answers the WANT with a connection; returns the other end. */
int rig_give_socket(struct rig *r, uint32_t want);
void rig_refuse_socket(struct rig *r, uint32_t want, enum egress_outcome outcome, const char *text);
/* A TLS server on it; NULL if the handshake fails. */
SSL *rig_accept(int fd, const struct rig_cert *cert, const char *alpn);
/* WANT, SOCKET, handshake with the good certificate. */
SSL *rig_serve(struct rig *r);
void rig_hang_up(SSL *ssl);
/* NEED and VALUE. */
void rig_give_value(struct rig *r, const char *value);
void rig_send_value(struct rig *r, uint32_t need, const char *value, uint32_t use_s);
/* Reads an HTTP/1.1 head up to its empty line; buf is NUL-terminated. False at end-of-file. */
bool rig_read_http(SSL *ssl, char *buf, size_t size);
void rig_write(SSL *ssl, const char *text);
/* Counts the occurrences of a text in another. */
unsigned rig_count(const char *text, const char *what);
