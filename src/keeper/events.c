/*
 * events - the switch: which part handles which event of the loop, and which events are too late.
 */
#include "keeper.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/process/inventory.h"
#include "lib/base/mem.h"

void keeper_init(struct keeper *k)
{
	k->sig_fd = k->lock_fd = k->listen_fd = -1;
	k->chatter_rd = k->chatter_wr = -1;
	k->port_fd = k->net_port_fd = -1;
	k->port_path[HANDS_CTL] = k->port_path[HANDS_NET] = -1;
	k->edge.sock = k->edge.child.pidfd = -1;
	k->stop_link = -1;
	k->started_ms = clock_mono_ms();
	for (size_t i = 0; i < KEEPER_MAX_LINKS; i++)
		k->links[i].fd = -1;
	ask_init(k);
	accel_init(k);
	warm_init(k);
	waiting_init(k);
	egress_init(k);
	agent_init(k);
	net_init(k);
	vault_init(k);
	origins_init(k);
	suspend_init(k);
	ports_init(k);
}

static void write_inventory(const struct keeper *k)
{
	AUTO_FREE char *path = xasprintf("%s/" INVENTORY_NAME, k->run_dir);

	inventory_write(path);
}

static void on_signal(struct keeper *k)
{
	struct signalfd_siginfo info;

	if (read(k->sig_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
		stop_begin(k, KEEPER_STOP_MS, "the keeper was told to end by a signal");
	if (info.ssi_signo == SIGUSR1 && k->run_dir)
		write_inventory(k);
}

static bool is_stale(const struct keeper *k, struct loop_key key)
{
	switch ((enum keeper_ev)key.kind) {
	case EV_LINK:
		return k->links[key.idx].fd < 0 || (k->links[key.idx].gen & 0xffffff) != key.gen;
	case EV_ASK:
	case EV_TIMER_ASK:
		return k->asks[key.idx].kind == ASK_NONE || k->asks[key.idx].gen != key.gen;
	case EV_TIMER_WAIT:
		return k->waiting[key.idx].fd < 0 || k->waiting[key.idx].gen != key.gen;
	case EV_EDGE:
	case EV_EDGE_END:
		return !k->edge.alive || (k->edge.gen & 0xffffff) != key.gen;
	case EV_EGRESS:
	case EV_EGRESS_END:
		return !k->egress.alive || (k->egress.gen & 0xffffff) != key.gen;
	case EV_AGENT:
	case EV_AGENT_END:
		return !k->agent.alive || (k->agent.gen & 0xffffff) != key.gen;
	case EV_VAULT:
		return k->vault.sock < 0 || k->vault.gen != key.gen;
	case EV_TIMER_RELEASE:
		return !k->vault.releases[key.idx].id || k->vault.releases[key.idx].gen != key.gen;
	case EV_TIMER_STORE:
		return !k->vault.stores[key.idx].id || k->vault.stores[key.idx].gen != key.gen;
	case EV_ORIGIN:
	case EV_ORIGIN_END:
		return !k->origins.list[key.idx].alive || k->origins.list[key.idx].gen != key.gen;
	case EV_PORT:
		return k->ports.list[key.idx].fd < 0 || k->ports.list[key.idx].gen != key.gen;
	case EV_QMP:
	case EV_QEMU_END:
	case EV_TIMER_VMM:
		return !k->vmm || k->vmm_gen != key.gen;
	case EV_SHARE_END:
	case EV_CROWD:
		return !k->has_share || k->share_gen != key.gen;
	case EV_SUSPEND_SAVED:
		return k->suspend.save.pidfd < 0 || k->save_gen != key.gen;
	case EV_SUSPEND_CHECKED:
		return k->suspend.check.pidfd < 0 || k->check_gen != key.gen;
	case EV_IMAGE:
		return (k->warm.check.pidfd < 0 && k->warm.save.pidfd < 0) ||
		       k->image_gen != key.gen;
	case EV_SELFTEST:
	case EV_TIMER_SELFTEST:
		return k->selftest.child.pidfd < 0;
	default:
		return false;
	}
}

/* The events of a memory that comes and goes, of files, and of the test of KVM. */
static void dispatch_memory(struct keeper *k, const struct loop_event *ev)
{
	switch ((enum keeper_ev)ev->key.kind) {
	case EV_SUSPEND_SAVED:
		suspend_on_saved(k);
		break;
	case EV_SUSPEND_CHECKED:
		resume_on_checked(k);
		break;
	case EV_TIMER_SUSPEND:
		suspend_on_timer(k);
		break;
	case EV_TIMER_IDLE:
		idle_on_timer(k);
		break;
	case EV_TIMER_SPACE:
		space_on_timer(k);
		break;
	case EV_CROWD:
		crowd_on_lookup(k);
		break;
	case EV_TIMER_CROWD:
		crowd_on_timer(k);
		break;
	case EV_TIMER_DENIED:
		denied_on_timer(k);
		break;
	case EV_SELFTEST:
		accel_on_end(k);
		break;
	case EV_TIMER_SELFTEST:
		accel_on_timer(k);
		break;
	default:
		break;
	}
}

/* The events of credentials. */
static void dispatch_credentials(struct keeper *k, const struct loop_event *ev)
{
	switch ((enum keeper_ev)ev->key.kind) {
	case EV_VAULT:
		vault_on_event(k);
		break;
	case EV_TIMER_VAULT:
		vault_on_timer(k);
		break;
	case EV_TIMER_RELEASE:
		vault_on_release_timeout(k, ev->key.idx);
		break;
	case EV_TIMER_STORE:
		vault_on_store_timeout(k, ev->key.idx);
		break;
	case EV_ORIGIN:
		origins_on_event(k, ev->key.idx, ev->events);
		break;
	case EV_ORIGIN_END:
		origins_on_end(k, ev->key.idx);
		break;
	case EV_TIMER_ORIGINS:
		origins_on_timer(k);
		break;
	case EV_PORT:
		ports_on_accept(k, ev->key.idx);
		break;
	case EV_TIMER_PORTS:
		ports_watch(k);
		break;
	default:
		dispatch_memory(k, ev);
		break;
	}
}

/* The events of the way out. */
static void dispatch_network(struct keeper *k, const struct loop_event *ev)
{
	switch ((enum keeper_ev)ev->key.kind) {
	case EV_EGRESS:
		egress_on_event(k, ev->events);
		break;
	case EV_EGRESS_END:
		egress_on_end(k);
		break;
	case EV_TIMER_EGRESS:
		egress_on_timer(k);
		break;
	case EV_TIMER_LOAD:
		netpolicy_on_load_timeout(k);
		break;
	case EV_TIMER_NET:
		net_run(k);
		break;
	case EV_TIMER_RECORD:
		record_on_timer(k);
		break;
	case EV_AGENT:
		agent_on_event(k);
		break;
	case EV_AGENT_END:
		agent_on_end(k);
		break;
	case EV_CONFIRM:
		agent_on_confirm(k, ev->key);
		break;
	case EV_TIMER_CONFIRM:
		agent_on_confirm_timeout(k, ev->key);
		break;
	default:
		dispatch_credentials(k, ev);
		break;
	}
}

void keeper_dispatch(struct keeper *k, const struct loop_event *ev)
{
	if (is_stale(k, ev->key))
		return;
	switch ((enum keeper_ev)ev->key.kind) {
	case EV_SIGNAL:
		on_signal(k);
		break;
	case EV_LISTEN:
		link_on_accept(k);
		break;
	case EV_LINK:
		link_on_readable(k, ev->key.idx);
		break;
	case EV_QMP:
	case EV_TIMER_VMM:
		machine_on_qmp(k);
		break;
	case EV_QEMU_END:
		machine_on_qemu_end(k);
		break;
	case EV_SHARE_END:
		machine_on_share_end(k);
		break;
	case EV_EDGE:
		edge_on_event(k, ev->events);
		break;
	case EV_EDGE_END:
		edge_on_end(k);
		break;
	case EV_ASK:
		ask_on_readable(k, ev->key.idx);
		break;
	case EV_CHATTER:
		chatter_on_readable(k);
		break;
	case EV_TIMER_BOOT:
		start_on_timeout(k);
		break;
	case EV_IMAGE:
		warm_on_child(k);
		break;
	case EV_TIMER_MAKE:
		make_on_timer(k);
		break;
	case EV_TIMER_STOP:
		stop_on_timeout(k);
		break;
	case EV_TIMER_EDGE:
		edge_on_timer(k);
		break;
	case EV_TIMER_WAIT:
		waiting_on_timeout(k, ev->key.idx);
		break;
	case EV_TIMER_ASK:
		ask_on_timeout(k, ev->key.idx);
		break;
	default:
		dispatch_network(k, ev);
		break;
	}
}
