/* SPDX-License-Identifier: Apache-2.0 */
/* A real, sealed sbx-edge between a keeper and a guest played by the test. */
#include "edge_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/os/jail/jail.h"
#include "lib/os/jail/unsealed.h"

#define MIB (1024 * 1024)

static bool all_over(const struct rig *r)
{
	for (unsigned i = 0; i < r->n_clients; i++) {
		if (!r->clients[i].closed || !r->clients[i].eof)
			return false;
	}
	return true;
}

/* Closes its socket when the echo is complete, as a command does. */
static void close_at_eof(struct rig *r)
{
	for (unsigned i = 0; i < r->n_clients; i++) {
		struct rig_client *c = &r->clients[i];

		if (c->eof && c->fd >= 0)
			fd_close(&c->fd);
	}
}

static void echo_many(struct rig *r, unsigned n, uint64_t each)
{
	rig_up(r);
	for (unsigned i = 0; i < n; i++)
		(void)rig_open(r, "/echo", each);
	rig_until(r, (close_at_eof(r), all_over(r)));
	for (unsigned i = 0; i < n; i++) {
		assert_true(r->clients[i].got == each && r->clients[i].status == 200);
		assert_true(r->streams[i].got == each && r->streams[i].sent == each);
		assert_true(r->streams[i].ended && r->streams[i].closed && !r->streams[i].reset);
	}
	fd_close(&r->keeper);
	assert_int_equal(rig_exit(r), 0);
	rig_free(r);
}

static void test_64_streams_at_once(void **state)
{
	echo_many(rig_new(NULL), 64, MIB);
}

static void test_64_mib_each_way(void **state)
{
	uint64_t at = clock_mono_ms();

	echo_many(rig_new(NULL), 1, 64 * MIB);
	print_message("64 MiB each way: %u ms\n", (unsigned)(clock_mono_ms() - at));
}

/* The seccomp list must suffice however libc allocates memory. */
static void test_under_other_mallocs(void **state)
{
	static char *const envs[][2] = {
		{(char *)"GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4096"},
		{(char *)"GLIBC_TUNABLES=glibc.malloc.perturb=165:glibc.malloc.tcache_count=0"},
		{(char *)"GLIBC_TUNABLES=glibc.malloc.trim_threshold=0:glibc.malloc.top_pad=0"},
		{(char *)"GLIBC_TUNABLES=glibc.malloc.hugetlb=1"},
	};

	for (size_t i = 0; i < ARRAY_LEN(envs); i++)
		echo_many(rig_new(envs[i]), 8, MIB);
}

static void test_bytes_beside_bulk(void **state)
{
	struct rig *r = rig_new(NULL);
	struct rig_client *bulk, *keys;
	unsigned n_slow = 0;
	uint64_t worst = 0;

	rig_up(r);
	bulk = rig_open(r, "/echo", 256 * (uint64_t)MIB);
	keys = rig_open(r, "/echo", 0);
	rig_until(r, keys->opened && bulk->got > 0);
	for (uint64_t i = 0; i < 100; i++) {
		uint8_t key = rig_pattern(i);
		uint64_t at = clock_mono_ms();

		assert_int_equal(send(keys->fd, &key, 1, 0), 1);
		rig_until(r, keys->got == i + 1);
		at = clock_mono_ms() - at;
		worst = MAX(worst, at);
		n_slow += at >= 250;
	}
	assert_false(bulk->eof);
	print_message("slowest of 100 bytes beside a bulk stream: %u ms\n", (unsigned)worst);
	/* A busy machine may not schedule edge for a while. */
	assert_true(n_slow <= 3);
	rig_free(r);
}

static void test_half_close(void **state)
{
	struct rig *r = rig_new(NULL);
	struct rig_client *c;

	rig_up(r);
	c = rig_open(r, "/late", 1000);
	rig_until(r, c->eof);
	assert_int_equal(c->got, 1000);
	rig_until(r, c->closed && r->streams[0].closed);
	assert_false(r->streams[0].reset);

	/* The guest closes first; the client may continue to send. */
	c = rig_open(r, "/404", 0);
	rig_until(r, c->eof);
	assert_int_equal(c->status, 404);
	assert_false(c->closed);
	assert_int_equal(send(c->fd, "more", 4, 0), 4);
	fd_close(&c->fd);
	rig_until(r, c->closed && r->streams[1].closed);
	assert_int_equal(r->streams[1].got, 4);
	assert_false(r->streams[1].reset);
	rig_free(r);
}

/* Data written before the client was killed still arrives. Returns how long the end took. */
static uint64_t kill_idle(struct rig *r)
{
	unsigned k = r->n_streams;
	struct rig_client *idle = rig_open(r, "/hold", 0);
	uint64_t at;

	rig_until(r, idle->opened && r->n_streams == k + 1);
	assert_int_equal(send(idle->fd, "last words", 10, 0), 10);
	at = clock_mono_ms();
	fd_close(&idle->fd);
	rig_until(r, idle->closed && r->streams[k].closed);
	assert_true(r->streams[k].reset);
	assert_int_equal(r->streams[k].got, 10);
	return clock_mono_ms() - at;
}

static void test_killed_client_resets(void **state)
{
	struct rig *r = rig_new(NULL);
	uint64_t at, quickest = UINT64_MAX;
	struct rig_client *stuck;

	rig_up(r);
	stuck = rig_open(r, "/hold", 4 * MIB);
	rig_until(r, stuck->opened && r->n_streams == 1);
	rig_until(r, r->streams[0].got == WIRE_STREAM_WINDOW);
	/* None of them gets the second of the next one. One of ten is quick on a busy machine. */
	for (unsigned i = 0; i < 10 && quickest >= 500; i++)
		quickest = kill_idle(r);
	assert_true(quickest < 500);
	/* With the guest's window closed the rest cannot: it has one second. */
	stuck->paused = stuck->done_sending = true;
	at = clock_mono_ms();
	fd_close(&stuck->fd);
	rig_until(r, stuck->closed && r->streams[0].closed);
	assert_true(r->streams[0].reset);
	assert_true(clock_mono_ms() - at < 2500);
	rig_free(r);
}

static void test_guest_refuses_and_resets(void **state)
{
	struct rig *r = rig_new(NULL);
	struct rig_client *c;

	rig_up(r);
	c = rig_open(r, "/refuse", 0);
	rig_until(r, c->refused && c->eof);
	assert_int_equal(c->reason, EDGE_REASON_GUEST);
	c = rig_open(r, "/hold", 0);
	rig_until(r, c->opened);
	wire_reset(r->guest, r->streams[0].sid);
	rig_until(r, c->closed && c->eof);

	/* The client closes before the answer. */
	r->deaf = true;
	c = rig_open(r, "/hold", 0);
	fd_close(&c->fd);
	rig_until(r, c->refused);
	assert_int_equal(c->reason, EDGE_REASON_GONE);
	rig_free(r);
}

/* Reads to the end: 0, or a negative errno; *ret_n is the number of bytes. */
static int end_of(struct rig *r, struct rig_client *c, size_t *ret_n)
{
	char buf[4096];
	ssize_t n;

	*ret_n = 0;
	for (;;) {
		n = recv(c->fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (n > 0)
			*ret_n += (size_t)n;
		else if (n < 0 && errno == EAGAIN)
			rig_step(r, 5);
		else
			return n < 0 ? -errno : 0;
	}
}

/* A connection to a published port closes in order only if the guest has closed it in order. */
static void test_published_connection(void **state)
{
	struct rig *r = rig_new(NULL);
	struct rig_client *c;
	size_t n;

	rig_up(r);
	/* Everything has ended in the guest long before the client reads. */
	c = rig_open_tcp(r, "/late", 200 * 1024);
	c->paused = true;
	rig_until(r, r->n_streams == 1 && r->streams[0].closed);
	assert_int_equal(end_of(r, c, &n), 0);
	assert_int_equal(n, 200 * 1024);
	rig_until(r, c->closed);
	c->eof = true;

	c = rig_open_tcp(r, "/refuse", 0);
	c->paused = true;
	rig_until(r, c->refused);
	assert_int_equal(end_of(r, c, &n), -ECONNRESET);
	c = rig_open_tcp(r, "/hold", 0);
	c->paused = true;
	rig_until(r, c->opened);
	wire_reset(r->guest, r->streams[1].sid);
	rig_until(r, c->closed);
	assert_int_equal(end_of(r, c, &n), -ECONNRESET);

	/* A client that is disconnected, and edge itself. */
	c = rig_open_tcp(r, "/hold", 0);
	rig_until(r, c->opened);
	assert_int_equal(setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
				 sizeof(struct linger)),
		0);
	fd_close(&c->fd);
	rig_until(r, c->closed && r->streams[2].reset);
	c = rig_open_tcp(r, "/pour", 0);
	c->paused = true;
	rig_until(r, c->opened);
	assert_int_equal(kill(r->pid, SIGKILL), 0);
	assert_int_equal(rig_exit(r), -SIGKILL);
	r->deaf = r->keeper_deaf = true;
	assert_int_equal(end_of(r, c, &n), -ECONNRESET);
	rig_free(r);
}

/* A client that does not read stops the guest and costs edge one window, nothing else. */
static void test_back_pressure_to_the_guest(void **state)
{
	struct rig *r = rig_new(NULL);
	struct rig_client *lazy, *other;
	uint64_t before, sent;

	rig_up(r);
	before = rig_memory(r, "RssAnon:");
	lazy = rig_open(r, "/pour", 0);
	lazy->paused = true;
	rig_until(r, lazy->opened);
	rig_for(r, 300);
	sent = r->streams[0].sent;
	rig_for(r, 300);
	assert_int_equal(r->streams[0].sent, sent);
	assert_true(sent >= WIRE_STREAM_WINDOW && sent < 4 * WIRE_STREAM_WINDOW);
	assert_true(rig_memory(r, "RssAnon:") < before + WIRE_STREAM_WINDOW + 512 * 1024);
	other = rig_open(r, "/echo", 8 * MIB);
	rig_until(r, other->eof);
	assert_int_equal(other->got, 8 * MIB);
	lazy->paused = false;
	rig_until(r, lazy->got > 16 * MIB);
	rig_free(r);
}

static void fill_up(struct rig *r)
{
	rig_up(r);
	for (unsigned i = 0; i < EDGE_MAX_STREAMS; i++) {
		struct rig_client *c = rig_open(r, "/hold", 0);

		if (i % 16 == 15)
			rig_until(r, c->opened);
	}
}

static void test_full(void **state)
{
	struct rig *r = rig_new(NULL);
	struct rig_client *c;

	fill_up(r);
	c = rig_open(r, "/hold", 0);
	rig_until(r, c->refused);
	assert_int_equal(c->reason, EDGE_REASON_FULL);
	/* After one closes, another can open. */
	fd_close(&r->clients[100].fd);
	rig_until(r, r->clients[100].closed);
	c = rig_open(r, "/echo", 5);
	rig_until(r, c->eof && c->got == 5);
	rig_free(r);
}

/* A refusal that does not fit into the keeper's socket is sent later, however full it was. */
static void test_full_and_keeper_does_not_read(void **state)
{
	struct rig *r = rig_new(NULL);

	fill_up(r);
	for (unsigned n = 1; n <= 12; n++) {
		unsigned first = r->n_clients;

		r->keeper_deaf = true;
		for (unsigned i = 0; i < n; i++) {
			(void)rig_open(r, "/hold", 0);
			rig_for(r, 10);
		}
		r->keeper_deaf = false;
		for (unsigned i = first; i < r->n_clients; i++) {
			rig_until(r, r->clients[i].refused);
			assert_int_equal(r->clients[i].reason, EDGE_REASON_FULL);
		}
	}
	rig_free(r);
}

static unsigned count_over(const struct rig *r)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->n_clients; i++)
		n += r->clients[i].closed || r->clients[i].refused;
	return n;
}

/* A keeper that was stopped for a while gets all messages in the end. */
static void test_keeper_that_does_not_read(void **state)
{
	struct rig *r = rig_new(NULL);

	rig_up(r);
	r->keeper_deaf = true;
	for (unsigned i = 0; i < 100; i++)
		fd_close(&rig_open(r, "/404", 0)->fd);
	rig_for(r, 300);
	/* Unsent reports prevent further reads. */
	assert_true(r->n_streams < 100);
	r->keeper_deaf = false;
	rig_until(r, count_over(r) == 100);
	rig_free(r);
}

static void lost_guest(const char *bytes, size_t n, const char *text)
{
	struct rig *r = rig_new(NULL);

	if (bytes) {
		rig_up(r);
		(void)rig_open(r, "/hold", 0);
		rig_until(r, r->clients[0].opened);
		assert_int_equal(send(r->guest_fd, bytes, n, 0), n);
	} else {
		rig_up(r);
		fd_close(&r->guest_fd);
	}
	r->deaf = true;
	rig_until(r, r->lost);
	if (!strstr(r->lost_text, text))
		fail_msg("lost, but: %s", r->lost_text);
	assert_int_equal(rig_exit(r), 3);
	rig_free(r);
}

static void test_hostile_guest(void **state)
{
	static const char huge[] = "\xff\xff\xff\x00\x00\x00\x00\x00\x01 rubbish";
	static const char push[] = "\0\0\4\5\4\0\0\0\1\0\0\0\2";
	static const char goaway[] = "\0\0\x08\7\0\0\0\0\0\0\0\0\0\0\0\0\0";

	lost_guest(huge, sizeof(huge) - 1, "protocol error");
	lost_guest(push, sizeof(push) - 1, "protocol error");
	lost_guest(goaway, sizeof(goaway) - 1, "the peer closed the connection");
	lost_guest(NULL, 0, "the control channel was closed");
}

static void test_silent_guest(void **state)
{
	struct rig *r = rig_new(NULL);
	uint64_t at = clock_mono_ms();

	r->deaf = true;
	rig_config(r, 300);
	rig_until(r, r->lost);
	assert_string_equal(r->lost_text, "the guest did not respond within 300 ms");
	assert_true(clock_mono_ms() - at >= 300);
	assert_int_equal(rig_exit(r), 3);
	rig_free(r);
}

/* Every message of the channel, well-formed, in every phase that does not permit it. */
static void test_keeper_out_of_phase(void **state)
{
	static const struct {
		uint16_t type;
		const char *body;
		size_t n;
		bool fd;
	} rows[] = {
		{EDGE_HELLO, "\2\0b1", 4, false},
		{EDGE_CONFIG, "\1\0a\xd0\7\0\0", 7, true},
		{EDGE_READY, "", 0, false},
		{EDGE_OPEN, "\2\0/x", 4, true},
		{EDGE_OPENED, "\xc8\0", 2, false},
		{EDGE_REFUSED, "\1", 1, false},
		{EDGE_CLOSED, "", 0, false},
		{EDGE_CLOSED + 1, "", 0, false}, /* a number that is not in use */
		{EDGE_LOST, "\1\0x", 3, false},
		{EDGE_NET, "", 0, true},
		{EDGE_ASK, "\2\1\0\1\0a\0\0\1\0\0\0\0\0\0\0\0", 17, false},
		{EDGE_VERDICT, "\0\1\0\0\0\0\0\0\0\0\0", 11, false},
		{EDGE_N_MSGS, "", 0, false},
		{0, "", 0, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (enum edge_phase p = EDGE_PHASE_CONFIG; p <= EDGE_PHASE_RUN; p++) {
			struct rig *r;
			int fds[2];

			if (chan_allows(&edge_chan, p, CHAN_FROM_KEEPER, rows[i].type))
				continue;
			r = rig_new(NULL);
			if (p == EDGE_PHASE_RUN)
				rig_up(r);
			r->deaf = true;
			if (p == EDGE_PHASE_CONNECT)
				rig_config(r, 5000);
			assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
			assert_int_equal(ipc_send(r->keeper, rows[i].type, 0,
						 slice_of(rows[i].body, rows[i].n),
						 rows[i].fd ? fds[0] : -1),
				0);
			if (rig_exit(r) != 4)
				fail_msg("message %u in phase %u", rows[i].type, p);
			fd_close(&fds[0]);
			fd_close(&fds[1]);
			rig_free(r);
		}
	}
}

static void test_malformed_keeper_messages(void **state)
{
	struct rig *r = rig_new(NULL);

	rig_up(r);
	assert_int_equal(send(r->keeper, "rubbish", 7, 0), 7);
	assert_int_equal(rig_exit(r), 4);
	rig_free(r);
	r = rig_new(NULL);
	rig_up(r);
	/* OPEN without a descriptor */
	assert_int_equal(ipc_send(r->keeper, EDGE_OPEN, 1, slice_of("\2\0/x", 4), -1), 0);
	assert_int_equal(rig_exit(r), 4);
	rig_free(r);
	r = rig_new(NULL);
	fd_close(&r->keeper);
	r->keeper_deaf = true;
	assert_int_equal(rig_exit(r), 0);
	rig_free(r);
}

static unsigned long status_field(const struct rig *r, const char *name)
{
	char path[64], line[256];
	unsigned long value = 999;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)r->pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, name, strlen(name)) == 0)
			value = strtoul(line + strlen(name), NULL, 16);
	}
	(void)fclose(f);
	return value;
}

static void check_own_namespace(const struct rig *r, const char *name)
{
	char path[64], ours[64] = "", theirs[64] = "";

	(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	assert_true(readlink(path, ours, sizeof(ours) - 1) > 0);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)r->pid, name);
	/* Not dumpable: only the owner of its user namespace may read it. */
	if (readlink(path, theirs, sizeof(theirs) - 1) > 0)
		assert_string_not_equal(ours, theirs);
	else
		assert_true(errno == EACCES || errno == EPERM);
}

static void test_in_its_jail(void **state)
{
	static const char *const names[] = {"user", "pid", "mnt", "ipc", "uts", "net"};
	struct rig *r = rig_new_jailed();

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		check_own_namespace(r, names[i]);
	assert_int_equal(status_field(r, "Seccomp:"), 2);
	assert_int_equal(status_field(r, "NoNewPrivs:"), 1);
	assert_int_equal(status_field(r, "CapEff:"), 0);
	assert_int_equal(status_field(r, "CapPrm:"), 0);
	assert_int_equal(status_field(r, "CapBnd:"), 0);
	echo_many(r, 16, MIB);
}

static void test_idle_is_small_and_sealed(void **state)
{
	struct rig *r = rig_new(NULL);
	struct rig_client *c;
	uint64_t fresh, after, all;

	assert_int_equal(status_field(r, "Seccomp:"), 2);
	assert_int_equal(status_field(r, "NoNewPrivs:"), 1);
	rig_up(r);
	fresh = rig_memory(r, "RssAnon:");
	for (unsigned i = 0; i < 20; i++)
		c = rig_open(r, "/echo", MIB);
	rig_until(r, c->eof && all_over(r));
	after = rig_memory(r, "RssAnon:");
	all = rig_memory(r, "VmRSS:");
	print_message("private memory: %u KiB fresh, %u KiB after 20 streams; with text %u KiB\n",
		(unsigned)(fresh / 1024), (unsigned)(after / 1024), (unsigned)(all / 1024));
	/* 450 KiB of it are OpenSSL's tables, relocated at start; 350 KiB are allocated at
	 * start. */
	assert_true(fresh < 1280 * 1024);
	assert_true(after < 1536 * 1024);
	assert_true(all < 7 * MIB);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_64_streams_at_once),
		cmocka_unit_test(test_64_mib_each_way),
		cmocka_unit_test(test_bytes_beside_bulk),
		cmocka_unit_test(test_half_close),
		cmocka_unit_test(test_killed_client_resets),
		cmocka_unit_test(test_guest_refuses_and_resets),
		cmocka_unit_test(test_published_connection),
		cmocka_unit_test(test_back_pressure_to_the_guest),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_full_and_keeper_does_not_read),
		cmocka_unit_test(test_keeper_that_does_not_read),
		cmocka_unit_test(test_hostile_guest),
		cmocka_unit_test(test_silent_guest),
		cmocka_unit_test(test_keeper_out_of_phase),
		cmocka_unit_test(test_malformed_keeper_messages),
	};
	/* effects of jail and seal, unless disabled: see lib/os/jail/unsealed.h */
	const struct CMUnitTest jail_tests[] = {
		cmocka_unit_test(test_under_other_mallocs),
		cmocka_unit_test(test_in_its_jail),
		cmocka_unit_test(test_idle_is_small_and_sealed),
	};
	int n_failed;

	n_failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (JAIL_SEALS)
		n_failed += cmocka_run_group_tests(jail_tests, NULL, NULL);
	return n_failed;
}
