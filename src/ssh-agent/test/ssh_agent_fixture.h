/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ssh_agent_fixture - a jailed sbx-ssh-agent with a real ssh-agent; keeper and guest are the test.
 *
 * How      make_world starts ssh-agent with two keys in a temporary directory; rig_up starts the
 *          program under test, and client runs a command whose SSH_AUTH_SOCK is the guest's socket
 *          while the keeper is played.
 * Trust    Test program only.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/os/ipc/ssh_agent_chan.h"
#include "lib/os/jail/jail.h"
#include "lib/os/jail/unsealed.h"
#include "lib/secret/sshagent/sshagent.h"

#define WAIT_MS 20000

static char folder[] = "/tmp/sbx-ssh-agent-XXXXXX";
static pid_t host_ssh_agent;
static char finger_a[SSHAGENT_FINGERPRINT], finger_b[SSHAGENT_FINGERPRINT];

static char *in_folder(const char *name)
{
	return xasprintf("%s/%s", folder, name);
}

/* ---- programs ---- */

static pid_t start(const char *ssh_agent_sock, const char *command)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (chdir(folder) < 0 || setenv("SSH_AUTH_SOCK", ssh_agent_sock, 1) < 0 ||
			setenv("HOME", folder, 1) < 0 || setenv("GIT_CONFIG_NOSYSTEM", "1", 1) < 0)
			_exit(99);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(98);
	}
	assert_true(pid > 0);
	return pid;
}

static void must(const char *command)
{
	AUTO_FREE char *sock = in_folder("host.sock");
	int status = 0;

	assert_int_equal(waitpid(start(sock, command), &status, 0) > 0, 1);
	if (status != 0)
		fail_msg("%s: status %d", command, status);
}

static char *read_text(const char *name)
{
	AUTO_FREE char *path = in_folder(name);
	char *text = xcalloc(1, 8192);
	FILE *f = fopen(path, "re");

	assert_non_null(f);
	(void)!fread(text, 1, 8191, f);
	(void)fclose(f);
	return text;
}

static void read_finger(const char *name, char ret[SSHAGENT_FINGERPRINT])
{
	AUTO_FREE char *text = read_text(name);

	assert_int_equal(sscanf(text, "%*s %50s", ret), 1);
}

static int make_world(void **state)
{
	assert_non_null(mkdtemp(folder));
	AUTO_FREE char *sock = in_folder("host.sock");

	host_ssh_agent = fork();
	if (host_ssh_agent == 0) {
		(void)!freopen("/dev/null", "w", stdout);
		execlp("ssh-agent", "ssh-agent", "-D", "-a", sock, (char *)NULL);
		_exit(97);
	}
	for (unsigned i = 0; i < 500 && access(sock, F_OK) < 0; i++)
		(void)usleep(10000);
	must("ssh-keygen -q -t ed25519 -N '' -C me@example.com -f a && ssh-keygen -q -t rsa -b "
	     "2048 -N '' -C other -f b && "
	     "ssh-add -q a && ssh-add -q b && mv a a.key && mv b b.key");
	must("ssh-keygen -lf a.pub >a.finger && ssh-keygen -lf b.pub >b.finger");
	read_finger("a.finger", finger_a);
	read_finger("b.finger", finger_b);
	return 0;
}

static int remove_world(void **state)
{
	AUTO_FREE char *command = xasprintf("rm -rf %s", folder);

	(void)kill(host_ssh_agent, SIGKILL);
	(void)waitpid(host_ssh_agent, NULL, 0);
	return system(command);
}

/* ---- the program under test ---- */

struct rig {
	pid_t pid;
	int keeper, guest; /* guest: listens where the guest's clients connect */
	uint32_t n_opened;
	unsigned n_closed, n_asked;
	bool yes;     /* the keeper's answer to each ASK */
	bool is_mute; /* the keeper does not answer */
	struct ssh_agent_ask ask;
	uint32_t ask_id;
};

static int connect_host(void)
{
	AUTO_FREE char *path = in_folder("host.sock");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static int listen_guest(void)
{
	AUTO_FREE char *path = in_folder("guest.sock");
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	(void)unlink(path);
	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 32), 0);
	return fd;
}

static int next_message(struct rig *r, struct ipc_msg *msg, int ms)
{
	struct pollfd p = {.fd = r->keeper, .events = POLLIN};

	return poll(&p, 1, ms) == 1 ? ipc_recv(r->keeper, msg) : -EAGAIN;
}

static pid_t start_jailed(int keeper_end)
{
	char *argv[] = {(char *)"sbx-ssh-agent", NULL};
	struct jail_fd passed = {keeper_end, 3};
	const struct jail_plan plan = {.profile = JAIL_SSH_AGENT,
		.program = getenv("SBX_SSH_AGENT"),
		.argv = argv,
		.fds = &passed,
		.n_fds = 1,
		.log_fd = STDERR_FILENO};
	struct jail_child child;
	struct err err = {0};
	int n = jail_spawn(&plan, &child, &err);

	if (n < 0)
		fail_msg("jail: %s", err_text(&err, n));
	fd_close(&child.pidfd);
	return child.pid;
}

/* For a build whose programs are not sealed: lib/os/jail/unsealed.h. */
static pid_t start_outside(int keeper_end)
{
	pid_t pid = fork();

	if (pid == 0) {
		int high = fcntl(keeper_end, F_DUPFD, 100);

		if (dup2(high, 3) == 3) {
			(void)close_range(4, ~0U, 0);
			execl(getenv("SBX_SSH_AGENT"), "sbx-ssh-agent", (char *)NULL);
		}
		_exit(127);
	}
	assert_true(pid > 0);
	return pid;
}

static void rig_start(struct rig *r)
{
	static struct ipc_msg msg;
	char build[CHAN_MAX_BUILD];
	int fds[2];

	assert_int_equal(ipc_pair(fds), 0);
	*r = (struct rig){.pid = (JAIL_SEALS ? start_jailed : start_outside)(fds[1]),
		.keeper = fds[0],
		.guest = listen_guest(),
		.yes = true};
	fd_close(&fds[1]);
	assert_int_equal(next_message(r, &msg, WAIT_MS), 1);
	assert_int_equal(chan_get_hello(&msg, build), 0);
}

static void rig_config(struct rig *r, const char *rule, const char *rule2, int host)
{
	static struct ssh_agent_config config;

	config = (struct ssh_agent_config){.n_rules = (uint8_t)((rule != NULL) + (rule2 != NULL))};
	if (rule)
		(void)snprintf(config.rules[0], SSH_AGENT_MAX_RULE, "%s", rule);
	if (rule2)
		(void)snprintf(config.rules[1], SSH_AGENT_MAX_RULE, "%s", rule2);
	assert_int_equal(ssh_agent_ask_config(r->keeper, &config, host), 0);
	(void)close(host);
}

static void rig_up(struct rig *r, const char *rule, const char *rule2)
{
	rig_start(r);
	rig_config(r, rule, rule2, connect_host());
}

static int rig_exit(struct rig *r)
{
	int status = -1;
	uint64_t end = clock_mono_ms() + WAIT_MS;

	while (waitpid(r->pid, &status, WNOHANG) == 0 && clock_mono_ms() < end)
		(void)usleep(5000);
	fd_close(&r->keeper);
	fd_close(&r->guest);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void rig_down(struct rig *r)
{
	fd_close(&r->keeper);
	assert_int_equal(rig_exit(r), 0);
}

static void open_stream(struct rig *r, int fd)
{
	assert_int_equal(chan_send_plain(r->keeper, SSH_AGENT_OPEN, ++r->n_opened, fd), 0);
	(void)close(fd);
}

static void on_message(struct rig *r, const struct ipc_msg *msg)
{
	if (msg->type == SSH_AGENT_CLOSED) {
		assert_int_equal(chan_get_plain(&ssh_agent_chan, msg, SSH_AGENT_CLOSED), 0);
		r->n_closed++;
		return;
	}
	assert_int_equal(ssh_agent_get_ask(msg, &r->ask), 0);
	r->n_asked++;
	r->ask_id = msg->id;
	if (!r->is_mute)
		assert_int_equal(ssh_agent_answer_ask(r->keeper, msg->id, r->yes), 0);
}

static void turn(struct rig *r, int ms)
{
	static struct ipc_msg msg;
	struct pollfd p[] = {
		{.fd = r->keeper, .events = POLLIN}, {.fd = r->guest, .events = POLLIN}};

	(void)poll(p, 2, ms);
	if (p[0].revents & POLLIN && ipc_recv(r->keeper, &msg) == 1) {
		on_message(r, &msg);
		ipc_msg_done(&msg);
	}
	if (p[1].revents & POLLIN) {
		int fd = accept4(r->guest, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0)
			open_stream(r, fd);
	}
}

/* Runs a command as the guest would; returns its exit status. */
static int client(struct rig *r, const char *command)
{
	AUTO_FREE char *sock = in_folder("guest.sock");
	pid_t pid = start(sock, command);
	uint64_t end = clock_mono_ms() + WAIT_MS;
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		turn(r, 10);
		if (clock_mono_ms() > end) {
			(void)kill(pid, SIGKILL);
			fail_msg("%s: does not end", command);
		}
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
