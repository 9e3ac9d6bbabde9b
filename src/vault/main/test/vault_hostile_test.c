/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that are compromised, disappear, or do not read; many at the same time. */
#include "vault_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/os/ipc/vault_chan.h"

static const char *const by_file[] = {"--key=file", NULL};
static struct rig *r;

static int setup(void **state)
{
	AUTO_CLOSE int admin = -1;

	r = rig_new(by_file);
	admin = rig_admin(r);
	return rig_set_str(admin, "a", "", "a value of some length");
}

static int teardown(void **state)
{
	rig_free(r);
	return 0;
}

/* After a peer was dropped, the others are served. */
static void assert_serves(void)
{
	AUTO_CLOSE int keeper = rig_keeper(r, "s");
	AUTO_FREE char *value = NULL;

	assert_int_equal(rig_release(keeper, "a", 0, &value, NULL), 0);
	assert_string_equal(value, "a value of some length");
}

static int stream(void)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	(void)close(fds[0]);
	return fds[1];
}

static void test_every_message_out_of_turn(void **state)
{
	/* no role yet: anything except a role; as a sandbox: admin requests, and the reverse */
	for (uint16_t type = 0; type <= VAULT_N_MSGS; type++) {
		AUTO_CLOSE int early = -1, keeper = -1, fd = stream();

		if (type != VAULT_ADMIN) {
			early = rig_connect(r);
			assert_int_equal(ipc_send(early, type, 0, slice_of(NULL, 0), -1), 0);
			assert_true(rig_is_dropped(early));
		}
		if (type == VAULT_LIST || type == VAULT_RELEASE || type == VAULT_STORE ||
			type == VAULT_WATCH || type == VAULT_STATUS)
			continue;
		keeper = rig_keeper(r, "s");
		assert_int_equal(ipc_send(keeper, type, 0, slice_of(NULL, 0), fd), 0);
		assert_true(rig_is_dropped(keeper));
	}
	AUTO_CLOSE int admin = rig_admin(r), fd = stream();

	assert_int_equal(vault_ask_release(admin, 1, "a", 1, fd), 0);
	assert_true(rig_is_dropped(admin));
	assert_serves();
}

static void test_two_roles(void **state)
{
	AUTO_CLOSE int keeper = rig_keeper(r, "s");

	assert_int_equal(chan_send_plain(keeper, VAULT_ADMIN, 0, -1), 0);
	assert_true(rig_is_dropped(keeper));
	assert_serves();
}

/* ---- a process of the same user at the listening socket ---- */

/* The attempts: in every order of three, well-formed. */
static const uint16_t tries[] = {VAULT_ADMIN, VAULT_CHANNEL, VAULT_RELEASE, VAULT_LIST, VAULT_WATCH,
	VAULT_STATUS, VAULT_STORE, VAULT_SCAN, VAULT_HELLO, VAULT_DONE};

struct attempt {
	int peer;
	int ours, theirs;     /* of a stream for a value */
	int channel, its_end; /* a channel for the vault to serve */
};

static void say_one(const struct attempt *a, uint16_t type, uint64_t serial)
{
	AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int said = 0;

	/* A vault that has dropped us returns -EPIPE, as intended. */
	switch (type) {
	case VAULT_CHANNEL:
		said = vault_ask_channel(a->peer, "s", a->its_end);
		break;
	case VAULT_RELEASE:
		said = vault_ask_release(a->peer, 1, "a", serial, a->theirs);
		break;
	case VAULT_STORE:
		said = vault_ask_store(a->peer, 2, "demo.access", null);
		break;
	case VAULT_SCAN:
		said = vault_ask_scan(a->peer, 3, "", null);
		break;
	default:
		said = ipc_send(a->peer, type, type == VAULT_ADMIN ? 0 : 4, slice_of(NULL, 0), -1);
		break;
	}
	(void)said;
}

static void try_order(const uint16_t order[3], uint64_t serial)
{
	struct attempt a = {.peer = rig_connect(r)};
	struct pollfd end = {.events = POLLIN};
	char byte;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	a.ours = fds[0];
	a.theirs = fds[1];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	a.channel = fds[0];
	a.its_end = fds[1];
	for (size_t i = 0; i < 3; i++)
		say_one(&a, order[i], serial);
	(void)!vault_ask_release(a.channel, 1, "a", serial, a.theirs);
	(void)close(a.theirs);
	(void)close(a.its_end);
	(void)close(a.peer);
	/* End-of-file arrives when the vault has closed every descriptor. */
	end.fd = a.ours;
	assert_int_equal(poll(&end, 1, 20000), 1);
	if (read(a.ours, &byte, 1) != 0)
		fail_msg("a value came for the messages %u, %u, %u", order[0], order[1], order[2]);
	(void)close(a.ours);
	(void)close(a.channel);
}

static void try_all_orders(uint64_t serial)
{
	size_t n = ARRAY_LEN(tries);

	for (size_t i = 0; i < n * n * n; i++) {
		const uint16_t order[3] = {tries[i / n / n], tries[i / n % n], tries[i % n]};

		try_order(order, serial);
	}
}

static uint64_t serial_of_a(void)
{
	static struct vault_item items[RIG_MAX_ITEMS];
	AUTO_CLOSE int admin = rig_admin(r);

	assert_int_equal(rig_list(admin, items), 1);
	return items[0].serial;
}

static void test_the_listening_socket_gives_no_value(void **state)
{
	try_all_orders(serial_of_a());
	assert_serves();
}

/* After sbxd exits, no other peer becomes the owner. */
static void test_nor_when_its_owner_has_ended(void **state)
{
	AUTO_CLOSE int keeper = rig_keeper(r, "s");
	AUTO_FREE char *value = NULL;

	fd_close(&r->owner);
	try_all_orders(serial_of_a());
	assert_int_equal(rig_release(keeper, "a", 0, &value, NULL), 0);
}

/* An owner binds channels; it gets no value itself, and an empty id would mean every sandbox. */
static void test_what_the_owner_may_not(void **state)
{
	AUTO_CLOSE int fd = stream(), keeper = rig_keeper(r, "s");
	AUTO_FREE char *value = NULL;
	int pair[2];

	assert_int_equal(vault_ask_channel(r->owner, "s", fd), 0); /* not a channel: closed */
	assert_int_equal(ipc_pair(pair), 0);
	assert_int_equal(vault_ask_channel(r->owner, "", pair[1]), 0);
	(void)close(pair[1]);
	assert_true(rig_is_dropped(r->owner));
	assert_true(rig_is_dropped(pair[0]));
	(void)close(pair[0]);
	assert_int_equal(rig_release(keeper, "a", 0, &value, NULL), 0);
	fd_close(&r->owner);
	rig_kill(r);
	rig_start(r, by_file);
	assert_int_equal(vault_ask_release(r->owner, 1, "a", 1, fd), 0);
	assert_true(rig_is_dropped(r->owner));
}

static void test_garbage(void **state)
{
	static uint8_t noise[IPC_MAX_BODY];

	for (unsigned i = 0; i < 24; i++) {
		AUTO_CLOSE int peer = i % 2 ? rig_admin(r) : rig_keeper(r, "s"), fd = stream();

		for (size_t k = 0; k < sizeof(noise); k++)
			noise[k] = (uint8_t)((k * 7919 + i * 104729) >> 3);
		if (i < 4)
			assert_true(send(peer, noise, 5 + i * 40, MSG_NOSIGNAL) > 0);
		else
			assert_int_equal(ipc_send(peer, (uint16_t)(1 + i % VAULT_N_MSGS), i,
						 slice_of(noise, i * 600), i % 3 ? fd : -1),
				0);
		assert_true(rig_is_dropped(peer));
	}
	assert_serves();
}

/* The value is sent to a Unix stream only. */
static void test_where_a_value_may_go(void **state)
{
	AUTO_CLOSE int keeper = rig_keeper(r, "s"), file = open("/dev/null", O_RDWR | O_CLOEXEC),
		       tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), gone = stream();
	struct vault_done done;
	int packets[2], pipes[2];
	const int fds[] = {file, tcp};

	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		assert_int_equal(vault_ask_release(keeper, 1, "a", 1, fds[i]), 0);
		rig_done(keeper, 1, &done);
		assert_int_equal(done.code, -EINVAL);
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, packets), 0);
	assert_int_equal(vault_ask_release(keeper, 2, "a", 1, packets[0]), 0);
	rig_done(keeper, 2, &done);
	assert_int_equal(done.code, -EINVAL);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(vault_ask_release(keeper, 3, "a", 1, pipes[1]), 0);
	rig_done(keeper, 3, &done);
	assert_int_equal(done.code, -EINVAL);
	/* whose other end is closed */
	assert_int_equal(vault_ask_release(keeper, 4, "a", 1, gone), 0);
	rig_done(keeper, 4, &done);
	assert_int_equal(done.code, -EPIPE);
	assert_serves();
	(void)close(packets[0]);
	(void)close(packets[1]);
	(void)close(pipes[0]);
	(void)close(pipes[1]);
}

/* A full stream gets nothing that could be taken for a value. */
static void test_a_stream_that_is_full(void **state)
{
	AUTO_CLOSE int keeper = rig_keeper(r, "s");
	static char junk[4096];
	struct vault_done done;
	int fds[2];

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	while (write(fds[1], junk, sizeof(junk)) > 0)
		continue;
	assert_int_equal(vault_ask_release(keeper, 1, "a", 1, fds[1]), 0);
	rig_done(keeper, 1, &done);
	assert_true(done.code == -EAGAIN || done.code == -EMSGSIZE);
	(void)close(fds[0]);
	(void)close(fds[1]);
	assert_serves();
}

/* A stream that accepts a part of the frame has no value: it does not count as a use. */
static void test_a_stream_that_takes_a_part(void **state)
{
	AUTO_CLOSE int admin = rig_admin(r), keeper = rig_keeper(r, "s");
	static char large[VAULT_MAX_VALUE], got[VAULT_MAX_VALUE];
	static struct vault_item items[RIG_MAX_ITEMS];
	struct vault_done done;
	int fds[2], small = 1;
	ssize_t n;

	memset(large, 'v', sizeof(large));
	assert_int_equal(rig_set(admin, "large", "", large, sizeof(large)), 0);
	assert_int_equal(rig_list(admin, items), 2);
	assert_string_equal(items[1].meta.name, "large");
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	assert_int_equal(vault_ask_release(keeper, 1, "large", items[1].serial, fds[1]), 0);
	rig_done(keeper, 1, &done);
	(void)close(fds[1]);
	n = read(fds[0], got, sizeof(got));
	(void)close(fds[0]);
	assert_true(n > 0 && n < VAULT_MAX_VALUE);
	assert_int_equal(done.code, -EMSGSIZE);
	assert_int_equal(rig_list(admin, items), 2);
	assert_int_equal(items[1].used_ms, 0);
	assert_int_equal(rig_remove(admin, "large", ""), 0);
	assert_serves();
}

static void test_values_from_a_file_are_refused(void **state)
{
	AUTO_CLOSE int admin = rig_admin(r), file = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	const struct vault_meta meta = {.name = "z"};
	struct vault_done done;

	assert_int_equal(vault_ask_set(admin, 1, &meta, file), 0);
	rig_done(admin, 1, &done);
	assert_int_equal(done.code, -EINVAL);
	assert_int_equal(rig_list(admin, NULL), 1);
}

/* Endless pipes, of peers that stay and that disconnect: the ninth does not wait for them. */
static void test_pipes_that_never_end(void **state)
{
	AUTO_CLOSE int admin = rig_admin(r), other = rig_admin(r);
	const struct vault_meta meta = {.name = "never"};
	int pipes[9][2];
	struct vault_done done;

	for (uint32_t i = 0; i < 9; i++) {
		assert_int_equal(pipe2(pipes[i], O_CLOEXEC), 0);
		assert_int_equal(vault_ask_set(admin, i, &meta, pipes[i][0]), 0);
	}
	rig_done(admin, 8, &done);
	assert_int_equal(done.code, -EBUSY);
	assert_serves();
	fd_close(&admin); /* its eight end with it */
	assert_serves();
	for (unsigned i = 0; i < 50; i++) {
		int code = rig_set_str(other, "b", "", "v");

		if (code == 0)
			break;
		assert_int_equal(code, -EBUSY);
		(void)usleep(20000);
	}
	assert_int_equal(rig_list(other, NULL), 2);
	for (unsigned i = 0; i < 9; i++) {
		(void)close(pipes[i][0]);
		(void)close(pipes[i][1]);
	}
}

/* A peer that never reads: its answers fill the socket, then it is no longer read. */
static void test_a_peer_that_does_not_read(void **state)
{
	AUTO_CLOSE int deaf = rig_admin(r);
	int n;

	assert_int_equal(fd_set_nonblock(deaf, true), 0);
	for (n = 0; n < 20000; n++) {
		if (chan_send_plain(deaf, VAULT_LIST, (uint32_t)n, -1) < 0)
			break;
	}
	assert_true(n < 20000);
	assert_serves();
}

static void test_many_peers(void **state)
{
	int peers[200];

	for (unsigned i = 0; i < ARRAY_LEN(peers); i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "s%u", i);
		peers[i] = rig_keeper(r, name);
	}
	for (unsigned i = 0; i < ARRAY_LEN(peers); i++) {
		AUTO_FREE char *value = NULL;

		assert_int_equal(rig_release(peers[i], "a", 0, &value, NULL), 0);
		assert_string_equal(value, "a value of some length");
		if (i % 2)
			(void)close(peers[i]);
	}
	assert_serves();
	for (unsigned i = 0; i < ARRAY_LEN(peers); i += 2)
		(void)close(peers[i]);
}

/* ---- slots of others ---- */

static void stores_without_a_frame_take_no_place_of_others(void **state)
{
	AUTO_CLOSE int keeper = rig_keeper(r, "a"), other = rig_keeper(r, "b"),
		       admin = rig_admin(r);
	int pipes[VAULT_MAX_PENDING][2];

	for (uint32_t i = 0; i < VAULT_MAX_PENDING; i++) {
		assert_int_equal(pipe2(pipes[i], O_CLOEXEC), 0);
		assert_int_equal(vault_ask_store(keeper, i, "demo.access", pipes[i][0]), 0);
	}
	assert_int_equal(rig_store(other, "demo.access", "a token", NULL), 0);
	assert_int_equal(rig_set_str(admin, "b", "", "v"), 0);
	for (uint32_t i = 0; i < VAULT_MAX_PENDING; i++) {
		struct vault_done done;

		rig_done(keeper, i, &done);
		assert_int_equal(done.code, -EINVAL);
		(void)close(pipes[i][0]);
		(void)close(pipes[i][1]);
	}
}

/* Removes a byte that the vault has not read. */
static void take_back(int fd)
{
	AUTO_CLOSE int from = -1, to = -1;
	int fds[2];
	char c;

	if (recv(fd, &c, 1, MSG_DONTWAIT) >= 0 || errno != ENOTSOCK)
		return;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	from = fds[0];
	to = fds[1];
	(void)!splice(fd, NULL, to, NULL, 1, SPLICE_F_NONBLOCK);
}

/* The vault wakes up for a byte that was removed. The test shares the open file: whatever flags the
 * vault sets, reads block again. */
static void play_with(int fds[2])
{
	AUTO_CLOSE int keeper = rig_keeper(r, "a"), other = rig_admin(r);
	struct vault_status status;
	struct vault_done done;

	for (uint32_t id = 1; id < 4; id++)
		assert_int_equal(vault_ask_store(keeper, id, "demo.access", fds[0]), 0);
	for (unsigned i = 0; i < 6000; i++) {
		assert_int_equal(write(fds[1], "x", 1), 1);
		assert_int_equal(fd_set_nonblock(fds[0], false), 0);
		take_back(fds[0]);
	}
	rig_status(other, &status);
	rig_done(keeper, 1, &done);
	assert_int_equal(done.code, -EINVAL);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

static void who_passes_a_pipe_cannot_make_the_vault_wait(void **state)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	play_with(fds);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	play_with(fds);
	assert_serves();
}

static void a_sandbox_has_one_channel(void **state)
{
	int channels[400];
	AUTO_CLOSE int other = -1;
	struct vault_status status;

	for (unsigned i = 0; i < ARRAY_LEN(channels); i++)
		channels[i] = rig_keeper(r, "a");
	other = rig_keeper(r, "b");
	rig_status(other, &status);
	rig_status(channels[ARRAY_LEN(channels) - 1], &status);
	for (unsigned i = 0; i < ARRAY_LEN(channels); i++) {
		if (i + 1 < ARRAY_LEN(channels))
			assert_true(rig_is_dropped(channels[i]));
		(void)close(channels[i]);
	}
}

static void each_sandbox_has_a_place_beside_the_connections(void **state)
{
	static int channels[VAULT_MAX_SANDBOXES], callers[80];

	for (unsigned i = 0; i < ARRAY_LEN(callers); i++)
		callers[i] = rig_knock(r);
	for (unsigned i = 0; i < ARRAY_LEN(channels); i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "s%u", i);
		channels[i] = rig_keeper(r, name);
	}
	assert_true(rig_is_dropped(callers[ARRAY_LEN(callers) - 1]));
	for (unsigned i = 0; i < ARRAY_LEN(callers); i++)
		(void)close(callers[i]);
	for (unsigned i = 0; i < ARRAY_LEN(channels); i++)
		(void)close(channels[i]);
}

/* For channels to each sandbox. A vault without a jail, in a build with sanitizers, has it too. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = MIN(limit.rlim_max, (rlim_t)2 * VAULT_MAX_SANDBOXES);
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_every_message_out_of_turn),
		TEST(test_two_roles),
		TEST(test_the_listening_socket_gives_no_value),
		TEST(test_nor_when_its_owner_has_ended),
		TEST(test_what_the_owner_may_not),
		TEST(test_garbage),
		TEST(test_where_a_value_may_go),
		TEST(test_a_stream_that_is_full),
		TEST(test_a_stream_that_takes_a_part),
		TEST(test_values_from_a_file_are_refused),
		TEST(test_pipes_that_never_end),
		TEST(test_a_peer_that_does_not_read),
		TEST(test_many_peers),
		TEST(stores_without_a_frame_take_no_place_of_others),
		TEST(who_passes_a_pipe_cannot_make_the_vault_wait),
		TEST(a_sandbox_has_one_channel),
		TEST(each_sandbox_has_a_place_beside_the_connections),
	};

	raise_file_limit();
	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
