/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/hash/sha256.h"
#include "lib/base/hex.h"

static void check_hash(struct slice in, const char *want)
{
	uint8_t hash[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];

	sha256(in, hash);
	hex_print(hash, sizeof(hash), hex);
	assert_string_equal(hex, want);
}

static void known_texts_have_their_published_hash(void **state)
{
	uint8_t letters[1000];

	check_hash(slice_of("", 0),
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	check_hash(slice_from_str("abc"),
		"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	check_hash(slice_from_str("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
		"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	memset(letters, 'a', sizeof(letters));
	check_hash(slice_of(letters, 1000),
		"41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3");
	check_hash(slice_of(letters, 64),
		"ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

static void pieces_have_the_hash_of_the_whole(void **state)
{
	uint8_t bytes[300], want[SHA256_BYTES], have[SHA256_BYTES];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	sha256(slice_of(bytes, sizeof(bytes)), want);
	for (size_t a = 0; a <= 130; a++)
		for (size_t b = a; b <= sizeof(bytes); b += 13) {
			struct sha256 s;

			sha256_begin(&s);
			sha256_add(&s, slice_of(bytes, a));
			sha256_add(&s, slice_of(bytes + a, b - a));
			sha256_add(&s, slice_of(bytes + b, sizeof(bytes) - b));
			sha256_end(&s, have);
			assert_memory_equal(have, want, sizeof(want));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_texts_have_their_published_hash),
		cmocka_unit_test(pieces_have_the_hash_of_the_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
