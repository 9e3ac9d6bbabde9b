/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2_rig - the HTTP/2 engine with a guest, a keeper and an origin played by the test.
 *
 * How      All of edge's network except the wire and TLS: one intercepted connection, whose plain
 *          data comes from a real nghttp2 client or from the test. Each allowed request is a way: a
 *          socket pair at whose other end the rig reads and writes frames. h2_rig_turn moves data
 *          until nothing changes. Long bodies are a pattern, so that lost, duplicated or foreign
 *          data is detected.
 * Trust    Test code; never linked into a program.
 * Owns     The edge, the client, the ways.
 * See      h2_test.c, h2_hostile_test.c, h2_fuzz.c
 */
#pragma once

#include "src/edge/edge.h"
#include "src/edge/http/h2_internal.h"

#define RIG_STREAMS 128
#define RIG_ASKS 4096
#define RIG_TEXT 4096
#define RIG_TYPES 16

/* The guest's side of one request. */
struct rig_stream {
	int32_t id;
	unsigned status, n_informational;
	char head[RIG_TEXT], body[RIG_TEXT], trailers[RIG_TEXT]; /* "name: value\n"; first bytes */
	uint64_t n_got, n_unread;
	uint64_t to_send, n_sent; /* of the pattern */
	bool to_end;		  /* after to_send */
	const char *tail;	  /* a trailer's value */
	bool is_wrong;		  /* received data is not the pattern */
	bool closed;
	uint32_t error;
};

/* The origin's side of one. */
struct rig_way {
	int fd;
	struct canon_reader reader;
	struct canon_flow flow;
	char method[64], path[128], head[RIG_TEXT], trailers[RIG_TEXT];
	struct http_body body;
	bool te_trailers, is_https, expects;
	uint64_t n_got;
	bool is_wrong, ended, eof, deaf;
	uint8_t *out;
	size_t n_out;
	uint64_t to_say, n_said; /* of the pattern, after out */
	bool to_end;		 /* followed by END */
	const char *tail;
	bool echoes;
};

struct h2_rig {
	struct edge e;
	uint32_t idx, gen;
	int port; /* the other end of sbx.net, unused */
	nghttp2_session *client;
	struct rig_stream streams[RIG_STREAMS];
	unsigned n_streams;
	bool stalled; /* the guest's program reads no body */
	size_t reads; /* bytes that the guest still takes; SIZE_MAX: all */
	uint8_t *up;
	size_t n_up; /* data of the guest in transit */
	/* Output of edge: frames by type, and the last codes of GOAWAY and RST_STREAM. */
	unsigned n_frames[RIG_TYPES];
	uint32_t goaway, reset;
	uint8_t frame[9 + 16384];
	size_t n_frame;
	/* The keeper. */
	struct {
		uint32_t id;
		struct edge_ask ask;
	} asks[RIG_ASKS];
	unsigned n_asks, n_asked, n_faults;
	int decide;	    /* 0: by hand, 1: allow, -1: deny, 2: deny paths with "no" */
	const char *reason; /* of a denial; NULL: none */
	struct edge_ask last;
	char fault[EDGE_MAX_TEXT];
	struct rig_way ways[RIG_STREAMS];
	unsigned n_ways;
	size_t most_held; /* maximum in queues of edge */
};

/* client: false if the test writes the data itself. */
struct h2_rig *h2_rig_new(bool client);
void h2_rig_free(struct h2_rig *r);
void h2_rig_turn(struct h2_rig *r);
/* The connection; NULL if it has ended. */
struct conn *h2_rig_conn(struct h2_rig *r);
/* Sends a request; `more` is a NULL-terminated list of names and values. SIZE_MAX: no body. */
struct rig_stream *h2_rig_open(struct h2_rig *r, const char *method, const char *path,
	size_t to_send, const char *const *more);
struct rig_stream *h2_rig_get(struct h2_rig *r, const char *path);
/* Continues a body. */
void h2_rig_send(struct h2_rig *r, struct rig_stream *s, size_t n, bool end);
/* The guest's program reads again. */
void h2_rig_read(struct h2_rig *r);
void h2_rig_verdict(struct h2_rig *r, unsigned i, bool allowed);
/* The way of a path; NULL if there is none. */
struct rig_way *h2_rig_way(struct h2_rig *r, const char *path);
void rig_way_head(struct rig_way *w, unsigned status, enum http_body_kind kind, uint64_t length,
	const char *name, const char *value);
void rig_way_bytes(struct rig_way *w, struct slice bytes);
void rig_way_close(struct rig_way *w);
/* Raw bytes, and frames, of the guest. */
void h2_rig_raw(struct h2_rig *r, struct slice bytes);
void h2_rig_frame(struct h2_rig *r, uint8_t type, uint8_t flags, uint32_t id, struct slice payload);
void h2_rig_preface(struct h2_rig *r);
uint8_t h2_rig_pattern(uint64_t at);
