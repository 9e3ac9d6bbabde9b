/* SPDX-License-Identifier: Apache-2.0 */
#include "reload_reply.h"

#include <jansson.h>
#include "api_internal.h"

static json_t *list_not_taken(struct sbxd *d, uint64_t number)
{
	json_t *list = json_array();

	for (size_t i = 0; i < d->keepers->n_slots; i++) {
		const struct keeper *k = d->keepers->slot[i];
		const char *why = reload_why_not(k, number);
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

	/* A keeper that has answered or exited is never pending for this number again, so each is
	 * looked at once, no matter how often this function is called. */
	for (; !late && c->later.at < d->keepers->n_slots; c->later.at++)
		if (reload_is_pending(d->keepers->slot[c->later.at], c->later.number))
			return;
	answer = c->later.answer;
	c->later.answer = NULL;
	json_object_set_new(answer, "not_taken", list_not_taken(d, c->later.number));
	api_reply_json(d, c, c->later.status, answer);
}

void reload_reply(struct sbxd *d, struct conn *c, int status, json_t *answer, const char *id)
{
	c->later.answer = answer;
	c->later.status = status;
	c->later.number = reload_start(d, id);
	c->later.at = 0;
	conn_wait(d, c, wait_reload, "", RELOAD_MS);
	wait_reload(d, c, false);
}
