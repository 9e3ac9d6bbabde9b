/* SPDX-License-Identifier: Apache-2.0 */
/* What a pack must be: each line of the format, right and wrong. */
#include "lib/rules/pack/pack.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "lib/base/mem.h"

#define HEAD                                                                       \
	"api 1\nservice demo\nabout a demo\nhost api.example.com:443\nversion 1\n" \
	"object thing thing/{id}\nobject all all\n"
#define ROW "op read thing.get GET /things/{id} on thing\n"
#define CASES                                           \
	"case GET /things/7 = read thing.get thing/7\n" \
	"case POST /things/7 = unknown\n"

static int parse(const char *text, char *why)
{
	AUTO_PACK struct pack p = {0};
	struct err err = {0};
	int r = pack_parse(slice_from_str(text), "demo.api", &p, &err);

	if (r < 0)
		assert_null(p.name);
	snprintf(why, ERR_MAX_TEXT, "%s", err.text);
	return r;
}

static void accept(const char *text)
{
	char why[ERR_MAX_TEXT];

	if (parse(text, why) < 0)
		fail_msg("%s\nin:\n%s", why, text);
}

static void refuse(const char *text, const char *expected)
{
	char why[ERR_MAX_TEXT];

	if (parse(text, why) == 0)
		fail_msg("accepted, but expected '%s':\n%s", expected, text);
	if (!strstr(why, expected))
		fail_msg("'%s' does not contain '%s'", why, expected);
}

static void refuse_row(const char *row, const char *expected)
{
	AUTO_FREE char *text = xasprintf(HEAD "%s\n" CASES "end\n", row);

	refuse(text, expected);
}

static void a_pack_is_read(void **state)
{
	accept(HEAD ROW CASES "end\n");
	accept("# a comment\n" HEAD "# one more\n" ROW CASES "\nend\n");
}

static void a_pack_is_whole(void **state)
{
	refuse(HEAD ROW CASES, "the line 'end' is missing");
	refuse("api 2\n" ROW "end\n", "must begin with the line 'api 1'");
	refuse("api 1\nservice demo\nend\n", "must be present");
	refuse(HEAD ROW CASES "color red\nend\n", "line 11: unknown keyword 'color'");
	refuse(HEAD "service other\n" ROW CASES "end\n", "expected 'service NAME' once");
	refuse(HEAD "host api.example.com:443\n" ROW CASES "end\n", "duplicate host");
	refuse(HEAD "host api.example.com\n" ROW CASES "end\n", "expected 'host HOST:PORT'");
	refuse(HEAD "host API.example.com:443\n" ROW CASES "end\n", "lower case");
	refuse(HEAD "host *.com:443\n" ROW CASES "end\n", "lower case with a dot, also after '*.'");
	refuse(HEAD "host 10.0.0.1:443\n" ROW CASES "end\n", "must be a name");
	refuse(HEAD "host a.*.example.com:443\n" ROW CASES "end\n", "line 8: ");
	refuse(HEAD "object thing x\n" ROW CASES "end\n", "duplicate object");
	refuse(HEAD "object x {a\n" ROW CASES "end\n", "expected 'object NAME TEXT");
	refuse(HEAD "override header\n" ROW CASES "end\n", "expected 'override form'");
}

static void a_row_is_exact(void **state)
{
	refuse_row("op bad thing.get GET /things/{id} on thing", "unknown risk 'bad'");
	refuse_row("op read get GET /things/{id} on thing", "invalid verb 'get'");
	refuse_row("op read a.b.c GET /things/{id} on thing", "invalid verb 'a.b.c'");
	refuse_row("op read thing.get get /things/{id} on thing", "invalid method 'get'");
	refuse_row("op read thing.get HEAD /things/{id} on thing", "a row for GET matches HEAD");
	refuse_row("op read thing.get GET things/{id} on thing", "must begin with '/'");
	refuse_row("op read thing.get GET /things//{id} on thing", "empty segment");
	refuse_row("op read thing.get GET /things/../{id} on thing", "invalid segment '..'");
	refuse_row("op read thing.get GET /things/{id}/{id} on thing", "duplicate placeholder");
	refuse_row("op read thing.get GET /things/{ID} on thing", "invalid placeholder");
	refuse_row("op read thing.get GET /things/%41/{id} on thing", "invalid segment '%41'");
	refuse_row("op read thing.get GET /things/{id} on nothing", "expected 'on OBJECT'");
	refuse_row("op read thing.get GET /things/{key} on thing", "is named 'id'");
	refuse_row("op read thing.get GET /things/{id} on thing hurry", "unexpected 'hurry'");
	refuse_row("op read thing.get GET /things/{id} on thing show a", "NAME=SOURCE");
	refuse_row("op read thing.get GET /things/{id} on thing show a=b", "SOURCE:PLACE");
	refuse_row("op read thing.get GET /things/{id} on thing show a=b:c", "unknown source 'b'");
	refuse_row("op read thing.get GET /things/{id} on thing show a=path:b", "no placeholder");
	refuse_row("op read thing.get GET /things/{id} on thing show a=json:b", "JSON pointer");
	refuse_row("op read thing.get GET /things/{id} on thing show id=query:a", "a new NAME");
	refuse_row("op read thing.get GET /things/{id} on thing say \"{x}\"", "is named 'x'");
	refuse_row("op read thing.get GET /things/{id} on thing say \"{id\"", "not paired");
	refuse_row(
		"op read thing.get GET /things/{id} on thing say now", "expected 'say \"TEXT\"'");
	refuse_row("op read thing.get GET /things/{id} on thing when path id=7", "expected 'when");
	refuse_row("op read thing.get GET /things/{id} on thing when query a", "expected 'when");
}

/* A row for a rest must not be the one that allows a write. */
static void a_rest_is_for_reading(void **state)
{
	refuse_row("op write thing.put PUT /things/** on all", "must have the risk read and GET");
	refuse_row("op read thing.put POST /things/** on all", "must have the risk read and GET");
	refuse_row("op write thing.get GET /things/** on all", "must have the risk read and GET");
	refuse_row("op write thing.put PUT /{x}/{rest**} on all", "next to a fixed segment");
	refuse_row("op read thing.get GET /a/**/b on all", "must be the last segment");
	refuse_row("op read thing.get GET /a/{x**}/b/{y**} on all", "two parts with **");
}

static void rows_do_not_compete(void **state)
{
	const char *why = "lines 8 and 9: one request can match both rows";

	refuse_row(ROW "op write thing.put GET /things/{name} on all", why);
	refuse_row("op read a.a GET /a/{x}/c on all\nop read a.b GET /a/b/{y} on all", why);
	refuse_row("op read a.a GET /a/{x**}/c on all\nop read a.b GET /a/b/{y} on all", why);
	refuse_row(ROW "op read a.b GET /THINGS/{x} on all", why);
	refuse_row("op read a.a GET /a on all when query x=a*\n"
		   "op read a.b GET /a on all when query x=*b",
		why);
	refuse_row("op read a.a GET /a on all when query x=1\n"
		   "op read a.b GET /a on all when query y=1",
		why);
	accept(HEAD ROW "op read a.a GET /a on all when query x=a*\n"
			"op read a.b GET /a on all when query x=b*\n"
			"op read a.c GET /a on all\n" CASES "case GET /a?x=az = read a.a all\n"
			"case GET /a?x=bz = read a.b all\ncase GET /a?x=c = read a.c all\n"
			"case POST /a = unknown\nend\n");
}

static void a_row_has_a_case_and_a_near_miss(void **state)
{
	refuse(HEAD ROW "end\n", "line 8: the row has no case that reaches it");
	refuse(HEAD ROW "case GET /things/7 = read thing.get thing/7\nend\n",
		"line 8: the row has no near miss");
	refuse(HEAD ROW "case GET /things/7 = read thing.get thing/7\n"
			"case DELETE /elsewhere/far/away = unknown\nend\n",
		"line 8: the row has no near miss");
	accept(HEAD ROW "case GET /things/7 = read thing.get thing/7\n"
			"case GET /things/7/8 = unknown\nend\n");
}

static void a_case_is_run(void **state)
{
	refuse(HEAD ROW CASES "case GET /things/8 = read thing.get thing/7\nend\n",
		"line 11: the case expects 'read thing.get thing/7', the pack has 'read thing.get "
		"thing/8'");
	refuse(HEAD ROW CASES "case GET /things/8 = unknown\nend\n", "line 11: the case expects");
	refuse(HEAD ROW CASES "case GET /things/%zz = unknown\nend\n", "invalid target");
	refuse(HEAD ROW CASES "case GET = unknown\nend\n", "expected 'case METHOD TARGET");
	refuse(HEAD ROW CASES "case GET /things/8\nend\n", "expected 'case METHOD TARGET");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pack_is_read),
		cmocka_unit_test(a_pack_is_whole),
		cmocka_unit_test(a_row_is_exact),
		cmocka_unit_test(a_rest_is_for_reading),
		cmocka_unit_test(rows_do_not_compete),
		cmocka_unit_test(a_row_has_a_case_and_a_near_miss),
		cmocka_unit_test(a_case_is_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
