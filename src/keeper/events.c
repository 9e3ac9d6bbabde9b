/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events - the event table: for each event of the loop, the check that its source still exists and
 *          the function that handles the event.
 */
#include "keeper.h"

#include <assert.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/process/inventory.h"
#include "lib/base/mem.h"

/* ---- callbacks of edge and egress to the parts above them ---- */

static void edge_ready(struct keeper *k)
{
	start_on_ready(k);
	waiting_flush(k);
	ports_watch(k);
	if (k->state.phase == KEEPER_RUNNING)
		trust_send(k);
}

static void edge_ended(struct keeper *k)
{
	ports_on_edge_end(k);
	ask_drop_all(k);
	net_on_edge_end(k);
}

static const struct edge_ops edge_callbacks = {
	.fill_ca = trust_fill_config,
	.on_ready = edge_ready,
	.on_ask = net_on_ask,
	.on_gone = net_on_gone,
	.on_ca = trust_on_ca,
	.on_room = net_run,
	.on_end = edge_ended,
};

static void egress_room(struct keeper *k)
{
	conns_on_room(k);
	net_run(k);
}

static void egress_loaded(struct keeper *k, const char *text)
{
	netpolicy_on_loaded(k, text);
	egress_room(k);
}

static void egress_ended(struct keeper *k)
{
	netpolicy_on_egress_end(k);
	net_on_egress_end(k);
}

static const struct egress_ops egress_callbacks = {
	.configure = netpolicy_send,
	.on_loaded = egress_loaded,
	.on_result = net_on_result,
	.on_closed = net_on_closed,
	.on_login = net_on_login,
	.on_logged = net_on_logged,
	.on_room = egress_room,
	.on_end = egress_ended,
};

static const struct life_ops life_callbacks = {
	.stop = stop_begin,
	.finish = stop_finish,
	.prepared = start_go_on,
	.machine = start_machine,
	.helpers = start_helpers,
	.network = start_network,
	.boot = start_boot,
	.undo = start_undo,
	.ready = start_on_ready,
	.trusted = start_on_trusted,
	.give_time = start_give_time,
	.vm_event = vm_on_event,
	.publish = make_publish,
	.dispatch = keeper_dispatch,
};

/* The state of the parts: a process has one sandbox. */
static struct {
	struct disks disks;
	struct accel selftest;
	struct warm warm;
	struct pool pool;
	struct freeze freeze;
	struct crowd crowd;
	struct guard guard;
	struct denied denied;
	struct keeper_holds holds;
	struct edge_link edge;
	struct egress_link egress;
	struct ssh_agent_link ssh_agent;
	struct netpolicy netpolicy;
	struct net net;
	struct clerks clerks;
	struct record record;
	struct vault_link vault;
	struct origins origins;
	struct trust trust;
	struct suspend suspend;
	struct idle idle;
	struct space space;
	struct ports ports;
	struct link links[KEEPER_MAX_LINKS];
	struct ask asks[KEEPER_MAX_ASKS];
	struct stream streams[KEEPER_MAX_STREAMS];
	struct waiting waiting[KEEPER_MAX_WAITING];
} all;

static void link_parts(struct keeper *k)
{
	memset(&all, 0, sizeof(all));
	k->disks = &all.disks;
	k->template = &all.disks.template;
	k->selftest = &all.selftest;
	k->warm = &all.warm;
	k->pool = &all.pool;
	k->freeze = &all.freeze;
	k->crowd = &all.crowd;
	k->guard = &all.guard;
	k->denied = &all.denied;
	k->holds = &all.holds;
	k->edge = &all.edge;
	k->egress = &all.egress;
	k->ssh_agent = &all.ssh_agent;
	k->netpolicy = &all.netpolicy;
	k->net = &all.net;
	k->clerks = &all.clerks;
	k->record = &all.record;
	k->vault = &all.vault;
	k->origins = &all.origins;
	k->trust = &all.trust;
	k->suspend = &all.suspend;
	k->idle = &all.idle;
	k->space = &all.space;
	k->ports = &all.ports;
	k->links = all.links;
	k->asks = all.asks;
	k->streams = all.streams;
	k->waiting = all.waiting;
}

void keeper_init(struct keeper *k)
{
	link_parts(k);
	k->sig_fd = k->lock_fd = k->listen_fd = -1;
	k->chatter_rd = k->chatter_wr = -1;
	k->port_fd = k->net_port_fd = -1;
	k->port_path[HANDS_CTL] = k->port_path[HANDS_NET] = -1;
	k->stop_link = -1;
	k->started_ms = clock_mono_ms();
	k->life = &life_callbacks;
	link_init(k, &requests_ops);
	ask_init(k);
	accel_init(k);
	warm_init(k);
	guard_init(k);
	netpolicy_prepare(k);
	waiting_init(k);
	edge_init(k, &edge_callbacks);
	egress_init(k, &egress_callbacks);
	ssh_agent_init(k);
	net_init(k);
	holds_init(k);
	clerks_init(k);
	vault_init(k);
	origins_init(k, net_open_socket, netpolicy_send_tables);
	suspend_init(k);
	ports_init(k);
}

static void write_inventory(const struct keeper *k)
{
	AUTO_FREE char *path = xasprintf("%s/" INVENTORY_NAME, k->run_dir);

	inventory_write(path);
}

static void read_signal(struct keeper *k)
{
	struct signalfd_siginfo info;

	if (read(k->sig_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
		stop_begin(k, KEEPER_STOP_MS, "sbx-keeper was stopped by a signal");
	if (info.ssi_signo == SIGUSR1 && k->run_dir)
		write_inventory(k);
}

static bool machine_is_live(const struct keeper *k, struct loop_key key)
{
	return k->vmm && k->vmm_gen == key.gen;
}

static bool share_is_live(const struct keeper *k, struct loop_key key)
{
	return k->has_share && k->share_gen == key.gen;
}

static bool save_is_live(const struct keeper *k, struct loop_key key)
{
	return k->suspend->save.pidfd >= 0 && k->save_gen == key.gen;
}

static bool check_is_live(const struct keeper *k, struct loop_key key)
{
	return k->suspend->check.pidfd >= 0 && k->check_gen == key.gen;
}

static bool image_is_live(const struct keeper *k, struct loop_key key)
{
	return (k->warm->check.pidfd >= 0 || k->warm->save.pidfd >= 0) && k->image_gen == key.gen;
}

static bool selftest_is_live(const struct keeper *k, struct loop_key key)
{
	(void)key;
	return k->selftest->child.pidfd >= 0;
}

struct event_row {
	bool (*is_live)(const struct keeper *k, struct loop_key key); /* NULL: always */
	/* Exactly one is set. */
	void (*run)(struct keeper *k);
	void (*run_event)(struct keeper *k, const struct loop_event *ev);
};

static const struct event_row event_table[] = {
	[EV_SIGNAL] = {NULL, read_signal},
	[EV_LISTEN] = {NULL, link_on_accept},
	[EV_LINK] = {link_is_live, .run_event = link_on_readable},
	[EV_QMP] = {machine_is_live, machine_on_qmp},
	[EV_QEMU_END] = {machine_is_live, machine_on_qemu_end},
	[EV_SHARE_END] = {share_is_live, machine_on_share_end},
	[EV_EDGE] = {edge_is_live, .run_event = edge_on_event},
	[EV_EDGE_END] = {edge_is_live, edge_on_exit},
	[EV_ASK] = {ask_is_live, .run_event = ask_on_readable},
	[EV_CHATTER] = {NULL, chatter_on_readable},
	[EV_TIMER_BOOT] = {NULL, start_on_timeout},
	[EV_TIMER_STOP] = {NULL, stop_on_timeout},
	[EV_TIMER_VMM] = {machine_is_live, machine_on_qmp},
	[EV_TIMER_EDGE] = {NULL, edge_on_timer},
	[EV_TIMER_WAIT] = {waiting_is_live, .run_event = waiting_on_timeout},
	[EV_TIMER_ASK] = {ask_is_live, .run_event = ask_on_timeout},
	[EV_EGRESS] = {egress_is_live, .run_event = egress_on_event},
	[EV_EGRESS_END] = {egress_is_live, egress_on_exit},
	[EV_TIMER_EGRESS] = {NULL, egress_start},
	[EV_TIMER_LOAD] = {NULL, netpolicy_on_load_timeout},
	[EV_TIMER_NET] = {NULL, net_run},
	[EV_TIMER_RECORD] = {NULL, record_on_timer},
	[EV_SSH_AGENT] = {ssh_agent_is_live, .run_event = ssh_agent_on_event},
	[EV_SSH_AGENT_END] = {ssh_agent_is_live, ssh_agent_on_exit},
	[EV_CONFIRM] = {NULL, .run_event = ssh_agent_on_confirm},
	[EV_TIMER_CONFIRM] = {NULL, .run_event = ssh_agent_on_confirm_timeout},
	[EV_VAULT] = {vault_is_live, vault_on_event},
	[EV_TIMER_VAULT] = {NULL, vault_on_timer},
	[EV_TIMER_RELEASE] = {release_is_live, .run_event = vault_on_release_timeout},
	[EV_TIMER_STORE] = {store_is_live, .run_event = vault_on_store_timeout},
	[EV_ORIGIN] = {origins_is_live, .run_event = origins_on_event},
	[EV_ORIGIN_END] = {origins_is_live, .run_event = origins_on_exit},
	[EV_TIMER_ORIGINS] = {NULL, origins_on_timer},
	[EV_SUSPEND_SAVED] = {save_is_live, suspend_on_saved},
	[EV_SUSPEND_CHECKED] = {check_is_live, resume_on_checked},
	[EV_TIMER_SUSPEND] = {NULL, suspend_on_timer},
	[EV_TIMER_IDLE] = {NULL, idle_on_timer},
	[EV_TIMER_SPACE] = {NULL, space_on_timer},
	[EV_IMAGE] = {image_is_live, warm_on_child},
	[EV_TIMER_MAKE] = {NULL, make_on_timer},
	[EV_PORT] = {ports_is_live, .run_event = ports_on_accept},
	[EV_TIMER_PORTS] = {NULL, ports_watch},
	[EV_CROWD] = {share_is_live, crowd_on_lookup},
	[EV_TIMER_CROWD] = {NULL, crowd_on_timer},
	[EV_GUARD] = {share_is_live, guard_on_event},
	[EV_SELFTEST] = {selftest_is_live, accel_on_end},
	[EV_TIMER_SELFTEST] = {selftest_is_live, accel_on_timer},
	[EV_TIMER_DENIED] = {NULL, denied_on_timer},
	[EV_TIMER_HOLDS] = {NULL, holds_on_timer},
	[EV_TIMER_HOLDS_SEND] = {NULL, holds_on_send_timer},
	[EV_CLERK] = {clerks_is_live, .run_event = clerks_on_event},
	[EV_CLERK_END] = {clerks_is_live, .run_event = clerks_on_exit},
	[EV_TIMER_CLERKS] = {NULL, clerks_on_timer},
};
static_assert(ARRAY_LEN(event_table) == KEEPER_N_EVENTS, "every event has a row");

void keeper_dispatch(struct keeper *k, const struct loop_event *ev)
{
	const struct event_row *row;

	if (ev->key.kind >= KEEPER_N_EVENTS)
		return;
	row = &event_table[ev->key.kind];
	if (row->is_live && !row->is_live(k, ev->key))
		return;
	if (row->run)
		row->run(k);
	else
		row->run_event(k, ev);
}
