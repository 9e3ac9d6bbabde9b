/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clerks - pushes of git and calls of GraphQL that rules are about: one process reads each.
 *
 * How      net.c calls clerks_open for a push that gate_push names. Edge gets a socket to a new
 *          sbx-clerk-git, which reads the push to its end. What it needs of the repository it
 *          requests (WANT): that is decided and recorded as a request of the guest. When it has
 *          reported what the push does, the gate decides, and a person if a rule asks. Only then
 *          the process gets a socket to sbx-origin, with a ticket for this request. The list of
 *          refs that a push begins with is decided before, and passes through for its rewriting.
 *          A push that waits for a person is decided again when holds.c says so. Calls go the same
 *          way through an sbx-clerk, which needs nothing of the server: its effects are rows of the
 *          API pack, whose verbs and risks are those of our copy.
 * Trust    sbx-clerk-git reads the guest's pack and may be compromised by it: its effects are its
 *          word. It is for one push, and what it can send is one request to the repository of that
 *          push, decided by the effects that it has reported. The same applies to sbx-clerk.
 * Owns     The processes. Their end is the end of edge's socket.
 * Limits   KEEPER_MAX_CLERKS, KEEPER_MAX_CALLS, KEEPER_CLERK_MS, KEEPER_PUSH_BYTES,
 *          KEEPER_CALL_BYTES, CLERK_MAX_WANTS, CLERK_MAX_EFFECTS, CLERKS_MAX_RECORDS.
 * Never    Reads the content of a request.
 * See      lib/rules/clerk/clerk_chan.h, src/clerk/git/README, src/clerk/api/README, clerk_test.c,
 *          clerk_model_test.c, calls_test.c
 */
#pragma once

#include "lib/rules/clerk/clerk_chan.h"
#include "lib/rules/gate/gate_push.h"
#include "src/keeper/credential/credential.h"

#define KEEPER_MAX_CLERKS 4 /* of pushes; those of calls are behind them in the list */
#define KEEPER_MAX_CALLS 16
#define KEEPER_N_CLERKS (KEEPER_MAX_CLERKS + KEEPER_MAX_CALLS)
#define KEEPER_CLERK_LOOK_MS 1000
#define KEEPER_CLERK_MS clock_limit_ms(600000) /* until the push is judged */
#define KEEPER_CLERK_VIOLATIONS 3	       /* over the whole run */
#define KEEPER_PUSH_BYTES (128u << 20)
#define KEEPER_CALL_BYTES (1u << 20)
#define CLERKS_MAX_RECORDS (8u << 20)

struct clerk {
	struct worker worker; /* the first member */
	struct edge_ask *ask;
	struct gate_push push;
	int edge_fd; /* clerk's end, until OPEN was sent */
	unsigned n_wants;
	uint8_t *records;
	size_t n_records, n_effects;
	struct clerk_judged judged;
	struct effect *effect;	      /* points into ask, push, records and verbs */
	char *verbs;		      /* of calls */
	uint64_t held_ms;	      /* since when it waits for a person; 0: it does not */
	uint8_t digest[SHA256_BYTES]; /* of the hold, if it waits */
	uint32_t ask_id;	      /* of edge, unless it is_orphan: then edge has exited */
	bool is_orphan, is_ended;     /* is_ended: the client has closed its direction */
	bool is_judged, is_decided, is_sent;
};

struct clerks {
	struct clerk list[KEEPER_N_CLERKS];
	unsigned n_violations, n_call_violations;
	struct loop_timer timer;
	/* Starts the program with its end of the channel; NULL: in its jail. Tests replace it. */
	int (*spawn)(struct keeper *k, int sock, struct jail_child *ret, struct err *err);
};

void clerks_init(struct keeper *k);
/* A push, the list of refs before one, or calls. The caller passes edge_fd on. On an error err has
 * the reason. */
int clerks_open(struct keeper *k, const struct edge_ask *ask, const struct gate_push *push,
	int *ret_edge_fd, struct err *err) MUST_CHECK;
bool clerks_is_live(const struct keeper *k, struct loop_key key);
void clerks_on_event(struct keeper *k, const struct loop_event *ev);
void clerks_on_exit(struct keeper *k, const struct loop_event *ev);
void clerks_on_timer(struct keeper *k);
/* Decides those that wait for a person again. */
void clerks_resume(struct keeper *k);
/* When the first of them has waited long enough; UINT64_MAX: none waits. */
uint64_t clerks_held_until(const struct keeper *k);
/* How many wait for a person. */
size_t clerks_count_held(const struct keeper *k);
bool clerks_wait_for(const struct keeper *k, const uint8_t digest[SHA256_BYTES]);
/* The client of the ask that began a push has closed its direction: a push does not wait then. */
void clerks_on_ended(struct keeper *k, uint32_t ask_id);
void clerks_on_edge_end(struct keeper *k); /* its ids mean others from now on */
/* Ends the pushes that the policy no longer permits. */
void clerks_on_policy(struct keeper *k);
bool clerks_are_busy(const struct keeper *k);
void clerks_kill_all(struct keeper *k, const char *why);
