/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sbx-guest - PID 1 of the VM: boots it, serves requests of the host, shuts it down.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "boot.h"
#include "src/guest/docker/docker.h"
#include "src/guest/base/base.h"
#include "src/guest/exec/exec.h"
#include "src/guest/net/net.h"
#include "power.h"
#include "service.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"

#define SELFTEST_LINGER_MS 1000

static struct guest {
	struct loop loop;
	int signals;
	struct port port;
	struct service service;
	struct docker docker;
	struct netproc net;
} guest = {.signals = -1};

static void run_selftest(void)
{
	struct err err;
	int fd = port_open_named(GUEST_PORT, &err);

	if (fd < 0)
		log_error("self-test: %s", err.text);
	else if (fd_set_nonblock(fd, false) < 0 ||
		 fd_write_all(fd, GUEST_SELFTEST, strlen(GUEST_SELFTEST)) < 0)
		log_error("self-test: writing to the port failed");
	/* The kernel does not wait until the host has read the data, and powering off drops it: the
	 * host closes when it has read it. */
	(void)poll(&(struct pollfd){.fd = fd}, 1, SELFTEST_LINGER_MS);
	power_off_now();
}

static void reap_guest(struct guest *g)
{
	struct park_answer parked;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (park_on_exit(&g->service.park, pid, &parked))
			service_on_parked(&g->service, &parked);
		else if (forget_on_exit(&g->service.forget, pid))
			service_on_forgotten(&g->service);
		else if (!exec_on_exit(&g->service.execs, pid, status) &&
			 !docker_on_exit(&g->docker, pid))
			(void)netproc_on_exit(&g->net, pid, g->service.power.begun);
}

static void on_signals(struct guest *g)
{
	struct signalfd_siginfo si;

	while (read(g->signals, &si, sizeof(si)) == (ssize_t)sizeof(si))
		if (si.ssi_signo != SIGCHLD)
			power_begin(&g->service.power, &g->loop);
	reap_guest(g);
}

static void begin_guest(struct guest *g)
{
	static const int signals[] = {SIGCHLD, SIGTERM, SIGINT, SIGPWR};
	struct err err;
	int fd;

	(void)signal(SIGPIPE, SIG_IGN);
	/* Ctrl-alt-del arrives as SIGINT instead of an immediate reset. */
	(void)reboot(RB_DISABLE_CAD);
	g->signals = loop_signalfd(signals, ARRAY_LEN(signals));
	if (loop_init(&g->loop) < 0 || g->signals < 0 ||
		loop_add(&g->loop, g->signals, EPOLLIN,
			(struct loop_key){.kind = GUEST_EV_SIGNAL}) < 0) {
		log_error("cannot create the event loop");
		power_off_now();
	}
	/* First, because it takes longest. */
	netproc_start(&g->net, &g->loop);
	fd = port_open_named(GUEST_PORT, &err);
	if (fd < 0) {
		log_error("%s", err.text);
		power_off_now();
	}
	service_init(&g->service, &g->loop, &g->port, &g->net);
	port_start(&g->port, &g->loop, fd);
	port_pump(&g->port);
	docker_start(&g->docker, &g->loop);
}

static void dispatch_park(struct guest *g, const struct loop_event *ev)
{
	struct park_answer parked;

	if (ev->key.kind == GUEST_EV_PARK_TIMER) {
		park_on_timer(&g->service.park);
	} else if (ev->key.kind == GUEST_EV_PARK && g->service.park.sock >= 0) {
		park_on_event(&g->service.park, &parked);
		service_on_parked(&g->service, &parked);
	}
}

static void dispatch_guest(struct guest *g, const struct loop_event *ev)
{
	switch ((enum guest_ev)ev->key.kind) {
	case GUEST_EV_SIGNAL:
		on_signals(g);
		break;
	case GUEST_EV_PORT:
		port_on_event(&g->port, ev->events);
		break;
	case GUEST_EV_PORT_PROBE:
		port_on_probe(&g->port);
		break;
	case GUEST_EV_EXEC_STATUS:
	case GUEST_EV_EXEC_IN:
	case GUEST_EV_EXEC_OUT:
	case GUEST_EV_EXEC_ERR:
	case GUEST_EV_EXEC_TIMER:
	case GUEST_EV_EXEC_ASIDE:
		exec_on_event(&g->service.execs, ev);
		break;
	case GUEST_EV_DOCKER_SOCK:
		docker_on_connection(&g->docker);
		break;
	case GUEST_EV_DOCKER_TIMER:
		docker_on_timer(&g->docker);
		break;
	case GUEST_EV_NET_PIPE:
		if (netproc_on_pipe(&g->net))
			service_on_net(&g->service, true);
		break;
	case GUEST_EV_NET_TIMER:
		netproc_on_timer(&g->net);
		break;
	case GUEST_EV_NET_WAIT:
		service_on_net(&g->service, false);
		break;
	case GUEST_EV_TCP:
		tcp_on_event(&g->service.tcps, ev);
		break;
	case GUEST_EV_POWER:
		power_finish();
		break;
	default:
		dispatch_park(g, ev);
		break;
	}
}

static void boot_guest(void)
{
	struct err err;

	if (boot_early(&err) < 0) {
		log_error("%s", err.text);
		power_off_now();
	}
	if (boot_has_option("sbx.selftest"))
		run_selftest();
	if (boot_root(&err) < 0) {
		log_error("%s", err.text);
		power_off_now();
	}
	boot_late();
}

/* Called by Docker: by name, or by the path that it found (oci.h). */
static bool is_runc(int argc, char **argv)
{
	const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;

	return argc > 0 && getpid() != 1 && !strcmp(slash ? slash + 1 : argv[0], OCI_RUNC);
}

int main(int argc, char **argv)
{
	struct guest *g = &guest;
	struct loop_event ev;
	uint64_t began_ms = clock_mono_ms();

	if (argc > 0 && !strcmp(argv[0], NET_PROGRAM))
		net_main();
	if (getpid() != 1 && opener_is(argc, argv))
		return opener_main(argc, argv);
	if (is_runc(argc, argv))
		return oci_main(argc, argv);
	log_init("sbx-guest");
	(void)prctl(PR_SET_NAME, "sbx-guest"); /* the kernel named it /init */
	if (getpid() != 1)
		die("sbx-guest runs only as PID 1 of a sandbox VM");
	boot_guest();
	begin_guest(g);
	log_info("ready at %u ms, %u ms of them in sbx-guest", (unsigned)clock_mono_ms(),
		(unsigned)(clock_mono_ms() - began_ms));
	for (;;) {
		loop_next(&g->loop, &ev);
		dispatch_guest(g, &ev);
		port_pump(&g->port);
		if (power_is_quiet(&g->service.power))
			power_finish();
	}
}
