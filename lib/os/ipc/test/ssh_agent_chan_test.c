/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/ipc/ssh_agent_chan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static int pair[2];
static struct ipc_msg msg;

static int setup(void **state)
{
	msg.fd = -1;
	return ipc_pair(pair);
}

static int teardown(void **state)
{
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	ipc_msg_done(&msg);
	return 0;
}

static void receive(int r)
{
	assert_int_equal(r, 0);
	ipc_msg_done(&msg);
	assert_int_equal(ipc_recv(pair[1], &msg), 1);
}

static void test_there_and_back(void **state)
{
	struct ssh_agent_config config = {.n_rules = SSH_AGENT_MAX_RULES}, got;
	struct ssh_agent_ask ask = {.what = SSH_AGENT_FILE,
		.fingerprint = "SHA256:abc",
		.comment = "me",
		.text = "git"};
	struct ssh_agent_ask got_ask;
	char build[CHAN_MAX_BUILD];
	bool allowed = false;

	for (size_t i = 0; i < SSH_AGENT_MAX_RULES; i++)
		memset(config.rules[i], 'x', SSH_AGENT_MAX_RULE - 1);
	receive(chan_send_hello(pair[0], "b"));
	assert_int_equal(chan_get_hello(&msg, build), 0);
	assert_string_equal(build, "b");
	receive(ssh_agent_ask_config(pair[0], &config, 0));
	assert_int_equal(ssh_agent_get_config(&msg, &got), 0);
	assert_memory_equal(&got, &config, sizeof(got));
	receive(ssh_agent_send_ask(pair[0], 7, &ask));
	assert_int_equal(ssh_agent_get_ask(&msg, &got_ask), 0);
	assert_memory_equal(&got_ask, &ask, sizeof(ask));
	assert_int_equal(msg.id, 7);
	receive(ssh_agent_answer_ask(pair[0], 7, true));
	assert_int_equal(ssh_agent_get_verdict(&msg, &allowed), 0);
	assert_true(allowed);
	receive(chan_send_plain(pair[0], SSH_AGENT_OPEN, 3, 0));
	assert_int_equal(chan_get_plain(&ssh_agent_chan, &msg, SSH_AGENT_OPEN), 0);
	assert_int_equal(chan_get_plain(&ssh_agent_chan, &msg, SSH_AGENT_CLOSED), -EBADMSG);
	receive(chan_send_plain(pair[0], SSH_AGENT_CLOSED, 3, -1));
	assert_int_equal(chan_get_plain(&ssh_agent_chan, &msg, SSH_AGENT_CLOSED), 0);
}

static void test_refused(void **state)
{
	struct ssh_agent_config config = {.n_rules = 1, .rules = {"x"}}, got;
	struct ssh_agent_ask ask = {.fingerprint = "SHA256:abc"}, got_ask;
	bool allowed;

	receive(ssh_agent_ask_config(pair[0], &config, -1)); /* no agent */
	assert_int_equal(ssh_agent_get_config(&msg, &got), -EBADMSG);
	config.rules[0][0] = '\0';
	receive(ssh_agent_ask_config(pair[0], &config, 0));
	assert_int_equal(ssh_agent_get_config(&msg, &got), -EBADMSG);
	receive(chan_send_plain(pair[0], SSH_AGENT_OPEN, 1, -1));
	assert_int_equal(chan_get_plain(&ssh_agent_chan, &msg, SSH_AGENT_OPEN), -EBADMSG);
	ask.comment[0] = '\n';
	receive(ssh_agent_send_ask(pair[0], 1, &ask));
	assert_int_equal(ssh_agent_get_ask(&msg, &got_ask), -EBADMSG);
	ask.comment[0] = '\0';
	ask.text[0] = '\x7f';
	receive(ssh_agent_send_ask(pair[0], 1, &ask));
	assert_int_equal(ssh_agent_get_ask(&msg, &got_ask), -EBADMSG);
	ask = (struct ssh_agent_ask){.what = SSH_AGENT_N_WHATS, .fingerprint = "x"};
	receive(ssh_agent_send_ask(pair[0], 1, &ask));
	assert_int_equal(ssh_agent_get_ask(&msg, &got_ask), -EBADMSG);
	receive(ipc_send(pair[0], SSH_AGENT_VERDICT, 1, slice_of("\2", 1), -1));
	assert_int_equal(ssh_agent_get_verdict(&msg, &allowed), -EBADMSG);
	receive(ipc_send(pair[0], SSH_AGENT_VERDICT, 1, slice_of("\1\1", 2), -1));
	assert_int_equal(ssh_agent_get_verdict(&msg, &allowed), -EBADMSG);
}

static void test_phases(void **state)
{
	enum ssh_agent_phase phase = SSH_AGENT_PHASE_START;

	assert_true(chan_allows(&ssh_agent_chan, phase, CHAN_FROM_WORKER, SSH_AGENT_HELLO));
	assert_false(chan_allows(&ssh_agent_chan, phase, CHAN_FROM_KEEPER, SSH_AGENT_HELLO));
	assert_false(chan_allows(&ssh_agent_chan, phase, CHAN_FROM_KEEPER, SSH_AGENT_CONFIG));
	phase = chan_after(&ssh_agent_chan, phase, SSH_AGENT_HELLO);
	assert_false(chan_allows(&ssh_agent_chan, phase, CHAN_FROM_WORKER, SSH_AGENT_ASK));
	phase = chan_after(&ssh_agent_chan, phase, SSH_AGENT_CONFIG);
	assert_int_equal(phase, SSH_AGENT_PHASE_RUN);
	assert_false(chan_allows(&ssh_agent_chan, phase, CHAN_FROM_KEEPER, SSH_AGENT_CONFIG));
	assert_true(chan_allows(&ssh_agent_chan, phase, CHAN_FROM_WORKER, SSH_AGENT_ASK));
	assert_false(chan_allows(&ssh_agent_chan, phase, CHAN_FROM_KEEPER, SSH_AGENT_ASK));
	assert_false(chan_allows(&ssh_agent_chan, phase, CHAN_FROM_WORKER, SSH_AGENT_N_MSGS));
	for (uint16_t type = 0; type <= SSH_AGENT_N_MSGS; type++) {
		assert_false(
			chan_allows(&ssh_agent_chan, SSH_AGENT_PHASE_END, CHAN_FROM_KEEPER, type));
		assert_false(
			chan_allows(&ssh_agent_chan, SSH_AGENT_PHASE_END, CHAN_FROM_WORKER, type));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_there_and_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test(test_phases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
