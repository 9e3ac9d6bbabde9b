/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn - the API's connections: a table, one request at a time on each.
 *
 * How      A connection reads a request and passes it up (struct conn_ops). The function that
 *          handles the request replies with conn_reply or makes the connection wait with conn_wait:
 *          then the given function is called on every change of that sandbox (conns_wake) and once,
 *          with `late`, at its deadline. The operation of a client that disconnects continues. A
 *          call that must have no effect without a reply sets conn_on_loss.
 * Trust    Input: clients of the same uid. Another uid gets 403, and nothing is read from it.
 * Owns     Its fd, its request and its unsent bytes.
 * Limits   daemon.max-connections, CONN_MAX; CONN_MAX_QUEUE unsent bytes for a watcher.
 * See      tests/api
 */
#pragma once

#include "served.h"
#include "lib/base/bufq.h"
#include "lib/wire/http/api_http.h"
#include "lib/rules/spec/spec.h"

#define CONN_MAX 4096
#define CONN_FEW 16 /* that are accepted without a look at the setting, which is at least this */
#define CONN_MAX_QUEUE (4u << 20)

struct json_t;
struct conn;
typedef void conn_wait_fn(struct sbxd *d, struct conn *c, bool late);
typedef void conn_loss_fn(struct sbxd *d, const char *id);

/* Callbacks of connections. Each except on_room replies, or makes the connection wait. */
struct conn_ops {
	void (*on_request)(struct sbxd *d, struct conn *c);
	void (*on_malformed)(struct sbxd *d, struct conn *c, int status, const char *why);
	/* A watcher has room for more of its snapshot; false if it was closed. */
	bool (*on_room)(struct sbxd *d, struct conn *c);
};

enum conn_state {
	CONN_FREE,
	CONN_READING,
	CONN_WAITING, /* for a keeper or a wipe; ends by a reply or a hand-over */
	CONN_WRITING, /* a reply; then reading again or closed */
	CONN_WATCHING,
	CONN_HANDED, /* the keeper has the fd too; only its DONE is awaited */
};

struct conn {
	enum conn_state state;
	uint32_t idx, gen;
	int fd;
	int passed_fd; /* passed with the request, -1: none; a second one is rejected */
	bool too_many_fds;
	bool answered; /* at least once */
	struct bufq in;
	struct api_http http;
	char *out;
	size_t out_n, out_at, out_room;
	struct loop_timer timer;
	uint32_t armed; /* events that epoll waits for */

	/* while waiting */
	conn_wait_fn *wait;
	char wait_id[SPEC_ID_LEN + 1];	/* empty: every sandbox */
	uint64_t deadline_ms, since_us; /* since_us: of the request */
	uint32_t ask_id;		/* of the request to the keeper, 0: none */
	uint32_t vault_op; /* of the request to the vault, 0: none; see src/sbxd/vault/vault.h */

	struct {
		struct json_t *answer; /* see src/sbxd/api/reload_reply.h */
		int status;
		uint64_t number;
		size_t at; /* keepers before this one have answered */
	} later;

	conn_loss_fn *loss; /* NULL: none */
	char loss_id[SPEC_ID_LEN + 1];

	/* while watching */
	bool live;
	char cursor[SPEC_MAX_NAME + 1]; /* last name of the snapshot that was sent */
};

struct conns {
	const struct conn_ops *ops;
	struct conn *slot[CONN_MAX]; /* n_slots of them exist, until sbxd exits */
	size_t n_slots, n_used;
	uint32_t n_watching;
	uint64_t seq; /* of changes, for watchers */
	struct served served;
};

void conns_init(struct conns *cs, const struct conn_ops *ops);
void conns_done(struct sbxd *d);
void conn_on_accept(struct sbxd *d);
/* At exit: accepts clients that connected before the socket was closed. */
void conns_accept_rest(struct sbxd *d);
/* Whether a request has no reply yet; watchers and passed connections are not included. */
bool conns_owe(const struct sbxd *d);
void conn_on_event(struct sbxd *d, const struct loop_event *ev);
void conn_on_timer(struct sbxd *d, const struct loop_event *ev);

/* Sends a complete reply; `body` may be NULL. Ends the wait. _text: status 200, not JSON. */
void conn_reply(struct sbxd *d, struct conn *c, int status, const char *body);
void conn_reply_text(struct sbxd *d, struct conn *c, const char *type, const char *body);
void conn_wait(struct sbxd *d, struct conn *c, conn_wait_fn *fn, const char *id, uint64_t ms);
/* Calls fn(id) if the connection ends before its next reply has been sent completely; NULL: no
 * longer. */
void conn_on_loss(struct conn *c, conn_loss_fn *fn, const char *id);
void conn_close(struct sbxd *d, struct conn *c);
void conn_start_watch(struct sbxd *d, struct conn *c);
/* Sends one chunk to a watcher. A slow watcher is closed; then returns false. */
bool conn_push(struct sbxd *d, struct conn *c, struct slice bytes);
size_t conn_unsent(const struct conn *c);
/* This sandbox changed; NULL: for all waiting connections. */
void conns_wake(struct sbxd *d, const char *id);
/* The connection that sent the request `ask_id` to the keeper of `id`; NULL if it was closed. */
struct conn *conns_find_asker(struct sbxd *d, const char *id, uint32_t ask_id);
/* Removes the connection from the loop before it is passed on: nothing more is read from it. */
void conn_hand_over(struct sbxd *d, struct conn *c);
