/* SPDX-License-Identifier: Apache-2.0 */
#include "keepers_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "src/sbxd/http/http.h"
#include "src/sbxd/policy/policy.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/vm/store/store.h"

static bool is_ending(const struct keeper *k)
{
	return k->asked_stop || k->state.phase == KEEPER_STOPPING ||
	       k->state.phase == KEEPER_STOPPED;
}

/* Both tables, for the RELOAD or CLAIM that follows on the channel. */
int reload_send_policy(struct sbxd *d, struct keeper *k, const struct spec *spec, uint32_t ask)
{
	int files[POLICY_N_PARTS];
	int r = tables_get(d->tables, d->rulebook, spec, files);

	for (size_t i = 0; i < POLICY_N_PARTS && r == 0; i++)
		r = keeper_send_policy(k->sock, ask, (uint8_t)i, files[i]);
	fd_close(&files[POLICY_OWN]);
	return r;
}

void reload_first(struct sbxd *d, struct keeper *k, const struct spec *spec)
{
	int r = reload_send_policy(d, k, spec, keeper_next_ask(d));

	if (r == 0)
		return;
	log_error("cannot send the policy to the keeper of %s: %s", k->id, strerror(-r));
	k->reload.want = ++d->keepers->n_reloads;
}

void reload_push(struct sbxd *d, struct keeper *k)
{
	AUTO_ROW struct store_row row = {0};
	uint32_t ask;
	int r;

	if (k->reload.want <= k->reload.sent || k->reload.ask || k->sock < 0 || !k->has_hello ||
		k->other_build || is_ending(k) || store_get(d->store, k->id, &row, NULL) < 0)
		return;
	ask = keeper_next_ask(d);
	/* If the channel is full, it is tried again after the keeper's next message. A keeper that
	 * gets RELOAD without a policy denies everything. */
	r = reload_send_policy(d, k, &row.spec, ask);
	if (r == -EAGAIN)
		return;
	if (r < 0)
		log_error("cannot send the policy to the keeper of %s: %s", k->id, strerror(-r));
	if (keeper_ask_reload(k->sock, ask, row.spec.name) < 0)
		return;
	k->reload.ask = ask;
	k->reload.sent = k->reload.want;
}

void reload_adopted(struct sbxd *d, struct keeper *k)
{
	k->reload.want = ++d->keepers->n_reloads;
	reload_push(d, k);
}

bool reload_on_done(struct sbxd *d, struct keeper *k, uint32_t ask_id, int code, const char *text)
{
	if (!k->reload.ask || k->reload.ask != ask_id)
		return false;
	k->reload.ask = 0;
	k->reload.done = k->reload.sent;
	(void)snprintf(k->reload.why, sizeof(k->reload.why), "%.*s", (int)sizeof(k->reload.why) - 1,
		code == 0 ? ""
		: text[0] ? text
			  : strerror(-code));
	reload_push(d, k);
	conns_wake(d, k->id);
	return true;
}

uint64_t reload_start(struct sbxd *d, const char *id)
{
	uint64_t number = ++d->keepers->n_reloads;

	for (size_t i = 0; i < d->keepers->n_slots; i++) {
		struct keeper *k = d->keepers->slot[i];

		if (!keeper_is_owned(k) || (id && strcmp(k->id, id) != 0))
			continue;
		k->reload.want = number;
		reload_push(d, k);
	}
	return number;
}

bool reload_is_pending(const struct keeper *k, uint64_t number)
{
	return keeper_is_owned(k) && !is_ending(k) && k->reload.want >= number &&
	       k->reload.done < number && !k->other_build;
}

const char *reload_why_not(const struct keeper *k, uint64_t number)
{
	if (!keeper_is_owned(k) || is_ending(k) || k->reload.want < number)
		return NULL;
	if (k->other_build)
		return "the sandbox was started by another version of sbx: restart it";
	if (k->reload.done < number)
		return "the sandbox did not respond in time";
	return k->reload.why[0] ? k->reload.why : NULL;
}
