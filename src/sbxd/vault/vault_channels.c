/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault_channels - creates the channels between keepers and the vault.
 *
 * How      A keeper sends WANT_VAULT. When the vault is up, sbxd creates a socket pair and sends
 *          one end to the vault with the id of the keeper's sandbox, the other to the keeper. A
 *          keeper that gets none requests it again. The vault closes an earlier channel of the same
 *          sandbox.
 * Trust    Runs in sbxd. The id is the one that sbxd started or adopted the keeper for, never one
 *          that the keeper sends. No data of these channels is read here.
 * Limits   One channel for each sandbox, and one in VAULT_WANT_GAP_MS.
 */
#include <assert.h>
#include "vault_internal.h"
#include "src/sbxd/keepers/keepers.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/os/ipc/vault_chan.h"

static_assert(KEEPER_MAX <= VAULT_MAX_SANDBOXES, "the vault has a place for each keeper");

static bool is_wanting(const struct keeper *k)
{
	return k->used && k->wants_vault && k->sock >= 0 && !keeper_is_pooled(k);
}

bool vault_channels_wanted(struct sbxd *d)
{
	for (size_t i = 0; i < d->keepers->n_slots; i++)
		if (is_wanting(d->keepers->slot[i]))
			return true;
	return false;
}

static int give_channel(struct sbxd *d, struct keeper *k)
{
	AUTO_CLOSE int of_vault = -1;
	AUTO_CLOSE int of_keeper = -1;
	int pair[2], r = ipc_pair(pair);

	if (r < 0)
		return 0; /* the keeper requests it again */
	of_vault = pair[0];
	of_keeper = pair[1];
	r = vault_ask_channel(d->vault->sock, k->id, of_vault);
	if (r < 0)
		return r;
	/* A keeper that does not read requests it again later. */
	(void)!chan_send_plain(k->sock, KEEPER_VAULT, 0, of_keeper);
	k->wants_vault = false;
	k->vault_given_ms = clock_mono_ms();
	return 0;
}

/* A keeper that requests a channel has lost the last one, maybe because the vault hangs. A request
 * with a deadline detects that. */
static void ask_for_sign(struct sbxd *d)
{
	struct vault_op *op = vault_ops_has_own(d->vault) ? NULL : vault_link_ask(d, VAULT_STATUS);

	if (op)
		op->is_own = true;
}

int vault_channels_give(struct sbxd *d)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->keepers->n_slots; i++)
		if (is_wanting(d->keepers->slot[i]))
			r = give_channel(d, d->keepers->slot[i]);
	ask_for_sign(d);
	return r;
}
