/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include <assert.h>
#include "lib/wire/dns/dns_reply.h"
#include "lib/base/hash/siphash.h"
#include "lib/base/mem.h"
#include "lib/wire/dns/test/synth_free.h"

static_assert(SYNTH_REST_MS >= 2 * DNS_TTL_ADDRESS * 1000,
	"an answer is forgotten before its address "
	"means another name");

static uint32_t n_many = 1000000;
static const uint8_t seed[SYNTH_SEED] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static void free_synth(struct synth **s)
{
	synth_free(*s);
}

#define AUTO_SYNTH CLEANUP(free_synth)

/* The address of a name that has one, else -ENOENT. Changes nothing. */
static int find_name(const struct synth *s, struct slice name, struct synth_addr *ret)
{
	uint32_t bucket = (uint32_t)siphash(s->seed, name) % SYNTH_N_BUCKETS;

	for (uint32_t i = s->slots ? s->buckets[bucket] : 0; i != 0; i = s->slots[i].chain) {
		if (!slice_eq(slice_of(s->slots[i].name, s->slots[i].n), name))
			continue;
		*ret = (struct synth_addr){i,
			{198, (uint8_t)(18 | i >> 16), (uint8_t)(i >> 8), (uint8_t)i},
			SYNTH_V6_PREFIX};
		ret->v6[13] = (uint8_t)(i >> 16);
		ret->v6[14] = (uint8_t)(i >> 8);
		ret->v6[15] = (uint8_t)i;
		return 0;
	}
	return -ENOENT;
}

static int assign(struct synth *s, const char *name, uint64_t now_ms, struct synth_addr *ret)
{
	return synth_assign(s, slice_from_str(name), now_ms, ret);
}

static bool stands_for(struct synth *s, const struct synth_addr *a, const char *name)
{
	struct slice four, six;
	uint32_t i, k;

	if (synth_find_addr(s, slice_of(a->v4, 4), &i, &four) < 0)
		return false;
	assert_int_equal(synth_find_addr(s, slice_of(a->v6, 16), &k, &six), 0);
	assert_true(i == a->id && k == a->id && slice_eq(four, six));
	return slice_eq_str(four, name);
}

static void test_both_ways(void **state)
{
	AUTO_SYNTH struct synth *s = synth_new(seed);
	static const uint8_t prefix[] = SYNTH_V6_PREFIX;
	struct synth_addr a, b, again;

	assert_int_equal(find_name(s, slice_from_str("a.example"), &a), -ENOENT);
	assert_int_equal(assign(s, "a.example", 0, &a), 0);
	assert_int_equal(assign(s, "b.example", 0, &b), 0);
	assert_int_equal(assign(s, "a.example", 9, &again), 0);
	assert_memory_equal(&a, &again, sizeof(a));
	assert_int_not_equal(a.id, b.id);
	assert_true(a.v4[0] == 198 && (a.v4[1] | 1) == 19);
	assert_memory_equal(a.v6, prefix, sizeof(prefix));
	assert_true(stands_for(s, &a, "a.example") && stands_for(s, &b, "b.example"));
	assert_int_equal(find_name(s, slice_from_str("b.example"), &again), 0);
	assert_memory_equal(&b, &again, sizeof(b));
	assert_int_equal(s->n_names, 2);
}

/* Every address but the two is unknown, in all the ways to be nearly right. */
static void test_other_addresses_are_unknown(void **state)
{
	AUTO_SYNTH struct synth *s = synth_new(seed);
	struct synth_addr a;
	struct slice name;
	uint32_t id;

	assert_int_equal(synth_find_addr(s, slice_of("\xc6\x12\1\1", 4), &id, &name), -ENOENT);
	assert_int_equal(assign(s, "a.example", 0, &a), 0);
	for (int i = 0; i < 20; i++) {
		uint8_t *byte = i < 4 ? &a.v4[i] : &a.v6[i - 4];
		struct slice addr = i < 4 ? slice_of(a.v4, 4) : slice_of(a.v6, 16);

		for (int bit = 0; bit < 8; bit++) {
			*byte ^= (uint8_t)(1 << bit);
			assert_int_equal(synth_find_addr(s, addr, &id, &name), -ENOENT);
			*byte ^= (uint8_t)(1 << bit);
		}
	}
	assert_int_equal(synth_find_addr(s, slice_of(a.v4, 3), &id, &name), -ENOENT);
	assert_int_equal(synth_find_addr(s, slice_of(a.v6, 15), &id, &name), -ENOENT);
	assert_int_equal(synth_find_addr(s, slice_of("\xc6\x12\0\0", 4), &id, &name), -ENOENT);
	assert_int_equal(synth_find_addr(s, slice_of("\xc6\x13\xff\xff", 4), &id, &name), -ENOENT);
	assert_int_equal(synth_hold(s, 0), -ENOENT);
	assert_int_equal(synth_hold(s, UINT32_MAX), -ENOENT);
	assert_true(stands_for(s, &a, "a.example"));
}

static void test_names_are_bytes(void **state)
{
	AUTO_SYNTH struct synth *s = synth_new(seed);
	uint8_t longest[SYNTH_MAX_NAME + 1] = {0};
	struct synth_addr a, b;

	assert_int_equal(synth_assign(s, slice_of("a\0b", 3), 0, &a), 0);
	assert_int_equal(synth_assign(s, slice_of("a\0c", 3), 0, &b), 0);
	assert_int_not_equal(a.id, b.id);
	assert_int_equal(synth_assign(s, slice_of("", 0), 0, &a), -EINVAL);
	assert_int_equal(synth_assign(s, slice_of(longest, SYNTH_MAX_NAME), 0, &a), 0);
	assert_int_equal(synth_assign(s, slice_of(longest, SYNTH_MAX_NAME + 1), 0, &a), -EINVAL);
}

/* A restarted edge must not give the addresses that the guest still remembers to other names. */
static void test_seed_chooses_the_start(void **state)
{
	AUTO_SYNTH struct synth *s = synth_new(seed);
	AUTO_SYNTH struct synth *other = synth_new((const uint8_t *)"0123456789abcdef");
	AUTO_SYNTH struct synth *same = synth_new(seed);
	struct synth_addr a, b, c;

	assert_int_equal(assign(s, "a", 0, &a), 0);
	assert_int_equal(assign(other, "a", 0, &b), 0);
	assert_int_equal(assign(same, "a", 0, &c), 0);
	assert_int_not_equal(a.id, b.id);
	assert_int_equal(a.id, c.id);
}

static void numbered(char name[32], unsigned i)
{
	snprintf(name, 32, "n%u.example", i);
}

static void fill(struct synth *s, unsigned from, unsigned n, uint64_t now_ms)
{
	struct synth_addr a;
	char name[32];

	for (unsigned i = from; i < from + n; i++) {
		numbered(name, i);
		assert_int_equal(assign(s, name, now_ms, &a), 0);
	}
}

/* The id of its address, 0 when it has none. */
static uint32_t id_of(const struct synth *s, unsigned i)
{
	struct synth_addr a;
	char name[32];

	numbered(name, i);
	return find_name(s, slice_from_str(name), &a) == 0 ? a.id : 0;
}

static bool is_known(const struct synth *s, unsigned i)
{
	return id_of(s, i) != 0;
}

static void test_least_recently_used_goes(void **state)
{
	AUTO_SYNTH struct synth *s = synth_new(seed);
	struct synth_addr a, b;
	struct slice name;
	uint32_t id;

	fill(s, 0, SYNTH_MAX_NAMES, 0);
	assert_int_equal(s->n_names, SYNTH_MAX_NAMES);
	/* 0 is asked for again, 1 is connected to: 2 is the oldest. */
	assert_int_equal(assign(s, "n0.example", 0, &a), 0);
	assert_int_equal(find_name(s, slice_from_str("n1.example"), &b), 0);
	assert_int_equal(synth_find_addr(s, slice_of(b.v4, 4), &id, &name), 0);
	fill(s, SYNTH_MAX_NAMES, 2, 0);
	assert_true(is_known(s, 0) && is_known(s, 1) && is_known(s, 4));
	assert_false(is_known(s, 2) || is_known(s, 3));
	assert_int_equal(s->n_names, SYNTH_MAX_NAMES);
}

static void test_held_names_stay(void **state)
{
	AUTO_SYNTH struct synth *s = synth_new(seed);
	struct synth_addr a;

	assert_int_equal(assign(s, "held.example", 0, &a), 0);
	assert_int_equal(synth_hold(s, a.id), 0);
	assert_int_equal(synth_hold(s, a.id), 0);
	fill(s, 0, SYNTH_MAX_NAMES, 0);
	assert_true(stands_for(s, &a, "held.example"));
	synth_release(s, a.id);
	fill(s, SYNTH_MAX_NAMES, 100, 0);
	assert_true(stands_for(s, &a, "held.example"));
	synth_release(s, a.id);
	/* Now it is the youngest, and goes when as many younger ones have come. */
	fill(s, SYNTH_MAX_NAMES + 100, SYNTH_MAX_NAMES - 1000, SYNTH_REST_MS);
	assert_true(stands_for(s, &a, "held.example"));
	fill(s, 3 * SYNTH_MAX_NAMES, SYNTH_MAX_NAMES - 1000, 3 * SYNTH_REST_MS);
	fill(s, 4 * SYNTH_MAX_NAMES, 1000, 5 * SYNTH_REST_MS);
	assert_int_equal(find_name(s, slice_from_str("held.example"), &a), -ENOENT);
	assert_int_equal(synth_hold(s, a.id), -ENOENT);
}

static void test_all_held_is_busy(void **state)
{
	AUTO_SYNTH struct synth *s = synth_new(seed);
	AUTO_FREE uint32_t *ids = xcalloc(SYNTH_MAX_NAMES, sizeof(*ids));
	struct synth_addr a;
	char name[32];

	for (unsigned i = 0; i < SYNTH_MAX_NAMES; i++) {
		numbered(name, i);
		assert_int_equal(assign(s, name, 0, &a), 0);
		assert_int_equal(synth_hold(s, a.id), 0);
		ids[i] = a.id;
	}
	assert_int_equal(assign(s, "more.example", 0, &a), -EBUSY);
	assert_int_equal(assign(s, "n5.example", 0, &a), 0);
	synth_release(s, ids[7]);
	assert_int_equal(assign(s, "more.example", 0, &a), 0);
	assert_false(is_known(s, 7));
}

/* When addresses run out of rest, new names wait and no old one is lost. */
static void test_addresses_rest(void **state)
{
	AUTO_SYNTH struct synth *s = synth_new(seed);
	struct synth_addr a, b;

	fill(s, 0, SYNTH_N_ADDRS, 1000);
	assert_int_equal(s->n_names, SYNTH_MAX_NAMES);
	assert_int_equal(assign(s, "late.example", 1000, &a), -EBUSY);
	assert_int_equal(assign(s, "late.example", 999 + SYNTH_REST_MS, &a), -EBUSY);
	assert_int_equal(s->n_names, SYNTH_MAX_NAMES);
	assert_true(is_known(s, SYNTH_N_ADDRS - SYNTH_MAX_NAMES));
	assert_int_equal(assign(s, "late.example", 1000 + SYNTH_REST_MS, &a), 0);
	assert_true(stands_for(s, &a, "late.example"));
	assert_int_equal(assign(s, "late.example", 1000 + SYNTH_REST_MS, &b), 0);
	assert_int_equal(a.id, b.id);
}

static void test_bytes_are_bounded(void **state)
{
	AUTO_SYNTH struct synth *s = synth_new(seed);
	struct synth_addr a;
	char name[SYNTH_MAX_NAME + 1];

	for (unsigned i = 0; i < SYNTH_MAX_NAMES; i++) {
		snprintf(name, sizeof(name), "%0*u", SYNTH_MAX_NAME, i);
		assert_int_equal(assign(s, name, 0, &a), 0);
	}
	assert_true(s->n_names <= SYNTH_MAX_BYTES / SYNTH_MAX_NAME);
	assert_true(s->n_names > SYNTH_MAX_BYTES / (SYNTH_MAX_NAME + 32));
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/*
 * The model: for each address the number of the name it stood for last, and when it was seen to
 * have lost it. 10^6 names, a quarter of them old ones, in 25 bursts with time between them.
 */
struct model {
	uint32_t *name; /* by id, + 1 */
	uint64_t *lost_ms;
};

static void check_assigned(
	struct model *m, struct synth *s, uint32_t i, const struct synth_addr *a, uint64_t now_ms)
{
	if (m->name[a->id] == i + 1)
		return;
	if (m->name[a->id] != 0) {
		assert_int_not_equal(id_of(s, m->name[a->id] - 1), a->id);
		assert_true(now_ms >= m->lost_ms[a->id] + SYNTH_REST_MS);
	}
	m->name[a->id] = i + 1;
	m->lost_ms[a->id] = 0;
}

/* Called after each burst: what was lost, was lost at that burst's time. */
static void note_lost(struct model *m, uint64_t now_ms, struct synth *s)
{
	for (uint32_t id = SYNTH_FIRST; id < SYNTH_FIRST + SYNTH_N_ADDRS; id++) {
		if (m->name[id] == 0)
			continue;
		if (id_of(s, m->name[id] - 1) == id)
			m->lost_ms[id] = 0;
		else if (m->lost_ms[id] == 0)
			m->lost_ms[id] = now_ms;
	}
}

static void test_many_names(void **state)
{
	AUTO_SYNTH struct synth *s = synth_new(seed);
	size_t n = SYNTH_FIRST + SYNTH_N_ADDRS;
	AUTO_FREE uint32_t *names = xcalloc(n, sizeof(*names));
	AUTO_FREE uint64_t *lost = xcalloc(n, sizeof(*lost));
	struct model m = {names, lost};
	uint64_t x = 88172645463325252, now_ms = 5000;
	uint32_t fresh = 0, busy = 0;
	char name[32];

	for (uint32_t i = 0; i < n_many; i++) {
		bool old = fresh > 0 && next_random(&x) % 4 == 0;
		uint32_t k = old ? (uint32_t)(next_random(&x) % fresh) : fresh++;
		struct synth_addr a;

		if (i % 40000 == 0) {
			note_lost(&m, now_ms, s);
			now_ms += 20000 + next_random(&x) % 60000;
		}
		numbered(name, k);
		if (assign(s, name, now_ms, &a) < 0) {
			busy++;
			continue;
		}
		check_assigned(&m, s, k, &a, now_ms);
		assert_true(stands_for(s, &a, name));
	}
	assert_true(s->n_names <= SYNTH_MAX_NAMES);
	assert_true(fresh > n_many / 10 * 7);
	assert_true(busy > 0 && busy < n_many / 2);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_other_addresses_are_unknown),
		cmocka_unit_test(test_names_are_bytes),
		cmocka_unit_test(test_seed_chooses_the_start),
		cmocka_unit_test(test_least_recently_used_goes),
		cmocka_unit_test(test_held_names_stay),
		cmocka_unit_test(test_all_held_is_busy),
		cmocka_unit_test(test_addresses_rest),
		cmocka_unit_test(test_bytes_are_bounded),
		cmocka_unit_test(test_many_names),
	};

	if (argc > 1)
		n_many = (uint32_t)strtoul(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
