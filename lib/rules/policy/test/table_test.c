/* SPDX-License-Identifier: Apache-2.0 */
/* What a process accepts as a table, and what it makes of everything else: a denial. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/rules/policy/policy_internal.h"
#include "random_rules.h"

#define SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)
#define TEXT                                                         \
	"allow network a.com,*.b.com,crl*.b.com,9.9.9.0/24 id all\n" \
	"deny network bad.b.com id no\n"                             \
	"allow network own.com for sandbox demo id own\n"            \
	"deny network a.com for sandbox other\n"

static struct rules parse(const char *text)
{
	AUTO_FREE char *whole = xasprintf("policy 1\n%send\n", text);
	struct rules rules = {0};

	assert_int_equal(rules_decode(slice_from_str(whole), "test", &rules, NULL), 0);
	return rules;
}

static void *build(const struct rules *rules, enum policy_part part, bool only, size_t *ret_n)
{
	struct table_wish wish = {.part = part, .rules = rules, .only = only};
	AUTO_FREE uint32_t *pick = table_pick(rules, part == POLICY_OWN ? "demo" : NULL, &wish.n);

	wish.pick = pick;
	return table_build(&wish, ret_n);
}

/* There is no managed policy. */
static void *build_unset(size_t *ret_n)
{
	struct table_wish wish = {.part = POLICY_MANAGED, .unset = true};

	return table_build(&wish, ret_n);
}

static int put(const void *bytes, size_t n, int seals)
{
	int fd = memfd_create("table", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(n ? fd_write_all(fd, bytes, n) : 0, 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static bool allows(const struct policy *p, const char *name)
{
	struct policy_op op = {.kind = RULE_NETWORK, .port = 443, .now_ms = 1};
	struct policy_decision d;
	struct host host;

	assert_int_equal(host_from_wire(slice_from_str(name), &host, NULL), 0);
	op.host = &host;
	policy_decide(p, &op, &d);
	assert_true(d.allowed || !policy_has_port(p, &op));
	return d.allowed;
}

/* Opens both files, without a managed policy, and closes them. */
static struct policy *open_both(int all, int own)
{
	struct table_wish unset = {.part = POLICY_MANAGED, .unset = true};
	int files[POLICY_N_PARTS] = {all, table_make(&unset), own};
	struct policy *p = policy_open(files);

	for (size_t i = 0; i < POLICY_N_PARTS; i++)
		fd_close(&files[i]);
	return p;
}

struct both {
	struct rules rules;
	void *bytes[POLICY_N_PARTS];
	size_t n[POLICY_N_PARTS];
};

static struct both both_of(const char *text)
{
	struct both b = {.rules = parse(text)};

	for (size_t i = 0; i < POLICY_N_PARTS; i++)
		b.bytes[i] = i == POLICY_MANAGED
				     ? build_unset(&b.n[i])
				     : build(&b.rules, (enum policy_part)i, false, &b.n[i]);
	return b;
}

static void both_done(struct both *b)
{
	for (size_t i = 0; i < POLICY_N_PARTS; i++)
		free(b->bytes[i]);
	rules_done(&b->rules);
}

static void must_deny(struct policy *p, const char *why)
{
	if (!policy_fault(p) || !strstr(policy_fault(p), why))
		fail_msg("'%s' is not in '%s'", why, policy_fault(p) ? policy_fault(p) : "-");
	assert_false(allows(p, "a.com"));
	assert_false(allows(p, "own.com"));
	policy_free(p);
}

static void two_sealed_files_are_a_policy(void **state)
{
	struct both b = both_of(TEXT);
	struct policy *p = open_both(
		put(b.bytes[0], b.n[0], SEALS), put(b.bytes[POLICY_OWN], b.n[POLICY_OWN], SEALS));

	assert_null(policy_fault(p));
	assert_true(allows(p, "a.com"));
	assert_true(allows(p, "own.com"));
	assert_true(allows(p, "crl7.b.com"));
	assert_true(allows(p, "9.9.9.9"));
	assert_false(allows(p, "bad.b.com"));
	policy_free(p);
	both_done(&b);
}

static void what_table_make_gives_cannot_be_changed(void **state)
{
	struct rules rules = parse(TEXT);
	struct table_wish wish = {.part = POLICY_ALL, .rules = &rules};
	AUTO_FREE uint32_t *pick = table_pick(&rules, NULL, &wish.n);
	int fd;

	wish.pick = pick;
	fd = table_make(&wish);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GET_SEALS) & SEALS, SEALS);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_int_equal(write(fd, "x", 1), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_true(mmap(NULL, 64, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	fd_close(&fd);
	rules_done(&rules);
}

static void each_part_must_be_there_and_sealed(void **state)
{
	struct both b = both_of(TEXT);

	must_deny(open_both(-1, put(b.bytes[POLICY_OWN], b.n[POLICY_OWN], SEALS)),
		"for all sandboxes: missing");
	must_deny(open_both(put(b.bytes[0], b.n[0], SEALS), -1), "of this sandbox: missing");
	must_deny(open_both(put(b.bytes[0], b.n[0], SEALS), put("", 0, SEALS)), "empty");
	for (unsigned seal = F_SEAL_SEAL; seal <= F_SEAL_WRITE; seal <<= 1)
		must_deny(open_both(put(b.bytes[0], b.n[0], (int)(SEALS & ~seal)),
				  put(b.bytes[POLICY_OWN], b.n[POLICY_OWN], SEALS)),
			"not sealed");
	must_deny(open_both(open("/dev/null", O_RDONLY),
			  put(b.bytes[POLICY_OWN], b.n[POLICY_OWN], SEALS)),
		"not sealed");
	/* Each in the other's place. */
	must_deny(open_both(put(b.bytes[POLICY_OWN], b.n[POLICY_OWN], SEALS),
			  put(b.bytes[0], b.n[0], SEALS)),
		"damaged");
	both_done(&b);
}

static void a_truncated_or_half_written_table_denies(void **state)
{
	struct both b = both_of(TEXT);
	uint8_t *half = xcalloc(b.n[0], 1);

	for (size_t n = 0; n < b.n[0]; n += n < 600 ? 1 : 61)
		must_deny(open_both(put(b.bytes[0], n, SEALS),
				  put(b.bytes[POLICY_OWN], b.n[POLICY_OWN], SEALS)),
			n == 0 ? "empty" : "truncated");
	/* The sections are written, the head is not. */
	memcpy(half + 600, (uint8_t *)b.bytes[0] + 600, b.n[0] - 600);
	must_deny(open_both(put(half, b.n[0], SEALS),
			  put(b.bytes[POLICY_OWN], b.n[POLICY_OWN], SEALS)),
		"not a table");
	free(half);
	both_done(&b);
}

static void another_format_or_build_denies(void **state)
{
	struct both b = both_of(TEXT);
	struct table_head *head = b.bytes[POLICY_OWN];

	head->format++;
	must_deny(open_both(put(b.bytes[0], b.n[0], SEALS),
			  put(b.bytes[POLICY_OWN], b.n[POLICY_OWN], SEALS)),
		"another version");
	head->format--;
	head->build[1] ^= 1;
	must_deny(open_both(put(b.bytes[0], b.n[0], SEALS),
			  put(b.bytes[POLICY_OWN], b.n[POLICY_OWN], SEALS)),
		"another version");
	both_done(&b);
}

static int make_state(const struct table_wish *wish)
{
	int fd = table_make(wish);

	assert_true(fd >= 0);
	return fd;
}

static void a_fault_and_no_policy_are_told_apart(void **state)
{
	struct table_wish none = {.part = POLICY_ALL, .unset = true};
	struct table_wish fault = {.part = POLICY_ALL, .fault = "line 3: \x1b[31mbroken"};
	struct both b = both_of(TEXT);
	struct policy_op op = {.kind = RULE_NETWORK, .port = 443, .now_ms = 1};
	struct policy_decision d;
	struct policy *p =
		open_both(make_state(&none), put(b.bytes[POLICY_OWN], b.n[POLICY_OWN], SEALS));
	struct host host;

	assert_int_equal(host_from_wire(slice_from_str("own.com"), &host, NULL), 0);
	op.host = &host;
	policy_decide(p, &op, &d);
	assert_int_equal(d.why, POLICY_NO_POLICY);
	must_deny(p, "no network policy is set");
	must_deny(open_both(make_state(&fault), put(b.bytes[POLICY_OWN], b.n[POLICY_OWN], SEALS)),
		"line 3: ?[31mbroken");
	both_done(&b);
}

/* A sandbox that only installs software: its own allow rules, and everyone's deny rules. */
static void only_own_allow_rules_count_in_a_closed_sandbox(void **state)
{
	struct both b = both_of(TEXT "allow network bad.b.com for sandbox demo\n");
	struct policy *p;

	free(b.bytes[POLICY_OWN]);
	b.bytes[POLICY_OWN] = build(&b.rules, POLICY_OWN, true, &b.n[POLICY_OWN]);
	p = open_both(
		put(b.bytes[0], b.n[0], SEALS), put(b.bytes[POLICY_OWN], b.n[POLICY_OWN], SEALS));
	assert_null(policy_fault(p));
	assert_false(allows(p, "a.com"));
	assert_true(allows(p, "own.com"));
	assert_false(allows(p, "bad.b.com"));
	policy_free(p);
	both_done(&b);
}

static void other_sandboxes_rules_are_in_no_part(void **state)
{
	struct both b = both_of("allow network a.com\nallow network secret-host.com for sandbox "
				"other id hidden-id\n");

	for (size_t i = 0; i < POLICY_N_PARTS; i++) {
		assert_null(memmem(b.bytes[i], b.n[i], "secret-host", 11));
		assert_null(memmem(b.bytes[i], b.n[i], "hidden-id", 9));
	}
	both_done(&b);
}

static void too_many_patterns_are_the_fault_of_one_part(void **state)
{
	AUTO_FREE char *text = xstrdup("allow network a.com\n");
	struct both b;

	for (int i = 0; i <= POLICY_MAX_GLOBS; i++) {
		AUTO_FREE char *old = TAKE(text);

		text = xasprintf("%sallow network p%d*.x.com for sandbox demo\n", old, i);
	}
	b = both_of(text);
	must_deny(open_both(put(b.bytes[0], b.n[0], SEALS),
			  put(b.bytes[POLICY_OWN], b.n[POLICY_OWN], SEALS)),
		"more than 128 patterns");
	both_done(&b);
}

/* Random bytes in random places of a large table: no crash, and a fault never allows. */
static void no_damage_leads_out_of_the_table(void **state)
{
	struct random_state rs = {7};
	AUTO_RULES struct rules rules = {0};
	size_t n[POLICY_N_PARTS];
	void *bytes[POLICY_N_PARTS];

	random_rules_wide(&rs, 300, &rules);
	for (size_t i = 0; i < 40; i++)
		random_rule(&rs, &rules);
	for (size_t i = 0; i < POLICY_N_PARTS; i++)
		bytes[i] = build(&rules, (enum policy_part)i, false, &n[i]);
	for (size_t round = 0; round < 3000; round++) {
		void *copy[POLICY_N_PARTS];
		struct policy *p;

		for (size_t i = 0; i < POLICY_N_PARTS; i++) {
			copy[i] = aligned_alloc(TABLE_ALIGN, n[i]);
			memcpy(copy[i], bytes[i], n[i]);
		}
		for (size_t k = random_below(&rs, 60); k > 0; k--) {
			size_t part = random_below(&rs, 8) ? POLICY_ALL : 1 + random_below(&rs, 2);
			size_t from = random_below(&rs, 4) ? sizeof(struct table_head) : 90;

			((uint8_t *)copy[part])[from +
						random_below(&rs, (uint32_t)(n[part] - from))] =
				(uint8_t)random_below(&rs, 256);
		}
		p = policy_from(copy, n);
		for (size_t k = 0; k < 40; k++) {
			struct policy_decision d;
			struct policy_op op;
			struct host host;
			char text[POLICY_MAX_EXPLAIN];

			if (k % 2)
				random_op_wide(&rs, 300, &host, &op);
			else
				random_op(&rs, &host, &op);
			policy_decide(p, &op, &d);
			assert_false(d.allowed && (d.why != POLICY_RULE || policy_fault(p)));
			policy_explain(&op, &d, text, sizeof(text));
		}
		policy_free(p);
	}
	for (size_t i = 0; i < POLICY_N_PARTS; i++)
		free(bytes[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_sealed_files_are_a_policy),
		cmocka_unit_test(what_table_make_gives_cannot_be_changed),
		cmocka_unit_test(each_part_must_be_there_and_sealed),
		cmocka_unit_test(a_truncated_or_half_written_table_denies),
		cmocka_unit_test(another_format_or_build_denies),
		cmocka_unit_test(a_fault_and_no_policy_are_told_apart),
		cmocka_unit_test(only_own_allow_rules_count_in_a_closed_sandbox),
		cmocka_unit_test(other_sandboxes_rules_are_in_no_part),
		cmocka_unit_test(too_many_patterns_are_the_fault_of_one_part),
		cmocka_unit_test(no_damage_leads_out_of_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
