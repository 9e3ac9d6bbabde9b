/* SPDX-License-Identifier: Apache-2.0 */
#include "reload.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "src/sbxd/api/api.h"
#include "src/sbxd/sbxd.h"

static bool is_ending(const struct keeper *k)
{
	return k->asked_stop || k->state.phase == KEEPER_STOPPING ||
	       k->state.phase == KEEPER_STOPPED;
}

void reload_push(struct sbxd *d, struct keeper *k)
{
	AUTO_ROW struct store_row row = {0};
	uint32_t ask;

	if (k->reload.want <= k->reload.sent || k->reload.ask || k->sock < 0 || !k->has_hello ||
		k->other_build || is_ending(k) || store_get(d->store, k->id, &row, NULL) < 0)
		return;
	ask = keeper_next_ask(d);
	/* One whose channel is full is tried again after its next word. */
	if (keeper_ask_reload(k->sock, ask, row.spec.name) < 0)
		return;
	k->reload.ask = ask;
	k->reload.sent = k->reload.want;
}

void reload_adopted(struct sbxd *d, struct keeper *k)
{
	k->reload.want = ++d->n_reloads;
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

static bool is_pending(const struct keeper *k, uint64_t number)
{
	return keeper_is_owned(k) && !is_ending(k) && k->reload.want >= number &&
	       k->reload.done < number && !k->other_build;
}

static const char *why_not(const struct keeper *k, uint64_t number)
{
	if (!keeper_is_owned(k) || is_ending(k) || k->reload.want < number)
		return NULL;
	if (k->other_build)
		return "it was started by another version of sbx; stop it and start it again";
	if (k->reload.done < number)
		return "it did not answer in time";
	return k->reload.why[0] ? k->reload.why : NULL;
}

static json_t *list_not_taken(struct sbxd *d, uint64_t number)
{
	json_t *list = json_array();

	for (size_t i = 0; i < KEEPER_MAX; i++) {
		const struct keeper *k = &d->keepers.slot[i];
		const char *why = why_not(k, number);
		AUTO_ROW struct store_row row = {0};
		json_t *o;

		if (!why || store_get(d->store, k->id, &row, NULL) < 0)
			continue;
		o = json_object();
		json_object_set_new(o, "sandbox", json_string(row.spec.name));
		json_object_set_new(o, "reason", api_text(why));
		json_array_append_new(list, o);
	}
	return list;
}

static void wait_reload(struct sbxd *d, struct conn *c, bool late)
{
	json_t *answer;

	for (size_t i = 0; !late && i < KEEPER_MAX; i++)
		if (is_pending(&d->keepers.slot[i], c->later.number))
			return;
	answer = c->later.answer;
	c->later.answer = NULL;
	json_object_set_new(answer, "not_taken", list_not_taken(d, c->later.number));
	api_reply_json(d, c, c->later.status, answer);
}

void reload_reply(struct sbxd *d, struct conn *c, int status, json_t *answer, const char *id)
{
	uint64_t number = ++d->n_reloads;

	for (size_t i = 0; i < KEEPER_MAX; i++) {
		struct keeper *k = &d->keepers.slot[i];

		if (!keeper_is_owned(k) || (id && strcmp(k->id, id) != 0))
			continue;
		k->reload.want = number;
		reload_push(d, k);
	}
	c->later.answer = answer;
	c->later.status = status;
	c->later.number = number;
	conn_wait(d, c, wait_reload, "", RELOAD_MS);
	wait_reload(d, c, false);
}
