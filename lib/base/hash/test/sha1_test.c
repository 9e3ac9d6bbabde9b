/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "lib/base/hash/sha1.h"
#include "lib/base/hex.h"

static void expect(const char *text, size_t times, size_t step, const char *hex)
{
	size_t n = strlen(text);
	uint8_t sum[SHA1_BYTES];
	char got[2 * SHA1_BYTES + 1];
	struct sha1 s;

	sha1_init(&s);
	for (size_t t = 0; t < times; t++)
		for (size_t i = 0; i < n; i += step)
			sha1_add(&s, slice_of(text + i, MIN(step, n - i)));
	sha1_end(&s, sum);
	hex_print(sum, SHA1_BYTES, got);
	assert_string_equal(got, hex);
}

/* The examples of FIPS 180. */
static void test_known_sums(void **state)
{
	static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

	expect("", 1, 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
	expect("abc", 1, 3, "a9993e364706816aba3e25717850c26c9cd0d89d");
	for (size_t step = 1; step <= 64; step++)
		expect(two, 1, step, "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
	expect("aaaaaaaaaa", 100000, 10, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_sums)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
