/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper with a fake edge, a real jailed sbx-ssh-agent and a real ssh-agent. */
#include "net_rig.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/os/program/run_places.h"

static pid_t host_agent;
static char askpass[128];
static char *one_key[] = {(char *)"me@example.com"};

static void must(const char *command)
{
	AUTO_FREE char *line =
		xasprintf("cd %s && SSH_AUTH_SOCK=%s/host.sock && export SSH_AUTH_SOCK && %s",
			rig_dir, rig_dir, command);

	assert_int_equal(system(line), 0);
}

static int up(void **state)
{
	assert_int_equal(rig_up(state), 0);
	AUTO_FREE char *sock = xasprintf("%s/host.sock", rig_dir);

	host_agent = fork();
	if (host_agent == 0) {
		(void)!freopen("/dev/null", "w", stdout);
		execlp("ssh-agent", "ssh-agent", "-D", "-a", sock, (char *)NULL);
		_exit(97);
	}
	for (unsigned i = 0; i < 6000 && access(sock, F_OK) < 0; i++)
		(void)usleep(10000);
	must("ssh-keygen -q -t ed25519 -N '' -C me@example.com -f a && ssh-add -q a && "
	     "ssh-keygen -q -t ed25519 -N '' -C other -f b && ssh-add -q b && rm a b");
	setenv("SBX_LIBEXEC", getenv("SBX_AGENT_DIR"), 1);
	rig_k.spec.ssh.socket = TAKE(sock);
	rig_k.spec.ssh.keys = one_key;
	rig_k.spec.ssh.n_keys = 1;
	return 0;
}

static int down(void **state)
{
	ssh_agent_kill(&rig_k);
	(void)kill(host_agent, SIGKILL);
	(void)waitpid(host_agent, NULL, 0);
	free(TAKE(rig_k.spec.ssh.socket));
	return rig_down(state);
}

/* Returns the socket for edge; -1 if the client is denied. */
static int open_client(uint32_t id)
{
	rig_ask(id, EDGE_ASK_AGENT, "", 0);
	return rig_must_answer(id) ? TAKE_FD(rig_msg.fd) : -1;
}

static size_t receive(int fd, uint8_t *buf, size_t size)
{
	size_t n = 0, want = 4;

	while (n < want) {
		uint64_t end = clock_mono_ms() + 95000;

		/* In small steps: the keeper's loop does not watch this socket. */
		while (!rig_run_until(fd, 10))
			if (clock_mono_ms() > end)
				fail_msg("no answer");
		ssize_t r = recv(fd, buf + n, want - n, MSG_DONTWAIT);

		if (r <= 0)
			return 0;
		n += (size_t)r;
		if (n == 4 && want == 4)
			want += (size_t)buf[2] << 8 | buf[3];
		assert_true(want <= size);
	}
	return n;
}

static uint8_t list[4096], request[4096], answer[4096];

/* Lists the keys (there is one) and requests a signature with it. Returns the type of the
 * answer. */
static unsigned sign(int fd)
{
	assert_int_equal(send(fd, "\0\0\0\1\x0b", 5, 0), 5);
	assert_true(receive(fd, list, sizeof(list)) > 20);
	assert_memory_equal(list + 4, "\x0c\0\0\0\1", 5);
	size_t n_blob = (size_t)list[11] << 8 | list[12], n = 1 + 4 + n_blob + 9;

	memset(request, 0, 4);
	request[2] = (uint8_t)(n >> 8);
	request[3] = (uint8_t)n;
	request[4] = 13;
	memcpy(request + 5, list + 9, 4 + n_blob);
	memcpy(request + 9 + n_blob, "\0\0\0\1x\0\0\0\0", 9);
	assert_int_equal(send(fd, request, n + 4, 0), (int)n + 4);
	return receive(fd, answer, sizeof(answer)) ? answer[4] : 0;
}

static void test_off_by_default(void **state)
{
	char *socket_ = TAKE(rig_k.spec.ssh.socket);

	assert_int_equal(open_client(1), -1);
	assert_non_null(strstr(rig_verdict.reason, "without --ssh-agent"));
	assert_int_equal(rig_last_record().decision, AUDIT_DENY);
	assert_false(rig_k.ssh_agent->worker.alive);
	rig_k.spec.ssh.socket = socket_;
}

static void test_each_signature_is_a_record(void **state)
{
	int fd = open_client(1);

	assert_true(fd >= 0);
	assert_int_equal(rig_last_record().kind, AUDIT_KIND_DECISION);
	unsigned n = rig_last_record().n;

	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(sign(fd), 14);
		assert_int_equal(rig_last_record().n, n + i);
		assert_int_equal(rig_last_record().kind, AUDIT_KIND_SIGNATURE);
		assert_int_equal(rig_last_record().decision, AUDIT_ALLOW);
		assert_int_equal(strncmp(rig_last_record().rule, "SHA256:", 7), 0);
	}
	(void)close(fd);
}

static void test_what_cannot_be_recorded_is_not_signed(void **state)
{
	int fd = open_client(1);

	assert_int_equal(sign(fd), 14);
	struct audit *audit = TAKE(rig_k.record->audit);

	rig_k.record->tried_ms = clock_mono_ms() + 100000; /* prevents a reopen */
	assert_int_equal(sign(fd), 5);
	assert_int_equal(open_client(2), -1);
	rig_k.record->audit = audit;
	assert_int_equal(sign(fd), 14);
	(void)close(fd);
}

static void use_askpass(const char *script)
{
	(void)snprintf(askpass, sizeof(askpass), "%s/askpass", rig_dir);
	AUTO_FREE char *text = xasprintf(
		"#!/bin/sh\necho \"$1 $SSH_ASKPASS_PROMPT\" >%s/asked\n%s\n", rig_dir, script);

	assert_int_equal(file_save(askpass, slice_from_str(text), NULL), 0);
	assert_int_equal(chmod(askpass, 0700), 0);
	rig_k.spec.ssh.confirm = true;
	rig_k.spec.ssh.askpass = askpass;
}

static void test_a_person_is_asked(void **state)
{
	int fd = open_client(1);

	use_askpass("exit 0");
	assert_int_equal(sign(fd), 14);
	must("grep -q 'sandbox demo' asked && grep -q 'me@example.com (SHA256:' asked && grep -q "
	     "confirm asked");
	assert_string_equal(rig_last_record().reason, "confirmed");
	use_askpass("exit 1");
	assert_int_equal(sign(fd), 5);
	assert_int_equal(rig_last_record().decision, AUDIT_DENY);
	assert_string_equal(rig_last_record().reason, "not confirmed");
	use_askpass("kill -9 $$");
	assert_int_equal(sign(fd), 5);
	rig_k.spec.ssh.askpass = (char *)"/nowhere";
	assert_int_equal(sign(fd), 5);
	rig_k.spec.ssh.confirm = false;
	(void)close(fd);
}

/* The workspace was added after the program was set. The guest may have written the program. */
static void test_a_program_that_a_guest_can_write_is_not_executed(void **state)
{
	const char *const dirs[] = {rig_dir};
	int fd = open_client(1);

	use_askpass("exit 0");
	must("rm -f asked");
	assert_int_equal(run_places_save("0123456789ab", dirs, 1, NULL), 0);
	assert_int_equal(sign(fd), 5);
	must("! test -e asked");
	run_places_remove("0123456789ab");
	assert_int_equal(sign(fd), 14);
	rig_k.spec.ssh.confirm = false;
	(void)close(fd);
}

/* 30 s: the one slow test. */
static void test_nobody_answers(void **state)
{
	int fd = open_client(1);
	uint64_t begin = clock_mono_ms();

	use_askpass("sleep 100");
	assert_int_equal(sign(fd), 5);
	assert_in_range(clock_mono_ms() - begin, KEEPER_CONFIRM_MS - 100, KEEPER_CONFIRM_MS + 5000);
	assert_string_equal(rig_last_record().reason, "no confirmation within the timeout");
	rig_k.spec.ssh.confirm = false;
	(void)close(fd);
}

static void test_16_clients(void **state)
{
	int fds[SSH_AGENT_MAX_OPEN];

	for (uint32_t i = 0; i < SSH_AGENT_MAX_OPEN; i++) {
		fds[i] = open_client(i + 1);
		assert_true(fds[i] >= 0);
	}
	assert_int_equal(open_client(99), -1);
	assert_int_equal(sign(fds[SSH_AGENT_MAX_OPEN - 1]), 14);
	for (uint32_t i = 0; i < SSH_AGENT_MAX_OPEN; i++)
		(void)close(fds[i]);
	(void)rig_run_until(-1, 200);
	fds[0] = open_client(100); /* their slots are free again */
	assert_int_equal(sign(fds[0]), 14);
	(void)close(fds[0]);
}

static void test_killed_and_started_again(void **state)
{
	int fd = open_client(1);
	uint8_t byte;

	assert_int_equal(sign(fd), 14);
	assert_int_equal(kill(rig_k.ssh_agent->worker.child.pid, SIGKILL), 0);
	(void)rig_run_until(-1, 300);
	assert_false(rig_k.ssh_agent->worker.alive);
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	(void)close(fd);
	fd = open_client(2);
	assert_int_equal(sign(fd), 14);
	(void)close(fd);
}

static void test_no_agent_on_the_host(void **state)
{
	uint8_t byte;
	int fd;

	(void)kill(host_agent, SIGKILL);
	(void)waitpid(host_agent, NULL, 0);
	fd = open_client(1);
	(void)rig_run_until(-1, 500);
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	assert_false(rig_k.ssh_agent->worker.alive);
	(void)close(fd);
}

/* The test plays a compromised sbx-ssh-agent: it is killed, and not restarted after three. */
static void test_a_hostile_one(void **state)
{
	for (uint32_t i = 0; i < WORKER_MAX_VIOLATIONS; i++) {
		int fds[2], fd = open_client(i + 1);

		assert_int_equal(sign(fd), 14);
		assert_int_equal(ipc_pair(fds), 0);
		loop_del(&rig_k.loop, rig_k.ssh_agent->worker.sock);
		int real = rig_k.ssh_agent->worker.sock; /* the worker must not see the close */

		rig_k.ssh_agent->worker.sock = fds[0];
		assert_int_equal(loop_add(&rig_k.loop, fds[0], EPOLLIN,
					 (struct loop_key){.kind = EV_SSH_AGENT,
						 .gen = rig_k.ssh_agent->worker.gen}),
			0);
		switch (i) {
		case 0: /* a stream that is not open */
			assert_int_equal(chan_send_plain(fds[1], SSH_AGENT_CLOSED, 9, -1), 0);
			break;
		case 1: /* out of phase */
			assert_int_equal(chan_send_hello(fds[1], SBX_BUILD), 0);
			break;
		default: /* a terminal's escape sequence */
			assert_int_equal(ssh_agent_send_ask(fds[1], 1,
						 &(struct ssh_agent_ask){
							 .fingerprint = "x", .comment = "\033[2J"}),
				0);
		}
		(void)rig_run_until(-1, 300);
		assert_false(rig_k.ssh_agent->worker.alive);
		assert_int_equal(rig_k.ssh_agent->worker.violations, i + 1);
		assert_int_equal(rig_last_record().kind, AUDIT_KIND_WORKER_VIOLATION);
		(void)close(fd);
		(void)close(fds[1]);
		(void)close(real);
	}
	assert_int_equal(open_client(50), -1);
}

#define AGENT_TEST(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		AGENT_TEST(test_off_by_default),
		AGENT_TEST(test_each_signature_is_a_record),
		AGENT_TEST(test_what_cannot_be_recorded_is_not_signed),
		AGENT_TEST(test_a_person_is_asked),
		AGENT_TEST(test_a_program_that_a_guest_can_write_is_not_executed),
		AGENT_TEST(test_16_clients),
		AGENT_TEST(test_killed_and_started_again),
		AGENT_TEST(test_no_agent_on_the_host),
		AGENT_TEST(test_a_hostile_one),
		AGENT_TEST(test_nobody_answers),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
