/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "src/prove/prove_probe.h"

#define HEAD "# title: T\n# tried: this\n# means: that\n"

static int parse(const char *group, const char *text, struct probe *p, struct err *err)
{
	*p = (struct probe){0};
	return probe_parse(slice_from_str(text), group, "name", "F", p, err);
}

static void test_a_whole_one(void **state)
{
	struct err err = {0};
	struct probe p;

	(void)state;
	assert_int_equal(
		parse("files",
			"# title: No keys\n# tried: reading\n#   and listing\n# means: Why it "
			"matters.\n# quick: yes\n# on: twin\n# seconds: 20\n#: before\ngive a b\n"
			"#: inside\nsaw x\n# a remark\n\n#: outside\nsaw y\n",
			&p, &err),
		0);
	assert_string_equal(p.id, "files/name");
	assert_string_equal(p.title, "No keys");
	assert_string_equal(p.tried, "reading and listing");
	assert_string_equal(p.means, "Why it matters.");
	assert_true(p.quick && p.twin);
	assert_int_equal(p.seconds, 20);
	assert_string_equal(p.part[PROBE_BEFORE], "give a b\n");
	assert_string_equal(p.part[PROBE_INSIDE], "saw x\n# a remark\n\n");
	assert_string_equal(p.part[PROBE_OUTSIDE], "saw y\n");
	probe_done(&p);
}

static void test_defaults(void **state)
{
	struct err err = {0};
	struct probe p;

	(void)state;
	assert_int_equal(parse("host", HEAD "#: outside\nsaw y", &p, &err), 0);
	assert_false(p.quick || p.twin);
	assert_int_equal(p.seconds, PROBE_SECONDS);
	assert_null(p.part[PROBE_INSIDE]);
	assert_string_equal(p.part[PROBE_OUTSIDE], "saw y");
	probe_done(&p);
}

static void test_what_is_refused(void **state)
{
	static const struct {
		const char *group, *text, *says;
	} rows[] = {
		{"files", "# title: T\n# tried: x\n#: inside\nsaw\n", "F:1: means is missing"},
		{"files", HEAD "# colour: red\n#: inside\nsaw\n", "F:4: unknown key 'colour'"},
		{"files", HEAD "# title: again\n#: inside\nsaw\n", "F:4: duplicate key title"},
		{"files", HEAD "# quick: maybe\n#: inside\nsaw\n",
			"F:4: invalid quick: expected yes or no"},
		{"files", HEAD "# on: moon\n#: inside\nsaw\n",
			"F:4: invalid on: expected twin or sandbox"},
		{"files", HEAD "# seconds: 181\n#: inside\nsaw\n",
			"F:4: invalid seconds: expected 1 to 180"},
		{"files", HEAD "# seconds:\n#: inside\nsaw\n", "F:4: missing value of seconds"},
		{"files", HEAD "saw x\n#: inside\nsaw\n", "F:4: invalid header line"},
		{"files", HEAD "# what\n#: inside\nsaw\n", "F:4: expected '# key: value'"},
		{"files", "#   on\n#: inside\nsaw\n", "F:1: continuation line"},
		{"files", HEAD, "F:3: no part: expected"},
		{"files", HEAD "#: within\nsaw\n", "F:4: unknown part 'within'"},
		{"files", HEAD "#: inside\nsaw\n#: insde\nsaw\n", "F:6: unknown part 'insde'"},
		{"files", HEAD "#: outside\nsaw\n#: inside\nsaw\n", "F:6: parts must be before"},
		{"files", HEAD "#: inside\nsaw\n#: inside\nsaw\n", "F:6: parts must be before"},
		{"files", HEAD "#: inside\n\n\n", "F:4: part inside is empty"},
		{"files", HEAD "#: inside\n", "F:4: part inside is empty"},
		{"files", HEAD "#: before\ntrue\n", "missing part inside or outside"},
		{"files", HEAD "# again: files/x\n#: before\ntrue\n", "F:4: again requires"},
		{"recovery", HEAD "#: before\ntrue\n#: inside\nsaw\n", "missing '# on: twin'"},
		{"files", HEAD "# alone: yes\n#: inside\nsaw\n", "F:4: alone requires"},
		{"moon", HEAD "#: inside\nsaw\n", "unknown group 'moon'"},
		{"files", "", "not a text file"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = {0};
		struct probe p;

		assert_true(parse(rows[i].group, rows[i].text, &p, &err) < 0);
		if (!strstr(err.text, rows[i].says))
			fail_msg("%s\n  is not: %s", err.text, rows[i].says);
		assert_null(p.id);
	}
}

static void test_sizes(void **state)
{
	AUTO_FREE char *title = xcalloc(1, PROBE_MAX_VALUE + 100), *text = NULL;
	AUTO_FREE char *big = xcalloc(1, PROBE_MAX_FILE + 2);
	struct err err = {0};
	struct probe p = {0};

	(void)state;
	memset(title, 'x', PROBE_MAX_TITLE + 1);
	text = xasprintf("# title: %s\n# tried: a\n# means: b\n#: inside\nsaw\n", title);
	assert_true(parse("files", text, &p, &err) < 0);
	assert_non_null(strstr(err.text, "title is longer than"));
	free(text);
	memset(title, 'x', PROBE_MAX_VALUE + 1);
	text = xasprintf("# title: a\n# tried: %s\n# means: b\n#: inside\nsaw\n", title);
	assert_true(parse("files", text, &p, &err) < 0);
	assert_non_null(strstr(err.text, "F:2: tried is longer than"));
	memset(big, '\n', PROBE_MAX_FILE + 1);
	assert_int_equal(parse("files", big, &p, &err), -EFBIG);
	assert_int_equal(
		probe_parse(slice_of("# title: a\0b\n", 13), "files", "n", "F", &p, &err), -EINVAL);
}

static void test_control_characters_go(void **state)
{
	struct err err = {0};
	struct probe p;

	(void)state;
	assert_int_equal(
		parse("files", "# title: a\033[31mb\n# tried: x\n# means: y\n#: inside\nsaw\n", &p,
			&err),
		0);
	assert_string_equal(p.title, "a?[31mb");
	probe_done(&p);
}

/* ---- directories ---- */

static char top[64];

static void put(const char *path, const char *text)
{
	AUTO_FREE char *whole = xasprintf("%s/%s", top, path);
	struct err err;

	for (char *p = whole + strlen(top) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		(void)mkdir(whole, 0700);
		*p = '/';
	}
	assert_int_equal(file_save(whole, slice_from_str(text), &err), 0);
}

static int make_top(void **state)
{
	(void)state;
	(void)snprintf(top, sizeof(top), "/tmp/prove_probe_test.XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int remove_top(void **state)
{
	AUTO_FREE char *command = xasprintf("rm -rf %s", top);

	(void)state;
	return system(command);
}

static int load(const char *folder, bool own, struct probes *set, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/%s", top, folder);
	int r = prove_probes_load(set, path, own, err);

	return r < 0 ? r : prove_probes_check(set, err);
}

static void test_folders(void **state)
{
	AUTO_PROBES struct probes set = {0};
	struct err err = {0};

	(void)state;
	put("ours/files/b", HEAD "#: inside\nsaw\n");
	put("ours/files/a", HEAD "#: inside\nsaw\n");
	put("ours/files/.hidden", "x");
	put("ours/files/a~", "x");
	put("ours/prelude/inside", "x");
	put("ours/README", "x");
	put("ours/recovery/r", HEAD "# on: twin\n# again: files/a\n#: before\ntrue\n");
	put("own/files/mine", HEAD "#: inside\nsaw\n");
	assert_int_equal(load("ours", false, &set, &err), 0);
	assert_int_equal(load("own", true, &set, &err), 0);
	assert_int_equal(load("nowhere", true, &set, &err), 0);
	assert_int_equal(set.n, 4);
	assert_string_equal(set.v[0]->id, "files/a");
	assert_false(set.v[0]->own);
	assert_true(prove_probes_find(&set, "files/mine")->own);
	assert_null(prove_probes_find(&set, "files/none"));
}

static void test_folders_that_are_refused(void **state)
{
	static const struct {
		const char *path, *text, *says;
	} rows[] = {
		{"bad1/files/a", HEAD "#: inside\nsaw\n", "a built-in probe files/a exists"},
		{"bad2/moon/x", HEAD "#: inside\nsaw\n", "bad2/moon: unknown group"},
		{"bad3/files/Upper", HEAD "#: inside\nsaw\n", "invalid probe name"},
		{"bad4/files/x", "nothing", "bad4/files/x:1: invalid header line"},
		{"bad5/recovery/x", HEAD "# on: twin\n# again: files/none\n#: before\ntrue\n",
			"again: probe files/none not found"},
	};

	(void)state;
	put("ours/files/a", HEAD "#: inside\nsaw\n");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_PROBES struct probes set = {0};
		AUTO_FREE char *folder = xstrndup(rows[i].path, strcspn(rows[i].path, "/"));
		struct err err = {0};

		put(rows[i].path, rows[i].text);
		assert_int_equal(load("ours", false, &set, &err), 0);
		assert_true(load(folder, true, &set, &err) < 0);
		if (!strstr(err.text, rows[i].says))
			fail_msg("%s\n  is not: %s", err.text, rows[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_whole_one),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_control_characters_go),
		cmocka_unit_test_setup_teardown(test_folders, make_top, remove_top),
		cmocka_unit_test_setup_teardown(
			test_folders_that_are_refused, make_top, remove_top),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
