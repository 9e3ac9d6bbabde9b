/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "src/guest/trust/pem.h"
#include "lib/base/mem.h"

#define CERT(body) "-----BEGIN CERTIFICATE-----\n" body "-----END CERTIFICATE-----\n"

static void expect(const char **at, const char *bytes)
{
	size_t n;
	AUTO_FREE uint8_t *der = pem_next(at, &n);

	assert_non_null(der);
	assert_true(slice_eq_str(slice_of(der, n), bytes));
}

static void test_one_after_the_other(void **state)
{
	const char *at =
		"# comment\n" CERT("aGVsbG8=\n") "text\n" CERT("Zm9v\r\nYmFy\n") CERT("eA==\n");
	size_t n;

	expect(&at, "hello");
	expect(&at, "foobar");
	expect(&at, "x");
	assert_null(pem_next(&at, &n));
	assert_null(pem_next(&at, &n));
}

static void test_what_is_none_is_passed_over(void **state)
{
	const char *at = CERT("aGV sbG8=\n") CERT("") CERT("=\n")
		CERT("aGVs=bG8\n") "-----BEGIN PRIVATE KEY-----\nZm9v\n-----END PRIVATE "
				   "KEY-----\n" CERT("eA==\n") "-----BEGIN CERTIFICATE-----\naGVs";
	size_t n;

	expect(&at, "x");
	assert_null(pem_next(&at, &n));
	at = "";
	assert_null(pem_next(&at, &n));
}

static void test_too_long(void **state)
{
	size_t n_body = (PEM_MAX_DER / 3 + 1) * 4, n;
	AUTO_FREE char *body = xmalloc(n_body + 1), *text = NULL;
	const char *at;

	memset(body, 'A', n_body);
	body[n_body] = '\0';
	text = xasprintf(PEM_BEGIN "%s\n" PEM_END "\n" CERT("eA==\n"), body);
	at = text;
	expect(&at, "x");
	assert_null(pem_next(&at, &n));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_after_the_other),
		cmocka_unit_test(test_what_is_none_is_passed_over),
		cmocka_unit_test(test_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
