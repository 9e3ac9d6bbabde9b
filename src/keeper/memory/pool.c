/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <errno.h>
#include <string.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

bool pool_knows(uint16_t type)
{
	return type == KEEPER_PING || type == KEEPER_STOP || type == KEEPER_CLAIM ||
	       type == KEEPER_POLICY;
}

void pool_on_ready(struct keeper *k)
{
	if (k->pool->is_ready)
		return;
	k->pool->is_ready = true;
	loop_timer_clear(&k->loop, &k->boot_timer);
	k->state.how = KEEPER_HOW_POOL;
	link_progress(k, 70, "waiting for a sandbox");
}

/* From here on as a warm start whose qemu is ready. */
static void begin_claimed(struct keeper *k)
{
	struct err err = {0};
	uint64_t limit = k->accel == VMM_KVM ? KEEPER_WARM_MS_KVM : KEEPER_WARM_MS_TCG;
	int r;

	link_progress(k, 72, "a waiting VM was claimed");
	loop_timer_set(&k->loop, &k->boot_timer, clock_mono_ms() + limit,
		(struct loop_key){.kind = EV_TIMER_BOOT});
	netpolicy_init(k);
	r = warm_begin(k, &err);
	if (r < 0) {
		warm_fail(k, err_text(&err, r));
		return;
	}
	machine_on_qmp(k); /* sets its timer */
	warm_mark(k, "the claim is handled");
}

/* The memory was empty until now. */
static int check_room(const struct keeper *k, struct err *err)
{
	return k->memory_dir ? space_check(k, k->spec.memory, err) : 0;
}

void pool_claim(struct keeper *k, int link, uint32_t msg)
{
	uint32_t gen = k->links[link].gen;
	struct err err = {0};
	int r = 0;

	if (k->plan != START_POOL || !k->pool->is_ready || k->state.phase != KEEPER_STARTING)
		r = err_set(&err, -EAGAIN, "no VM is waiting");
	if (r == 0)
		r = check_room(k, &err);
	k->started_ms = r == 0 ? clock_mono_ms() : k->started_ms;
	if (r == 0)
		r = hands_claim(k, &err);
	if (r < 0) {
		link_answer(k, link, gen, msg, r, err_text(&err, r));
		return;
	}
	k->plan = START_WARM;
	link_answer(k, link, gen, msg, 0, "");
	begin_claimed(k);
}

void pool_on_link_end(struct keeper *k)
{
	if (k->plan != START_POOL || k->state.phase != KEEPER_STARTING)
		return;
	for (size_t i = 0; i < KEEPER_MAX_LINKS; i++)
		if (k->links[i].fd >= 0)
			return;
	k->life->stop(k, 0, "sbxd exited, and no other process can claim this VM");
}

void pool_on_stop(struct keeper *k)
{
	if (k->plan == START_POOL)
		warm_remove_disks(k);
}
