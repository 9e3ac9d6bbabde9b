/* SPDX-License-Identifier: Apache-2.0 */
/* Many packs together, and those that are shipped; the argument is the directory of data files. */
#include "lib/rules/pack/packs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <cmocka.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"

static const char *shipped;

/* Requests with another method than GET that only read, each of them reviewed. */
static const char *const reads[] = {
	"anthropic POST message.count-tokens",
	"github POST attestation.list-bulk",
	"github POST markdown.render",
	"github POST markdown.render-raw",
	"github POST release.generate-notes",
	"gitlab POST ci.create-lint",
	"gitlab POST markdown.create",
	"npm POST audit.advisories",
	"npm POST audit.full",
	"npm POST audit.quick",
	"openai POST moderation.create",
	"openai POST response.count-tokens",
};

static void write_pack(const char *folder, const char *file, const char *name, const char *host)
{
	AUTO_FREE char *path = xasprintf("%s/%s", folder, file);
	AUTO_FREE char *text = xasprintf("api 1\nservice %s\nabout x\nhost %s:443\nobject o o\n"
					 "op read o.get GET /o on o\ncase GET /o = read o.get o\n"
					 "case PUT /o = unknown\nend\n",
		name, host);

	assert_int_equal(file_save(path, slice_from_str(text), NULL), 0);
}

/* A program keeps its packs until it exits. */
static void free_packs(struct packs *set)
{
	for (size_t i = 0; i < set->n; i++)
		pack_done(&set->v[i]);
	for (size_t i = 0; i < set->n_faults; i++)
		free(set->fault[i]);
}

static void load_from(struct packs *set, const char *share, const char *config)
{
	struct err err = {0};

	assert_int_equal(setenv("SBX_SHARE", share, 1), 0);
	assert_int_equal(setenv("XDG_CONFIG_HOME", config, 1), 0);
	if (packs_load_installed(set, &err) < 0)
		fail_msg("%s", err.text);
}

static void shipped_ones_are_right(void **state)
{
	static const char *const names[] = {
		"anthropic", "github", "gitlab", "npm", "openai", "registry"};
	CLEANUP(free_packs) struct packs set = {0};

	load_from(&set, shipped, "/nonexistent");
	for (size_t i = 0; i < set.n_faults; i++)
		fail_msg("%s", set.fault[i]);
	assert_int_equal(set.n, ARRAY_LEN(names));
	for (size_t i = 0; i < set.n; i++)
		assert_string_equal(set.v[i].name, names[i]);
}

static void check_read(const struct pack *p, const struct pack_row *row, bool *seen)
{
	AUTO_FREE char *text = xasprintf("%s %.*s %.*s", p->name, (int)row->method.n, row->method.p,
		(int)row->verb.n, row->verb.p);

	for (size_t i = 0; i < ARRAY_LEN(reads); i++)
		if (strcmp(reads[i], text) == 0) {
			seen[i] = true;
			return;
		}
	fail_msg("line %u of %s: '%s' is a write by its method and not in the reviewed list",
		row->line, p->name, text);
}

/* And GET is never more than a request that returns a credential. */
static void no_write_is_a_read(void **state)
{
	CLEANUP(free_packs) struct packs set = {0};
	bool seen[ARRAY_LEN(reads)] = {false};

	load_from(&set, shipped, "/nonexistent");
	for (size_t i = 0; i < set.n; i++)
		for (size_t k = 0; k < set.v[i].n_rows; k++) {
			const struct pack_row *row = &set.v[i].row[k];
			bool is_get = slice_eq_str(row->method, "GET");

			if (!is_get && row->risk == PACK_READ)
				check_read(&set.v[i], row, seen);
			if (is_get)
				assert_true(row->risk == PACK_READ || row->risk == PACK_CREDENTIAL);
		}
	for (size_t i = 0; i < ARRAY_LEN(reads); i++)
		if (!seen[i])
			fail_msg("no row '%s'", reads[i]);
}

static void no_mutation_is_a_read(void **state)
{
	CLEANUP(free_packs) struct packs set = {0};
	size_t n = 0;

	load_from(&set, shipped, "/nonexistent");
	for (size_t i = 0; i < set.n; i++)
		for (size_t k = 0; k < set.v[i].n_fields; k++, n++) {
			const struct pack_row *row = &set.v[i].field[k];
			bool is_query = slice_eq_str(row->method, "query");

			assert_int_equal(is_query, row->risk == PACK_READ);
		}
	assert_true(n > 80);
}

static void find_fault(const struct packs *set, const char *file, const char *why)
{
	for (size_t i = 0; i < set->n_faults; i++)
		if (strstr(set->fault[i], file) && strstr(set->fault[i], why))
			return;
	fail_msg("no fault '%s' of %s", why, file);
}

static void own_packs_never_replace_shipped_ones(void **state)
{
	char one[] = "/tmp/sbx-packs-XXXXXX", two[] = "/tmp/sbx-packs-XXXXXX";
	AUTO_FREE char *apis = NULL, *own = NULL, *own_apis = NULL;
	CLEANUP(free_packs) struct packs set = {0};

	assert_non_null(mkdtemp(one));
	assert_non_null(mkdtemp(two));
	apis = xasprintf("%s/apis", one);
	own = xasprintf("%s/sbx", two);
	own_apis = xasprintf("%s/apis", own);
	assert_int_equal(mkdir(apis, 0700), 0);
	assert_int_equal(mkdir(own, 0700), 0);
	assert_int_equal(mkdir(own_apis, 0700), 0);
	write_pack(apis, "aa.api", "aa", "a.example.com");
	write_pack(own_apis, "aa.api", "aa", "x.example.com");
	write_pack(own_apis, "bb.api", "bb", "a.example.com");
	write_pack(own_apis, "cc.api", "cc", "c.example.com");
	write_pack(own_apis, "dd.api", "ee", "d.example.com");
	write_pack(apis, "ww.api", "ww", "*.wild.example");
	write_pack(own_apis, "xx.api", "xx", "a.wild.example");
	write_pack(own_apis, "yy.api", "yy", "a.b.wild.example");
	write_pack(own_apis, ".hidden.api", "hidden", "h.example.com");
	load_from(&set, one, two);
	assert_int_equal(set.n, 4);
	assert_string_equal(packs_of_host(&set, slice_from_str("a.example.com"), 443)->name, "aa");
	assert_string_equal(packs_of_host(&set, slice_from_str("c.example.com"), 443)->name, "cc");
	assert_null(packs_of_host(&set, slice_from_str("a.example.com"), 80));
	assert_null(packs_of_host(&set, slice_from_str("x.example.com"), 443));
	assert_false(set.own[0]);
	assert_string_equal(packs_of_host(&set, slice_from_str("x.wild.example"), 443)->name, "ww");
	assert_null(packs_of_host(&set, slice_from_str("wild.example"), 443));
	assert_true(set.own[2]);
	find_fault(&set, "xx.api", "host a.wild.example is already in the pack 'ww'");
	assert_int_equal(set.n_faults, 4);
	find_fault(&set, "aa.api", "already has a pack");
	find_fault(&set, "bb.api", "host a.example.com is already in the pack 'aa'");
	find_fault(&set, "dd.api", "does not match the file name");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shipped_ones_are_right),
		cmocka_unit_test(no_write_is_a_read),
		cmocka_unit_test(no_mutation_is_a_read),
		cmocka_unit_test(own_packs_never_replace_shipped_ones),
	};

	shipped = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
