/* SPDX-License-Identifier: Apache-2.0 */
/*
 * credrig - a sandbox with credentials on the host, without a VM: the real keeper, edge, egress,
 * origins and
 *           vault; only the machine is played.
 *
 * How      credrig.c starts rigkeeper (keeper.c: the keeper's own parts) and sbx-vault-run with a
 *          listener at the vault's socket, and accepts where qemu would. ctl.c answers the keeper's
 *          questions, netrig's guest.c and serve.c are the guest's network. Folders are those of
 *          the environment: XDG_*, SBX_LIBEXEC, SBX_SHARE.
 * Trust    Test program.
 * Owns     Both processes, which die with it.
 * See      README, tests/rigs/netrig/rig.h, tests/rigs/rig.py
 */
#pragma once

#include "lib/rules/hold/hold_msg.h"
#include "lib/wire/guestapi/guest_ctl.h"
#include "tests/rigs/netrig/rig.h"

#define CREDRIG_ID "0123456789ab"
#define CREDRIG_NAME "rig"

enum credrig_ev {
	CREDRIG_EV_CTL = RIG_EV_USER,
	CREDRIG_EV_NET,
	CREDRIG_EV_KEEPER,
	CREDRIG_EV_KEEPER_END,
	CREDRIG_EV_VAULT_END,
};

struct credrig {
	struct rig rig; /* first: serve.c and guest.c know only this */
	const char *folder, *keeper;
	int ctl, net; /* listeners */
	int vault;    /* the same, the vault's */
	int owner;    /* our channel to the vault; keepers' channels are created over it */
	int sbxd;     /* our end of the keeper's connection */
	pid_t keeper_pid, vault_pid;
	int keeper_pidfd, vault_pidfd;
	enum keeper_phase phase;
	uint32_t reloads;
	struct guest_trust trust; /* what the guest was told last */
	unsigned n_trusts;
	struct hold_msg held; /* the last request that needed an approval */
};

extern const struct wire_ops credrig_ctl_ops;
void ctl_forget(void);
