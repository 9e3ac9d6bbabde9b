/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables that keepers get, against naive.c: random edits, files that other programs write,
 * restarts of sbxd, rules that expire. Each sandbox's policy is opened as its keeper and its egress
 * open it.
 */
#include "src/sbxd/policy/tables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/rules/policy/test/naive.h"
#include "lib/rules/policy/test/random_rules.h"

#define ROUNDS 400
#define MAX_RULES 14
#define TARGETS 60

static const char *const names[] = {"one", "two", "three"};

static char dir[] = "/tmp/tables_test.XXXXXX";
static struct rulebook book;
static struct tables tables;

/* What one sandbox's keeper holds, until sbxd sends it other tables. */
struct holder {
	int files[POLICY_N_PARTS];
	struct policy *gate, *egress;
};

static int set_up(void **state)
{
	AUTO_FREE char *path = NULL;

	(void)strcpy(dir, "/tmp/tables_test.XXXXXX");
	assert_non_null(mkdtemp(dir));
	setenv("XDG_STATE_HOME", dir, 1);
	path = paths_get(PATHS_STATE, NULL);
	assert_int_equal(paths_make(path, NULL), 0);
	book = (struct rulebook){0};
	tables_init(&tables);
	return 0;
}

static int tear_down(void **state)
{
	AUTO_FREE char *rm = xasprintf("rm -rf %s", dir);

	tables_done(&tables);
	rulebook_done(&book);
	return system(rm);
}

static void put_text(const char *text)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "policy");

	assert_int_equal(file_save(path, slice_from_str(text), NULL), 0);
	book.fresh = false; /* two writes within a tick of the clock */
}

static void get_spec(const char *name, struct spec *ret)
{
	*ret = (struct spec){0};
	(void)snprintf(ret->name, sizeof(ret->name), "%s", name);
}

/* As reload.c, netpolicy.c and control.c: the same files for both. */
static void reload(struct holder *h, const char *name)
{
	struct spec spec;
	int files[POLICY_N_PARTS];

	get_spec(name, &spec);
	assert_int_equal(tables_get(&tables, &book, &spec, files), 0);
	fd_close(&h->files[POLICY_OWN]);
	fd_close(&h->files[POLICY_ALL]);
	fd_close(&h->files[POLICY_MANAGED]);
	h->files[POLICY_OWN] = files[POLICY_OWN];
	h->files[POLICY_ALL] = dup(files[POLICY_ALL]);
	h->files[POLICY_MANAGED] = dup(files[POLICY_MANAGED]);
	policy_free(h->gate);
	policy_free(h->egress);
	h->gate = policy_open(h->files);
	h->egress = policy_open(h->files);
}

static void holder_done(struct holder *h)
{
	fd_close(&h->files[POLICY_OWN]);
	fd_close(&h->files[POLICY_ALL]);
	fd_close(&h->files[POLICY_MANAGED]);
	policy_free(h->gate);
	policy_free(h->egress);
}

static bool decides(const struct policy *p, const struct policy_op *op)
{
	struct policy_decision d;

	policy_decide(p, op, &d);
	return d.allowed;
}

static void compare(struct random_state *rs, const struct holder *h, const char *name,
	const struct rules *rules)
{
	struct naive_rule list[MAX_RULES + 2];

	assert_null(policy_fault(h->gate));
	for (size_t i = 0; i < rules->n; i++)
		list[i] =
			(struct naive_rule){&rules->rule[i], rule_print_resources(&rules->rule[i])};
	for (size_t i = 0; i < TARGETS; i++) {
		struct policy_op op;
		struct host host;
		bool want;

		random_op(rs, &host, &op);
		want = naive_decide(list, rules->n, name, &op);
		assert_int_equal(decides(h->gate, &op), want);
		assert_int_equal(decides(h->egress, &op), want);
	}
	for (size_t i = 0; i < rules->n; i++)
		free((void *)list[i].resources);
}

/* The rules as sbxd has them, by way of the file's text. */
static struct rules copy_rules(void)
{
	AUTO_FREE char *text = rules_encode(&book.rules, RULE_PRINT_ALL);
	struct rules copy = {0};

	assert_int_equal(rules_decode(slice_from_str(text), "copy", &copy, NULL), 0);
	return copy;
}

static void commit(void)
{
	assert_int_equal(rulebook_prepare(&book, NULL), 0);
	assert_int_equal(rulebook_commit(&book, NULL), 0);
}

static void edit(struct random_state *rs)
{
	struct rules *rules = &book.rules;

	rulebook_refresh(&book);
	switch (random_below(rs, 6)) {
	case 0: /* sbxd is restarted */
		tables_done(&tables);
		rulebook_done(&book);
		book = (struct rulebook){0};
		rulebook_refresh(&book);
		break;
	case 1: /* an edit that fails leaves nothing behind */
		random_rule(rs, rules);
		rulebook_abandon(&book);
		break;
	case 2:
		(void)rulebook_move_scope(rules, "two", random_below(rs, 2) ? "three" : NULL);
		commit();
		break;
	case 3: { /* another program writes the file */
		AUTO_FREE char *text = NULL;

		if (rules->n < MAX_RULES)
			random_rule(rs, rules);
		text = rules_encode(rules, RULE_PRINT_ALL);
		put_text(text);
		break;
	}
	default:
		if (rules->n >= MAX_RULES)
			rulebook_drop_over(rules, 3);
		if (rules->n < MAX_RULES)
			random_rule(rs, rules);
		commit();
	}
	rulebook_refresh(&book);
	while (book.rules.n > MAX_RULES)
		rule_done(&book.rules.rule[--book.rules.n]);
}

static void every_sandbox_decides_as_the_naive_matcher(void **state)
{
	struct holder h[ARRAY_LEN(names)];
	struct random_state rs = {11};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		h[i] = (struct holder){.files = {-1, -1}};
	put_text("policy 1\n\nend\n");
	for (size_t round = 0; round < ROUNDS; round++) {
		AUTO_RULES struct rules now = {0};

		edit(&rs);
		now = copy_rules();
		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			/* One keeper may miss a reload: it keeps a whole policy. */
			if (round > 0 && random_below(&rs, 8) == 0)
				continue;
			reload(&h[i], names[i]);
			compare(&rs, &h[i], names[i], &now);
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		holder_done(&h[i]);
}

static bool allows(const struct policy *p, const char *name)
{
	struct policy_op op = {.kind = RULE_NETWORK, .port = 443, .now_ms = 1};
	struct host host;

	assert_int_equal(host_from_wire(slice_from_str(name), &host, NULL), 0);
	op.host = &host;
	return decides(p, &op);
}

static void what_cannot_be_read_denies(void **state)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "policy");
	struct holder h = {.files = {-1, -1}};

	reload(&h, "one");
	assert_non_null(strstr(policy_fault(h.gate), "no network policy is set"));
	put_text("policy 1\nallow network a.com\n"); /* truncated */
	reload(&h, "one");
	assert_non_null(strstr(policy_fault(h.egress), "policy"));
	assert_false(allows(h.gate, "a.com") || allows(h.egress, "a.com"));
	put_text("policy 1\nallow network a.com\nend\n");
	reload(&h, "one");
	assert_true(allows(h.gate, "a.com") && allows(h.egress, "a.com"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	(void)alarm(10);
	reload(&h, "one");
	(void)alarm(0);
	assert_false(allows(h.gate, "a.com") || allows(h.egress, "a.com"));
	holder_done(&h);
}

static void one_file_for_all_and_one_for_each(void **state)
{
	struct holder a = {.files = {-1, -1}}, b = {.files = {-1, -1}};
	struct stat x, y;

	put_text("policy 1\nallow network all.com\nallow network a.com for sandbox one\n"
		 "allow network b.com for sandbox two\nend\n");
	reload(&a, "one");
	reload(&b, "two");
	assert_int_equal(fstat(a.files[POLICY_ALL], &x), 0);
	assert_int_equal(fstat(b.files[POLICY_ALL], &y), 0);
	assert_int_equal(x.st_ino, y.st_ino);
	assert_int_equal(fstat(b.files[POLICY_OWN], &y), 0);
	assert_int_not_equal(x.st_ino, y.st_ino);
	assert_true(allows(a.gate, "a.com") && allows(a.gate, "all.com"));
	assert_false(allows(a.gate, "b.com"));
	assert_true(allows(b.gate, "b.com"));
	holder_done(&a);
	holder_done(&b);
}

static void a_sandbox_that_only_installs_has_its_own_list(void **state)
{
	char *only[] = {(char *)"npm.example:443", (char *)"no.com"};
	struct spec spec;
	int files[POLICY_N_PARTS];
	struct policy *p;

	put_text("policy 1\nallow network **\ndeny network no.com\n"
		 "allow network x.com for sandbox one\nend\n");
	get_spec("one", &spec);
	spec.only = only;
	spec.n_only = 2;
	assert_int_equal(tables_get(&tables, &book, &spec, files), 0);
	p = policy_open(files);
	assert_true(policy_is_closed(p));
	assert_true(allows(p, "npm.example"));
	assert_false(allows(p, "no.com") || allows(p, "x.com") || allows(p, "y.com"));
	policy_free(p);
	fd_close(&files[POLICY_OWN]);
	only[0] = (char *)"*"; /* not a resource */
	assert_int_equal(tables_get(&tables, &book, &spec, files), 0);
	p = policy_open(files);
	assert_non_null(policy_fault(p));
	assert_false(allows(p, "npm.example") || allows(p, "y.com"));
	policy_free(p);
	fd_close(&files[POLICY_OWN]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			every_sandbox_decides_as_the_naive_matcher, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_denies, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			one_file_for_all_and_one_for_each, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_sandbox_that_only_installs_has_its_own_list, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
