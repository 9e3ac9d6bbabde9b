/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/ipc/chan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include "lib/os/ipc/agent_chan.h"
#include "lib/os/ipc/edge_chan.h"
#include "lib/os/ipc/keeper_chan.h"
#include "lib/os/ipc/origin_chan.h"
#include "lib/os/ipc/run_chan.h"

static const struct chan *const all[] = {
	&edge_chan, &egress_chan, &origin_chan, &agent_chan, &vault_chan, &run_chan, &keeper_chan};

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
		cmocka_unit_test(test_the_tables_of_all_channels_are_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
