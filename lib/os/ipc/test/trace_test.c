/* SPDX-License-Identifier: Apache-2.0 */
/* Each message of each channel is one line of the trace, and no byte of its body is in it. */
#include "lib/os/ipc/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/base/trace.h"
#include "lib/os/ipc/ssh_agent_chan.h"
#include "lib/os/ipc/edge_chan.h"
#include "lib/os/ipc/egress_chan.h"
#include "lib/os/ipc/keeper_chan.h"
#include "lib/os/ipc/notify/notify_chan.h"
#include "lib/os/ipc/origin_chan.h"
#include "lib/os/ipc/run_chan.h"
#include "lib/os/ipc/vault_chan.h"

#define CANARY "canary-in-a-body"
#define UNKNOWN 999

static const struct chan *const channels[] = {&ssh_agent_chan, &edge_chan, &egress_chan,
	&keeper_chan, &notify_chan, &origin_chan, &run_chan, &vault_chan};

static char path[] = "/tmp/ipc_trace_test.XXXXXX";
static int fds[2];

static char *load_trace(void)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = xcalloc(1, 1 << 20);

	assert_true(fd >= 0 && read(fd, text, (1 << 20) - 1) >= 0);
	(void)close(fd);
	return text;
}

static void begin_trace(void)
{
	struct err err = {0};

	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(setenv("SBX_TRACE", "ipc", 1), 0);
	assert_int_equal(trace_init(&err), 0);
	trace_open(path);
}

/* Side 0 is this process, as in the keeper. */
static void pass_message(const struct chan *chan, uint16_t type, bool is_sent)
{
	static struct ipc_msg msg;

	ipc_trace(fds[0], chan, 0, "for here ");
	assert_int_equal(ipc_send(fds[!is_sent], type, 77, slice_from_str(CANARY), 0), 0);
	assert_int_equal(ipc_recv(fds[is_sent], &msg), 1);
	assert_int_equal(msg.n, strlen(CANARY));
	ipc_msg_done(&msg);
}

static void check_line(const struct chan *chan, uint16_t type, bool is_sent)
{
	AUTO_FREE char *text = load_trace(), *want = NULL;

	want = xasprintf("] trace ipc: %s->%s for here %s(%u) id=77 16 bytes fd\n",
		chan->sides[!is_sent], chan->sides[is_sent], chan_name(chan, type), type);
	assert_non_null(strstr(text, want));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	assert_null(strstr(text, "canary"));
}

static void every_message_is_one_line_without_its_body(void **state)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(channels); i++)
		for (uint16_t type = 0; type < channels[i]->n_rows; type++) {
			if (!channels[i]->rows[type].name)
				continue;
			for (int is_sent = 0; is_sent < 2; is_sent++) {
				begin_trace();
				pass_message(channels[i], type, is_sent);
				check_line(channels[i], type, is_sent);
				n++;
			}
		}
	assert_true(n > 150);
}

static void an_unknown_number_has_no_name(void **state)
{
	begin_trace();
	pass_message(&edge_chan, UNKNOWN, false);
	check_line(&edge_chan, UNKNOWN, false);
}

/* The number of a closed socket is used again. */
static void a_socket_has_its_last_channel(void **state)
{
	begin_trace();
	ipc_trace(fds[0], &vault_chan, 0, "for nobody ");
	pass_message(&edge_chan, EDGE_OPEN, true);
	check_line(&edge_chan, EDGE_OPEN, true);
}

static void other_sockets_are_not_traced(void **state)
{
	AUTO_FREE char *text = NULL;
	int others[2];

	begin_trace();
	assert_int_equal(ipc_pair(others), 0);
	assert_int_equal(ipc_send(others[0], 1, 1, slice_from_str(CANARY), -1), 0);
	(void)close(others[0]);
	(void)close(others[1]);
	text = load_trace();
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_is_one_line_without_its_body),
		cmocka_unit_test(an_unknown_number_has_no_name),
		cmocka_unit_test(a_socket_has_its_last_channel),
		cmocka_unit_test(other_sockets_are_not_traced),
	};
	int fd = mkstemp(path), r;

	assert_true(fd >= 0 && ipc_pair(fds) == 0);
	(void)close(fd);
	r = cmocka_run_group_tests_name("ipc_trace", tests, NULL, NULL);
	(void)unlink(path);
	return r;
}
