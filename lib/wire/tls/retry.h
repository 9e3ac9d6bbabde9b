/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retry - detects the request of a TLS server for a second ClientHello, and reads it.
 *
 * How      A TLS 1.3 server may answer the first ClientHello with HelloRetryRequest (RFC 8446,
 *          4.1.4). The client then sends a second ClientHello in the clear, and servers take the
 *          server name from that one. retry_feed_server reads the server's first handshake message:
 *          a ServerHello with the fixed random value of HelloRetryRequest is one, anything else is
 *          not. The caller holds the client's bytes back until the answer is known. After
 *          RETRY_ASKED it gives them to retry_feed_client: records of ChangeCipherSpec, alerts and
 *          early data may pass, the first handshake record begins the second ClientHello.
 * Trust    Parses untrusted input of client and server. Runs in edge. Holds no secret. A server
 *          that cooperates with the client can hide its request; such a server needs no second
 *          name.
 * Owns     Nothing on the heap.
 * Limits   Constant memory. The second ClientHello has the limits of hello.h.
 * See      retry_test.c, retry_fuzz.c
 */
#pragma once

#include "hello.h"

enum retry_answer {
	RETRY_UNKNOWN, /* the server's first handshake message is not complete */
	RETRY_NONE,    /* no second ClientHello in the clear will follow */
	RETRY_ASKED,   /* HelloRetryRequest */
};

#define RETRY_MESSAGE 38 /* type, length, version and random of a ServerHello */

struct retry_record {
	uint8_t head[5];
	uint8_t n_head;
	uint32_t left; /* of its payload */
};

struct retry {
	enum retry_answer answer;
	struct retry_record server, client;
	uint8_t message[RETRY_MESSAGE];
	uint8_t n_message;
	struct hello_reader second;
	size_t n_pass; /* bytes given to retry_feed_client that may be passed on: those in front */
};

void retry_init(struct retry *r);
enum retry_answer retry_feed_server(struct retry *r, struct slice in);
/* Only after RETRY_ASKED. The state of the second ClientHello; HELLO_BAD for a wrong record too. */
enum hello_state retry_feed_client(struct retry *r, struct slice in);
