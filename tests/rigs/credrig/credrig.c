/* SPDX-License-Identifier: Apache-2.0 */
/*
 * credrig - see credrig.h; serve.c has the lines that can be said to it, and these:
 *
 *   ca              what the guest trusts, PEM, then a line `end`
 *   env             the variables of /trust, one a line, then `end`
 *   pids            one line of JSON: keeper, vault's runner, how often the guest was told what to
 *   trust
 *   vault           starts the vault again, when it was killed: ok
 */
#include "credrig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/hex.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/os/ipc/keeper_chan.h"
#include "lib/os/ipc/vault_chan.h"
#include "lib/os/ipc/vault_sock.h"
#include "lib/rules/policy/test/policy_text.h"

#define RELOAD_MS 8000
#define END_MS 5000

static const char usage[] =
	"usage: credrig SOCKET FOLDER RIGKEEPER\n"
	"Says `ready` on its standard output when the sandbox runs. Ends with its "
	"parent, or on SIGTERM.\n";

static struct credrig *of(struct rig *r)
{
	return (struct credrig *)(void *)r;
}

static void fault(struct credrig *c, const char *what)
{
	if (!c->rig.why[0])
		(void)snprintf(c->rig.why, sizeof(c->rig.why), "%s", what);
	c->rig.stopping = true;
}

/* --- programs --- */

/* Gives its pid; fd becomes the program's fd 3, and owner, when there is one, its fd 4. */
static pid_t start(const char *program, char *const *argv, int fd, int owner, int *ret_pidfd)
{
	pid_t pid = fork();

	if (pid == 0) {
		/* so that dup2 always clears close-on-exec */
		int high = fcntl(fd, F_DUPFD, 100), other = fcntl(owner, F_DUPFD, 100);
		sigset_t none;

		(void)sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && dup2(high, 3) == 3) {
			(void)dup2(STDERR_FILENO, STDOUT_FILENO);
			(void)close_range(other >= 0 && dup2(other, 4) == 4 ? 5 : 4, ~0U, 0);
			(void)execv(program, argv);
		}
		_exit(127);
	}
	if (pid < 0)
		die("starting %s: %s", program, strerror(errno));
	*ret_pidfd = pidfd_open(pid, 0);
	if (*ret_pidfd < 0)
		die("watching %s: %s", program, strerror(errno));
	return pid;
}

static void watch(struct credrig *c, int fd, unsigned kind)
{
	if (loop_add(&c->rig.loop, fd, EPOLLIN, (struct loop_key){.kind = (uint8_t)kind}) < 0)
		die("watching a descriptor");
}

static void start_vault(struct credrig *c)
{
	AUTO_FREE char *program = paths_get(PATHS_LIBEXEC, "sbx-vault-run");
	char *argv[] = {(char *)"sbx-vault-run", (char *)"--key=file", NULL};

	int fds[2];

	fd_close(&c->owner);
	if (ipc_pair(fds) < 0)
		die("making a channel");
	c->owner = fds[0];
	c->vault_pid = start(program, argv, c->vault, fds[1], &c->vault_pidfd);
	fd_close(&fds[1]);
	watch(c, c->vault_pidfd, CREDRIG_EV_VAULT_END);
}

/* The tables of the user's policy, as sbxd sends them. */
static int send_policy(struct credrig *c, uint32_t id)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "policy");
	AUTO_FREE char *text = NULL;
	int files[POLICY_N_PARTS], r = 0;
	size_t n = 0;

	(void)!file_load(path, RULES_MAX_BYTES, &text, &n, NULL);
	policy_text_files(slice_of(text ? text : "", n), "policy", CREDRIG_NAME, files);
	for (size_t i = 0; i < POLICY_N_PARTS; i++) {
		if (r == 0)
			r = keeper_send_policy(c->sbxd, id, (uint8_t)i, files[i]);
		fd_close(&files[i]);
	}
	return r;
}

static void start_keeper(struct credrig *c)
{
	AUTO_FREE char *ctl = xasprintf("%s/ctl", c->folder);
	AUTO_FREE char *net = xasprintf("%s/net", c->folder);
	char *argv[] = {
		(char *)"rigkeeper", (char *)CREDRIG_ID, (char *)CREDRIG_NAME, ctl, net, NULL};
	int fds[2];

	if (ipc_pair(fds) < 0)
		die("making a channel");
	c->sbxd = fds[0];
	if (send_policy(c, 1) < 0)
		die("sending the policy");
	c->keeper_pid = start(c->keeper, argv, fds[1], -1, &c->keeper_pidfd);
	fd_close(&fds[1]);
	watch(c, c->sbxd, CREDRIG_EV_KEEPER);
	watch(c, c->keeper_pidfd, CREDRIG_EV_KEEPER_END);
}

static void on_vault_end(struct credrig *c)
{
	loop_del(&c->rig.loop, c->vault_pidfd);
	fd_close(&c->vault_pidfd);
	(void)waitpid(c->vault_pid, NULL, 0);
	c->vault_pid = 0;
}

/* --- the machine's ports --- */

static int listen_at(const char *folder, const char *name)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int n = snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/%s", folder, name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (n < 0 || (size_t)n >= sizeof(sa.sun_path))
		die("%s is too long", folder);
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 1) < 0)
		die("listening on %s: %s", sa.sun_path, strerror(errno));
	return fd;
}

/* As qemu does: one connection at a time, and the next one when that has ended. */
static void on_port(struct credrig *c, bool net)
{
	struct rig_wire *w = net ? &c->rig.net : &c->rig.ctl;
	int fd = accept4(net ? c->net : c->ctl, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	rig_wire_stop(&c->rig, w);
	if (!net)
		ctl_forget();
	if (rig_wire_start(&c->rig, w, net, fd) < 0)
		fault(c, "a port cannot be watched");
}

/* --- the keeper --- */

/* As sbxd does it. While there is no vault the keeper asks again. */
static void give_vault(struct credrig *c)
{
	int fds[2];

	if (c->vault_pid == 0 || ipc_pair(fds) < 0)
		return;
	if (vault_ask_channel(c->owner, CREDRIG_ID, fds[0]) == 0)
		(void)!chan_send_plain(c->sbxd, KEEPER_VAULT, 0, fds[1]);
	fd_close(&fds[0]);
	fd_close(&fds[1]);
}

static void on_keeper(struct credrig *c, uint32_t *ret_done)
{
	static struct ipc_msg msg;
	struct keeper_state state;
	struct keeper_done done;
	int r = ipc_recv(c->sbxd, &msg);

	if (r == 0) {
		loop_del(&c->rig.loop, c->sbxd);
		return;
	}
	if (r < 0)
		return;
	if (msg.type == KEEPER_STATE && keeper_get_state(&msg, &state) == 0)
		c->phase = state.phase;
	if (msg.type == KEEPER_WANT_VAULT)
		give_vault(c);
	if (msg.type == KEEPER_HELD && hold_get_held(&msg, &c->held) < 0)
		fault(c, "a HELD does not decode");
	if (msg.type == KEEPER_DONE && keeper_get_done(&msg, &done) == 0 && ret_done)
		*ret_done = msg.id;
	ipc_msg_done(&msg);
}

int rig_reload(struct rig *r, struct err *err)
{
	struct credrig *c = of(r);
	uint64_t end = clock_mono_ms() + RELOAD_MS;
	uint32_t id = ++c->reloads, done = 0;
	struct pollfd p = {.fd = c->sbxd, .events = POLLIN};
	int n = send_policy(c, id);

	if (n == 0)
		n = keeper_ask_reload(c->sbxd, id, CREDRIG_NAME);

	while (n == 0 && done != id) {
		if (clock_mono_ms() > end)
			n = -ETIMEDOUT;
		else if (poll(&p, 1, 100) > 0)
			on_keeper(c, &done);
	}
	return n < 0 ? err_errno(err, n, "telling the keeper") : 0;
}

int rig_give_wire(struct rig *r, int fd, struct err *err)
{
	(void)r;
	(void)fd;
	return err_set(err, -ENOTSUP, "this rig plays its guest");
}

bool rig_is_up(const struct rig *r)
{
	const struct credrig *c = (const struct credrig *)(const void *)r;

	return c->phase == KEEPER_RUNNING && c->n_trusts > 0 && r->net.ready && r->ctl.fd >= 0;
}

/* --- lines --- */

static void say_env(const struct credrig *c, char *buf, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < c->trust.n_env && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s\n", c->trust.env[i]);
	if (n < size)
		(void)snprintf(buf + n, size - n, "end\n");
}

/* The last request that needed an approval, with its digest and the preview. */
static void say_held(const struct credrig *c, char *buf, size_t size)
{
	char digest[2 * SHA256_BYTES + 1];

	hex_print(c->held.digest, SHA256_BYTES, digest);
	(void)snprintf(buf, size, "%s %s %s\n%s%send\n", c->held.id, hold_state_name(c->held.state),
		digest, c->held.effects, c->held.preview);
}

/* As `sbx approve ID --once`, or `sbx refuse ID`. */
static void answer_held(struct credrig *c, const char *choice)
{
	struct hold_reply reply = {.choice = HOLD_CHOICE_NO, .where = "api"};

	if (strcmp(choice, "once") == 0)
		reply.choice = HOLD_CHOICE_ONCE;
	(void)!str_copy(reply.id, sizeof(reply.id), c->held.id);
	memcpy(reply.digest, c->held.digest, sizeof(reply.digest));
	if (hold_send_reply(c->sbxd, ++c->reloads, &reply) < 0)
		fault(c, "the keeper does not take an answer");
}

static bool on_line(struct rig *r, const char *line, char *buf, size_t size)
{
	struct credrig *c = of(r);

	if (strcmp(line, "ca") == 0) {
		(void)snprintf(buf, size, "%send\n", c->trust.ca_pem ? c->trust.ca_pem : "");
	} else if (strcmp(line, "env") == 0) {
		say_env(c, buf, size);
	} else if (strcmp(line, "pids") == 0) {
		(void)snprintf(buf, size, "{\"keeper\": %d, \"vault_run\": %d, \"trusts\": %u}\n",
			(int)c->keeper_pid, (int)c->vault_pid, c->n_trusts);
	} else if (strcmp(line, "held") == 0) {
		say_held(c, buf, size);
	} else if (strncmp(line, "answer ", 7) == 0) {
		answer_held(c, line + 7);
		(void)snprintf(buf, size, "ok\n");
	} else if (strcmp(line, "vault") == 0) {
		if (c->vault_pid == 0)
			start_vault(c);
		(void)snprintf(buf, size, "ok\n");
	} else {
		return false;
	}
	return true;
}

/* --- the loop --- */

static int watch_signals(struct credrig *c)
{
	static const int signals[] = {SIGTERM, SIGINT};
	int fd = loop_signalfd(signals, ARRAY_LEN(signals));

	if (fd < 0)
		die("watching signals");
	watch(c, fd, RIG_EV_SIGNAL);
	return fd;
}

static void on_event(struct credrig *c, struct rig_server *s, const struct loop_event *ev)
{
	switch (ev->key.kind) {
	case RIG_EV_SIGNAL:
		c->rig.stopping = true;
		break;
	case RIG_EV_CTL:
		rig_wire_event(&c->rig, &c->rig.ctl, ev->events);
		break;
	case RIG_EV_NET:
		rig_wire_event(&c->rig, &c->rig.net, ev->events);
		break;
	case CREDRIG_EV_CTL:
		on_port(c, false);
		break;
	case CREDRIG_EV_NET:
		on_port(c, true);
		break;
	case CREDRIG_EV_KEEPER:
		on_keeper(c, NULL);
		break;
	case CREDRIG_EV_KEEPER_END:
		fault(c, "the keeper has ended");
		break;
	case CREDRIG_EV_VAULT_END:
		on_vault_end(c);
		break;
	default:
		(void)rig_server_event(s, ev);
		break;
	}
}

static void run(struct credrig *c, struct rig_server *s)
{
	struct loop_event ev;
	bool said = false;

	while (!c->rig.stopping) {
		if (!said && rig_is_up(&c->rig)) {
			said = true;
			(void)puts("ready");
			(void)fflush(stdout);
		}
		rig_wire_flush(&c->rig, &c->rig.ctl);
		rig_wire_flush(&c->rig, &c->rig.net);
		loop_next(&c->rig.loop, &ev);
		on_event(c, s, &ev);
	}
}

/* The keeper stops what it started; the vault goes with its runner. */
static void stop(struct credrig *c)
{
	struct pollfd p = {.fd = c->keeper_pidfd, .events = POLLIN};

	(void)kill(c->keeper_pid, SIGTERM);
	(void)poll(&p, 1, END_MS);
	(void)kill(c->keeper_pid, SIGKILL);
	(void)waitpid(c->keeper_pid, NULL, 0);
	if (c->vault_pid > 0) {
		(void)kill(c->vault_pid, SIGKILL);
		(void)waitpid(c->vault_pid, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	static struct credrig c;
	AUTO_FREE char *runtime = paths_get(PATHS_RUNTIME, NULL);
	struct err err = {0};
	struct rig_server *s;

	log_init("credrig");
	(void)umask(0077);
	if (argc != 4) {
		(void)fputs(usage, stderr);
		return 2;
	}
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || loop_init(&c.rig.loop) < 0)
		die("beginning");
	c.folder = argv[2];
	c.keeper = argv[3];
	c.rig.ctl.fd = c.rig.net.fd = c.rig.raw_fd = c.owner = -1;
	c.rig.ctl_ops = &credrig_ctl_ops;
	c.rig.on_line = on_line;
	(void)watch_signals(&c);
	if (paths_make(runtime, &err) < 0)
		die("%s", err.text);
	c.vault = vault_sock_listen(&err);
	if (c.vault < 0)
		die("%s", err.text);
	c.ctl = listen_at(c.folder, "ctl");
	c.net = listen_at(c.folder, "net");
	watch(&c, c.ctl, CREDRIG_EV_CTL);
	watch(&c, c.net, CREDRIG_EV_NET);
	s = rig_serve(&c.rig, argv[1], &err);
	if (!s)
		die("%s", err.text);
	start_vault(&c);
	start_keeper(&c);
	run(&c, s);
	stop(&c);
	if (c.rig.why[0])
		log_error("%s", c.rig.why);
	return c.rig.why[0] != '\0';
}
