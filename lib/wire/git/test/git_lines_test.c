/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include "lib/base/mem.h"
#include "lib/wire/git/gitadvert.h"
#include "lib/wire/git/gitcommands.h"
#include "lib/wire/git/gitref.h"
#include "lib/wire/git/pktline.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define ZERO "0000000000000000000000000000000000000000"

struct text {
	char p[200000];
	size_t n;
};

static void append(void *arg, struct slice bytes)
{
	struct text *t = arg;

	assert_true(t->n + bytes.n < sizeof(t->p));
	if (bytes.n > 0)
		memcpy(t->p + t->n, bytes.p, bytes.n);
	t->n += bytes.n;
	t->p[t->n] = 0;
}

/* Lines of a body: each is given its length; "0000" is a flush. `|` is a NUL. */
static struct text *lines(const char *const *list)
{
	static struct text t;

	t.n = 0;
	for (; *list; list++) {
		char line[4096];
		size_t n = strlen(*list);

		if (strcmp(*list, "0000") == 0) {
			pktline_mark(append, &t, PKTLINE_FLUSH);
			continue;
		}
		memcpy(line, *list, n + 1);
		for (size_t i = 0; i < n; i++)
			if (line[i] == '|')
				line[i] = 0;
		pktline_put(append, &t, slice_of(line, n));
	}
	return &t;
}
#define LINES(...) lines((const char *const[]){__VA_ARGS__, NULL})

/* ---- lines ---- */

static void lengths_that_git_refuses_are_refused(void **state)
{
	static const char *const wrong[] = {"0003", "00g0", "fff1", "ffff", " 010", "-001", "0x10"};

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct pktline_reader r;
		struct slice in = slice_from_str(wrong[i]), line;

		pktline_init(&r);
		assert_int_equal(pktline_read(&r, &in, &line), -EBADMSG);
		in = slice_from_str("0000");
		assert_int_equal(pktline_read(&r, &in, &line), -EBADMSG);
	}
}

static void lines_arrive_in_any_pieces(void **state)
{
	const char *text = "0009hello0000000400010002000aWORLD!";
	static const int want[] = {PKTLINE_DATA, PKTLINE_FLUSH, PKTLINE_DATA, PKTLINE_DELIM,
		PKTLINE_END, PKTLINE_DATA};

	for (size_t step = 1; step <= strlen(text); step++) {
		struct pktline_reader r;
		size_t n = 0, data = 0;

		pktline_init(&r);
		for (size_t at = 0; at < strlen(text); at += step) {
			struct slice in = slice_of(text + at, MIN(step, strlen(text) - at)), line;
			int event;

			while ((event = pktline_read(&r, &in, &line)) != PKTLINE_MORE) {
				assert_true(n < ARRAY_LEN(want));
				assert_int_equal(event, want[n++]);
				data += event == PKTLINE_DATA ? line.n : 0;
			}
		}
		assert_int_equal(n, ARRAY_LEN(want));
		assert_int_equal(data, 11);
		assert_true(pktline_is_between(&r));
	}
}

static void the_longest_line_passes(void **state)
{
	static struct text t;
	static uint8_t data[PKTLINE_MAX_DATA];
	struct pktline_reader r;
	struct slice in, line;

	t.n = 0;
	pktline_put(append, &t, slice_of(data, sizeof(data)));
	assert_memory_equal(t.p, "fff0", 4);
	pktline_init(&r);
	in = slice_of(t.p, t.n);
	assert_int_equal(pktline_read(&r, &in, &line), PKTLINE_DATA);
	assert_int_equal(line.n, sizeof(data));
}

/* ---- names ---- */

static void names_of_refs_are_those_of_receive_pack(void **state)
{
	static const char *const good[] = {"refs/heads/main", "refs/heads/agent/x",
		"refs/tags/v1.0", "refs/heads/@", "refs/for/main", "refs/heads/\xc3\xa9",
		"refs/heads/a@b", "refs/a/-b"};
	static const char *const bad[] = {"", "HEAD", "refs/", "refs/heads", "refs/heads/", "main",
		"/refs/heads/a", "refs//a/b", "refs/heads/a..b", "refs/heads/.a", "refs/heads/a.",
		"refs/heads/a.lock", "refs/heads/a.lock/b", "refs/heads/a b", "refs/heads/a~",
		"refs/heads/a^", "refs/heads/a:b", "refs/heads/a?", "refs/heads/*", "refs/heads/[a",
		"refs/heads/a\\b", "refs/heads/a@{b", "refs/heads/a\x7f", "refs/heads/a\nb",
		"Refs/heads/a"};

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(gitref_is_valid(slice_from_str(good[i])));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (gitref_is_valid(slice_from_str(bad[i])))
			fail_msg("accepted: %s", bad[i]);
}

/* ---- the advertisement ---- */

static int rewrite(const struct text *in, size_t step, struct text *out, struct err *err)
{
	static struct gitadvert a;
	int r = 0;

	out->n = 0;
	gitadvert_init(&a);
	for (size_t at = 0; r == 0 && at < in->n; at += step)
		r = gitadvert_read(
			&a, slice_of(in->p + at, MIN(step, in->n - at)), append, out, err);
	return r < 0 ? r : gitadvert_end(&a);
}

static bool has(const struct text *t, const char *what)
{
	return memmem(t->p, t->n, what, strlen(what)) != NULL;
}

static void the_advertisement_gets_no_thin_and_loses_what_cannot_be_read(void **state)
{
	static struct text out;

	for (size_t step = 1; step < 400; step += 7) {
		struct text *in = LINES("# service=git-receive-pack\n", "0000",
			A " refs/heads/main|report-status push-cert=123 push-options atomic "
			  "side-band-64k object-format=sha1 x-unknown agent=git/2.39\n",
			B " refs/heads/x\n", "0000");

		assert_int_equal(rewrite(in, step, &out, NULL), 0);
		assert_true(has(&out, "no-thin report-status atomic side-band-64k "
				      "object-format=sha1 agent=git/2.39\n"));
		assert_true(has(&out, B " refs/heads/x\n0000"));
		assert_false(has(&out, "push-"));
		assert_false(has(&out, "unknown"));
	}
}

static void an_empty_repository_and_version_1_are_read(void **state)
{
	static struct text out;

	assert_int_equal(rewrite(LINES("# service=git-receive-pack\n", "0000", "version 1",
					 ZERO " capabilities^{}|report-status no-thin", "0000"),
				 9, &out, NULL),
		0);
	assert_true(has(&out, "no-thin report-status\n"));
	assert_true(has(&out, "version 1"));
}

static void a_sha256_repository_is_refused_with_a_sentence(void **state)
{
	static struct text out;

	assert_int_equal(rewrite(LINES("# service=git-receive-pack\n", "0000",
					 A "000000000000000000000000 refs/heads/main|report-status "
					   "object-format=sha256\n",
					 "0000"),
				 SIZE_MAX / 2, &out, NULL),
		0);
	assert_true(has(&out, "ERR sbx: this repository has SHA-256 object names"));
	assert_false(has(&out, "refs/heads/main"));
}

static void other_answers_are_no_advertisement(void **state)
{
	static struct text out;

	assert_int_equal(
		rewrite(LINES("# service=git-upload-pack\n", "0000"), 5, &out, NULL), -EBADMSG);
	assert_int_equal(rewrite(LINES("# service=git-receive-pack\n", "0000", "version 2\n"), 5,
				 &out, NULL),
		-EBADMSG);
	assert_int_equal(rewrite(LINES("# service=git-receive-pack\n", "0000",
					 A " refs/heads/main|report-status\n"),
				 5, &out, NULL),
		-EBADMSG); /* cut off */
	assert_int_equal(rewrite(LINES("# service=git-receive-pack\n", "0000",
					 A " refs/heads/main|a\n", "not a ref", "0000"),
				 5, &out, NULL),
		-EBADMSG);
}

/* ---- commands ---- */

static int read_body(struct gitcommands *c, const struct text *t, size_t step, struct err *err)
{
	int r = GITCOMMANDS_MORE;

	gitcommands_init(c);
	for (size_t at = 0; r == GITCOMMANDS_MORE && at < t->n; at += step) {
		struct slice in = slice_of(t->p + at, MIN(step, t->n - at));

		r = gitcommands_read(c, &in, err);
	}
	return r;
}

static void commands_are_read_in_any_pieces(void **state)
{
	static struct gitcommands c;

	for (size_t step = 1; step < 300; step += 3) {
		struct text *t = LINES(ZERO " " A " refs/heads/new|report-status side-band-64k",
			A " " B " refs/heads/main\n", A " " ZERO " refs/tags/v1", "0000");

		assert_int_equal(read_body(&c, t, step, NULL), GITCOMMANDS_DONE);
		assert_int_equal(c.n, 3);
		assert_true(gitcommand_is_create(&c.list[0]));
		assert_string_equal(c.list[1].name, "refs/heads/main");
		assert_true(gitcommand_is_delete(&c.list[2]));
		assert_true(c.has_report && c.has_band);
		gitcommands_done(&c);
	}
}

static void the_pack_stays_in_the_input(void **state)
{
	static struct gitcommands c;
	struct text *t = LINES(ZERO " " A " refs/heads/new|report-status", "0000");
	struct slice in;

	append(t, slice_from_str("PACK0000"));
	in = slice_of(t->p, t->n);
	gitcommands_init(&c);
	assert_int_equal(gitcommands_read(&c, &in, NULL), GITCOMMANDS_DONE);
	assert_true(slice_eq_str(in, "PACK0000"));
	gitcommands_done(&c);
}

static void a_flush_alone_is_a_probe(void **state)
{
	static struct gitcommands c;

	assert_int_equal(read_body(&c, LINES("0000"), 1, NULL), GITCOMMANDS_PROBE);
}

static void what_is_not_read_completely_is_refused(void **state)
{
	static struct gitcommands c;
	static const struct {
		const char *line[3], *say;
		int r;
	} rows[] = {
		{{"shallow " A, "0000"}, "unshallow", -ENOTSUP},
		{{"push-cert|report-status", "0000"}, "signed", -ENOTSUP},
		{{A " " B " refs/heads/a|report-status push-options", "0000"}, "options", -ENOTSUP},
		{{A " " B " refs/heads/a|object-format=sha256", "0000"}, "SHA-256", -ENOTSUP},
		{{A " " B " refs/heads/a|new-thing", "0000"}, "not offered", -ENOTSUP},
		{{A " " B " refs/heads/a", A " " B " refs/heads/b|report-status"}, "malformed",
			-EBADMSG},
		{{A " " B " refs/heads/a|x|y", "0000"}, "capabilities", -EBADMSG},
		{{A " " B " refs/heads/a", A " " B " refs/heads/a"}, "twice", -EBADMSG},
		{{ZERO " " ZERO " refs/heads/a", "0000"}, "neither", -EBADMSG},
		{{A " " B " HEAD", "0000"}, "invalid ref", -EBADMSG},
		{{A "  " B " refs/heads/a", "0000"}, "malformed", -EBADMSG},
		{{A " " B "\trefs/heads/a", "0000"}, "malformed", -EBADMSG},
		{{"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA " B " refs/heads/a", "0000"},
			"malformed", -EBADMSG},
		{{"", "0000"}, "malformed", -EBADMSG},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = {0};
		struct text *t = LINES(rows[i].line[0], rows[i].line[1], rows[i].line[2]);

		assert_int_equal(read_body(&c, t, SIZE_MAX / 2, &err), rows[i].r);
		if (!strstr(err.text, rows[i].say))
			fail_msg("row %zu: %s", i, err.text);
		gitcommands_done(&c);
	}
}

static void more_than_a_thousand_refs_are_refused(void **state)
{
	static struct gitcommands c;
	static struct text t;
	struct err err = {0};

	t.n = 0;
	for (int i = 0; i <= GITCOMMANDS_MAX; i++) {
		char line[200];
		int n = snprintf(line, sizeof(line), "%s %s refs/heads/%d", A, B, i);

		pktline_put(append, &t, slice_of(line, (size_t)n));
	}
	assert_int_equal(read_body(&c, &t, SIZE_MAX / 2, &err), -E2BIG);
	gitcommands_done(&c);
}

static void a_refusal_is_in_the_words_of_git(void **state)
{
	static struct gitcommands c;
	static struct text out;
	const char *why[] = {"needs approval K7QD", "the push was refused"};

	out.n = 0;
	assert_int_equal(read_body(&c,
				 LINES(A " " B " refs/heads/main|report-status side-band-64k",
					 A " " B " refs/heads/x", "0000"),
				 SIZE_MAX / 2, NULL),
		GITCOMMANDS_DONE);
	assert_int_equal(gitreport_refuse(&c, "sbx: denied\n", why, append, &out), 0);
	assert_true(has(&out, "0011\2sbx: denied\n"));
	assert_true(has(&out, "\1"
			      "000eunpack ok\n"));
	assert_true(has(&out, "ng refs/heads/main needs approval K7QD\n"));
	assert_true(has(&out, "ng refs/heads/x the push was refused\n"));
	assert_memory_equal(out.p + out.n - 13,
		"0009\1"
		"00000000",
		13);
	gitcommands_done(&c);
}

static void without_a_report_there_is_no_refusal_in_git(void **state)
{
	static struct gitcommands c;
	static struct text out;
	const char *why[] = {"no"};

	assert_int_equal(
		read_body(&c, LINES(A " " B " refs/heads/main", "0000"), SIZE_MAX / 2, NULL),
		GITCOMMANDS_DONE);
	assert_int_equal(gitreport_refuse(&c, "x", why, append, &out), -ENOTSUP);
	gitcommands_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_that_git_refuses_are_refused),
		cmocka_unit_test(lines_arrive_in_any_pieces),
		cmocka_unit_test(the_longest_line_passes),
		cmocka_unit_test(names_of_refs_are_those_of_receive_pack),
		cmocka_unit_test(the_advertisement_gets_no_thin_and_loses_what_cannot_be_read),
		cmocka_unit_test(an_empty_repository_and_version_1_are_read),
		cmocka_unit_test(a_sha256_repository_is_refused_with_a_sentence),
		cmocka_unit_test(other_answers_are_no_advertisement),
		cmocka_unit_test(commands_are_read_in_any_pieces),
		cmocka_unit_test(the_pack_stays_in_the_input),
		cmocka_unit_test(a_flush_alone_is_a_probe),
		cmocka_unit_test(what_is_not_read_completely_is_refused),
		cmocka_unit_test(more_than_a_thousand_refs_are_refused),
		cmocka_unit_test(a_refusal_is_in_the_words_of_git),
		cmocka_unit_test(without_a_report_there_is_no_refusal_in_git),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
