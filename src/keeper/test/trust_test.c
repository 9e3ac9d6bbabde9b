/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/mem.h"
#include "src/keeper/credential/trust.h"

#define BEGIN "-----BEGIN CERTIFICATE-----"
#define END "-----END CERTIFICATE-----"
#define ONE BEGIN "\nAAAA\n" END "\n"
#define LINE64 "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

static void the_users_certificates_are_picked_out(void **state)
{
	static const struct {
		const char *text, *picked;
		size_t left;
	} rows[] = {
		{"", "", 0},
		{ONE, ONE, 0},
		{"# Company\r\n" BEGIN "\r\nAA\r\n  AA\r\n" END "\r\n\r\nmore\n" ONE, ONE ONE, 0},
		{BEGIN "\n" LINE64 LINE64 "BB==\n" END,
			BEGIN "\n" LINE64 "\n" LINE64 "\nBB==\n" END "\n", 0},
		{BEGIN "\n" LINE64 "\n" END, BEGIN "\n" LINE64 "\n" END "\n", 0},
		{BEGIN "\nA-A\n" END "\n" ONE, ONE, 1}, /* not base64 */
		{BEGIN "\n" END "\n" ONE, ONE, 1},
		{ONE BEGIN "\nAAAA\n", ONE, 0},
		{"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n" ONE, ONE, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t left;
		AUTO_FREE char *picked = trust_pick(rows[i].text, 4096, &left);

		assert_string_equal(picked, rows[i].picked);
		assert_int_equal(left, rows[i].left);
	}
}

/* Complete ones, as many as fit. */
static void no_more_than_fits(void **state)
{
	for (size_t max = 0; max <= 3 * strlen(ONE); max++) {
		size_t left, n = max / strlen(ONE);
		AUTO_FREE char *picked = trust_pick(ONE ONE ONE, max, &left);

		assert_int_equal(strlen(picked), n * strlen(ONE));
		assert_int_equal(left, 3 - n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_users_certificates_are_picked_out),
		cmocka_unit_test(no_more_than_fits),
	};

	return cmocka_run_group_tests_name("keeper/trust", tests, NULL, NULL);
}
