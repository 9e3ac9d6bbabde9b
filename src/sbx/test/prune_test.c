/* SPDX-License-Identifier: Apache-2.0 */
#include "src/sbx/sandbox/prune.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void filters(void **state)
{
	const uint64_t now = 1800000000000u;
	struct err err;
	uint64_t ms;

	assert_int_equal(prune_parse_until("until=24h", now, &ms, &err), 0);
	assert_int_equal(ms, now - 86400000);
	assert_int_equal(prune_parse_until("until=1700000000", now, &ms, &err), 0);
	assert_int_equal(ms, 1700000000000u);
	assert_int_equal(prune_parse_until("until=1970-01-02T00:00:01Z", now, &ms, &err), 0);
	assert_int_equal(ms, 86401000);
	assert_int_equal(prune_parse_until("until=99999999d", now, &ms, &err), 0);
	assert_int_equal(ms, 0);
	assert_int_equal(prune_parse_until("until=soon", now, &ms, &err), -EINVAL);
	assert_int_equal(prune_parse_until("since=24h", now, &ms, &err), -EINVAL);
	assert_int_equal(prune_parse_until("until=", now, &ms, &err), -EINVAL);
}

static void expect(bool filtered, uint64_t until, const char *want_go, const char *want_unknown)
{
	json_t *list =
		json_loads("[{\"name\":\"old\",\"status\":\"stopped\",\"stopped_at\":1000},"
			   "{\"name\":\"new\",\"status\":\"stopped\",\"stopped_at\":9000},"
			   "{\"name\":\"never\",\"status\":\"stopped\",\"stopped_at\":0},"
			   "{\"name\":\"idle\",\"status\":\"suspended\",\"stopped_at\":10,"
			   "\"suspended_by\":\"idle\"},"
			   "{\"name\":\"kept\",\"status\":\"suspended\",\"stopped_at\":10,"
			   "\"suspended_by\":\"request\"},"
			   "{\"name\":\"older\",\"status\":\"suspended\",\"stopped_at\":10},"
			   "{\"name\":\"rest\",\"status\":\"suspended\",\"stopped_at\":2000,"
			   "\"suspended_by\":\"stop\"},"
			   "{\"name\":\"busy\",\"status\":\"running\",\"stopped_at\":10},"
			   "{\"name\":\"stuck\",\"status\":\"unresponsive\",\"stopped_at\":10}]",
			0, NULL);
	json_t *go = json_array(), *unknown = json_array(), *s;
	char names[128] = "";
	size_t i;

	prune_choose(list, filtered, until, go, unknown);
	json_array_foreach (go, i, s)
		(void)snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s ",
			json_string_value(json_object_get(s, "name")));
	assert_string_equal(names, want_go);
	names[0] = '\0';
	json_array_foreach (unknown, i, s)
		(void)snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s ",
			json_string_value(s));
	assert_string_equal(names, want_unknown);
	json_decref(list);
	json_decref(go);
	json_decref(unknown);
}

static void stopped_sandboxes_are_removed(void **state)
{
	expect(false, 0, "old new never rest ", "");
	expect(true, 5000, "old rest ", "never ");
	expect(true, UINT64_MAX, "old new rest ", "never ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filters),
		cmocka_unit_test(stopped_sandboxes_are_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
