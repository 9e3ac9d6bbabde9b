/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link - the keeper's connections to sbxd, its audit log, and the output of its children.
 *
 * How      The lowest part that does I/O: link_* sends state and answers to sbxd and passes its
 *          requests up (struct link_ops), record_* writes the audit log, chatter_* copies the
 *          output of the children to keeper.log.
 * Trust    sbxd: same user, checked by SO_PEERCRED; a malformed message drops the connection.
 *          Output of children: untrusted, bounded, control characters replaced.
 * Owns     The connections, the audit log and its key, the pipe.
 * Limits   KEEPER_MAX_LINKS, KEEPER_LOG_BUDGET, KEEPER_RECORD_MS.
 */
#pragma once

#include "src/keeper/state/state.h"
#include "lib/os/ipc/keeper_chan.h"
#include "lib/os/loop/loop.h"
#include "lib/rules/audit/audit.h"

#define KEEPER_MAX_LINKS 4
#define KEEPER_LOG_BUDGET (1 << 20) /* bytes of the children's output kept for one run */
#define KEEPER_RECORD_MS 1000	    /* between two attempts to open the audit log */

struct keeper;

struct link {
	int fd;
	uint32_t gen;
	bool is_first; /* of the sbxd that started this keeper */
};

struct link_ops {
	/* A new connection: sends the initial messages. */
	int (*on_open)(struct keeper *k, int fd);
	void (*on_opened)(struct keeper *k);
	int (*on_message)(struct keeper *k, struct link *l, struct ipc_msg *msg);
	void (*on_closed)(struct keeper *k);
};

struct record {
	struct audit_key *key;
	struct audit *audit; /* NULL: everything is refused */
	uint64_t tried_ms;
	uint64_t max_bytes; /* audit.max-size */
	bool is_bad;	    /* the last sync failed and was logged */
	bool is_full;	    /* the same of the log's size */
	struct loop_timer timer;
};

/* sbxd_link.c */
void link_init(struct keeper *k, const struct link_ops *ops);
bool link_is_live(const struct keeper *k, struct loop_key key);
int link_listen(struct keeper *k, struct err *err) MUST_CHECK;
void link_add(struct keeper *k, int fd, bool is_first);
void link_on_accept(struct keeper *k);
void link_on_readable(struct keeper *k, const struct loop_event *ev);
/* Whether a connection to sbxd exists. */
bool link_is_up(const struct keeper *k);
/* Returns false if there is no connection to sbxd. */
bool link_want_vault(struct keeper *k);
/* True unless another link belongs to the sbxd that started this keeper. */
bool link_may_give_vault(struct keeper *k, const struct link *l);
void link_push_state(struct keeper *k);
/* Calls send for every connection except `but`; a connection that fails is dropped. */
void link_push_all(struct keeper *k, const struct link *but,
	int (*send)(struct keeper *k, int sock, uint32_t id));
/* NULL if the connection was closed meanwhile. */
struct link *link_find(struct keeper *k, int link, uint32_t gen);
void link_answer(
	struct keeper *k, int link, uint32_t link_gen, uint32_t msg, int code, const char *text);
/* Sets the progress and sends it to sbxd. */
void link_progress(struct keeper *k, unsigned percent, const char *text);

/* record.c: the audit log of this sandbox. */
/* Opens the log and records the start, unless the log is open. */
void record_begin(struct keeper *k);
/* Opens the log again if it is not open; at most once in KEEPER_RECORD_MS. */
void record_check(struct keeper *k);
void record_set_max_bytes(struct keeper *k, uint64_t max_bytes);
void record_life(struct keeper *k, const char *action, const char *why);
/* Returns the number of the record; fails without a log. */
int record_checkpoint(struct keeper *k, const char *label, const char *layers, uint64_t *ret_seq,
	struct err *err) MUST_CHECK;
/* A decision that does not wait for its record. */
void record_decision(struct keeper *k, const struct audit_event *ev);
/* A request that a person approves or refuses. On an error nothing was recorded. */
int record_approval(struct keeper *k, const struct audit_event *ev) MUST_CHECK;
void record_violation(struct keeper *k, const char *program, const char *what);
/* Sets the timer for records that are not signed and synced; called after every event. */
void record_arm(struct keeper *k);
void record_on_timer(struct keeper *k);
void record_close(struct keeper *k);

/* chatter.c: output of the children, limited. */
int chatter_open(struct keeper *k) MUST_CHECK;
void chatter_on_readable(struct keeper *k);
void chatter_drain(struct keeper *k); /* all output until now */
