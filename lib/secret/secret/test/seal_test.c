/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/secret/secret/seal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>
#include "lib/base/mem.h"

static struct secret key, other;
static const struct seal_head head = {
	.source = VAULT_KEY_FILE, .generation = 7, .salt = "0123456789abcde"};

static int setup(void **state)
{
	uint8_t bytes[SEAL_KEY];

	memset(bytes, 'k', sizeof(bytes));
	assert_int_equal(secret_copy(&key, slice_of(bytes, sizeof(bytes)), NULL), 0);
	bytes[31] = 'x';
	return secret_copy(&other, slice_of(bytes, sizeof(bytes)), NULL);
}

static int teardown(void **state)
{
	secret_done(&key);
	secret_done(&other);
	return 0;
}

static void test_there_and_back(void **state)
{
	AUTO_FREE uint8_t *file = NULL, *again = NULL;
	AUTO_SECRET struct secret plain = {0};
	struct seal_head got;
	size_t n, m;

	assert_int_equal(
		seal_write(&key, &head, slice_from_str("canary one two"), &file, &n, NULL), 0);
	assert_int_equal(n, SEAL_HEAD + 14 + SEAL_TAG);
	assert_null(memmem(file, n, "canary", 6));
	assert_int_equal(seal_read_head(slice_of(file, n), &got, NULL), 0);
	assert_int_equal(got.generation, 7);
	assert_int_equal(got.source, VAULT_KEY_FILE);
	assert_int_equal(seal_open(&key, slice_of(file, n), &plain, NULL), 0);
	assert_true(slice_eq_str(secret_slice(&plain), "canary one two"));
	/* the same twice is never the same bytes */
	assert_int_equal(
		seal_write(&key, &head, slice_from_str("canary one two"), &again, &m, NULL), 0);
	assert_memory_not_equal(file + SEAL_HEAD - 16, again + SEAL_HEAD - 16, 12);
	assert_memory_not_equal(file + SEAL_HEAD, again + SEAL_HEAD, 14);
}

/* Each bit of the file matters, and so does its length. */
static void test_every_change_is_found(void **state)
{
	AUTO_FREE uint8_t *file = NULL;
	size_t n;

	assert_int_equal(seal_write(&key, &head, slice_from_str("some value"), &file, &n, NULL), 0);
	for (size_t i = 0; i < n * 8; i++) {
		AUTO_SECRET struct secret plain = {0};
		struct err err = {0};

		file[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_true(seal_open(&key, slice_of(file, n), &plain, &err) < 0);
		assert_true(err.text[0] && !plain.p);
		file[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	for (size_t i = 0; i < n; i++) {
		AUTO_SECRET struct secret plain = {0};

		assert_int_equal(seal_open(&key, slice_of(file, i), &plain, NULL), -EBADMSG);
	}
}

static void test_another_key(void **state)
{
	AUTO_FREE uint8_t *file = NULL;
	AUTO_SECRET struct secret plain = {0};
	struct err err = {0};
	size_t n;

	assert_int_equal(seal_write(&key, &head, slice_from_str("value"), &file, &n, NULL), 0);
	assert_int_equal(seal_open(&other, slice_of(file, n), &plain, &err), -EKEYREJECTED);
	assert_string_equal(err.text, "the key does not match the sealed file");
}

static void test_anchor(void **state)
{
	struct seal_head later = head;
	uint8_t anchor[SEAL_ANCHOR];
	uint64_t generation = 0;

	assert_int_equal(seal_anchor_make(&key, &head, anchor), 0);
	later.generation = 99;
	assert_int_equal(
		seal_anchor_read(&key, &later, slice_of(anchor, SEAL_ANCHOR), &generation), 0);
	assert_int_equal(generation, 7);
	assert_int_equal(
		seal_anchor_read(&other, &head, slice_of(anchor, SEAL_ANCHOR), &generation),
		-EBADMSG);
	anchor[0] ^= 1; /* one generation less */
	assert_int_equal(seal_anchor_read(&key, &head, slice_of(anchor, SEAL_ANCHOR), &generation),
		-EBADMSG);
	assert_int_equal(
		seal_anchor_read(&key, &head, slice_of(anchor, 12), &generation), -EBADMSG);
	later.salt[0] ^= 1; /* of another vault */
	anchor[0] ^= 1;
	assert_int_equal(seal_anchor_read(&key, &later, slice_of(anchor, SEAL_ANCHOR), &generation),
		-EBADMSG);
}

static void test_passphrase(void **state)
{
	AUTO_SECRET struct secret a = {0}, b = {0}, c = {0}, d = {0};

	assert_int_equal(seal_key_from_passphrase(slice_from_str("open"), head.salt, &a, NULL), 0);
	assert_int_equal(seal_key_from_passphrase(slice_from_str("open"), head.salt, &b, NULL), 0);
	assert_int_equal(seal_key_from_passphrase(slice_from_str("opem"), head.salt, &c, NULL), 0);
	assert_int_equal(seal_key_from_passphrase(slice_from_str("open"),
				 (const uint8_t *)"fedcba9876543210", &d, NULL),
		0);
	assert_true(slice_eq(secret_slice(&a), secret_slice(&b)));
	assert_false(slice_eq(secret_slice(&a), secret_slice(&c)));
	assert_false(slice_eq(secret_slice(&a), secret_slice(&d)));
}

static void test_too_large(void **state)
{
	AUTO_FREE uint8_t *big = xcalloc(1, SEAL_MAX), *file = NULL;
	size_t n;

	assert_int_equal(seal_write(&key, &head, slice_of(big, SEAL_MAX), &file, &n, NULL), -EFBIG);
	assert_int_equal(seal_write(&key, &head, slice_of(big, 0), &file, &n, NULL), -EFBIG);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_there_and_back),
		TEST(test_every_change_is_found),
		TEST(test_another_key),
		TEST(test_anchor),
		TEST(test_passphrase),
		TEST(test_too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
