/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/ipc/chan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include "lib/os/ipc/ssh_agent_chan.h"
#include "lib/os/ipc/edge_chan.h"
#include "lib/os/ipc/keeper_chan.h"
#include "lib/os/ipc/notify/notify_chan.h"
#include "lib/os/ipc/origin_chan.h"
#include "lib/os/ipc/run_chan.h"
#include "lib/os/ipc/vault_chan.h"

static const struct chan *const all[] = {&edge_chan, &egress_chan, &origin_chan, &ssh_agent_chan,
	&vault_chan, &run_chan, &notify_chan, &keeper_chan};

static const struct chan_row rows[] = {
	[1] = {"HELLO", 1, 1 << 0, 1, 0},
	[3] = {"OPEN", 0, 1 << 1, 0, CHAN_FD | CHAN_ID},
	[4] = {"BYE", 0, 1 << 0 | 1 << 1, 2, 0},
};
static const struct chan chan = {
	.sides = {"a", "b"}, .rows = rows, .n_rows = ARRAY_LEN(rows), .n_phases = 3};

static void test_a_message_is_allowed_from_its_side_in_its_phases(void **state)
{
	static const char *const want[2][3] = {{"....B", "...OB", "....."}, {".H...", "....."}};

	for (unsigned from = 0; from < 2; from++) {
		for (unsigned phase = 0; phase < 10; phase++) {
			const char *line = phase < 3 ? want[from][phase] : NULL;

			for (uint16_t type = 0; type < 10; type++)
				assert_int_equal(chan_allows(&chan, phase, from, type),
					line && type < 5 && line[type] != '.');
			assert_false(chan_allows(&chan, phase, from, 65535));
		}
		assert_false(chan_allows(&chan, 32, from, 4)); /* no shift beyond the word */
	}
	assert_false(chan_allows(&chan, 0, 2, 1));
}

static void test_only_a_message_with_a_next_phase_changes_the_phase(void **state)
{
	for (unsigned phase = 0; phase < 3; phase++) {
		assert_int_equal(chan_after(&chan, phase, 1), 1);
		assert_int_equal(chan_after(&chan, phase, 3), phase);
		assert_int_equal(chan_after(&chan, phase, 4), 2);
		/* not in the table */
		assert_int_equal(chan_after(&chan, phase, 0), phase);
		assert_int_equal(chan_after(&chan, phase, 2), phase);
		assert_int_equal(chan_after(&chan, phase, 5), phase);
		assert_int_equal(chan_after(&chan, phase, 65535), phase);
	}
}

static void test_a_number_without_a_row_has_no_name_and_no_descriptor(void **state)
{
	assert_string_equal(chan_name(&chan, 3), "OPEN");
	assert_string_equal(chan_name(&chan, 2), "?");
	assert_string_equal(chan_name(&chan, 65535), "?");
	assert_true(chan_may_have_fd(&chan, 3));
	assert_false(chan_may_have_fd(&chan, 1));
	assert_false(chan_may_have_fd(&chan, 2));
	assert_false(chan_may_have_fd(&chan, 5));
}

static struct ipc_msg message(uint16_t type, uint32_t id, struct slice body, bool fd)
{
	struct ipc_msg m = {.type = type, .id = id, .fd = fd ? 1000 : -1, .n = body.n};

	memcpy(m.body, body.p, body.n);
	return m;
}

static void test_a_message_without_fields_is_checked_against_its_row(void **state)
{
	static const struct {
		uint16_t type;
		uint32_t id;
		bool fd;
		const char *body;
		int r;
	} m[] = {
		{3, 7, true, "", 0},
		{3, 0, true, "", 0},
		{3, 7, false, "", -EBADMSG},
		{3, 7, true, "x", -EBADMSG},
		{4, 0, false, "", 0},
		{4, 1, false, "", -EBADMSG},
		{4, 0, true, "", -EBADMSG},
		{2, 0, false, "", -EBADMSG},
		{5, 0, false, "", -EBADMSG},
		{65535, 0, false, "", -EBADMSG},
	};

	for (size_t i = 0; i < ARRAY_LEN(m); i++) {
		const struct ipc_msg msg =
			message(m[i].type, m[i].id, slice_from_str(m[i].body), m[i].fd);

		assert_int_equal(chan_get_plain(&chan, &msg, m[i].type), m[i].r);
		assert_int_equal(chan_get_plain(&chan, &msg, m[i].type ^ 7), -EBADMSG);
	}
}

static void test_hello_has_a_build_id_and_nothing_else(void **state)
{
	static const struct {
		uint16_t type;
		uint32_t id;
		bool fd;
		struct slice body;
		int r;
	} m[] = {
		{CHAN_HELLO, 0, false, {(const uint8_t *)"\2\0b1", 4}, 0},
		{CHAN_HELLO, 1, false, {(const uint8_t *)"\2\0b1", 4}, -EBADMSG},
		{CHAN_HELLO, 0, true, {(const uint8_t *)"\2\0b1", 4}, -EBADMSG},
		{CHAN_HELLO, 0, false, {(const uint8_t *)"\2\0b", 3}, -EBADMSG},
		{CHAN_HELLO, 0, false, {(const uint8_t *)"\2\0b\n", 4}, -EBADMSG},
		{CHAN_HELLO, 0, false, {(const uint8_t *)"\2\0b1x", 5}, -EBADMSG},
		{CHAN_HELLO + 1, 0, false, {(const uint8_t *)"\2\0b1", 4}, -EBADMSG},
	};
	char build[CHAN_MAX_BUILD], too_long[CHAN_MAX_BUILD + 8] = "";
	struct ipc_msg got;
	int pair[2];

	for (size_t i = 0; i < ARRAY_LEN(m); i++) {
		got = message(m[i].type, m[i].id, m[i].body, m[i].fd);
		assert_int_equal(chan_get_hello(&got, build), m[i].r);
	}
	assert_int_equal(ipc_pair(pair), 0);
	assert_int_equal(chan_send_hello(pair[0], "build 1"), 0);
	assert_int_equal(ipc_recv(pair[1], &got), 1);
	assert_int_equal(chan_get_hello(&got, build), 0);
	assert_string_equal(build, "build 1");
	memset(too_long, 'x', sizeof(too_long) - 1);
	assert_int_equal(chan_send_hello(pair[0], too_long), -EMSGSIZE);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
}

/* A phase that no channel has would be allowed nowhere, and a side that it has not neither. */
static void test_the_tables_of_all_channels_are_whole(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		const struct chan *c = all[i];

		assert_true(c->sides[0] && c->sides[1] && c->n_phases <= 8);
		assert_null(c->rows[0].name);
		assert_non_null(c->rows[c->n_rows - 1].name);
		for (uint16_t t = 1; t < c->n_rows; t++) {
			const struct chan_row *row = &c->rows[t];

			if (!row->name)
				continue;
			assert_true(row->from < 2 && row->phases && row->after < c->n_phases);
			assert_int_equal(row->phases >> c->n_phases, 0);
			assert_false((row->flags & CHAN_FD) && (row->flags & CHAN_MAY_FD));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_message_is_allowed_from_its_side_in_its_phases),
		cmocka_unit_test(test_only_a_message_with_a_next_phase_changes_the_phase),
		cmocka_unit_test(test_a_number_without_a_row_has_no_name_and_no_descriptor),
		cmocka_unit_test(test_a_message_without_fields_is_checked_against_its_row),
		cmocka_unit_test(test_hello_has_a_build_id_and_nothing_else),
		cmocka_unit_test(test_the_tables_of_all_channels_are_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
