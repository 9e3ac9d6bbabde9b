/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netpolicy - policy and settings of the network, from sbxd and the files to gate and egress.
 *
 * How      See netpolicy.c.
 * Trust    Tables of sbxd; files of the same user; resolv.conf of the host.
 * Limits   KEEPER_MAX_RELOADS, KEEPER_RESOLVER_MS.
 */
#pragma once

#include <sys/stat.h>
#include "lib/base/err.h"
#include "lib/base/attr.h"
#include "lib/os/ipc/msg.h"
#include "lib/rules/policy/policy.h"

#define KEEPER_RESOLVER_MS 1000 /* between two checks of resolv.conf and the host's addresses */
#define KEEPER_MAX_RELOADS 8	/* waiting for egress */

struct keeper;
struct packs;

/* A RELOAD that waits until egress has the policy. */
struct reload {
	int link;
	uint32_t link_gen, msg, policy;
};

/* The tables of the last POLICY messages, until they apply; -1: not received. */
struct next_policy {
	int link;
	uint32_t link_gen, msg;
	int table[POLICY_N_PARTS];
	bool is_used; /* they apply already, and the next RELOAD is about them */
};

/* Network policy and settings, as last read. */
struct netpolicy {
	int table[POLICY_N_PARTS]; /* of the gate and of egress; -1: none, all is denied */
	struct next_policy next;
	char fault[ERR_MAX_TEXT]; /* why the settings are invalid; "": valid */
	struct stat resolver;	  /* of resolv.conf when it was sent */
	uint64_t resolver_ms;	  /* time of the last check */
	bool locals_due;	  /* the host's new addresses are not sent yet */
	struct packs *packs;	  /* NULL: no rule is about an API */
	struct reload reloads[KEEPER_MAX_RELOADS];
	size_t n_reloads;
};

/* netpolicy.c: policy and settings of the network, from the files to gate and egress. */
void netpolicy_prepare(struct keeper *k);
void netpolicy_init(struct keeper *k);
/* Sends the complete configuration to egress. Returns < 0 if egress does not accept it. */
int netpolicy_send(struct keeper *k) MUST_CHECK;
/* Sends both tables to a worker. */
int netpolicy_send_tables(struct keeper *k, int sock, uint32_t id,
	int (*ask)(int sock, uint32_t id, uint8_t part, int table)) MUST_CHECK;
/* Informs egress if resolv.conf or the addresses of the host changed. */
void netpolicy_check_host(struct keeper *k);
/* POLICY: one of two tables. */
int netpolicy_take(struct keeper *k, int link, struct ipc_msg *msg) MUST_CHECK;
/* Uses the last tables and reads the settings again. DONE is sent when both are in effect. */
void netpolicy_reload(struct keeper *k, int link, uint32_t msg, const char *name);
void netpolicy_on_loaded(struct keeper *k, const char *text);
void netpolicy_on_egress_end(struct keeper *k);
void netpolicy_on_load_timeout(struct keeper *k);
