/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include "src/sbxd/api/api.h"
#include "src/sbxd/disk/disk.h"
#include "src/sbxd/hands/hands.h"
#include "src/sbxd/http/http.h"
#include "src/sbxd/journal/journal.h"
#include "src/sbxd/keepers/keepers.h"
#include "src/sbxd/notify/notify.h"
#include "src/sbxd/policy/policy.h"
#include "src/sbxd/vault/vault.h"
#include "lib/base/clock.h"
#include "lib/base/process/inventory.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/trace.h"
#include "lib/base/fs/paths.h"
#include "lib/os/jail/broker.h"
#include "lib/os/jail/cgroup.h"
#include "lib/os/worker/spawner.h"
#include "lib/vm/store/store.h"

/* Less than LISTEN_LOCK_MS: the next sbxd may be waiting already. */
#define SBXD_DRAIN_MS 2000
#define SBXD_MANAGED_MS 5000

static struct {
	struct conns conns;
	struct journal journal;
	struct keep keep;
	struct rulebook rulebook;
	struct tables tables;
	struct wipes wipes;
	struct images images;
	struct merges merges;
	struct keepers keepers;
	struct pool pool;
	struct wakes wakes;
	struct starts starts;
	struct vault_link vault;
	struct notifier notifier;
} parts;

static struct sbxd sbxd = {
	.conns = &parts.conns,
	.journal = &parts.journal,
	.keep = &parts.keep,
	.rulebook = &parts.rulebook,
	.tables = &parts.tables,
	.wipes = &parts.wipes,
	.images = &parts.images,
	.merges = &parts.merges,
	.keepers = &parts.keepers,
	.pool = &parts.pool,
	.wakes = &parts.wakes,
	.starts = &parts.starts,
	.vault = &parts.vault,
	.notifier = &parts.notifier,
};

static void on_hold(struct sbxd *d, const struct keeper *k, const struct held *h, bool gone)
{
	if (h)
		api_on_hold(d, k, h, gone);
	notify_look(d);
}

static const struct keeper_ops keeper_callbacks = {
	.on_change = api_watch_changed,
	.on_done = api_on_done,
	.on_stats = api_on_stats,
	.on_frozen = api_on_frozen,
	.on_ports = api_on_ports,
	.on_hold = on_hold,
	.on_want_vault = vault_link_on_want,
};

/* --state is only for readers of the process list: it names the installation. */
static void check_state(const char *said)
{
	AUTO_FREE char *state = paths_get(PATHS_STATE, NULL);

	if (strcmp(said, state) != 0)
		die("--state is %s, but the environment has %s", said, state);
}

static void parse_options(int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'}, {"state", required_argument, NULL, 'S'},
		{"calls", no_argument, NULL, 'C'}, {0}};
	int o;

	while ((o = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (o == 'S') {
			check_state(optarg);
			continue;
		}
		if (o == 'V')
			printf("sbxd " SBX_VERSION "\n");
		else if (o == 'C')
			api_route_print(stdout);
		else
			fprintf(o == 'h' ? stdout : stderr,
				"usage: sbxd [--help] [--version] [--calls] [--state=DIR]\n"
				"manages the sandboxes of this user; sbx starts it on demand\n"
				"--calls lists the calls of the API\n");
		exit(o == '?' ? 2 : 0);
	}
	if (optind < argc)
		die("unexpected argument: see sbxd --help");
}

/* Its memory has the key of the audit logs, its descriptors include the channels to the vault. */
static void close_to_others(void)
{
	struct err err = {0};
	int r = jail_broker_close(&err);

	if (r < 0)
		die("%s", err_text(&err, r));
}

static void check_folders(void)
{
	AUTO_FREE char *run = paths_get(PATHS_RUNTIME, NULL);
	AUTO_FREE char *state = paths_get(PATHS_STATE, NULL);
	AUTO_FREE char *sandboxes = paths_get(PATHS_STATE, "sandboxes");
	struct err err = {0};

	if (listen_check_folder(run, &err) < 0 || listen_check_folder(state, &err) < 0 ||
		paths_make(sandboxes, &err) < 0)
		die("%s", err.text);
}

/* Before sbxd seals itself. */
static void open_trace(void)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "sbxd-trace.log");

	trace_open(path);
}

/* From here on only its spawner starts programs, sends signals and connects. */
static void seal_process(void)
{
	struct err err = {0};
	int r;

	/* The spawner is forked in the leaf. If no cgroup is delegated, the keeper logs it. */
	(void)!jail_cgroup_prepare(NULL, "sbxd", NULL);
	jail_cgroup_sweep(NULL);
	r = hands_start(&err);
	if (r == 0)
		r = hands_seal(&err);
	if (r < 0)
		die("%s", err_text(&err, r));
}

/* root can change the managed policy at any time: running sandboxes get it soon. */
static void look_managed(struct sbxd *d)
{
	static struct loop_timer timer;
	static uint64_t applied;

	/* A call may have read it before. */
	rulebook_look_managed(d->rulebook);
	if (d->rulebook->n_managed != applied)
		(void)reload_start(d, NULL);
	applied = d->rulebook->n_managed;
	loop_timer_set(&d->loop, &timer, clock_mono_ms() + SBXD_MANAGED_MS,
		(struct loop_key){.kind = SBXD_EV_MANAGED_TIMER});
}

static void open_signals(struct sbxd *d)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGUSR1};

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	d->signal_fd = loop_signalfd(signals, ARRAY_LEN(signals));
	if (d->signal_fd < 0)
		die("cannot set up signals: %s", strerror(-d->signal_fd));
}

static void watch_fd(struct sbxd *d, int fd, enum sbxd_ev kind)
{
	struct loop_key key = {.kind = (uint8_t)kind};
	int r = loop_add(&d->loop, fd, EPOLLIN, key);

	if (r < 0)
		die("cannot watch a descriptor: %s", strerror(-r));
}

static void set_up(struct sbxd *d)
{
	AUTO_FREE char *state = paths_get(PATHS_STATE, NULL);
	AUTO_FREE char *db = paths_get(PATHS_STATE, "registry.db");
	struct err err = {0};

	conns_init(d->conns, &api_conn_ops);
	keepers_init(d->keepers, &keeper_callbacks);
	wakes_init(d->wakes, api_wake);
	starts_init(d->starts, api_begin);
	wipes_init(d->wipes);
	vault_link_init(d->vault);
	notify_init(d->notifier);
	images_init(d->images, pool_on_image);
	merges_init(d->merges);
	keep_init(d->keep);
	check_folders();
	d->lock_fd = listen_lock(&err);
	if (d->lock_fd < 0)
		die("%s", err.text);
	open_trace();
	/* From here on it writes: on a full disk the registry cannot even be opened. */
	ballast_look(state, true);
	if (loop_init(&d->loop) < 0)
		die("cannot create the event loop: %s", strerror(errno));
	/* Before any input that a guest may have influenced. */
	seal_process();
	open_signals(d);
	watch_fd(d, spawner_pidfd(), SBXD_EV_SPAWNER);
	rulebook_clean();
	tables_init(d->tables);
	if (store_open(db, &d->store, &err) < 0)
		die("%s", err.text);
	/* The socket last: a client that can connect finds everything ready. */
	pool_sweep(d);
	if (keepers_adopt(d, &err) < 0)
		die("%s", err_text(&err, -EIO));
	if (ref_places_open(d, &err) < 0)
		die("%s", err_text(&err, -EIO));
	templates_pin_all(d);
	images_collect();
	vault_link_step(d);
	api_create_sweep(d);
	wakes_look_all(d);
	d->listen_fd = listen_open(&d->activated, &err);
	if (d->listen_fd < 0)
		die("%s", err.text);
	watch_fd(d, d->signal_fd, SBXD_EV_SIGNAL);
	watch_fd(d, d->listen_fd, SBXD_EV_LISTEN);
	pool_look(d);
	keep_look(d);
	look_managed(d);
}

static void on_signal(struct sbxd *d)
{
	AUTO_FREE char *path = paths_get(PATHS_RUNTIME, "sbxd." INVENTORY_NAME);
	struct signalfd_siginfo si;

	if (read(d->signal_fd, &si, sizeof(si)) != sizeof(si))
		return;
	if (si.ssi_signo == SIGUSR1)
		inventory_write(path);
	else
		d->quit = true;
}

/* Without the spawner nothing can be started, stopped or adopted; the next sbxd has a new one. */
static void on_spawner_end(struct sbxd *d)
{
	if (d->failed)
		return;
	log_error(
		"the spawner exited unexpectedly: sbxd exits; sandboxes keep running and the next sbx command starts sbxd again");
	loop_del(&d->loop, spawner_pidfd());
	d->quit = d->failed = true;
}

static void on_drain_timer(struct sbxd *d)
{
	d->late = true;
}

/* The handler of each event, with or without the event as an argument. */
static const struct {
	void (*run)(struct sbxd *d);
	void (*run_event)(struct sbxd *d, const struct loop_event *ev);
} event_table[] = {
	[SBXD_EV_SIGNAL] = {on_signal},
	[SBXD_EV_LISTEN] = {conn_on_accept},
	[SBXD_EV_CONN] = {.run_event = conn_on_event},
	[SBXD_EV_CONN_TIMER] = {.run_event = conn_on_timer},
	[SBXD_EV_KEEPER] = {.run_event = keeper_on_message},
	[SBXD_EV_KEEPER_EXIT] = {.run_event = keeper_on_exit},
	[SBXD_EV_KEEPER_TIMER] = {.run_event = keeper_on_timer},
	[SBXD_EV_WIPE] = {.run_event = wipe_on_exit},
	[SBXD_EV_JOURNAL] = {journal_on_timer},
	[SBXD_EV_VAULT] = {.run_event = vault_link_on_event},
	[SBXD_EV_VAULT_LISTEN] = {vault_link_on_listen},
	[SBXD_EV_VAULT_EXIT] = {vault_link_on_exit},
	[SBXD_EV_VAULT_TIMER] = {vault_link_on_timer},
	[SBXD_EV_IMAGES] = {images_on_exit},
	[SBXD_EV_IMAGES_TIMER] = {images_on_timer},
	[SBXD_EV_POOL_TIMER] = {pool_on_timer},
	[SBXD_EV_KEEP] = {keep_on_exit},
	[SBXD_EV_KEEP_TIMER] = {keep_on_timer},
	[SBXD_EV_AUTOSAVE] = {.run_event = autosave_on_timer},
	[SBXD_EV_MERGES] = {merges_on_exit},
	[SBXD_EV_MERGES_TIMER] = {merges_on_timer},
	[SBXD_EV_SPAWNER] = {on_spawner_end},
	[SBXD_EV_DRAIN_TIMER] = {on_drain_timer},
	[SBXD_EV_WAKE] = {.run_event = wakes_on_event},
	[SBXD_EV_WAKE_TIMER] = {wakes_on_timer},
	[SBXD_EV_MANAGED_TIMER] = {look_managed},
	[SBXD_EV_NOTIFY] = {notify_on_event},
	[SBXD_EV_NOTIFY_EXIT] = {notify_on_exit},
	[SBXD_EV_NOTIFY_TIMER] = {notify_on_timer},
};
static_assert(ARRAY_LEN(event_table) == SBXD_N_EVENTS, "every event has a row");

static void handle_event(struct sbxd *d)
{
	struct loop_event ev;

	loop_next(&d->loop, &ev);
	if (event_table[ev.key.kind].run)
		event_table[ev.key.kind].run(d);
	else
		event_table[ev.key.kind].run_event(d, &ev);
}

/* Pending requests are answered before the exit: a restart loses none. The first line closes the
 * socket; later clients start the next sbxd, which waits for our lock. */
static void drain_clients(struct sbxd *d)
{
	struct loop_timer timer = {0};

	loop_del(&d->loop, d->listen_fd);
	if (!d->activated) {
		listen_end(d->listen_fd);
		conns_accept_rest(d);
	}
	loop_timer_set(&d->loop, &timer, clock_mono_ms() + SBXD_DRAIN_MS,
		(struct loop_key){.kind = SBXD_EV_DRAIN_TIMER});
	while (!d->late && conns_owe(d))
		handle_event(d);
	loop_timer_clear(&d->loop, &timer);
}

static void run_loop(struct sbxd *d)
{
	while (!d->quit) {
		handle_event(d);
		if (worker_is_lost())
			on_spawner_end(d);
	}
	drain_clients(d);
}

static void sbxd_done(struct sbxd *d)
{
	conns_done(d);
	notify_done(d);
	pool_done(d);
	vault_link_done(d);
	images_done(d);
	merges_done(d);
	keep_done(d);
	keepers_done(d);
	wakes_done(d);
	wipes_done(d);
	journal_done(d);
	tables_done(d->tables);
	rulebook_done(d->rulebook);
	fd_close(&d->listen_fd);
	fd_close(&d->signal_fd);
	loop_done(&d->loop);
	store_close(d->store);
	if (!d->failed) /* otherwise it is killed with this process */
		spawner_stop();
	fd_close(&d->lock_fd);
}

int main(int argc, char **argv)
{
	struct err err = {0};

	log_init("sbxd");
	if (trace_init(&err) < 0)
		die("%s", err.text);
	parse_options(argc, argv);
	close_to_others();
	(void)umask(0077);
	fd_raise_limit(); /* three fds per keeper and one per client */
	set_up(&sbxd);
	log_info("ready, pid %d", (int)getpid());
	run_loop(&sbxd);
	sbxd_done(&sbxd);
	log_info("exited; sandboxes keep running");
	return sbxd.failed;
}
