/* SPDX-License-Identifier: Apache-2.0 */
#include "wire.h"

#include "lib/base/clock.h"

void guest_start(struct edge *e, int fd, uint32_t ready_ms)
{
	e->ready_ms = ready_ms;
	e->ctl.name = "the control channel";
	e->ctl.ev = EDGE_EV_GUEST;
	e->wire = wire_new(WIRE_CLIENT, WIRE_CTL, &bridge_wire_ops, e);
	port_start(e, &e->ctl, fd, e->wire);
	loop_timer_set(&e->loop, &e->ready_timer, clock_mono_ms() + ready_ms,
		(struct loop_key){.kind = EDGE_EV_READY_TIMEOUT});
}

void guest_on_ready_timeout(struct edge *e)
{
	if (e->control.phase == EDGE_PHASE_CONNECT)
		e->keeper->lost(e, "the guest did not respond within %u ms", e->ready_ms);
}
