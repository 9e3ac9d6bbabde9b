/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

static void pieces_are_aligned_and_apart(void **state)
{
	struct arena a;
	uint8_t *p, *q;

	arena_init(&a, 256);
	assert_null(a.block);
	p = arena_alloc(&a, 3);
	q = arena_alloc(&a, 5);
	assert_non_null(p);
	assert_non_null(q);
	assert_int_equal((uintptr_t)q % sizeof(void *), 0);
	assert_true(q >= p + 3);
	arena_done(&a);
	assert_null(a.block);
}

static void full_is_sticky_until_reset(void **state)
{
	struct arena a;

	arena_init(&a, 64);
	assert_non_null(arena_alloc(&a, 64));
	assert_false(arena_is_full(&a));
	assert_null(arena_alloc(&a, 1));
	assert_true(arena_is_full(&a));
	/* Even what would fit. */
	assert_null(arena_alloc(&a, 0));
	assert_int_equal(arena_dup(&a, slice_from_str("x")).n, 0);
	arena_reset(&a);
	assert_non_null(arena_alloc(&a, 1));
	arena_done(&a);
}

static void sizes_that_overflow_are_refused(void **state)
{
	struct arena a;

	arena_init(&a, 64);
	assert_null(arena_alloc(&a, SIZE_MAX));
	arena_reset(&a);
	assert_null(arena_calloc(&a, SIZE_MAX / 2, 3));
	assert_true(arena_is_full(&a));
	arena_reset(&a);
	/* The gap before a piece counts too. */
	assert_non_null(arena_alloc(&a, 63));
	assert_null(arena_alloc(&a, 1));
	arena_done(&a);
}

static void calloc_clears_what_was_used_before(void **state)
{
	struct arena a;
	uint8_t *p;

	arena_init(&a, 64);
	p = arena_alloc(&a, 32);
	memset(p, 0xff, 32);
	arena_reset(&a);
	p = arena_calloc(&a, 4, 8);
	for (size_t i = 0; i < 32; i++)
		assert_int_equal(p[i], 0);
	arena_done(&a);
}

static void only_the_newest_piece_grows(void **state)
{
	struct arena a;
	uint8_t *p, *q;

	arena_init(&a, 64);
	assert_false(arena_extend(&a, NULL, 1));
	p = arena_alloc(&a, 8);
	assert_true(arena_extend(&a, p, 16));
	memset(p, 1, 16);
	q = arena_alloc(&a, 8);
	assert_true(q >= p + 16);
	assert_false(arena_extend(&a, p, 17));
	assert_false(arena_is_full(&a));
	assert_true(arena_extend(&a, q, 48));
	assert_false(arena_extend(&a, q, 49));
	assert_true(arena_is_full(&a));
	arena_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_aligned_and_apart),
		cmocka_unit_test(full_is_sticky_until_reset),
		cmocka_unit_test(sizes_that_overflow_are_refused),
		cmocka_unit_test(calloc_clears_what_was_used_before),
		cmocka_unit_test(only_the_newest_piece_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
