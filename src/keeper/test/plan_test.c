/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a start for every combination of facts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>
#include "src/keeper/state/plan.h"
#include "lib/base/mem.h"
#include "lib/os/ipc/keeper_chan.h"

#define ASKED KEEPER_COLD_ASKED
#define OWN KEEPER_COLD_OWN
#define DAMAGED "the snapshot is damaged"

enum fact { NO, YES, ANY };

/* Each combination of facts has exactly one row. */
static const struct {
	enum start_plan wanted;
	enum fact suspended, own_disks, image;
	enum start_plan plan;
	const char *why;
} oracle[] = {
	{START_MAKE, ANY, ANY, ANY, START_MAKE, NULL},
	{START_COLD, ANY, ANY, ANY, START_COLD, ASKED},
	{START_WARM, YES, ANY, ANY, START_RESUME, NULL},
	{START_WARM, NO, YES, ANY, START_COLD, OWN},
	{START_WARM, NO, NO, YES, START_WARM, NULL},
	{START_WARM, NO, NO, NO, START_COLD, DAMAGED},
	/* A VM of the pool never boots. */
	{START_POOL, YES, ANY, ANY, START_POOL, OWN},
	{START_POOL, NO, YES, ANY, START_POOL, OWN},
	{START_POOL, NO, NO, YES, START_POOL, NULL},
	{START_POOL, NO, NO, NO, START_POOL, DAMAGED},
};

static bool fits(enum fact expected, bool is)
{
	return expected == ANY || (expected == YES) == is;
}

static size_t find_row(const struct start_facts *f)
{
	size_t found = ARRAY_LEN(oracle);

	for (size_t i = 0; i < ARRAY_LEN(oracle); i++) {
		if (oracle[i].wanted != f->wanted || !fits(oracle[i].suspended, f->is_suspended) ||
			!fits(oracle[i].own_disks, f->has_own_disks) ||
			!fits(oracle[i].image, !f->image_why))
			continue;
		assert_int_equal(found, ARRAY_LEN(oracle));
		found = i;
	}
	assert_true(found < ARRAY_LEN(oracle));
	return found;
}

static struct start_facts nth(unsigned i)
{
	static const enum start_plan wanted[] = {START_COLD, START_WARM, START_POOL, START_MAKE};

	return (struct start_facts){.wanted = wanted[i / 8],
		.is_suspended = i & 1,
		.has_own_disks = i & 2,
		.image_why = i & 4 ? DAMAGED : NULL};
}

#define N_FACTS (4 * 8)

static void every_combination_has_its_plan(void **state)
{
	for (unsigned i = 0; i < N_FACTS; i++) {
		struct start_facts f = nth(i);
		size_t row = find_row(&f);
		struct start_choice c = plan_select(&f);

		if (c.plan != oracle[row].plan || !c.why != !oracle[row].why ||
			(c.why && strcmp(c.why, oracle[row].why) != 0))
			fail_msg("combination %u, row %zu: plan %d, %s", i, row, (int)c.plan,
				c.why ? c.why : "no reason");
	}
}

/* Finding the snapshot takes time: it is not searched if it changes nothing. */
static void the_image_is_needed_only_if_it_decides(void **state)
{
	for (unsigned i = 0; i < N_FACTS; i++) {
		struct start_facts f = nth(i);
		size_t row = find_row(&f);

		if (plan_needs_image(f) != (oracle[row].image != ANY))
			fail_msg("combination %u, row %zu", i, row);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_combination_has_its_plan),
		cmocka_unit_test(the_image_is_needed_only_if_it_decides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
