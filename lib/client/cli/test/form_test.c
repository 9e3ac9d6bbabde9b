/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/client/cli/form.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/mem.h"
#include "lib/client/cli/when.h"

#define NOON 1769860800000ull /* 2026-01-31T12:00:00Z */

static void check_json(json_t *have, const char *expected)
{
	AUTO_FREE char *text = json_dumps(have, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

	assert_string_equal(text, expected);
	json_decref(have);
}

static void a_time_is_an_age_a_date_or_seconds(void **state)
{
	static const char *const same[] = {
		"0s", "1769860800", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00+00:00"};
	struct err err = {0};
	uint64_t ms;

	for (size_t i = 0; i < ARRAY_LEN(same); i++) {
		assert_int_equal(when_parse(same[i], NOON, &ms, &err), 0);
		assert_int_equal(ms, NOON);
	}
	assert_int_equal(when_parse("24h", NOON, &ms, &err), 0);
	assert_int_equal(ms, NOON - 86400000);
	assert_int_equal(when_parse("2h", 1000, &ms, &err), 0);
	assert_int_equal(ms, 0);
	assert_int_equal(when_parse("2026-01-31T12:00:00+01:00", NOON, &ms, &err), -EINVAL);
	assert_int_equal(when_parse("soon", NOON, &ms, &err), -EINVAL);
	assert_non_null(strstr(err.text, "invalid time 'soon'"));
}

static void a_time_is_printed_in_utc(void **state)
{
	char text[WHEN_TEXT];

	when_print(NOON + 7, false, text);
	assert_string_equal(text, "2026-01-31T12:00:00Z");
	when_print(NOON + 7, true, text);
	assert_string_equal(text, "2026-01-31T12:00:00.007Z");
	when_print(0, true, text);
	assert_string_equal(text, "-");
}

static void times_become_text_at_any_depth(void **state)
{
	json_t *j = json_pack("{s:I, s:[{s:i, s:i}], s:i, s:i}", "created_at", (json_int_t)NOON,
		"all", "used_at", 0, "n", 3, "at", 5, "flat", 6);

	form_times(j);
	check_json(j, "{\"all\":[{\"n\":3,\"used_at\":null}],\"at\":5,"
		      "\"created_at\":\"2026-01-31T12:00:00Z\",\"flat\":6}");
}

static void keys_that_are_missing_are_null_and_others_stay(void **state)
{
	static const char *const keys[] = {"a", "b", NULL};
	json_t *j = json_pack("{s:i}", "a", 1);

	form_fill(j, keys);
	check_json(j, "{\"a\":1,\"b\":null}");
}

static void a_sandbox_has_all_keys_and_no_zero_that_means_none(void **state)
{
	json_t *j = json_pack("{s:i, s:i, s:i, s:b, s:[{s:i}]}", "boot_ms", 0, "keeper_pid", 7,
		"qemu_pid", 0, "force", 1, "ports", "host_port", 0);

	form_sandbox(j);
	check_json(j,
		"{\"boot_ms\":null,\"disk\":null,\"force\":true,\"guard_except\":[],"
		"\"idle_timeout\":null,"
		"\"keeper_pid\":7,\"labels\":{},\"mounts\":[],\"only\":[],\"ports\":[{\"ephemeral\":false,"
		"\"host_port\":null,\"reason\":null}],\"qemu_pid\":null,\"ssh_agent\":null,"
		"\"staged\":false,\"staged_since\":null,"
		"\"suspended_at\":null,\"suspended_bytes\":null,\"template_id\":null}");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_time_is_an_age_a_date_or_seconds),
		cmocka_unit_test(a_time_is_printed_in_utc),
		cmocka_unit_test(times_become_text_at_any_depth),
		cmocka_unit_test(keys_that_are_missing_are_null_and_others_stay),
		cmocka_unit_test(a_sandbox_has_all_keys_and_no_zero_that_means_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
