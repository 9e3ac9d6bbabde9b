/* SPDX-License-Identifier: Apache-2.0 */
#include "keepers_internal.h"

#include <errno.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

int holds_on_held(struct sbxd *d, struct keeper *k, const struct ipc_msg *msg)
{
	struct held *h = xmalloc(sizeof(*h));
	int r = hold_get_held(msg, &h->msg);

	if (r < 0) {
		free(h);
		return r;
	}
	h->got_ms = clock_mono_ms();
	if (!k->holds)
		k->holds = xcalloc(1, sizeof(*k->holds));
	free(k->holds->place[msg->id]);
	k->holds->place[msg->id] = h;
	d->keepers->ops->on_hold(d, k, h, false);
	return 0;
}

int holds_on_unheld(struct sbxd *d, struct keeper *k, const struct ipc_msg *msg)
{
	struct held *h;
	int r = hold_get_unheld(msg);

	if (r < 0)
		return r;
	h = k->holds ? TAKE(k->holds->place[msg->id]) : NULL;
	if (h)
		d->keepers->ops->on_hold(d, k, h, true);
	free(h);
	return 0;
}

void holds_drop(struct sbxd *d, struct keeper *k)
{
	struct keeper_holds *holds = TAKE(k->holds);

	if (!holds)
		return;
	for (size_t i = 0; i < HOLD_MAX; i++)
		free(holds->place[i]);
	free(holds);
	d->keepers->ops->on_hold(d, k, NULL, true);
}

void holds_each(struct sbxd *d, void (*fn)(void *arg, const struct keeper *k, const struct held *h),
	void *arg)
{
	for (size_t i = 0; i < d->keepers->n_slots; i++) {
		const struct keeper *k = d->keepers->slot[i];

		for (size_t j = 0; keeper_is_owned(k) && k->holds && j < HOLD_MAX; j++)
			if (k->holds->place[j])
				fn(arg, k, k->holds->place[j]);
	}
}

uint32_t holds_answer(struct sbxd *d, struct keeper *k, const struct hold_reply *reply)
{
	uint32_t ask = keeper_next_ask(d);

	return k->sock >= 0 && k->has_hello && hold_send_reply(k->sock, ask, reply) == 0 ? ask : 0;
}
