/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <errno.h>
#include <string.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

bool pool_knows(uint16_t type)
{
	return type == KEEPER_PING || type == KEEPER_STOP || type == KEEPER_CLAIM;
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

/* Starts the workers of the guest. The network starts while the guest works on /setup. */
static int go_on(struct keeper *k, struct err *err)
{
	int r = start_share(k, err);

	if (r == 0 && k->has_share) {
		r = vmm_attach_share(k->vmm, TAKE_FD(k->share.vhost_fd));
		if (r < 0)
			return err_errno(err, r, "cannot attach the workspaces");
		machine_on_qmp(k); /* sets its timer */
	}
	return r < 0 ? r : edge_send_net(k, err);
}

void pool_on_setup_sent(struct keeper *k)
{
	struct err err = {0};

	if (!k->pool->is_network_due)
		return;
	k->pool->is_network_due = false;
	warm_mark(k, "/setup is sent");
	(void)!k->life->network(k, &err); /* never fails: the network is denied instead */
	warm_mark(k, "the network is started");
}

static void begin_claimed(struct keeper *k)
{
	struct err err = {0};
	uint64_t limit = k->accel == VMM_KVM ? KEEPER_WARM_MS_KVM : KEEPER_WARM_MS_TCG;
	int r;

	link_progress(k, 72, "a waiting VM was claimed");
	loop_timer_set(&k->loop, &k->boot_timer, clock_mono_ms() + limit,
		(struct loop_key){.kind = EV_TIMER_BOOT});
	netpolicy_init(k);
	vault_start(k); /* its reply must arrive before /trust */
	k->pool->is_network_due = true;
	r = go_on(k, &err);
	if (r < 0) {
		warm_fail(k, err_text(&err, r));
		return;
	}
	warm_mark(k, "the claim is handled");
	k->life->ready(k);
}

void pool_claim(struct keeper *k, int link, uint32_t msg)
{
	uint32_t gen = k->links[link].gen;
	struct err err = {0};
	int r = 0;

	if (k->plan != START_POOL || !k->pool->is_ready || !edge_is_up(k) ||
		k->state.phase != KEEPER_STARTING)
		r = err_set(&err, -EAGAIN, "no VM is waiting");
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
