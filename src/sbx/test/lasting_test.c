/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "src/sbx/rewind/lasting.h"

static struct audit_event event(const char *type, const char *path, const char *op)
{
	return (struct audit_event){.kind = AUDIT_KIND_DECISION,
		.decision = AUDIT_ALLOW,
		.type = slice_from_str(type),
		.host = slice_from_str("api.example"),
		.port = 443,
		.path = slice_from_str(path),
		.op = slice_from_str(op)};
}

static enum lasting_kind kind_of(const struct audit_event *ev)
{
	AUTO_LASTING struct lasting l = {0};

	lasting_add(&l, ev);
	return l.n ? l.rows[0].kind : LASTING_NONE;
}

static void each_decision_has_its_kind(void **state)
{
	static const struct {
		const char *type, *path, *op;
		enum lasting_kind kind;
	} rows[] = {
		{"https", "forward", "GET /a", LASTING_NONE},
		{"http", "forward", "HEAD /a", LASTING_NONE},
		{"http", "forward", "OPTIONS *", LASTING_NONE},
		{"https", "forward", "POST /a", LASTING_REQUEST},
		{"https", "transparent", "PUT /a", LASTING_REQUEST},
		{"https", "forward", "PATCH /a", LASTING_REQUEST},
		{"https", "forward", "DELETE /a", LASTING_REQUEST},
		{"https", "forward", "GETX /a", LASTING_REQUEST},
		{"https", "forward", "get /a", LASTING_REQUEST},
		{"https", "forward", "MKCOL /a", LASTING_REQUEST},
		{"https", "forward", "POST /u/r.git/git-receive-pack", LASTING_PUSH},
		{"https", "forward", "POST /u/r.git/git-upload-pack", LASTING_REQUEST},
		{"https", "forward", "GET /u/r.git/git-receive-pack", LASTING_NONE},
		{"tcp", "transparent", "", LASTING_CONNECTION},
		{"https", "forward-bypass", "", LASTING_CONNECTION},
		{"https", "transparent", "", LASTING_CONNECTION},
		{"https", "forward", "", LASTING_NONE},
		{"new-type", "transparent", "", LASTING_CONNECTION},
		{"dns", "network", "", LASTING_NONE},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct audit_event ev = event(rows[i].type, rows[i].path, rows[i].op);

		if (kind_of(&ev) != rows[i].kind)
			fail_msg("%s %s '%s'", rows[i].type, rows[i].path, rows[i].op);
		ev.decision = AUDIT_DENY;
		assert_int_equal(kind_of(&ev), LASTING_NONE);
	}
}

static void other_records_have_theirs(void **state)
{
	struct audit_event sign = {.kind = AUDIT_KIND_SIGNATURE, .decision = AUDIT_ALLOW};
	struct audit_event keep = {.kind = AUDIT_KIND_CREDENTIAL_USE,
		.decision = AUDIT_ALLOW,
		.action = slice_from_str("keep")};
	struct audit_event file = {.kind = AUDIT_KIND_DECISION,
		.decision = AUDIT_ALLOW,
		.action = slice_from_str(AUDIT_ACTION_GUARD),
		.type = slice_from_str("reported"),
		.op = slice_from_str("write Makefile")};
	struct audit_event life = {.kind = AUDIT_KIND_LIFECYCLE, .action = slice_from_str("start")};

	assert_int_equal(kind_of(&sign), LASTING_SIGNATURE);
	assert_int_equal(kind_of(&keep), LASTING_TOKEN);
	assert_int_equal(kind_of(&file), LASTING_FILE);
	assert_int_equal(kind_of(&life), LASTING_NONE);
	keep.action = slice_from_str("use");
	assert_int_equal(kind_of(&keep), LASTING_CREDENTIAL);
	keep.action = slice_from_str("pass");
	sign.decision = file.decision = AUDIT_DENY;
	assert_int_equal(kind_of(&keep), LASTING_NONE);
	assert_int_equal(kind_of(&sign), LASTING_NONE);
	assert_int_equal(kind_of(&file), LASTING_NONE);
}

static void what_the_user_did_has_its_kind(void **state)
{
	static const struct {
		enum audit_kind kind;
		const char *action;
		enum lasting_kind want;
	} rows[] = {
		{AUDIT_KIND_LIFECYCLE, "stage-apply", LASTING_APPLY},
		{AUDIT_KIND_LIFECYCLE, "stage-undo", LASTING_UNDO},
		{AUDIT_KIND_LIFECYCLE, "stage-review", LASTING_NONE},
		{AUDIT_KIND_LIFECYCLE, "stage-discard", LASTING_NONE},
		{AUDIT_KIND_POLICY_CHANGE, "publish", LASTING_PORT},
		{AUDIT_KIND_POLICY_CHANGE, "unpublish", LASTING_NONE},
		{AUDIT_KIND_POLICY_CHANGE, "rule-add", LASTING_NONE},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct audit_event ev = {
			.kind = rows[i].kind, .action = slice_from_str(rows[i].action)};

		if (kind_of(&ev) != rows[i].want)
			fail_msg("%s", rows[i].action);
	}
}

static void each_apply_has_a_row_with_its_files(void **state)
{
	AUTO_LASTING struct lasting l = {0};
	struct audit_event ev = {.kind = AUDIT_KIND_LIFECYCLE,
		.action = slice_from_str("stage-apply"),
		.op = slice_from_str("a, b"),
		.reason = slice_from_str("bundle sha256 00"),
		.count = 2};

	lasting_add(&l, &ev);
	lasting_add(&l, &ev);
	ev.op = (struct slice){0}; /* as older versions recorded it */
	lasting_add(&l, &ev);
	assert_int_equal(l.n, 3);
	assert_string_equal(l.rows[0].what, "a, b");
	assert_int_equal(l.rows[0].count, 2);
	assert_string_equal(l.rows[2].what, "bundle sha256 00");
}

static void equal_effects_are_counted(void **state)
{
	AUTO_LASTING struct lasting l = {0};
	struct audit_event post = event("https", "forward", "POST /a"),
			   put = event("https", "forward", "PUT /a"),
			   get = event("https", "forward", "GET /a");

	lasting_add(&l, &post);
	lasting_add(&l, &get);
	post.count = 4;
	lasting_add(&l, &post);
	lasting_add(&l, &put);
	assert_int_equal(l.n, 2);
	assert_int_equal(l.rows[0].count, 5);
	assert_string_equal(l.rows[0].target, "api.example:443");
	assert_string_equal(l.rows[0].what, "POST /a");
	assert_string_equal(l.rows[1].what, "PUT /a");
}

/* The guest chooses the path. */
static void nothing_of_the_guest_moves_the_terminal(void **state)
{
	AUTO_LASTING struct lasting l = {0};
	struct audit_event ev = event("https", "forward", "POST /\x1b[2J\n\xff");

	lasting_add(&l, &ev);
	assert_string_equal(l.rows[0].what, "POST /?[2J??");
}

static void the_list_is_bounded(void **state)
{
	AUTO_LASTING struct lasting l = {0};

	for (int i = 0; i < LASTING_MAX + 7; i++) {
		AUTO_FREE char *op = xasprintf("POST /%d", i);
		struct audit_event ev = event("https", "forward", op);

		lasting_add(&l, &ev);
	}
	assert_int_equal(l.n, LASTING_MAX);
	assert_int_equal(l.more, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_decision_has_its_kind),
		cmocka_unit_test(other_records_have_theirs),
		cmocka_unit_test(what_the_user_did_has_its_kind),
		cmocka_unit_test(each_apply_has_a_row_with_its_files),
		cmocka_unit_test(equal_effects_are_counted),
		cmocka_unit_test(nothing_of_the_guest_moves_the_terminal),
		cmocka_unit_test(the_list_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
