/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trust - the sandbox's CA, and what the guest is told of it.
 *
 * How      Edge makes the CA and says it once; the keeper keeps what the next edge needs to go on
 *          with the same, and tells the guest the certificate and the sentinels of the bound
 *          services by POST /trust: before the sandbox runs, and again when one of them changes. A
 *          restored guest is told before its set-up, which has to wait for the share.
 *          What changes while the guest is being told is told afterwards.
 *          The user's own CAs (network.extra-ca) go with it.
 * Trust    The CA is edge's word, which the guest may have taken over: it counts in this one guest.
 * Owns     The CA's key, in memory only, wiped at the end; while the sandbox is suspended it lies
 *          beside its memory (suspend_file.h).
 * Never    Holds a credential: sentinels say nothing.
 */
#pragma once

#include "lib/base/clock.h"
#include "lib/os/ipc/edge_chan.h"

#define KEEPER_TRUST_MS clock_limit_ms(15000) /* for the guest to rebuild its bundles */

struct keeper;

struct trust {
	bool has_ca;
	bool is_said;  /* this edge has sent its CA */
	bool is_due;   /* the guest does not know all of it yet */
	bool is_asked; /* and is being told */
	bool is_told;  /* it has been told something, since this machine started */
	bool is_last;  /* the set-up is done: the sandbox runs once the guest is told */
	struct edge_ca ca;
	char *extra; /* the user's own CAs as the guest is told them; NULL: none */
};

/* A new edge continues with the CA of the last one. */
void trust_fill_config(struct keeper *k, struct edge_config *config);
int trust_on_ca(struct keeper *k, const struct ipc_msg *msg) MUST_CHECK;
/* Tells the guest what it does not know yet; now, or when it can be told. */
void trust_renew(struct keeper *k);
void trust_send(struct keeper *k);
/* Before the set-up, while the guest has nothing else to do. Not when it might be told half. */
void trust_send_early(struct keeper *k);
/* A new machine knows nothing. */
void trust_forget(struct keeper *k);
void trust_wipe(struct keeper *k);
/* The text of network.extra-ca, "" for none: the guest trusts its certificates too. */
void trust_set_extra(struct keeper *k, const char *text);
/* The certificates in a text, one after the other in the form that guest_ctl.h wants, on the
 * heap; as many as fit into `max` bytes. *ret_left: how many did not fit, or are none. */
char *trust_pick(const char *text, size_t max, size_t *ret_left);
