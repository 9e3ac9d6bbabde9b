/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/rules/effect/effect_query.h"

static void a_field_has_one_reading_or_is_unknown(void **state)
{
	static const struct {
		const char *query;
		enum effect_fact fact;
		const char *value;
	} rows[] = {{"id=1", EFFECT_KNOWN, "1"}, {"x=2&id=a%20b+c", EFFECT_KNOWN, "a b c"},
		{"id", EFFECT_KNOWN, ""}, {"", EFFECT_ABSENT, ""}, {"idx=1", EFFECT_ABSENT, ""},
		{"x=id=1", EFFECT_ABSENT, ""}, {"id=1&id=1", EFFECT_UNKNOWN, ""},
		{"ID=1", EFFECT_UNKNOWN, ""}, {"id[]=1", EFFECT_UNKNOWN, ""},
		{"i%64=1", EFFECT_UNKNOWN, ""}, {"x=1;id=2", EFFECT_UNKNOWN, ""},
		{"id=%2", EFFECT_UNKNOWN, ""}, {"id=%zz", EFFECT_UNKNOWN, ""},
		{"\xc4\xb1"
		 "d=1",
			EFFECT_UNKNOWN, ""}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t buf[EFFECT_MAX_VALUE];
		struct slice value = {0};
		enum effect_fact fact = effect_query_find(
			slice_from_str(rows[i].query), slice_from_str("id"), buf, &value);

		if (fact != rows[i].fact ||
			(fact == EFFECT_KNOWN && !slice_eq_str(value, rows[i].value)))
			fail_msg("'%s' is %d", rows[i].query, fact);
	}
}

static void a_long_value_is_not_known(void **state)
{
	char query[EFFECT_MAX_VALUE + 8] = "id=";
	uint8_t buf[EFFECT_MAX_VALUE];
	struct slice value;

	memset(query + 3, 'x', EFFECT_MAX_VALUE);
	assert_int_equal(
		effect_query_find(slice_from_str(query), slice_from_str("id"), buf, &value),
		EFFECT_KNOWN);
	query[3 + EFFECT_MAX_VALUE] = 'x';
	assert_int_equal(
		effect_query_find(slice_from_str(query), slice_from_str("id"), buf, &value),
		EFFECT_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_field_has_one_reading_or_is_unknown),
		cmocka_unit_test(a_long_value_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
