/* SPDX-License-Identifier: Apache-2.0 */
/* A sealed sbx-ssh-agent in its jail: the test is keeper and guest, ssh-agent, ssh-add,
 * ssh-keygen and git are real. */
#include "ssh_agent_fixture.h"

#define SHOUT 512

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
	assert_int_equal(r.ask.what, SSH_AGENT_FILE);
	assert_string_equal(r.ask.text, "file");
	assert_string_equal(r.ask.comment, "me@example.com");
	assert_string_equal(r.ask.fingerprint, finger_a);
	r.yes = false;
	assert_int_not_equal(client(&r, "rm t.sig; ssh-keygen -q -Y sign -f a.pub -n file t "
					"2>/dev/null; test -e t.sig"),
		0);
	assert_int_equal(r.n_asked, 2);
	r.yes = true; /* a denied key is not even asked about */
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
	assert_int_equal(r.ask.what, SSH_AGENT_FILE);
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
	assert_int_equal(r.ask.what, SSH_AGENT_LOGIN);
	assert_true(r.ask.text[0]);
	r.yes = false;
	assert_int_not_equal(client(&r, "ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=no "
					"-o UserKnownHostsFile=/dev/null -o LogLevel=QUIET "
					"-o ProxyCommand=\"/usr/sbin/sshd -i -f $HOME/sshd_config "
					"2>/dev/null\" -l $(id -un) host true"),
		0);
	rig_down(&r);
}

/* All requests that would change the agent are denied, and the agent is unchanged. */
static void test_the_ssh_agent_cannot_be_changed(void **state)
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
		/* and the next request is still read, byte by byte */
		for (size_t i = 0; i < 5; i++)
			assert_int_equal(send(fd, &"\0\0\0\1\x1b"[i], 1, 0), 1);
		assert_true(says_failure(fd));
		(void)close(fd);
		while (r.n_closed < r.n_opened)
			turn(&r, WAIT_MS);
	}
	fd = open_pair(&r); /* no length, and a length above the limit */
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

/* While the keeper decides about one signature the others are served; without its permission
 * nothing is signed, and a closed stream is forgotten. */
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
	assert_int_equal(r.ask.what, SSH_AGENT_OTHER);
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
	assert_int_equal(ssh_agent_answer_ask(r.keeper, r.ask_id, true), 0); /* dropped */
	assert_int_equal(ssh_agent_answer_ask(r.keeper, first, true), 0);
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
	/* a verdict without a request */
	rig_up(&r, NULL, NULL);
	assert_int_equal(ssh_agent_answer_ask(r.keeper, 1, true), 0);
	assert_int_equal(rig_exit(&r), 4);
}

/* A client that does not list the keys first, unlike ssh-keygen, but names a key that it may not
 * use. */
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
	rig_up(&r, "other", NULL); /* the same key works where it is allowed */
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

/* Two wait at the same time, and each gets its own verdict. */
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
	assert_int_equal(ssh_agent_answer_ask(r.keeper, ids[1], true), 0);
	assert_true(is_signature(fds[1]));
	assert_int_equal(ssh_agent_answer_ask(r.keeper, ids[0], false), 0);
	assert_true(says_failure(fds[0]));
	(void)close(fds[0]);
	(void)close(fds[1]);
	rig_down(&r);
}

static void test_16_clients_at_once(void **state)
{
	int fds[SSH_AGENT_MAX_OPEN];
	static uint8_t list[4096];
	struct rig r;

	rig_up(&r, NULL, NULL);
	for (size_t i = 0; i < SSH_AGENT_MAX_OPEN; i++)
		fds[i] = open_pair(&r);
	for (size_t i = 0; i < SSH_AGENT_MAX_OPEN; i++)
		assert_int_equal(send(fds[i], "\0\0\0\1\x0b", 5, 0), 5);
	for (size_t i = 0; i < SSH_AGENT_MAX_OPEN; i++) {
		assert_int_equal(recv(fds[i], list, 5, MSG_WAITALL), 5);
		assert_int_equal(list[4], SSHAGENT_IDENTITIES_ANSWER);
	}
	(void)open_pair(&r); /* the keeper counts */
	assert_int_equal(rig_exit(&r), 4);
	for (size_t i = 0; i < SSH_AGENT_MAX_OPEN; i++)
		(void)close(fds[i]);
}

/* ---- a host's agent that misbehaves ---- */

static void test_bad_ssh_agents(void **state)
{
	static const struct {
		const char *what;
		size_t n;
		int status; /* 0: the guest gets FAILURE and the process keeps running */
	} rows[] = {
		{"\0\0\0\1\5", 5, 0},			   /* FAILURE */
		{"\0\0\0\5\x0c\0\0\0\1", 9, 0},		   /* an unknown key */
		{"\0\0\0\6\x0c\0\0\0\0x", 10, 0},	   /* trailing data after the list */
		{"\0\0\0\5\x0c\xff\xff\xff\xff", 9, 0},	   /* too many keys */
		{"\0\0\0\0", 4, 5},			   /* no length */
		{"\xff\xff\xff\xff", 4, 5},		   /* too long */
		{"", 0, 5},				   /* end-of-file */
		{"\0\0\0\5\x0c\0\0\0\0\0\0\0\1\5", 14, 5}, /* unrequested data */
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
	assert_int_equal(chan_send_plain(r.keeper, SSH_AGENT_OPEN, 1, 0), 0); /* before CONFIG */
	assert_int_equal(rig_exit(&r), 4);
	rig_up(&r, NULL, NULL);
	assert_int_equal(chan_send_plain(r.keeper, SSH_AGENT_CLOSED, 1, -1), 0); /* not permitted */
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
		cmocka_unit_test(test_the_ssh_agent_cannot_be_changed),
		cmocka_unit_test(test_nonsense_of_the_guest),
		cmocka_unit_test(test_nothing_is_signed_before_the_yes),
		cmocka_unit_test(test_a_key_that_is_not_listed_signs_nothing),
		cmocka_unit_test(test_a_verdict_is_for_one),
		cmocka_unit_test(test_16_clients_at_once),
		cmocka_unit_test(test_bad_ssh_agents),
		cmocka_unit_test(test_a_keeper_that_breaks_the_protocol),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, make_world, remove_world);
}
