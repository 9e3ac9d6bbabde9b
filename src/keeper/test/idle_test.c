/* SPDX-License-Identifier: Apache-2.0 */
/* Which sandboxes are idle: for a stop, and for the idle timeout. Uses a fake qemu and guest. */
#include "qemu_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/mem.h"

#define ASK 7 /* the number of sbxd's request */

/* Reads the request of the guest and answers it with statistics. */
static void reply_stats(const struct keeper_stats *stats)
{
	uint8_t buf[512];
	struct wr wr = wr_init(buf, sizeof(buf));
	AUTO_CLOSE int fd = take_question();

	keeper_put_stats(&wr, stats);
	assert_int_equal(wr_finish(&wr), 0);
	assert_int_equal(fd_write_all(fd, buf, wr.n), 0);
}

static void must_refuse(void)
{
	struct keeper_done done;

	do {
		if (!rig_run_until(rig_sbxd, 4000))
			fail_msg("there is no answer");
		ipc_msg_done(&rig_msg);
		assert_int_equal(ipc_recv(rig_sbxd, &rig_msg), 1);
	} while (rig_msg.type != KEEPER_DONE);
	assert_int_equal(keeper_get_done(&rig_msg, &done), 0);
	assert_int_equal(done.code, -EBUSY);
	assert_int_equal(rig_k.suspend->step, SUSPEND_NONE);
	assert_int_equal(rig_k.state.phase, KEEPER_RUNNING);
}

static void begin_stop(void)
{
	rig_k.memory_dir = rig_k.dir;
	idle_begin_stop(&rig_k, 0, ASK);
}

static const struct keeper_stats one_session = {.n_sessions = 1, .sessions = {{.name = "main"}}};
static const struct keeper_stats ended_session = {
	.n_sessions = 1, .sessions = {{.name = "main", .flags = KEEPER_SESSION_ENDED}}};

static void an_idle_sandbox_is_suspended_by_a_stop(void **state)
{
	char path[EDGE_MAX_PATH];

	begin_stop();
	reply_stats(&ended_session);
	rig_must_get(rig_edge, EDGE_OPEN);
	assert_int_equal(edge_get_open(&rig_msg, path), 0);
	assert_string_equal(path, GUEST_PATH_PARK);
	assert_int_equal(rig_k.suspend->step, SUSPEND_PARKING);
	assert_string_equal(rig_k.suspend->by, SUSPEND_BY_STOP);
	assert_int_equal(rig_k.suspend->msg, ASK);
}

static void a_session_without_a_client_is_not_suspended(void **state)
{
	begin_stop();
	reply_stats(&one_session);
	must_refuse();
}

static void an_open_stream_or_connection_is_not_suspended(void **state)
{
	rig_k.state.sessions = 1;
	begin_stop();
	rig_must_be_quiet(rig_edge);
	must_refuse();
	rig_k.state.sessions = 0;
	rig_k.ports->n_conns = 1;
	begin_stop();
	rig_must_be_quiet(rig_edge);
	must_refuse();
	rig_k.ports->n_conns = 0;
}

/* The stream is opened while the guest lists its sessions. */
static void a_stream_that_opens_meanwhile_is_not_lost(void **state)
{
	begin_stop();
	rig_k.state.sessions = 1;
	reply_stats(&ended_session);
	must_refuse();
	rig_k.state.sessions = 0;
}

static void memory_of_the_host_is_not_saved(void **state)
{
	rig_k.memory_dir = NULL;
	idle_begin_stop(&rig_k, 0, ASK);
	rig_must_be_quiet(rig_edge);
	must_refuse();
}

static void a_guest_that_does_not_answer_is_not_suspended(void **state)
{
	begin_stop();
	(void)close(take_question());
	must_refuse();
}

/* ---- the idle timeout ---- */

static const struct keeper_stats at_rest = {.uptime_ms = 90000};

/* The sandbox has been idle for its timeout. */
static bool is_suspended_by_check(void)
{
	bool is;

	rig_k.spec.idle_s = 1;
	idle_start(&rig_k);
	rig_k.idle->since_ms = clock_mono_ms() - 1000;
	idle_on_timer(&rig_k);
	reply_stats(&at_rest);
	RIG_UNTIL(rig_k.idle->has_look);
	is = rig_k.suspend->step == SUSPEND_PARKING;
	if (is)
		assert_string_equal(rig_k.suspend->by, SUSPEND_BY_IDLE);
	else
		assert_int_equal(rig_k.state.phase, KEEPER_RUNNING);
	return is;
}

static void an_idle_sandbox_is_suspended_after_its_timeout(void **state)
{
	assert_true(is_suspended_by_check());
}

static void a_request_in_the_last_ten_minutes_prevents_it(void **state)
{
	rig_ask(1, EDGE_ASK_TUNNEL, "denied.test", 443);
	(void)rig_must_answer(1);
	assert_false(is_suspended_by_check());
	rig_k.net->last_ms = clock_mono_ms() - KEEPER_IDLE_TRAFFIC_MS + 5000;
	assert_false(is_suspended_by_check());
	rig_k.net->last_ms = clock_mono_ms() - KEEPER_IDLE_TRAFFIC_MS;
	assert_true(is_suspended_by_check());
}

/* However long it has been open: a suspend would close it. */
static void an_open_exchange_prevents_it(void **state)
{
	int edge_fd, egress_fd;

	rig_bring_egress_up();
	(void)rig_must_open(1, &edge_fd, &egress_fd);
	rig_k.net->last_ms = clock_mono_ms() - KEEPER_IDLE_TRAFFIC_MS;
	assert_false(is_suspended_by_check());
	exchanges_clear(rig_k.net);
	assert_false(is_suspended_by_check()); /* it was open at the last check */
	rig_k.net->last_ms = clock_mono_ms() - KEEPER_IDLE_TRAFFIC_MS;
	assert_true(is_suspended_by_check());
	(void)close(edge_fd);
	(void)close(egress_fd);
}

static void a_connection_to_a_port_in_the_last_ten_minutes_prevents_it(void **state)
{
	rig_k.ports->last_ms = clock_mono_ms();
	assert_false(is_suspended_by_check());
	rig_k.ports->last_ms = clock_mono_ms() - KEEPER_IDLE_TRAFFIC_MS;
	assert_true(is_suspended_by_check());
}

/* Without sbxd, a connection to its port would resume nothing. */
static void published_ports_without_sbxd_prevent_it(void **state)
{
	struct keeper_ports one = {.n = 1, .v = {{.ip = "127.0.0.1", .port = 80}}};

	assert_int_equal(ports_set(&rig_k, &one), 0);
	fd_close(&rig_sbxd);
	RIG_UNTIL(!link_is_up(&rig_k));
	assert_false(is_suspended_by_check());
	one.n = 0;
	assert_int_equal(ports_set(&rig_k, &one), 0);
	assert_true(is_suspended_by_check());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		QEMU_TEST(an_idle_sandbox_is_suspended_by_a_stop),
		QEMU_TEST(a_session_without_a_client_is_not_suspended),
		QEMU_TEST(an_open_stream_or_connection_is_not_suspended),
		QEMU_TEST(a_stream_that_opens_meanwhile_is_not_lost),
		QEMU_TEST(memory_of_the_host_is_not_saved),
		QEMU_TEST(a_guest_that_does_not_answer_is_not_suspended),
		QEMU_TEST(an_idle_sandbox_is_suspended_after_its_timeout),
		QEMU_TEST(a_request_in_the_last_ten_minutes_prevents_it),
		QEMU_TEST(an_open_exchange_prevents_it),
		QEMU_TEST(a_connection_to_a_port_in_the_last_ten_minutes_prevents_it),
		QEMU_TEST(published_ports_without_sbxd_prevent_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
