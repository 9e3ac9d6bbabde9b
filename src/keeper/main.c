/*
 * sbx-keeper - owns one running sandbox; see README in this folder.
 *
 * How      Started by sbxd as `sbx-keeper --id ID` with a connection on fd 3, outlives it, ends
 * with its sandbox. One loop, one switch.
 */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/paths.h"
#include "lib/base/str.h"

#define SBXD_FD 3

static void on_signal(struct keeper *k)
{
	struct signalfd_siginfo info;

	if (read(k->sig_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
		stop_begin(k, KEEPER_STOP_MS, "the keeper was told to end by a signal");
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
	case EV_QMP:
	case EV_QEMU_END:
	case EV_TIMER_VMM:
		return !k->vmm;
	case EV_SHARE_END:
		return !k->has_share;
	default:
		return false;
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
	default:
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

static void dispatch(struct keeper *k, const struct loop_event *ev)
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

/* Each connection of the guest passes two sockets through, and the kernel counts those that were
 * sent and not received yet against this limit. */
static void raise_file_limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return;
	r.rlim_cur = MIN(r.rlim_max, (rlim_t)8192);
	(void)setrlimit(RLIMIT_NOFILE, &r);
}

/* It has keys in its memory, of the audit logs and of the sandbox's CA: none goes into a core file. 0
 * would still feed a core_pattern that is a pipe; 1 is refused for files and for pipes. */
static void forbid_core(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_CORE, &r) < 0)
		die("the limit of core files: %s", strerror(errno));
	r.rlim_cur = r.rlim_max = MIN(r.rlim_max, (rlim_t)1);
	if (setrlimit(RLIMIT_CORE, &r) < 0)
		die("forbidding core files: %s", strerror(errno));
}

/* One keeper a sandbox: the lock is held as long as the process lives. */
static void take_lock(struct keeper *k)
{
	AUTO_FREE char *path = xasprintf("%s/lock", k->dir);

	k->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (k->lock_fd < 0)
		die("opening %s: %s", path, strerror(errno));
	if (flock(k->lock_fd, LOCK_EX | LOCK_NB) < 0)
		die("another keeper has this sandbox (%s)", path);
}

static void load(struct keeper *k, const char *id)
{
	AUTO_FREE char *path = NULL;
	struct err err = {0};
	int r;

	k->dir = paths_get(PATHS_STATE, "sandboxes/%s", id);
	k->run_dir = paths_get(PATHS_RUNTIME, "s/%s", id);
	take_lock(k);
	path = xasprintf("%s/spec.json", k->dir);
	r = spec_load(path, &k->spec, &err);
	if (r < 0)
		die("reading %s: %s", path, err_text(&err, r));
	if (strcmp(k->spec.id, id) != 0)
		die("%s is of another sandbox", path);
	r = paths_make(k->run_dir, &err);
	if (r < 0)
		die("%s", err_text(&err, r));
}

static void open_loop(struct keeper *k)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGCHLD};
	struct err err = {0};
	int r;

	if (loop_init(&k->loop) < 0 || chatter_open(k) < 0)
		die("making the event loop");
	k->sig_fd = loop_signalfd(signals, ARRAY_LEN(signals));
	if (k->sig_fd < 0 ||
		loop_add(&k->loop, k->sig_fd, EPOLLIN, (struct loop_key){.kind = EV_SIGNAL}) < 0)
		die("watching signals");
	r = link_listen(k, &err);
	if (r < 0)
		die("%s", err_text(&err, r));
	if (fcntl(SBXD_FD, F_GETFD) >= 0 && fd_set_cloexec(SBXD_FD, true) == 0)
		link_add(k, SBXD_FD);
}

static void init(struct keeper *k)
{
	k->sig_fd = k->lock_fd = k->listen_fd = -1;
	k->chatter_rd = k->chatter_wr = -1;
	k->port_fd = k->port_path_fd = k->net_port_fd = k->net_path_fd = -1;
	k->edge.sock = k->edge.child.pidfd = -1;
	k->stop_link = -1;
	k->started_ms = clock_mono_ms();
	for (size_t i = 0; i < KEEPER_MAX_LINKS; i++)
		k->links[i].fd = -1;
	ask_init(k);
	waiting_init(k);
	egress_init(k);
	agent_init(k);
	net_init(k);
	vault_init(k);
	origins_init(k);
}

static void run(struct keeper *k)
{
	struct err err = {0};
	int r = start_prepare(k, &err);

	if (r == 0)
		r = start_machine(k, &err);
	if (r < 0)
		stop_begin(k, 0, err_text(&err, r));
	while (!k->over) {
		struct loop_event ev;

		loop_next(&k->loop, &ev);
		dispatch(k, &ev);
		record_arm(k);
	}
}

/* `sbx-keeper --selftest`: does KVM really run a machine here? One line, exit status 0 or 1. */
static int selftest(struct keeper *k)
{
	AUTO_FREE char *run_dir = paths_get(PATHS_RUNTIME, NULL);
	struct err err = {0};
	int r = paths_make(run_dir, &err);

	(void)!str_copy(k->spec.template, sizeof(k->spec.template), "debian");
	if (r == 0)
		r = start_selftest(k, &err);
	printf("%s\n", r < 0 ? err_text(&err, r) : "KVM booted a machine");
	return r < 0 ? 1 : 0;
}

struct options {
	const char *id;
	bool selftest;
};

static struct options parse_options(int argc, char **argv)
{
	static const struct option options[] = {
		{"id", required_argument, NULL, 'i'}, {"selftest", no_argument, NULL, 's'}, {0}};
	struct options o = {0};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'i')
			o.id = optarg;
		else if (c == 's')
			o.selftest = true;
	}
	if (!o.selftest && (!o.id || !spec_is_id(o.id)))
		die("usage: sbx-keeper --id ID (started by sbxd) or sbx-keeper --selftest");
	return o;
}

int main(int argc, char **argv)
{
	static struct keeper k;
	struct options o;

	log_init("sbx-keeper");
	(void)umask(0077);
	if (getuid() == 0)
		die("sbx runs as an ordinary user: root is never needed");
	o = parse_options(argc, argv);
	init(&k);
	if (o.selftest)
		return selftest(&k);
	raise_file_limit();
	forbid_core();
	load(&k, o.id);
	open_loop(&k);
	netpolicy_init(&k);
	run(&k);
	return 0;
}
