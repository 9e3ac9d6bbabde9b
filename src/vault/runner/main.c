/* SPDX-License-Identifier: Apache-2.0 */
/* sbx-vault-run: starts sbx-vault and executes programs for it. sbxd starts it; fd 3 is the vault's
 * listening socket, fd 4 (optional) sbxd's own channel to the vault. No value passes through it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/trace.h"
#include "lib/os/ipc/chan.h"
#include "run.h"

#define SOCKET_FD 3
#define OWNER_FD 4
#define MAX_VAULT_ARGS 4
#define MAX_LOG_LINES 1000
#define LOG_LINES_PER_MINUTE 30

struct runner {
	int vault; /* pidfd; -1 after its exit */
	int channel, signals;
	bool has_owner;
	struct run_table runs;
	bool done;
	int status;
};

/* fds 3 to 5 of the vault: its socket, this program, sbxd. */
static int place_fds(int channel, bool has_owner)
{
	int high = fcntl(channel, F_DUPFD, 100), owner = fcntl(OWNER_FD, F_DUPFD, 100);

	if (high < 0 || fcntl(SOCKET_FD, F_SETFD, 0) < 0 ||
		(has_owner && dup2(owner, SOCKET_FD + 2) < 0) || dup2(high, SOCKET_FD + 1) < 0)
		return -1;
	return close_range(has_owner ? SOCKET_FD + 3 : SOCKET_FD + 2, ~0U, 0);
}

/* The vault is killed when this program exits, from its first instruction on; its jail sets the
 * signal again. */
static void exec_vault(const char *program, char *const *args, int channel, bool has_owner,
	pid_t parent) __attribute__((noreturn));
static void exec_vault(
	const char *program, char *const *args, int channel, bool has_owner, pid_t parent)
{
	char *const no_env[] = {NULL};
	sigset_t none;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent || null < 0 ||
		dup2(null, 0) < 0 || dup2(STDERR_FILENO, 1) < 0 ||
		place_fds(channel, has_owner) < 0)
		_exit(127);
	(void)execve(program, args, no_env);
	_exit(127);
}

/* Outside of the jail: the vault enters it itself (see jail_self). */
static void start_vault(struct runner *r, int argc, char **argv)
{
	AUTO_FREE char *program = paths_get(PATHS_LIBEXEC, "sbx-vault");
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "vault");
	AUTO_FREE char *dir_arg = xasprintf("--dir=%s", dir);
	char *args[MAX_VAULT_ARGS + 3] = {(char *)"sbx-vault", dir_arg};
	struct err err = {0};
	int pair[2], n;
	pid_t self = getpid(), pid;

	if (argc - 1 > MAX_VAULT_ARGS)
		die("too many arguments");
	for (int i = 1; i < argc; i++)
		args[i + 1] = argv[i];
	n = paths_make(dir, &err);
	if (n < 0)
		die("%s", err_text(&err, n));
	if (access(program, X_OK) < 0)
		die("%s: %s", program, strerror(errno));
	if (ipc_pair(pair) < 0)
		die("socketpair: %s", strerror(errno));
	pid = fork();
	if (pid == 0)
		exec_vault(program, args, pair[1], r->has_owner, self);
	if (pid < 0)
		die("fork: %s", strerror(errno));
	r->vault = (int)syscall(SYS_pidfd_open, pid, 0);
	if (r->vault < 0)
		die("pidfd_open: %s", strerror(errno));
	(void)close(pair[1]);
	(void)close(SOCKET_FD); /* only the vault must see its end */
	if (r->has_owner)
		(void)close(OWNER_FD);
	r->channel = pair[0];
	ipc_trace(r->channel, &run_chan, RUN_FROM_RUNNER, "");
}

static void open_trace(void)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "vault-trace.log");
	struct err err = {0};

	if (trace_init(&err) < 0)
		die("%s", err.text);
	trace_open(path);
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
		log_error("protocol error: invalid message from sbx-vault");
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

static void reap_children(struct runner *r)
{
	uint32_t id;
	int how;

	while (run_next_ended(&r->runs, clock_mono_ms(), &id, &how))
		say_ended(r, id, how);
}

static void on_vault_end(struct runner *r)
{
	siginfo_t si = {0};

	(void)waitid(P_PIDFD, (id_t)r->vault, &si, WEXITED);
	fd_close(&r->vault);
	r->done = true;
	if (!r->status)
		r->status = si.si_code == CLD_EXITED ? si.si_status : 3;
	if (si.si_code != CLD_EXITED)
		log_error("sbx-vault was killed by signal %d%s", si.si_status,
			si.si_code == CLD_DUMPED ? " and dumped core" : "");
}

static void loop_once(struct runner *r)
{
	struct pollfd p[] = {{.fd = r->channel, .events = POLLIN},
		{.fd = r->signals, .events = POLLIN}, {.fd = r->vault, .events = POLLIN}};

	(void)poll(p, ARRAY_LEN(p), run_wait_ms(&r->runs, clock_mono_ms()));
	if (p[1].revents)
		on_signals(r);
	reap_children(r);
	if (p[0].revents)
		on_channel(r);
	if (p[2].revents)
		on_vault_end(r);
}

int main(int argc, char **argv)
{
	static struct runner r;

	log_init("sbx-vault-run");
	/* A guest causes a line with each request that needs a program which is not executed. */
	log_limit(MAX_LOG_LINES, LOG_LINES_PER_MINUTE);
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return puts("sbx-vault-run " SBX_VERSION) < 0;
	if (fcntl(SOCKET_FD, F_SETFD, FD_CLOEXEC) < 0)
		die("fd %d is not a socket (this program is started by sbxd)", SOCKET_FD);
	open_trace();
	r.has_owner = fcntl(OWNER_FD, F_SETFD, FD_CLOEXEC) == 0;
	watch_signals(&r);
	start_vault(&r, argc, argv);
	while (!r.done)
		loop_once(&r);
	run_kill_all(&r.runs);
	if (r.vault >= 0) {
		struct pollfd p = {.fd = r.vault, .events = POLLIN};

		/* it exits itself after STOP, or when the channel is closed */
		fd_close(&r.channel);
		if (poll(&p, 1, 2000) <= 0)
			(void)syscall(SYS_pidfd_send_signal, r.vault, SIGKILL, NULL, 0);
		on_vault_end(&r);
	}
	return r.status;
}
