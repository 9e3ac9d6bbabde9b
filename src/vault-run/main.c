/* sbx-vault-run: starts sbx-vault in its jail and executes programs for it. What sbxd starts; fd 3 is
 * the socket that the vault is asked on. No value passes here. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/paths.h"
#include "lib/jail/jail.h"
#include "run.h"

#define SOCKET_FD 3
#define MAX_VAULT_ARGS 4

struct runner {
	struct jail_child vault;
	int channel, signals;
	struct run_table runs;
	bool done;
	int status;
};

static void start_vault(struct runner *r, int argc, char **argv)
{
	AUTO_FREE char *program = paths_get(PATHS_LIBEXEC, "sbx-vault");
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "vault");
	const struct jail_mount mount = {dir, "/vault", JAIL_MOUNT_RW};
	char *args[MAX_VAULT_ARGS + 2] = {(char *)"sbx-vault"};
	struct err err = {0};
	int pair[2], n;

	if (argc - 1 > MAX_VAULT_ARGS)
		die("too many arguments");
	for (int i = 1; i < argc; i++)
		args[i] = argv[i];
	n = paths_make(dir, &err);
	if (n < 0)
		die("%s", err_text(&err, n));
	if (ipc_pair(pair) < 0)
		die("a socket pair: %s", strerror(errno));
	const struct jail_fd fds[] = {{SOCKET_FD, 3}, {pair[1], 4}};
	const struct jail_plan plan = {.profile = JAIL_VAULT,
		.program = program,
		.argv = args,
		.mounts = &mount,
		.n_mounts = 1,
		.fds = fds,
		.n_fds = ARRAY_LEN(fds),
		.log_fd = STDERR_FILENO};
	n = jail_spawn(&plan, &r->vault, &err);
	if (n < 0)
		die("%s", err_text(&err, n));
	(void)close(pair[1]);
	(void)close(SOCKET_FD); /* its end is the vault's to hear */
	r->channel = pair[0];
}

static void watch_signals(struct runner *r)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		die("blocking signals: %s", strerror(errno));
	r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r->signals < 0)
		die("signalfd: %s", strerror(errno));
}

static void on_channel(struct runner *r)
{
	static struct ipc_msg msg;
	static struct run run;
	int n;

	msg.fd = -1;
	n = ipc_recv(r->channel, &msg);
	if (n == -EAGAIN)
		return;
	if (n > 0)
		n = run_get_run(&msg, &run) < 0 ? -EBADMSG : 1;
	if (n > 0) {
		int how = run_start(&r->runs, msg.id, &run, msg.fd);

		if (how < 0 && run_send_ended(r->channel, msg.id, how) < 0)
			n = -EPIPE;
	}
	ipc_msg_done(&msg);
	if (n <= 0)
		r->done = true;
	if (n < 0) {
		log_error("the vault broke the protocol");
		r->status = 4;
	}
}

static void on_signals(struct runner *r)
{
	struct signalfd_siginfo si;

	while (read(r->signals, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo != SIGCHLD)
			r->done = true;
	}
}

/* The channel is non-blocking; the vault reads it whenever it does not compute. */
static void say_ended(struct runner *r, uint32_t id, int how)
{
	for (unsigned i = 0; i < 100; i++) {
		int n = run_send_ended(r->channel, id, how);

		if (n != -EAGAIN)
			return;
		(void)poll(NULL, 0, 10);
	}
}

static void reap(struct runner *r)
{
	uint32_t id;
	int how;

	while (run_next_ended(&r->runs, clock_mono_ms(), &id, &how))
		say_ended(r, id, how);
}

static void loop_once(struct runner *r)
{
	struct pollfd p[] = {{.fd = r->channel, .events = POLLIN},
		{.fd = r->signals, .events = POLLIN}, {.fd = r->vault.pidfd, .events = POLLIN}};

	(void)poll(p, ARRAY_LEN(p), run_wait_ms(&r->runs, clock_mono_ms()));
	if (p[1].revents)
		on_signals(r);
	reap(r);
	if (p[0].revents)
		on_channel(r);
	if (p[2].revents) {
		siginfo_t si = {0};

		(void)waitid(P_PIDFD, (id_t)r->vault.pidfd, &si, WEXITED);
		fd_close(&r->vault.pidfd);
		r->done = true;
		if (!r->status)
			r->status = si.si_code == CLD_EXITED ? si.si_status : 3;
		if (si.si_code != CLD_EXITED)
			log_error("sbx-vault was ended by signal %d", si.si_status);
	}
}

int main(int argc, char **argv)
{
	static struct runner r;

	log_init("sbx-vault-run");
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return puts("sbx-vault-run " SBX_VERSION) < 0;
	if (fcntl(SOCKET_FD, F_SETFD, FD_CLOEXEC) < 0)
		die("fd %d is no socket: this program is started by sbxd", SOCKET_FD);
	watch_signals(&r);
	start_vault(&r, argc, argv);
	while (!r.done)
		loop_once(&r);
	run_kill_all(&r.runs);
	if (r.vault.pidfd >= 0) {
		struct pollfd p = {.fd = r.vault.pidfd, .events = POLLIN};
		siginfo_t si = {0};

		/* it ends by itself when this was a STOP */
		fd_close(&r.channel);
		if (poll(&p, 1, 2000) > 0 &&
			waitid(P_PIDFD, (id_t)r.vault.pidfd, &si, WEXITED | WNOWAIT) == 0 &&
			si.si_code == CLD_EXITED && !r.status)
			r.status = si.si_status;
		jail_child_kill(&r.vault);
	}
	return r.status;
}
