/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "src/guest/base/modules.h"
#include "lib/base/mem.h"

#define MAGIC "~Module signature appended~\n"

static struct slice of(const char *s, size_t n)
{
	return slice_of(s, n);
}

static void signature_comes_off(void **state)
{
	static const char with[] = "ELFcodeSIG12345678\0\0\0\3" MAGIC;
	static const char lies[] = "ELFcodeSIG12345678\0\1\0\3" MAGIC;
	static const char bare[] = "ELFcode";

	/* "ELFcode", three bytes of signature, eight others, its length, the magic */
	assert_int_equal(modules_unsigned(of(with, sizeof(with) - 1)).n, 7);
	assert_int_equal(modules_unsigned(of(lies, sizeof(lies) - 1)).n, sizeof(lies) - 1);
	assert_int_equal(modules_unsigned(of(bare, sizeof(bare) - 1)).n, 7);
	assert_int_equal(modules_unsigned(of(MAGIC, strlen(MAGIC))).n, strlen(MAGIC));
	assert_int_equal(modules_unsigned(of(NULL, 0)).n, 0);
}

static void finds_the_whole_name(void **state)
{
	static const char dep[] = "kernel/net/nft_nat_x.ko: a.ko\n"
				  "kernel/x/nft_nat.ko: kernel/nf_nat.ko kernel/lib.ko\n"
				  "nft_fib.ko.xz:\n";
	AUTO_FREE char *nat = modules_find_dep(dep, "nft_nat");
	AUTO_FREE char *fib = modules_find_dep(dep, "nft_fib");

	assert_string_equal(nat, "kernel/x/nft_nat.ko: kernel/nf_nat.ko kernel/lib.ko");
	assert_string_equal(fib, "nft_fib.ko.xz:");
	assert_null(modules_find_dep(dep, "nat"));
	assert_null(modules_find_dep(dep, "a"));
	assert_null(modules_find_dep("", "a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signature_comes_off),
		cmocka_unit_test(finds_the_whole_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
