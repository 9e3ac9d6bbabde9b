/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trust - the sandbox CA, and its certificate in the guest.
 *
 * How      Edge creates the CA and sends it once. The keeper stores it for the next edge and sends
 *          the certificate and the placeholders of the bound services to the guest by POST /trust:
 *          before the sandbox runs, and again after each change. A restored guest gets it before
 *          its set-up, which has to wait for the share. Changes during a POST are sent in another
 *          one. The user's own CAs (network.extra-ca) are part of it.
 * Trust    The CA comes from edge, possibly compromised: only this guest trusts it.
 * Owns     The CA's key, in memory only, wiped at exit. While the sandbox is suspended, the key is
 *          stored with its snapshot (suspend_file.h).
 * Never    Handles a credential: placeholders are not secret.
 */
#pragma once

#include "lib/base/clock.h"
#include "lib/os/ipc/edge_chan.h"

#define KEEPER_TRUST_MS clock_limit_ms(15000) /* for the guest to rebuild its bundles */

struct keeper;

struct trust {
	bool has_ca;
	bool is_said;  /* this edge has sent its CA */
	bool is_due;   /* the guest does not have the current state */
	bool is_asked; /* a POST is under way */
	bool is_told;  /* the guest got a POST since the VM started */
	bool is_last;  /* the set-up is done: the sandbox runs after this POST */
	struct edge_ca ca;
	char *extra; /* the user's own CAs in the form for the guest; NULL: none */
};

/* A new edge continues with the CA of the last one. */
void trust_fill_config(struct keeper *k, struct edge_config *config);
int trust_on_ca(struct keeper *k, const struct ipc_msg *msg) MUST_CHECK;
/* Sends the guest what changed; now, or when it can be reached. */
void trust_renew(struct keeper *k);
void trust_send(struct keeper *k);
/* Before the set-up, while the guest is idle. Not if only a part could be sent. */
void trust_send_early(struct keeper *k);
/* A new VM has received nothing. */
void trust_forget(struct keeper *k);
void trust_wipe(struct keeper *k);
/* The text of network.extra-ca, "" for none: the guest trusts its certificates too. */
void trust_set_extra(struct keeper *k, const char *text);
/* Returns the certificates in a text, each in the form of guest_ctl.h, on the heap; as many as fit
 * into `max` bytes. *ret_left: number of those that did not fit or are invalid. */
char *trust_pick(const char *text, size_t max, size_t *ret_left);
