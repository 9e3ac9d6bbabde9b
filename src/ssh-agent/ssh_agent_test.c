/* A sealed sbx-ssh-agent in its jail: the test is keeper and guest, ssh-agent, ssh-add, ssh-keygen and git are real. */
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
#include "lib/ipc/agent_chan.h"
#include "lib/jail/jail.h"
#include "lib/sshagent/sshagent.h"

#define WAIT_MS 20000
#define SHOUT 512

static char folder[] = "/tmp/sbx-ssh-agent-XXXXXX";
static pid_t host_agent;
static char finger_a[SSHAGENT_FINGERPRINT], finger_b[SSHAGENT_FINGERPRINT];

static char *in_folder(const char *name)
{
	return xasprintf("%s/%s", folder, name);
}

/* ---- programs ---- */

static pid_t start(const char *agent_sock, const char *command)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (chdir(folder) < 0 || setenv("SSH_AUTH_SOCK", agent_sock, 1) < 0 ||
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

	host_agent = fork();
	if (host_agent == 0) {
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

	(void)kill(host_agent, SIGKILL);
	(void)waitpid(host_agent, NULL, 0);
	return system(command);
}

/* ---- the program under test ---- */

struct rig {
	pid_t pid;
	int keeper, guest; /* guest: listens where the guest's clients connect */
	uint32_t n_opened;
	unsigned n_closed, n_asked;
	bool yes;     /* what the keeper says to each ASK */
	bool is_mute; /* the keeper does not answer */
	struct agent_ask ask;
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

static void rig_start(struct rig *r)
{
	char *argv[] = {(char *)"sbx-ssh-agent", NULL};
	static struct ipc_msg msg;
	char build[AGENT_MAX_BUILD];
	int fds[2];

	assert_int_equal(ipc_pair(fds), 0);
	struct jail_fd passed = {fds[1], 3};
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
	fd_close(&fds[1]);
	*r = (struct rig){.pid = child.pid, .keeper = fds[0], .guest = listen_guest(), .yes = true};
	assert_int_equal(next_message(r, &msg, WAIT_MS), 1);
	assert_int_equal(agent_get_hello(&msg, build), 0);
}

static void rig_config(struct rig *r, const char *rule, const char *rule2, int host)
{
	static struct agent_config config;

	config = (struct agent_config){.n_rules = (uint8_t)((rule != NULL) + (rule2 != NULL))};
	if (rule)
		(void)snprintf(config.rules[0], AGENT_MAX_RULE, "%s", rule);
	if (rule2)
		(void)snprintf(config.rules[1], AGENT_MAX_RULE, "%s", rule2);
	assert_int_equal(agent_ask_config(r->keeper, &config, host), 0);
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
	assert_int_equal(agent_ask_stop(r->keeper), 0);
	assert_int_equal(rig_exit(r), 0);
}

static void open_stream(struct rig *r, int fd)
{
	assert_int_equal(agent_ask_open(r->keeper, ++r->n_opened, fd), 0);
	(void)close(fd);
}

static void on_message(struct rig *r, const struct ipc_msg *msg)
{
	if (msg->type == AGENT_CLOSED) {
		assert_int_equal(agent_get_plain(msg, AGENT_CLOSED), 0);
		r->n_closed++;
		return;
	}
	assert_int_equal(agent_get_ask(msg, &r->ask), 0);
	r->n_asked++;
	r->ask_id = msg->id;
	if (!r->is_mute)
		assert_int_equal(agent_answer_ask(r->keeper, msg->id, r->yes), 0);
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

/* Runs a command as the guest would; gives its exit status. */
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

/* ---- tests ---- */

static void test_only_allowed_keys_are_listed(void **state)
{
	struct rig r;

	rig_up(&r, "me@example.com", NULL);
	assert_int_equal(client(&r, "ssh-add -l >list && test $(wc -l <list) = 1 && grep -q "
				    "me@example.com list"),
		0);
	rig_down(&r);
	rig_up(&r, finger_b, NULL);
	assert_int_equal(
		client(&r, "ssh-add -l >list && test $(wc -l <list) = 1 && grep -q other list"), 0);
	rig_down(&r);
	rig_up(&r, finger_a, "other");
	assert_int_equal(client(&r, "ssh-add -l >list && test $(wc -l <list) = 2"), 0);
	rig_down(&r);
	rig_up(&r, "nobody", NULL);
	assert_int_equal(client(&r, "ssh-add -l"), 1); /* the agent has no identities */
	rig_down(&r);
	rig_up(&r, NULL, NULL);
	assert_int_equal(client(&r, "ssh-add -l >list && test $(wc -l <list) = 2"), 0);
	assert_int_equal(r.n_asked, 0);
	rig_down(&r);
}

static void test_ssh_keygen_signs_after_a_yes(void **state)
{
	struct rig r;

	rig_up(&r, "me@example.com", NULL);
	assert_int_equal(client(&r, "echo text >t && ssh-keygen -q -Y sign -f a.pub -n file t && "
				    "ssh-keygen -q -Y check-novalidate -n file -s t.sig <t"),
		0);
	assert_int_equal(r.n_asked, 1);
	assert_int_equal(r.ask.what, AGENT_FILE);
	assert_string_equal(r.ask.text, "file");
	assert_string_equal(r.ask.comment, "me@example.com");
	assert_string_equal(r.ask.fingerprint, finger_a);
	r.yes = false;
	assert_int_not_equal(client(&r, "rm t.sig; ssh-keygen -q -Y sign -f a.pub -n file t "
					"2>/dev/null; test -e t.sig"),
		0);
	assert_int_equal(r.n_asked, 2);
	r.yes = true; /* a key that is not allowed is not even asked about */
	assert_int_not_equal(
		client(&r, "ssh-keygen -q -Y sign -f b.pub -n file t 2>/dev/null; test -e t.sig"),
		0);
	assert_int_equal(r.n_asked, 2);
	rig_down(&r);
}

static void test_rsa_with_sha512(void **state)
{
	struct rig r;

	rig_up(&r, "other", NULL);
	assert_int_equal(
		client(&r, "echo text >t; rm -f t.sig; ssh-keygen -q -Y sign -f b.pub -n file t && "
			   "ssh-keygen -q -Y check-novalidate -n file -s t.sig <t"),
		0);
	rig_down(&r);
}

static void test_git_commits_are_signed(void **state)
{
	struct rig r;

	rig_up(&r, "me@example.com", NULL);
	assert_int_equal(
		client(&r, "rm -rf repo; git init -q repo && cd repo && git config user.name u && "
			   "git config user.email me@example.com && git config gpg.format ssh && "
			   "git config user.signingkey ../a.pub && echo \"me@example.com $(cat "
			   "../a.pub)\" >../allowed && "
			   "git config gpg.ssh.allowedSignersFile ../allowed && "
			   "git commit -q -S --allow-empty -m signed && git verify-commit HEAD "
			   "2>/dev/null"),
		0);
	assert_int_equal(r.n_asked, 1);
	assert_int_equal(r.ask.what, AGENT_FILE);
	assert_string_equal(r.ask.text, "git");
	rig_down(&r);
}

/* A real sshd, of this user, on the pipe of ssh. */
static void test_ssh_logs_in(void **state)
{
	struct rig r;
	AUTO_FREE char *config = in_folder("sshd_config");
	FILE *f = fopen(config, "we");

	assert_non_null(f);
	(void)fprintf(f,
		"HostKey %s/host_key\nAuthorizedKeysFile %s/a.pub\nStrictModes no\nUsePAM no\n"
		"PasswordAuthentication no\nPidFile none\n",
		folder, folder);
	(void)fclose(f);
	must("test -e host_key || ssh-keygen -q -t ed25519 -N '' -f host_key; mkdir -p /run/sshd "
	     "2>/dev/null; true");
	rig_up(&r, "me@example.com", NULL);
	assert_int_equal(client(&r, "ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=no -o "
				    "UserKnownHostsFile=/dev/null -o LogLevel=ERROR "
				    "-o ProxyCommand=\"/usr/sbin/sshd -i -f $HOME/sshd_config "
				    "2>/dev/null\" -l $(id -un) host 'echo in' >said && "
				    "test \"$(cat said)\" = in"),
		0);
	assert_int_equal(r.n_asked, 1);
	assert_int_equal(r.ask.what, AGENT_LOGIN);
	assert_true(r.ask.text[0]);
	r.yes = false;
	assert_int_not_equal(client(&r, "ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=no "
					"-o UserKnownHostsFile=/dev/null -o LogLevel=QUIET "
					"-o ProxyCommand=\"/usr/sbin/sshd -i -f $HOME/sshd_config "
					"2>/dev/null\" -l $(id -un) host true"),
		0);
	rig_down(&r);
}

/* Everything that would change the agent is refused, and the agent is as before. */
static void test_the_agent_cannot_be_changed(void **state)
{
	struct rig r;

	rig_up(&r, NULL, NULL);
	assert_int_not_equal(client(&r, "ssh-add -D 2>/dev/null"), 0);
	assert_int_not_equal(client(&r, "ssh-add -q a.key 2>/dev/null"), 0);
	assert_int_not_equal(client(&r, "ssh-add -d a.pub 2>/dev/null"), 0);
	assert_int_not_equal(client(&r, "ssh-add -s /usr/lib/x.so </dev/null 2>/dev/null"), 0);
	assert_int_equal(r.n_asked, 0);
	must("ssh-add -l >list && test $(wc -l <list) = 2");
	rig_down(&r);
}

/* ---- by hand ---- */

static int open_pair(struct rig *r)
{
	struct timeval tv = {.tv_sec = 20};
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	open_stream(r, fds[1]);
	return fds[0];
}

static bool says_failure(int fd)
{
	uint8_t answer[5];

	return recv(fd, answer, 5, MSG_WAITALL) == 5 && memcmp(answer, "\0\0\0\1\5", 5) == 0;
}

static void test_nonsense_of_the_guest(void **state)
{
	struct rig r;
	uint8_t big[SHOUT] = {0, 0, 1, 0};
	char byte;
	int fd;

	rig_up(&r, NULL, NULL);
	for (unsigned type = 0; type < 256; type++) {
		uint8_t msg[] = {0, 0, 0, 2, (uint8_t)type, 0};

		fd = open_pair(&r);
		assert_int_equal(send(fd, msg, sizeof(msg), 0), (int)sizeof(msg));
		assert_true(says_failure(fd));
		/* and the next request is read all the same, byte by byte */
		for (size_t i = 0; i < 5; i++)
			assert_int_equal(send(fd, "\0\0\0\1\x1b" + i, 1, 0), 1);
		assert_true(says_failure(fd));
		(void)close(fd);
		while (r.n_closed < r.n_opened)
			turn(&r, WAIT_MS);
	}
	fd = open_pair(&r); /* no length, and one that is too long */
	assert_int_equal(send(fd, "\0\0\0\0", 4, 0), 4);
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	(void)close(fd);
	fd = open_pair(&r);
	assert_int_equal(send(fd, "\0\1\0\1", 4, 0), 4);
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	(void)close(fd);
	fd = open_pair(&r); /* half a request, and away */
	assert_int_equal(send(fd, big, sizeof(big), 0), (int)sizeof(big));
	(void)close(fd);
	while (r.n_closed < r.n_opened)
		turn(&r, WAIT_MS);
	assert_int_equal(client(&r, "ssh-add -l >/dev/null"), 0);
	rig_down(&r);
}

static size_t sign_request(uint8_t *p, size_t size, struct slice blob)
{
	static const uint8_t data[] = {0, 0, 0, 1, 'x', 0, 0, 0, 0};
	size_t n = 1 + 4 + blob.n + sizeof(data);

	assert_true(n + 4 <= size);
	for (unsigned i = 0; i < 4; i++) {
		p[i] = (uint8_t)(n >> (24 - 8 * i));
		p[5 + i] = (uint8_t)(blob.n >> (24 - 8 * i));
	}
	p[4] = SSHAGENT_SIGN_REQUEST;
	memcpy(p + 9, blob.p, blob.n);
	memcpy(p + 9 + blob.n, data, sizeof(data));
	return n + 4;
}

/* The blob of the first listed key. */
static struct slice first_key(int fd, uint8_t *buf, size_t size)
{
	assert_int_equal(send(fd, "\0\0\0\1\x0b", 5, 0), 5);
	assert_int_equal(recv(fd, buf, 4, MSG_WAITALL), 4);
	size_t n = (size_t)buf[2] << 8 | buf[3];

	assert_true(n <= size);
	assert_int_equal(recv(fd, buf, n, MSG_WAITALL), (int)n);
	assert_int_equal(buf[0], SSHAGENT_IDENTITIES_ANSWER);
	return slice_of(buf + 9, (size_t)buf[7] << 8 | buf[8]);
}

static void wait_for_asks(struct rig *r, unsigned n)
{
	uint64_t end = clock_mono_ms() + WAIT_MS;

	while (r->n_asked < n && clock_mono_ms() < end)
		turn(r, 100);
	assert_int_equal(r->n_asked, n);
}

static bool is_signature(int fd)
{
	static uint8_t rest[4096];
	uint8_t begin[5];

	if (recv(fd, begin, 5, MSG_WAITALL) != 5 || begin[4] != SSHAGENT_SIGN_RESPONSE)
		return false;
	size_t n = ((size_t)begin[2] << 8 | begin[3]) - 1;

	return n <= sizeof(rest) && recv(fd, rest, n, MSG_WAITALL) == (ssize_t)n;
}

/* While the keeper thinks about one signature the others are served; without its yes nothing is signed, and who leaves is
 * forgotten. */
static void test_nothing_is_signed_before_the_yes(void **state)
{
	static uint8_t list[4096], request[4096];
	struct rig r;
	int fd, fd2;

	rig_up(&r, "me@example.com", NULL);
	r.is_mute = true;
	fd = open_pair(&r);
	struct slice blob = first_key(fd, list, sizeof(list));
	size_t n = sign_request(request, sizeof(request), blob);

	assert_int_equal(send(fd, request, n, 0), (int)n);
	wait_for_asks(&r, 1);
	assert_int_equal(r.ask.what, AGENT_OTHER);
	uint32_t first = r.ask_id;

	assert_int_equal(client(&r, "ssh-add -l >/dev/null"), 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, 200), 0);
	fd2 = open_pair(&r);
	assert_int_equal(send(fd2, request, n, 0), (int)n);
	wait_for_asks(&r, 2);
	(void)close(fd2);
	unsigned n_closed = r.n_closed;

	while (r.n_closed == n_closed)
		turn(&r, WAIT_MS);
	assert_int_equal(agent_answer_ask(r.keeper, r.ask_id, true), 0); /* for nobody */
	assert_int_equal(agent_answer_ask(r.keeper, first, true), 0);
	assert_true(is_signature(fd));
	/* the same client again, and again */
	r.is_mute = false;
	for (unsigned i = 3; i < 6; i++) {
		assert_true(
			slice_eq(first_key(fd, list, sizeof(list)), slice_of(request + 9, blob.n)));
		assert_int_equal(send(fd, request, n, 0), (int)n);
		wait_for_asks(&r, i);
		assert_true(is_signature(fd));
	}
	(void)close(fd);
	rig_down(&r);
	/* a verdict about what was never asked */
	rig_up(&r, NULL, NULL);
	assert_int_equal(agent_answer_ask(r.keeper, 1, true), 0);
	assert_int_equal(rig_exit(&r), 4);
}

/* A client that does not ask for the list first, as ssh-keygen does, but says the key that it may not use. */
static void test_a_key_that_is_not_listed_signs_nothing(void **state)
{
	static uint8_t request[4096];
	struct rig r;
	uint8_t blob[1024];
	AUTO_FREE char *path = in_folder("b.blob");
	FILE *f;
	int fd;

	must("cut -d' ' -f2 b.pub | base64 -d >b.blob");
	f = fopen(path, "re");
	assert_non_null(f);
	size_t n = fread(blob, 1, sizeof(blob), f);

	(void)fclose(f);
	rig_up(&r, "other", NULL); /* it is this key, and it works where it may */
	fd = open_pair(&r);
	size_t len = sign_request(request, sizeof(request), slice_of(blob, n));

	assert_int_equal(send(fd, request, len, 0), (int)len);
	wait_for_asks(&r, 1);
	assert_true(is_signature(fd));
	(void)close(fd);
	rig_down(&r);
	rig_up(&r, "me@example.com", NULL);
	fd = open_pair(&r);
	assert_int_equal(send(fd, request, len, 0), (int)len);
	assert_true(says_failure(fd));
	assert_int_equal(r.n_asked, 0);
	(void)close(fd);
	rig_down(&r);
}

/* Two wait at once, and each gets its own verdict. */
static void test_a_verdict_is_for_one(void **state)
{
	static uint8_t list[4096], request[4096];
	struct rig r;
	uint32_t ids[2];
	int fds[2];

	rig_up(&r, "me@example.com", NULL);
	r.is_mute = true;
	for (unsigned i = 0; i < 2; i++) {
		fds[i] = open_pair(&r);
		size_t n = sign_request(
			request, sizeof(request), first_key(fds[i], list, sizeof(list)));

		assert_int_equal(send(fds[i], request, n, 0), (int)n);
		wait_for_asks(&r, i + 1);
		ids[i] = r.ask_id;
	}
	assert_int_equal(agent_answer_ask(r.keeper, ids[1], true), 0);
	assert_true(is_signature(fds[1]));
	assert_int_equal(agent_answer_ask(r.keeper, ids[0], false), 0);
	assert_true(says_failure(fds[0]));
	(void)close(fds[0]);
	(void)close(fds[1]);
	rig_down(&r);
}

static void test_16_clients_at_once(void **state)
{
	int fds[AGENT_MAX_OPEN];
	static uint8_t list[4096];
	struct rig r;

	rig_up(&r, NULL, NULL);
	for (size_t i = 0; i < AGENT_MAX_OPEN; i++)
		fds[i] = open_pair(&r);
	for (size_t i = 0; i < AGENT_MAX_OPEN; i++)
		assert_int_equal(send(fds[i], "\0\0\0\1\x0b", 5, 0), 5);
	for (size_t i = 0; i < AGENT_MAX_OPEN; i++) {
		assert_int_equal(recv(fds[i], list, 5, MSG_WAITALL), 5);
		assert_int_equal(list[4], SSHAGENT_IDENTITIES_ANSWER);
	}
	(void)open_pair(&r); /* the keeper counts */
	assert_int_equal(rig_exit(&r), 4);
	for (size_t i = 0; i < AGENT_MAX_OPEN; i++)
		(void)close(fds[i]);
}

/* ---- a host's agent that misbehaves ---- */

static void test_bad_agents(void **state)
{
	static const struct {
		const char *what;
		size_t n;
		int status; /* 0: the guest hears FAILURE and the process lives */
	} rows[] = {
		{"\0\0\0\1\5", 5, 0},			   /* FAILURE */
		{"\0\0\0\5\x0c\0\0\0\1", 9, 0},		   /* a key that is not there */
		{"\0\0\0\6\x0c\0\0\0\0x", 10, 0},	   /* something behind the list */
		{"\0\0\0\5\x0c\xff\xff\xff\xff", 9, 0},	   /* too many keys */
		{"\0\0\0\0", 4, 5},			   /* no length */
		{"\xff\xff\xff\xff", 4, 5},		   /* too long */
		{"", 0, 5},				   /* the end */
		{"\0\0\0\5\x0c\0\0\0\0\0\0\0\1\5", 14, 5}, /* speaks unasked */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t question[5];
		struct rig r;
		int fds[2], fd;

		rig_start(&r);
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
		rig_config(&r, NULL, NULL, fds[1]);
		fd = open_pair(&r);
		assert_int_equal(send(fd, "\0\0\0\1\x0b", 5, 0), 5);
		assert_int_equal(recv(fds[0], question, 5, MSG_WAITALL), 5);
		assert_memory_equal(question, "\0\0\0\1\x0b", 5);
		if (rows[i].n > 0)
			assert_int_equal(send(fds[0], rows[i].what, rows[i].n, 0), (int)rows[i].n);
		else
			(void)close(fds[0]);
		if (rows[i].status == 0) {
			assert_true(says_failure(fd));
			rig_down(&r);
		} else {
			assert_int_equal(rig_exit(&r), rows[i].status);
		}
		(void)close(fd);
		if (rows[i].n > 0)
			(void)close(fds[0]);
	}
}

static void test_a_keeper_that_breaks_the_protocol(void **state)
{
	struct rig r;

	rig_start(&r);
	assert_int_equal(agent_ask_open(r.keeper, 1, 0), 0); /* before CONFIG */
	assert_int_equal(rig_exit(&r), 4);
	rig_up(&r, NULL, NULL);
	assert_int_equal(agent_send_closed(r.keeper, 1), 0); /* not its to say */
	assert_int_equal(rig_exit(&r), 4);
	rig_up(&r, NULL, NULL);
	fd_close(&r.keeper);
	assert_int_equal(rig_exit(&r), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_allowed_keys_are_listed),
		cmocka_unit_test(test_ssh_keygen_signs_after_a_yes),
		cmocka_unit_test(test_rsa_with_sha512),
		cmocka_unit_test(test_git_commits_are_signed),
		cmocka_unit_test(test_ssh_logs_in),
		cmocka_unit_test(test_the_agent_cannot_be_changed),
		cmocka_unit_test(test_nonsense_of_the_guest),
		cmocka_unit_test(test_nothing_is_signed_before_the_yes),
		cmocka_unit_test(test_a_key_that_is_not_listed_signs_nothing),
		cmocka_unit_test(test_a_verdict_is_for_one),
		cmocka_unit_test(test_16_clients_at_once),
		cmocka_unit_test(test_bad_agents),
		cmocka_unit_test(test_a_keeper_that_breaks_the_protocol),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, make_world, remove_world);
}
