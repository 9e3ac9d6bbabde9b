/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress_rig - for egress_test.c: a real sbx-egress; keeper, edge, resolver and servers are the
 * test.
 *
 * How      rig_enter_world moves the test into a network namespace in which every address is local,
 *          so that a listener gets connections to any address. The DNS server is a child that
 *          answers, lies and counts by a table in shared memory. Egress runs sealed; with
 *          rig_new_jailed in its complete jail, else without namespaces.
 * Trust    Test program.
 */
#pragma once

#include <sys/types.h>
#include "lib/wire/http/canon/canon_frame.h"
#include "lib/os/ipc/egress_chan.h"

#define RIG_IDS 1400
#define RIG_ADDRS 64
#define RIG_NAMES 32
#define RIG_DNS "127.0.0.53"
#define RIG_PUBLIC "93.184.216.34" /* an address of the Internet; here it is local too */
#define RIG_PUBLIC6 "2606:4700::6810:1"

/* Behaviour of the DNS server for a name. */
struct rig_name {
	char name[128];
	uint8_t a[RIG_ADDRS][4], aaaa[RIG_ADDRS][16];
	unsigned n_a, n_aaaa;
	uint8_t later[4]; /* from the second A query on, when has_later */
	bool has_later;
	char cname[128]; /* the answer begins with this alias */
	unsigned rcode;
	bool silent_a, silent_aaaa; /* no answer at all */
	bool truncated;		    /* by UDP; the whole answer by TCP */
	enum { RIG_HONEST, RIG_WRONG_ID, RIG_WRONG_NAME, RIG_LOOP, RIG_SHORT, RIG_EMPTY } lie;
	unsigned n_asked[2];
};

struct rig_dns {
	struct rig_name names[RIG_NAMES];
	unsigned n_names;
	unsigned n_queries, n_tcp;
};

struct rig_seen {
	bool has_result, closed;
	struct egress_result result;
	uint64_t up, down;
	int fd;	   /* passed with RESULT; 0: none */
	int login; /* passed with LOGIN; 0: none */
};

struct rig {
	pid_t pid;
	int keeper;
	struct rig_seen seen[RIG_IDS];
	uint32_t n_ids;
	unsigned n_loaded;
	char loaded[EGRESS_MAX_TEXT];
};

extern struct rig_dns *rig_dns;

/* Once, at the start of main. */
void rig_enter_world(void);
/* Forgets all names and counts. */
void rig_dns_clear(void);
/* Adds addresses (either family, separated by blanks) to a name, which may be new. */
struct rig_name *rig_dns_add(const char *name, const char *addrs);

struct rig *rig_new(void);
struct rig *rig_new_jailed(void);
void rig_free(struct rig *r);
/* CONFIG (config may be NULL), RESOLVER, POLICY; waits for LOADED. */
void rig_up(struct rig *r, const char *policy, const struct egress_config *config);
/* A new policy; waits for LOADED. */
void rig_policy(struct rig *r, const char *policy);
/* managed: NULL: none */
void rig_policies(struct rig *r, const char *policy, const char *managed);
void rig_resolver(struct rig *r, const char *text);
/* Takes the messages of egress, waiting at most ms for the first. */
void rig_listen_keeper(struct rig *r, int ms);
#define rig_until(r, cond)                                                                 \
	do {                                                                               \
		uint64_t _end = clock_mono_ms() + 60000;                                   \
		while (!(cond)) {                                                          \
			rig_listen_keeper(r, 20);                                          \
			if (clock_mono_ms() > _end)                                        \
				fail_msg("line %d: never came true: %s", __LINE__, #cond); \
		}                                                                          \
	} while (0)

/* Sends OPEN; returns edge's end of the socket (blocking, 20 s at most); its id is r->n_ids. */
int rig_open(struct rig *r, enum egress_kind kind, const char *host, uint16_t port);
/* Of the kind HTTP, with a ticket for the request. */
int rig_open_http(struct rig *r, const struct http_req *req);
/* The same; `named` is the text of the headers that rules name. */
int rig_open_named(struct rig *r, const struct http_req *req, const char *named);
/* OPEN of the kind SOCKET; its id is r->n_ids. */
void rig_open_socket(struct rig *r, const char *host, uint16_t port);
/* The result of the last SOCKET, once it is closed; ret_fd is the test's, -1 without one. */
struct egress_result *rig_socket(struct rig *r, int *ret_fd);
/* OPEN and the HEAD of a CONNECT. */
int rig_connect(struct rig *r, const char *host, uint16_t port);
/* The outcome of the last OPEN, or of an id. */
struct egress_result *rig_result(struct rig *r, uint32_t id);
void rig_send_connect(int fd, const char *host, uint16_t port);
/* HEAD of a request that is otherwise all zero; headers are "name: value" lines. */
void rig_send_req(int fd, const struct http_req *req);
void rig_send_data(int fd, const void *p, size_t n);
void rig_send_end(int fd);

/* The next HEAD on edge's end: its status; reason gets sbx-reason ("" without). */
struct rig_head {
	uint16_t status;
	struct http_body body;
	char reason[512];
	size_t n_headers;
	char headers[4096]; /* "name: value\n" each */
};
void rig_read_head(int fd, struct rig_head *ret);
/* Reads one frame; -1 at end-of-file. Payload in buf. */
int rig_read_frame(int fd, uint8_t *buf, size_t size, size_t *ret_n);
/* Reads all DATA up to END; returns the length, -1 on RESET or a broken end. */
ssize_t rig_read_body(int fd, uint8_t *buf, size_t size);
/* Exactly n bytes; fails the test otherwise. */
void rig_read_all(int fd, void *p, size_t n);
/* Whether the peer closes within ms. */
bool rig_is_ended(int fd, int ms);

/* Expects the error for edge, the result for the keeper of the last OPEN, and the end. */
struct egress_result *rig_refused(
	struct rig *r, int fd, enum egress_outcome outcome, unsigned status);
/* Bytes pass both ways. */
void rig_passes(int fd, int upstream);
/* A tunnel to port 443 of the host, whose server is at addr; used and closed. */
void rig_tunnel(struct rig *r, int listener, const char *host, const char *addr);

/* Listens on every address of both families. */
int rig_listen(uint16_t port);
/* The next connection within ms, or -1; blocking, 20 s at most. */
int rig_accept(int listener, int ms);
/* Reads an HTTP head, up to its empty line. */
void rig_read_http(int fd, char *buf, size_t size);

int rig_exit(struct rig *r);
uint64_t rig_memory(const struct rig *r, const char *field);
unsigned rig_n_fds(const struct rig *r);
uint8_t rig_pattern(uint64_t i);
