/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cred_rig - a keeper with a fake vault and fake origins, in addition to net_rig's edge and egress.
 *
 * How      cred_up makes a service `demo` whose host is api.example at the port of a real listener
 *          on loopback, a policy that allows it, and the vault's socket; the test answers for the
 *          vault and for each origin that the keeper starts, with real connections.
 * Trust    Test programs only.
 */
#pragma once

#include "net_rig.h"

#define CRED_HOST "api.example"
#define CRED_SERIAL 41
#define CRED_MAX_ORIGINS 80

extern int cred_vault;	  /* our end of the keeper's connection; -1: none */
extern int cred_listener; /* of TCP */
extern uint16_t cred_port;
extern int cred_origins[CRED_MAX_ORIGINS]; /* our ends, in start order */
extern size_t cred_n_origins;
extern struct vault_item cred_items[8]; /* answer to LIST */
extern size_t cred_n_items;

int cred_up(void **state);
int cred_down(void **state);
#define CRED_TEST(f) cmocka_unit_test_setup_teardown(f, cred_up, cred_down)

struct vault_item *cred_add_item(const char *name, uint64_t serial);
/* The keeper connects; handles HELLO to the end of the first LIST. */
void cred_vault_up(void);
void cred_accept(void);
/* Receives a LIST and answers it. */
void cred_answer_list(void);
/* CHANGED, and the LIST that follows. */
void cred_changed(void);
/* Asks for a request inside intercepted TLS. */
void cred_ask(uint32_t id, const char *host, const char *method);
/* The same, allowed: rig_verdict has its stream. Returns edge's end of the channel if it is a new
 * one, or -1. */
int cred_must_open(uint32_t id);
/* Both tables of the policy. */
void cred_must_get_policy(int origin);
/* HELLO, CONFIG, ROOTS and POLICY of the newest origin. */
int cred_origin_up(void);
/* Receives OPEN and returns its number; *ret_fd is origin's end of a new channel, or -1. */
uint32_t cred_must_get_open(int origin, int *ret_fd);
/* Vault, egress, a request, its origin and its OPEN. */
struct cred_run {
	int edge_fd, origin_fd;
	int origin;
	uint32_t exchange;
};
struct cred_run cred_run_up(void);
void cred_run_down(struct cred_run *run);
/* A connection to the listener, for a result of egress. */
int cred_connect(void);
/* WANT, the result of egress, and SOCKET; returns the outcome. */
enum egress_outcome cred_want(int origin, uint32_t id);
/* Receives egress's OPEN of the kind SOCKET and returns its number. */
uint32_t cred_must_get_socket_open(void);
enum egress_outcome cred_must_get_socket(int origin, uint32_t id);
void cred_need(int origin, uint32_t id, uint32_t conn);
/* Receives a RELEASE; its stream is in rig_msg. */
void cred_must_get_release(const char *name, uint64_t serial);
struct origin_value cred_must_get_value(int origin, uint32_t id);
/* Counts the records with this action. */
struct seen cred_last_use(void);
