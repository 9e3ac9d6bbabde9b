/* SPDX-License-Identifier: Apache-2.0 */
#include "src/prove/prove.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/mem.h"

#define EVIL "</pre><script>alert(1)</script>\"'\x01\xff\xe2\x80\xae"

/* Writable, with the lifetime of the block. */
#define S(text) ((char[]){text})

static char title[] = "title of it", tried[] = "trying", means[] = "meaning", inside[] = "in there",
	    outside[] = "out here", why[] = "the reason", none[] = "";
static char demo[] = "demo", some_id[] = "0123456789abcdef", kvm[] = "kvm", tcg[] = "tcg",
	    debian[] = "debian", host[] = "Linux 6.1.0 x86_64", version[] = "0.1", evil[] = EVIL;

static struct prove_result probe(char *id, char *group, enum prove_verdict v)
{
	return (struct prove_result){.id = id,
		.group = group,
		.title = title,
		.tried = tried,
		.means = means,
		.inside = inside,
		.outside = outside,
		.why = v == PROVE_PASS ? none : why,
		.next = none,
		.verdict = v};
}

static struct prove_run run_of(struct prove_result *results, size_t n)
{
	return (struct prove_run){.sandbox = demo,
		.id = some_id,
		.accel = kvm,
		.template = debian,
		.host = host,
		.version = version,
		.begun_ms = 1700000000000,
		.took_ms = 61250,
		.results = results,
		.n = n};
}

static char *page_of(const struct prove_run *run)
{
	FILE *f = tmpfile();
	struct err err;
	char *text;
	long n;

	assert_non_null(f);
	assert_int_equal(prove_html(run, fileno(f), &err), 0);
	n = lseek(fileno(f), 0, SEEK_END);
	assert_true(n > 0);
	rewind(f);
	text = xcalloc(1, (size_t)n + 1);
	assert_int_equal(fread(text, 1, (size_t)n, f), n);
	fclose(f);
	return text;
}

static size_t times(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *at = text; (at = strstr(at, what)); at++)
		n++;
	return n;
}

static void each_probe_is_there_and_red_ones_come_first(void **state)
{
	struct prove_result v[] = {
		probe(S("files/a"), S("files"), PROVE_PASS),
		probe(S("network/b"), S("network"), PROVE_FAIL),
		probe(S("host/c"), S("host"), PROVE_SKIP),
		probe(S("nowhere/d"), S("nowhere"), PROVE_PASS),
	};
	struct prove_run run = run_of(v, 4);
	AUTO_FREE char *page = page_of(&run);

	for (size_t i = 0; i < 4; i++) {
		AUTO_FREE char *id = xasprintf(" id=\"%s\"><summary>", v[i].id);

		assert_int_equal(times(page, id), 1);
	}
	assert_non_null(strstr(page, "<details class=\"fail\" open id=\"network/b\">"));
	assert_true(strstr(page, "id=\"network/b\"") < strstr(page, "id=\"files/a\""));
	assert_non_null(strstr(page, "1 of 3 probes failed"));
	assert_non_null(
		strstr(page, "<body class=\"files-pass kernel-skip airlock-skip network-fail"));
	assert_non_null(strstr(page, ">files 1/1<"));
	assert_non_null(strstr(page, ">kernel \xe2\x80\x93<"));
	assert_null(strstr(page, "@files@"));
	assert_non_null(strstr(page, "2023-11-14 22:13 UTC"));
	assert_non_null(strstr(page, "61.2 s"));
	assert_null(strstr(page, "TCG"));
}

static void what_was_not_tried_is_red(void **state)
{
	struct prove_result v[] = {probe(S("files/a"), S("files"), PROVE_PASS)};
	struct prove_run run = run_of(v, 1);
	AUTO_FREE char *page = NULL;

	v[0].untried = true;
	page = page_of(&run);
	assert_non_null(strstr(page, "<details class=\"fail\" id=\"files/a\">"));
	assert_non_null(strstr(page, "stopped before this probe"));
	assert_non_null(strstr(page, "1 of 1 probes failed"));
}

static void under_emulation_the_first_box_says_so(void **state)
{
	struct prove_result v[] = {probe(S("files/a"), S("files"), PROVE_PASS)};
	struct prove_run run = run_of(v, 1);
	AUTO_FREE char *page = NULL;

	run.accel = tcg;
	page = page_of(&run);
	assert_non_null(strstr(page, "TCG is not an isolation boundary"));
	assert_true(
		strstr(page, "TCG is not an isolation boundary") < strstr(page, "class=\"facts\""));
	assert_non_null(strstr(page, "only remaining isolation layer"));
}

static void a_run_that_was_cut_says_so(void **state)
{
	struct prove_run run = run_of(NULL, 0);
	AUTO_FREE char *page = NULL;

	run.cut = true;
	page = page_of(&run);
	assert_non_null(strstr(page, "No probe ran"));
	assert_non_null(strstr(page, "The run was interrupted"));
}

/* Every text of a run, hostile: it stays plain text. */
static void hostile_texts_stay_texts(void **state)
{
	struct prove_result v[] = {
		{evil, evil, evil, evil, evil, evil, evil, evil, evil, PROVE_FAIL},
		{evil, S("files"), evil, evil, evil, evil, evil, evil, evil, PROVE_SKIP}};
	struct prove_run run = {
		evil, evil, evil, evil, evil, evil, evil, evil, .results = v, .n = 2};
	AUTO_FREE char *page = page_of(&run);

	assert_null(strstr(page, "<script"));
	assert_int_equal(times(page, "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;"), 29);
	assert_null(strchr(page, '\x01'));
	assert_null(strchr(page, '\xff'));
	assert_null(strstr(page, "\xe2\x80\xae"));
	assert_int_equal(times(page, "<pre>"), times(page, "</pre>"));
}

static void no_script_and_nothing_from_elsewhere(void **state)
{
	static const char *const never[] = {"<script", "<iframe", "<img", "<form",
		"http:", "https:", "@import", " style=", "javascript:", " onclick"};
	struct prove_result v[] = {probe(S("files/a"), S("files"), PROVE_PASS)};
	struct prove_run run = run_of(v, 1);
	AUTO_FREE char *page = page_of(&run);

	assert_non_null(strstr(page, "default-src 'none'"));
	assert_non_null(strstr(page, "style-src 'sha256-"));
	for (size_t i = 0; i < ARRAY_LEN(never); i++)
		assert_null(strstr(page, never[i]));
	/* The tips of arrows, within the page. */
	assert_int_equal(times(page, "url("), times(page, "url(#tip)"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_probe_is_there_and_red_ones_come_first),
		cmocka_unit_test(what_was_not_tried_is_red),
		cmocka_unit_test(under_emulation_the_first_box_says_so),
		cmocka_unit_test(a_run_that_was_cut_says_so),
		cmocka_unit_test(hostile_texts_stay_texts),
		cmocka_unit_test(no_script_and_nothing_from_elsewhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
