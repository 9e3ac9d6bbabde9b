/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/sbx/template/dockerfile.h"
#include "lib/base/mem.h"

static void check_base_with(const char *text, const char *const *args, const char *want)
{
	CLEANUP(dockerfile_done) struct dockerfile d = {0};
	struct err err;

	if (dockerfile_parse(text, args, &d, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	assert_string_equal(dockerfile_base(&d), want);
}

static void check_base(const char *text, const char *want)
{
	check_base_with(text, NULL, want);
}

static void test_from(void **state)
{
	check_base("FROM a", "a");
	check_base("# c\n\n  from   a:1 \r\nRUN x\n", "a:1");
	check_base("FROM --platform=linux/amd64 a AS b\n", "a");
	check_base("FROM \\\n  # inside\n\n a\n", "a");
	check_base("RUN echo \\\nFROM b\nFROM a\n", "a");
}

static void test_last_stage_counts(void **state)
{
	check_base("FROM golang AS build\nRUN x\nFROM debian\nCOPY --from=build a b\n", "debian");
	check_base("FROM one AS Base\nFROM two AS other\nFROM base\n", "one");
	/* only earlier stages are found, so a stage's own name is an image */
	check_base("FROM me AS me\n", "me");
	check_base("FROM x AS a\nFROM a AS a\nFROM a\n", "x");
}

static void test_arguments(void **state)
{
	static const char *const given[] = {"TAG=7", NULL};

	check_base("ARG TAG=3\nFROM a:$TAG\n", "a:3");
	check_base("ARG TAG=\"3\"\nFROM a:${TAG}-x\n", "a:3-x");
	check_base("FROM a:${TAG:-4}\n", "a:4");
	check_base("FROM a:${TAG-4}$\n", "a:4");
	check_base_with("ARG TAG=3\nFROM a:${TAG:-4}\n", given, "a:7");
}

static void test_here_documents_hide_lines(void **state)
{
	check_base(
		"FROM a\nRUN <<EOF\nFROM b\nEOF\nCOPY <<-\"X\" <<Y /t\n\tFROM c\n\tX\nFROM d\nY\n",
		"a");
	check_base("FROM a\nRUN <<EOF\nx\nEOF\nFROM b\n", "b");
	check_base("FROM a\nRUN cat <<EOF\nnever ends\nFROM b\n", "a");
}

static void test_syntax_line_loses_its_meaning(void **state)
{
	CLEANUP(dockerfile_done) struct dockerfile d = {0};
	struct err err;

	assert_int_equal(
		dockerfile_parse("# syntax = docker/dockerfile:1\n# escape=`\nFROM a `\n AS b\n",
			NULL, &d, &err),
		0);
	assert_true(d.had_syntax);
	assert_null(strstr(d.text, "syntax"));
	assert_non_null(strstr(d.text, "\n# escape=`\nFROM a"));
	assert_string_equal(d.stages[0].name, "b");
	dockerfile_done(&d);
	/* after a comment it is a comment */
	assert_int_equal(dockerfile_parse("# hello\n# syntax=x\nFROM a\n", NULL, &d, &err), 0);
	assert_false(d.had_syntax);
}

static void test_refused(void **state)
{
	static const char *const bad[] = {"", "# only\n", "RUN x\n", "FROM\n", "FROM a as\n",
		"FROM a b c\n", "FROM $NONE\n", "FROM --x\n"};
	struct dockerfile d;
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(dockerfile_parse(bad[i], NULL, &d, &err), -EINVAL);
		assert_null(d.text);
	}
}

static void test_bounds(void **state)
{
	size_t n = 200000;
	AUTO_FREE char *text = xcalloc(1, n + 1);
	struct dockerfile d;
	struct err err;

	for (size_t i = 0; i + 7 <= n; i += 7)
		memcpy(text + i, "FROM a\n", 7);
	assert_int_equal(dockerfile_parse(text, NULL, &d, &err), -EINVAL);
	memset(text, 'x', n);
	memcpy(text, "FROM ", 5);
	assert_int_equal(dockerfile_parse(text, NULL, &d, &err), -EINVAL);
	memset(text, '$', n);
	memcpy(text, "FROM ", 5);
	assert_int_equal(dockerfile_parse(text, NULL, &d, &err), -EINVAL);
}

static void check_kind(const char *ref, enum dockerfile_from kind, const char *want)
{
	char name[64];

	assert_int_equal(dockerfile_kind(ref, name, sizeof(name)), kind);
	assert_string_equal(name, want);
}

static void test_kinds(void **state)
{
	check_kind("docker/sandbox-templates:shell-docker", DOCKERFILE_SANDBOX, "shell-docker");
	check_kind("docker.io/docker/sandbox-templates", DOCKERFILE_SANDBOX, "");
	check_kind("docker/sandbox-templates@sha256:1", DOCKERFILE_SANDBOX, "");
	check_kind("docker/sandbox-templates-evil:1", DOCKERFILE_OTHER, "");
	check_kind("sbx/mine", DOCKERFILE_TEMPLATE, "mine");
	check_kind("sbx/mine:latest", DOCKERFILE_TEMPLATE, "mine");
	check_kind("sbx/a/b", DOCKERFILE_OTHER, "");
	check_kind("sbx/", DOCKERFILE_OTHER, "");
	check_kind("host.example/sbx/mine", DOCKERFILE_OTHER, "");
	check_kind("debian:12", DOCKERFILE_OTHER, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_from),
		cmocka_unit_test(test_last_stage_counts),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_here_documents_hide_lines),
		cmocka_unit_test(test_syntax_line_loses_its_meaning),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
