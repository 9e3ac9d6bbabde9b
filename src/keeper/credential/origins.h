/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origins - the functions of the files that handle sbx-origin.
 *
 * How      origin.h has the structs; each source file has its own section.
 * Trust    Origins may be compromised by a server.
 */
#pragma once

#include "origin.h"
#include "vault_link.h"

/* origin_link.c: the origin processes and their messages. */
void origins_init(struct keeper *k,
	int (*open_socket)(
		struct keeper *k, const struct origin *o, uint32_t want, uint32_t *ret_exchange),
	int (*send_tables)(struct keeper *k, int sock, uint32_t id, ask_policy_fn *ask));
bool origins_is_live(const struct keeper *k, struct loop_key key);
/* A stream for one request. */
struct origin_stream {
	uint32_t channel, stream;
	int edge_end; /* of a new channel, for edge; -1: edge has it */
};
/* Opens one exchange with the origin of the ask's host and starts the origin if needed. The caller
 * passes the stream on. On an error err has the reason. */
int origins_open(struct keeper *k, const struct edge_ask *ask, struct origin_stream *ret,
	struct err *err) MUST_CHECK;
/* The same with a socket of its own, for a clerk. is_judged: the content of this push was decided,
 * too. The caller passes *ret_fd on. */
int origins_open_socket(struct keeper *k, const struct edge_ask *ask, bool is_judged, int *ret_fd,
	struct err *err) MUST_CHECK;
struct origin *origins_find(struct keeper *k, uint32_t idx, uint32_t gen);
void origins_on_event(struct keeper *k, const struct loop_event *ev);
void origins_on_exit(struct keeper *k, const struct loop_event *ev);
void origins_on_timer(struct keeper *k);
/* Kills origins whose binding was removed or replaced. */
void origins_on_creds(struct keeper *k);
/* Kills origins whose host the current policy denies. */
void origins_recheck(struct keeper *k);
void origins_kill_all(struct keeper *k, const char *why);
/* Whether a request with a credential has no complete response yet. */
bool origins_are_busy(const struct keeper *k);
/* Sends all due messages. */
void origins_push(struct keeper *k, struct origin *o);
/* Returns a request that waits at this origin, or NULL. */
const struct origin_exchange *origins_first_waiting(const struct origin *o);

/* origin_channel.c: the channel between edge and an origin. */
/* Edge has not got this channel: the next request gets another one. */
void origins_forget_channel(struct keeper *k, uint32_t channel);
/* Edge has exited, and all channels with it. */
void origins_on_edge_end(struct keeper *k);
int origin_make_pair(int fds[2], struct err *err) MUST_CHECK;
/* If it has none. */
int origin_make_channel(struct keeper *k, struct origin *o, struct err *err) MUST_CHECK;
void origin_drop_channel(struct origin *o);
/* Sends origin its end. */
int origin_push_channel(struct origin *o) MUST_CHECK;

/* origin_policy.c: policies of origins, and hosts without a credential. */
/* What the origin of this ask gets; NULL: the host is not intercepted. */
const struct binding *origins_binding(const struct keeper *k, const struct edge_ask *ask);
/* Without a credential: only rules need the head of its requests. */
bool origin_is_bare(const struct origin *o);
/* Sends the current policy to all. */
void origins_set_policy(struct keeper *k);
/* Returns -EAGAIN if origin does not read. */
int origin_push_policy(struct keeper *k, struct origin *o) MUST_CHECK;

/* origin_conn.c: connections for origins. */
int conns_on_want(struct keeper *k, struct origin *o, const struct ipc_msg *msg) MUST_CHECK;
/* The order of open_socket that a result of egress belongs to. */
struct conn_order {
	uint32_t origin, origin_gen, want;
};
/* Takes fd. */
int conns_on_result(struct keeper *k, const struct conn_order *order,
	const struct egress_result *result, int fd) MUST_CHECK;
void conns_on_egress_end(struct keeper *k);
/* Egress reads messages again, or was restarted. */
void conns_on_room(struct keeper *k);
/* Whether this origin may use the address of c: pinned, upstream proxy, or permitted by policy. */
bool conns_may_lead(const struct keeper *k, const struct origin *o, const struct origin_conn *c);
/* The same for every current or pending connection of this origin. */
bool conns_all_may_lead(const struct keeper *k, const struct origin *o);
const struct origin_conn *conns_find_given(const struct origin *o, uint32_t id);
/* Returns -EAGAIN if origin does not read. */
int conns_push(struct origin *o) MUST_CHECK;
void conns_drop(struct origin *o);

/* origin_need.c: the values that origins need. */
int needs_on_need(struct keeper *k, struct origin *o, const struct ipc_msg *msg) MUST_CHECK;
void needs_on_released(struct keeper *k, const struct release *rel, int code, const char *text);
int needs_push(struct origin *o) MUST_CHECK;
void needs_drop(struct origin *o);

/* origin_token.c: the tokens that origins have caught. */
int tokens_on_tokens(
	struct keeper *k, struct origin *o, const struct ipc_msg *msg, struct err *err) MUST_CHECK;
/* Result of storing tokens; the bindings already have the stored ones. */
void tokens_on_stored(struct keeper *k, const struct store *store, int code, const char *text);
/* Returns -EAGAIN if origin does not read. Sends RENEW before STORED. */
int tokens_push(struct origin *o) MUST_CHECK;

/* roots.c: CA certificates for upstream servers. extra: network.extra-ca, or "". */
void roots_read(struct keeper *k, const char *extra);
