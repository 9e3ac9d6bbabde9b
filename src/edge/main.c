/* SPDX-License-Identifier: Apache-2.0 */
/* sbx-edge: terminates one sandbox's wire. The keeper starts it in the jail JAIL_EDGE. */
#include "edge.h"

#include <stdio.h>
#include <string.h>
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "lib/os/jail/jail.h"

static const struct keeper_ops keeper_ops = {
	.report = control_report,
	.refuse = control_refuse,
	.ready = control_ready,
	.lost = control_lost,
	.send_ask = control_send_ask,
	.send_gone = control_send_gone,
};
static struct edge edge = {.keeper = &keeper_ops, .ctl.fd = -1, .first_ms = EDGE_FIRST_MS};

static void dispatch_edge(struct edge *e, const struct loop_event *ev)
{
	switch ((enum edge_ev)ev->key.kind) {
	case EDGE_EV_CONTROL:
		control_on_event(&e->control, ev->events);
		break;
	case EDGE_EV_GUEST:
		port_on_event(e, &e->ctl, ev->events);
		break;
	case EDGE_EV_BRIDGE:
		bridge_on_event(e, *ev);
		break;
	case EDGE_EV_READY_TIMEOUT:
		guest_on_ready_timeout(e);
		break;
	case EDGE_EV_LINGER:
		bridge_on_linger(e, ev->key);
		break;
	case EDGE_EV_NET:
		net_on_event(e, ev->events);
		break;
	case EDGE_EV_CONN:
		net_on_conn_event(e, *ev);
		break;
	case EDGE_EV_CHANNEL:
		net_on_channel_event(e, ev);
		break;
	case EDGE_EV_CONN_TIMER:
		net_on_timer(e, ev->key);
		break;
	}
}

/* Sends the output of many events together. */
static void flush_edge(struct edge *e)
{
	if (loop_has_more(&e->loop))
		return;
	port_flush(e, &e->ctl);
	if (e->net)
		net_flush(e);
}

static void start_edge(struct edge *e)
{
	struct err err = {0};
	int r;

	for (size_t i = 0; i < EDGE_MAX_STREAMS; i++)
		e->bridges[i].fd = -1;
	control_open(&e->control, &edge_control, &e->loop, e);
	r = jail_seal(JAIL_EDGE, &err);
	if (r < 0)
		die("%s", err_text(&err, r));
	control_hello(&e->control);
}

static bool take_first_ms(int argc, char **argv)
{
	uint64_t ms;

	if (argc != 3 || strcmp(argv[1], "--first-ms") != 0 ||
		str_to_u64(argv[2], 1, EDGE_MAX_FIRST_MS, &ms) < 0)
		return false;
	edge.first_ms = (uint32_t)ms;
	return true;
}

int main(int argc, char **argv)
{
	log_init("sbx-edge");
	if (argc == 2 && strcmp(argv[1], "--jail-selftest") == 0)
		return edge_selftest();
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return puts("sbx-edge " SBX_VERSION) < 0;
	if (argc != 1 && !take_first_ms(argc, argv))
		die("usage: sbx-edge (started by sbx-keeper)");
	start_edge(&edge);
	while (!edge.control.done) {
		struct loop_event ev;

		loop_next(&edge.loop, &ev);
		dispatch_edge(&edge, &ev);
		flush_edge(&edge);
	}
	return edge.control.status;
}
