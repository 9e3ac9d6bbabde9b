/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rigkeeper - sbx-keeper without a machine: all its parts, for a guest that somebody else plays.
 *
 * How      Started by credrig with sbxd's end of a connection on fd 3. Everything but start.c's
 *          steps to qemu is the keeper's own code: it connects to the two sockets of the guest's
 *          ports, starts edge, egress and origins in their jails, asks the vault, decides and
 *          records.
 * Trust    Test program.
 * See      README, src/keeper/README
 */
#include "src/keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"

#define SBXD_FD 3
#define FILES 8192

static void set_limits(void)
{
	struct rlimit files, core;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || getrlimit(RLIMIT_CORE, &core) < 0)
		die("reading the limits: %s", strerror(errno));
	files.rlim_cur = MIN(files.rlim_max, (rlim_t)FILES);
	core.rlim_cur = core.rlim_max = MIN(core.rlim_max, (rlim_t)1);
	if (setrlimit(RLIMIT_NOFILE, &files) < 0 || setrlimit(RLIMIT_CORE, &core) < 0)
		die("setting the limits: %s", strerror(errno));
}

static void load(struct keeper *k, const char *id, const char *name)
{
	struct err err = {0};

	if (!spec_is_id(id) || str_copy(k->spec.id, sizeof(k->spec.id), id) < 0 ||
		str_copy(k->spec.name, sizeof(k->spec.name), name) < 0)
		die("%s is no id, or %s no name", id, name);
	k->dir = paths_get(PATHS_STATE, "sandboxes/%s", id);
	k->run_dir = paths_get(PATHS_RUNTIME, "s/%s", id);
	if (paths_make(k->dir, &err) < 0 || paths_make(k->run_dir, &err) < 0)
		die("%s", err.text);
}

static void open_loop(struct keeper *k)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGCHLD};
	struct err err = {0};

	if (loop_init(&k->loop) < 0 || chatter_open(k) < 0)
		die("making the event loop");
	k->chatter_left = SIZE_MAX; /* a test wants to read all of it */
	k->sig_fd = loop_signalfd(signals, ARRAY_LEN(signals));
	if (k->sig_fd < 0 ||
		loop_add(&k->loop, k->sig_fd, EPOLLIN, (struct loop_key){.kind = EV_SIGNAL}) < 0)
		die("watching signals");
	if (link_listen(k, &err) < 0)
		die("%s", err.text);
	if (fd_set_cloexec(SBXD_FD, true) < 0)
		die("no connection on fd %d", SBXD_FD);
	link_add(k, SBXD_FD, true);
}

static int open_port(const char *path)
{
	int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		die("opening %s: %s", path, strerror(errno));
	return fd;
}

/* The steps of start_machine that need no machine. */
static void start(struct keeper *k, const char *ctl, const char *net)
{
	struct err err = {0};

	k->port_path[HANDS_CTL] = open_port(ctl);
	k->port_path[HANDS_NET] = open_port(net);
	record_check(k);
	record_life(k, "start", "");
	egress_start(k);
	vault_start(k);
	if (edge_start(k, &err) < 0)
		die("%s", err.text);
	if (k->state.phase == KEEPER_RUNNING)
		return;
	loop_timer_set(&k->loop, &k->boot_timer, clock_mono_ms() + KEEPER_BOOT_MS_KVM,
		(struct loop_key){.kind = EV_TIMER_BOOT});
}

/* edge_link.c starts no other edge when there is no machine. */
static void check_edge(struct keeper *k)
{
	bool wanted = k->state.phase == KEEPER_STARTING || k->state.phase == KEEPER_RUNNING;

	if (wanted && !k->edge->worker.alive && !k->edge->worker.timer.pos)
		loop_timer_set(&k->loop, &k->edge->worker.timer,
			clock_mono_ms() + KEEPER_EDGE_GAP_MS,
			(struct loop_key){.kind = EV_TIMER_EDGE});
}

int main(int argc, char **argv)
{
	static struct keeper k;

	log_init("rigkeeper");
	(void)umask(0077);
	if (argc != 5)
		die("usage: rigkeeper ID NAME CTL-SOCKET NET-SOCKET (started by credrig)");
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
		die("asking for the parent's end");
	keeper_init(&k);
	/* No guest is set up for root; it is told what to trust all the same. */
	if (getuid() == 0)
		k.state.phase = KEEPER_RUNNING;
	set_limits();
	load(&k, argv[1], argv[2]);
	open_loop(&k);
	netpolicy_init(&k);
	start(&k, argv[3], argv[4]);
	while (!k.over) {
		struct loop_event ev;

		loop_next(&k.loop, &ev);
		if (ev.key.kind == EV_TIMER_BOOT)
			die("the guest was not set up in time");
		keeper_dispatch(&k, &ev);
		check_edge(&k);
		record_arm(&k);
	}
	return 0;
}
