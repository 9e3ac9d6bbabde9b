/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_rig - the parts of a keeper with a fake edge and a fake egress, for tests.
 *
 * How      rig_up creates an installation in a temporary directory and a keeper whose state is
 *          RUNNING; the test holds the other ends of its channels. The children are real processes
 *          that only sleep, so that a kill is a real kill.
 * Trust    Test programs only.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "src/keeper/keeper.h"

#define RIG_ID "0123456789ab"

extern struct keeper rig_k;
extern int rig_edge, rig_egress, rig_sbxd; /* our ends */
extern struct ipc_msg rig_msg;		   /* last received message */
extern struct edge_verdict rig_verdict;
extern char rig_dir[64];

/* The last event in the audit log. */
struct seen {
	unsigned n;
	char rule[64], reason[256], action[32], effects[256], hold[16];
	enum audit_verdict decision;
	enum audit_kind kind;
};

/* A process that only sleeps. */
struct jail_child rig_false_child(void);
int rig_up(void **state);
int rig_down(void **state);
#define RIG_TEST(f) cmocka_unit_test_setup_teardown(f, rig_up, rig_down)

/* Runs the keeper until `fd` is readable, or for `ms`. */
bool rig_run_until(int fd, uint32_t ms);
void rig_must_get(int fd, uint16_t type);
void rig_must_be_quiet(int fd);
/* Writes the policy's file: `rules` with the lines around them. */
void rig_set_policy(const char *rules);
/* Sends the tables of the policy file and RELOAD. */
void rig_reload(uint32_t id, const char *name);
void rig_close_tables(void);
void rig_put_edge(enum edge_phase phase);
void rig_put_egress(void);
/* HELLO and the configuration, until egress accepts exchanges. */
void rig_bring_egress_up(void);
void rig_ask(uint32_t id, enum edge_ask_kind kind, const char *host, uint16_t port);
bool rig_must_answer(uint32_t id);
/* The last CHANNEL that came before a VERDICT. */
extern int rig_channel;
extern uint32_t rig_channel_id;
/* Whether this is the next message. */
bool rig_has_next(int fd, uint16_t type);
/* Asks for an allowed tunnel; returns the number of the exchange. */
uint32_t rig_must_open(uint32_t id, int *ret_edge_fd, int *ret_egress_fd);
struct seen rig_last_record(void);
/* In a child with sealed files (waits: as in the pool): the errno of open, or 0. */
int rig_sealed_open(bool waits, const char *path, int flags);

/* Runs the keeper until the condition holds; 4 s at most. */
#define RIG_UNTIL(cond)                                          \
	do {                                                     \
		for (unsigned _i = 0; _i < 400 && !(cond); _i++) \
			(void)rig_run_until(-1, 10);             \
		assert_true(cond);                               \
	} while (0)

#define RIG_MUST_KILL_EDGE()                                        \
	do {                                                        \
		(void)rig_run_until(-1, 30);                        \
		assert_false(rig_k.edge->worker.alive);             \
		assert_int_equal(rig_k.edge->worker.violations, 1); \
	} while (0)

#define RIG_MUST_KILL_EGRESS(n)                                       \
	do {                                                          \
		(void)rig_run_until(-1, 30);                          \
		assert_false(rig_k.egress->worker.alive);             \
		assert_int_equal(rig_k.egress->worker.violations, n); \
	} while (0)
