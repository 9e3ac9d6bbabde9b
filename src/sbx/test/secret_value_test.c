/* SPDX-License-Identifier: Apache-2.0 */
#include "src/sbx/secret/secret_value.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

static int read_from(struct secret_value *v, const char *bytes, size_t n, struct problem *p)
{
	int fds[2], r;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], bytes, n), n);
	(void)close(fds[1]);
	r = secret_value_read(v, fds[0], p);
	(void)close(fds[0]);
	return r;
}

static void test_chomp(void **state)
{
	static const struct {
		const char *in, *out;
		bool had;
	} rows[] = {{"abc", "abc", false}, {"abc\n", "abc", true}, {"abc\r\n", "abc", true},
		{"abc\n\n", "abc\n", true}, {"\n", "", true}, {"", "", false},
		{"abc\r", "abc\r", false}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_SECRET_VALUE struct secret_value v = {0};
		struct problem p = {0};

		assert_int_equal(secret_value_init(&v, &p), 0);
		assert_int_equal(read_from(&v, rows[i].in, strlen(rows[i].in), &p), 0);
		assert_int_equal(secret_value_chomp(&v), rows[i].had);
		assert_string_equal(v.p, rows[i].out);
		assert_int_equal(v.n, strlen(rows[i].out));
	}
}

static void test_check(void **state)
{
	static const struct {
		const char *value;
		size_t n;
		const char *says;
	} rows[] = {{"sk-abc", 6, NULL}, {"", 0, "empty"}, {"a\nb", 3, "line break"},
		{"a\0b", 3, "control"}, {"a\x1b", 2, "control"},
		{"sk-Proxy-Managed-1", 18, "placeholder"},
		{"gho_proxymanaged00", 18, "placeholder"}, {"caf\xc3\xa9", 5, NULL}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_SECRET_VALUE struct secret_value v = {0};
		struct problem p = {0};
		int r;

		assert_int_equal(secret_value_init(&v, &p), 0);
		assert_int_equal(read_from(&v, rows[i].value, rows[i].n, &p), 0);
		r = secret_value_check(&v, &p);
		if (!rows[i].says) {
			assert_int_equal(r, 0);
			continue;
		}
		assert_int_equal(r, -EINVAL);
		assert_non_null(strstr(p.err.text, rows[i].says));
		/* the error does not contain the value */
		assert_null(strstr(p.err.text, "sk-Proxy"));
	}
}

static void test_bounds(void **state)
{
	AUTO_SECRET_VALUE struct secret_value v = {0};
	AUTO_FREE char *text = xcalloc(1, SECRET_MAX + 2);
	struct problem p = {0};

	memset(text, 'x', SECRET_MAX + 1);
	assert_int_equal(secret_value_init(&v, &p), 0);
	assert_int_equal(secret_value_append(&v, text, &p), -E2BIG);
	text[SECRET_MAX] = '\0';
	assert_int_equal(secret_value_append(&v, text, &p), 0);
	assert_int_equal(secret_value_append(&v, "y", &p), -E2BIG);
	assert_int_equal(secret_value_check(&v, &p), 0);
}

static void test_pass(void **state)
{
	AUTO_SECRET_VALUE struct secret_value v = {0};
	AUTO_FREE char *text = xcalloc(1, SECRET_MAX + 1), *got = xcalloc(1, SECRET_MAX + 1);
	struct problem p = {0};
	int fd;

	memset(text, 'x', SECRET_MAX);
	assert_int_equal(secret_value_init(&v, &p), 0);
	assert_int_equal(secret_value_append(&v, text, &p), 0);
	fd = secret_value_pass(&v, &p);
	assert_true(fd >= 0);
	secret_value_done(&v);
	assert_int_equal(fd_read_full(fd, got, SECRET_MAX + 1), SECRET_MAX);
	assert_string_equal(got, text);
	(void)close(fd);
}

static void test_mask(void **state)
{
	char mask[SECRET_MASK];

	secret_value_mask("sk-ant-api03-0123456789abcdef", mask);
	assert_string_equal(mask, "sk-****cdef");
	secret_value_mask("ghp_0123456789abcdef0123", mask);
	assert_string_equal(mask, "ghp_****0123");
	secret_value_mask("0123456789abcdef01234", mask);
	assert_string_equal(mask, "****1234");
	secret_value_mask("short-enough", mask);
	assert_string_equal(mask, "****");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chomp),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_pass),
		cmocka_unit_test(test_mask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
