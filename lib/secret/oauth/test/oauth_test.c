/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/secret/oauth/oauth.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "lib/base/mem.h"

#define TAIL "abcdefgh01234567"
#define S_ACCESS "dm-oat-proxy-managed"
#define S_REFRESH "dm-ort-proxy-managed"

static const char text[] = "service 1\nname demo\nabout Demo\n"
			   "token login.example.com:443 /oauth/token\n"
			   "field access access_token " S_ACCESS "\n"
			   "field access token dm-proxy-managed-*\n"
			   "field refresh refresh_token " S_REFRESH "\n"
			   "field expires expires_in\n"
			   "field unsign id_token\n"
			   "slot api\nhost api.example.com:443\nheader authorization Bearer %s\n"
			   "value access\nend\n";

static struct service service;
static uint8_t out[OAUTH_MAX_REWRITTEN], room[2 * OAUTH_MAX_TOKEN];
static struct slice written;
static struct oauth_tokens tokens;
static struct oauth_request req;

static int rewrite_n(struct slice answer)
{
	struct wr wr = wr_init(out, sizeof(out)), wr_room = wr_init(room, sizeof(room));
	int r = oauth_rewrite(&service, answer, TAIL, &wr, &wr_room, &tokens);

	written = slice_of(out, wr.n);
	return r;
}

static int rewrite(const char *answer)
{
	return rewrite_n(slice_from_str(answer));
}

static void must_become(const char *answer, const char *want)
{
	assert_int_equal(rewrite(answer), 0);
	if (!slice_eq_str(written, want))
		fail_msg("%.*s\nnot\n%s", (int)written.n, (const char *)written.p, want);
}

static bool is(struct slice s, const char *want)
{
	return slice_eq_str(s, want);
}

static void tokens_are_replaced(void **state)
{
	must_become("{\"token_type\":\"Bearer\", \"access_token\" : \"real-A.1_x\",\n"
		    "\t\"expires_in\":28800,\"refresh_token\":\"real-R\",\"n\":1.50e+3,"
		    "\"account\":{\"uuid\":\"u\",\"list\":[1,{\"a\":[]},{}]},\"scope\":\"a b\"}\n",
		"{\"token_type\":\"Bearer\", \"access_token\" : \"" S_ACCESS "\",\n"
		"\t\"expires_in\":28800,\"refresh_token\":\"" S_REFRESH "\",\"n\":1.50e+3,"
		"\"account\":{\"uuid\":\"u\",\"list\":[1,{\"a\":[]},{}]},\"scope\":\"a b\"}\n");
	assert_true(is(tokens.access, "real-A.1_x"));
	assert_true(is(tokens.refresh, "real-R"));
	assert_int_equal(tokens.expires_s, 28800);
}

static void escapes_are_undone(void **state)
{
	must_become("{\"access\\u005ftoken\":\"1\\/\\/0a\\\"b\\u0041\"}",
		"{\"access\\u005ftoken\":\"" S_ACCESS "\"}");
	assert_true(is(tokens.access, "1//0a\"bA"));
	assert_int_equal(tokens.refresh.n, 0);
	/* some readers take names in either case */
	must_become("{\"Access_Token\":\"t\"}", "{\"Access_Token\":\"" S_ACCESS "\"}");
}

static void each_token_has_its_own_tail(void **state)
{
	must_become("{\"token\":\"t1\",\"access_token\":\"t1\"}",
		"{\"token\":\"dm-proxy-managed-" TAIL "\",\"access_token\":\"" S_ACCESS "\"}");
	assert_true(is(tokens.access, "t1"));
	assert_int_equal(rewrite("{\"token\":\"t1\",\"access_token\":\"t2\"}"), -EPROTO);
}

static void a_jwt_loses_its_signature(void **state)
{
	must_become("{\"id_token\":\"eyJh.eyJz-_.c2ln\"}",
		"{\"id_token\":\"eyJh.eyJz-_." OAUTH_SIGNATURE "\"}");
	assert_int_equal(rewrite("{\"id_token\":\"eyJh.eyJz\"}"), -EPROTO);
	assert_int_equal(rewrite("{\"id_token\":\"a.b.c.d\"}"), -EPROTO);
	assert_int_equal(rewrite("{\"id_token\":\"a.b\\u002ec\"}"), -EPROTO);
	must_become("{\"id_token\":null}", "{\"id_token\":null}");
}

static void what_is_no_token_stays(void **state)
{
	must_become("{\"error\":\"invalid_grant\"}", "{\"error\":\"invalid_grant\"}");
	assert_int_equal(tokens.access.n + tokens.refresh.n, 0);
	must_become("{\"refresh_token\":null,\"access_token\":\"\"}",
		"{\"refresh_token\":null,\"access_token\":\"\"}");
	must_become("{}", "{}");
	must_become(" { } ", " { } ");
	must_become("{\"expires_in\":-1}", "{\"expires_in\":-1}");
	assert_int_equal(tokens.expires_s, 0);
	must_become("{\"expires_in\":\"3600\"}", "{\"expires_in\":\"3600\"}");
	assert_int_equal(tokens.expires_s, 3600);
	must_become(
		"{\"expires_in\":99999999999999999999}", "{\"expires_in\":99999999999999999999}");
}

static void tokens_elsewhere_are_refused(void **state)
{
	static const char *const bad[] = {
		"{\"data\":{\"access_token\":\"x\"}}",
		"{\"list\":[{\"refresh_token\":\"x\"}]}",
		"{\"access_token\":\"a\",\"access_token\":\"b\"}",
		"{\"access_token\":\"a\",\"ACCESS_TOKEN\":\"a\"}",
		"{\"access_token\":[\"a\"]}",
		"{\"access_token\":{\"v\":\"a\"}}",
		"{\"access_token\":12}",
		"{\"access_token\":\"a b\"}",
		"{\"access_token\":\"a\\u0000\"}",
		"{\"access_token\":\"a\\u00e9\"}",
		"{\"access_token\":\"a\xc3\xa9\"}",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (rewrite(bad[i]) != -EPROTO)
			fail_msg("%s", bad[i]);
	}
}

static void only_json_is_json(void **state)
{
	static const char *const bad[] = {"", " ", "[]", "\"x\"", "{", "{}}", "{} x", "{,}",
		"{\"a\":1,}", "{\"a\" 1}", "{a:1}", "{'a':1}", "{\"a\":01}", "{\"a\":+1}",
		"{\"a\":1.}", "{\"a\":.5}", "{\"a\":1e}", "{\"a\":tru}", "{\"a\":NaN}",
		"{\"a\":\"\n\"}", "{\"a\":\"\\x\"}", "{\"a\":\"\\u12g4\"}", "{\"a\":\"",
		"{\"a\":[1,]}", "{\"a\":[1}", "{\"a\":{]}", "{\"a\":1 \"b\":2}", "\xef\xbb\xbf{}",
		"{}\0", "{\"access_token\":\"cut"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (rewrite(bad[i]) != -EBADMSG && strcmp(bad[i], "{}") != 0)
			fail_msg("%s", bad[i]);
	}
	assert_int_equal(rewrite_n(slice_of("{}\0", 3)), -EBADMSG);
}

static void depth_and_length_are_bounded(void **state)
{
	AUTO_FREE char *long_one = xcalloc(1, OAUTH_MAX_ANSWER + 2);
	char deep[256] = "{\"a\":";
	size_t n = strlen(deep);

	memset(deep + n, '[', OAUTH_MAX_DEPTH - 1);
	memset(deep + n + OAUTH_MAX_DEPTH - 1, ']', OAUTH_MAX_DEPTH - 1);
	strcat(deep, "}");
	assert_int_equal(rewrite(deep), 0);
	memset(deep + n, '[', OAUTH_MAX_DEPTH);
	memset(deep + n + OAUTH_MAX_DEPTH, ']', OAUTH_MAX_DEPTH);
	strcat(deep, "}");
	assert_int_equal(rewrite(deep), -EBADMSG);
	memset(long_one, ' ', OAUTH_MAX_ANSWER + 1);
	memcpy(long_one, "{}", 2);
	assert_int_equal(rewrite(long_one), -EMSGSIZE);
	memset(long_one, 'a', OAUTH_MAX_TOKEN + 64);
	memcpy(long_one, "{\"access_token\":\"", 17);
	memcpy(long_one + 17 + OAUTH_MAX_TOKEN, "\"}", 3);
	assert_int_equal(rewrite(long_one), 0);
	assert_int_equal(tokens.access.n, OAUTH_MAX_TOKEN);
	memcpy(long_one + 17 + OAUTH_MAX_TOKEN, "a\"}", 4);
	assert_int_equal(rewrite(long_one), -EPROTO);
}

/* ---- requests ---- */

static int judge(enum oauth_form form, const char *body)
{
	return oauth_judge(&service, form, slice_from_str(body), &req);
}

static void must_fill(enum oauth_form form, const char *body, const char *token, const char *want)
{
	uint8_t buf[1024];
	struct wr wr = wr_init(buf, sizeof(buf));

	assert_int_equal(judge(form, body), 0);
	assert_int_equal(req.grant, OAUTH_REFRESH);
	assert_int_equal(oauth_fill(&req, slice_from_str(token), &wr), 0);
	if (!slice_eq_str(slice_of(buf, wr.n), want))
		fail_msg("%.*s", (int)wr.n, (char *)buf);
}

static void the_refresh_token_goes_in(void **state)
{
	must_fill(OAUTH_JSON,
		"{\"grant_type\":\"refresh_token\",\"refresh_token\":\"" S_REFRESH
		"\",\"client_id\":\"c\"}",
		"r/\"\\1",
		"{\"grant_type\":\"refresh_token\",\"refresh_token\":\"r/\\\"\\\\1\","
		"\"client_id\":\"c\"}");
	must_fill(OAUTH_FORM,
		"client_id=c&refresh_token=dm-ort-proxy%2Dmanaged&grant_type=refresh_token",
		"1//a+b=&c",
		"client_id=c&refresh_token=1%2F%2Fa%2Bb%3D%26c&grant_type=refresh_token");
	/* exactly that field: the same text elsewhere stays */
	must_fill(OAUTH_FORM,
		"x=" S_REFRESH "&refresh_token=" S_REFRESH "&grant_type=refresh_token", "R",
		"x=" S_REFRESH "&refresh_token=R&grant_type=refresh_token");
}

static void a_fill_that_cannot_be(void **state)
{
	uint8_t buf[32];
	struct wr wr = wr_init(buf, sizeof(buf));

	assert_int_equal(judge(OAUTH_FORM, "grant_type=authorization_code&code=1"), 0);
	assert_int_equal(oauth_fill(&req, slice_from_str("R"), &wr), -EINVAL);
	assert_int_equal(judge(OAUTH_FORM, "grant_type=refresh_token&refresh_token=" S_REFRESH), 0);
	assert_int_equal(oauth_fill(&req, slice_from_str("a\nb"), &wr), -EINVAL);
	assert_int_equal(oauth_fill(&req, slice_from_str(""), &wr), -EINVAL);
	assert_true(oauth_fill(&req, slice_from_str("R"), &wr) < 0);
}

static void a_login_passes(void **state)
{
	assert_int_equal(judge(OAUTH_JSON, "{\"grant_type\":\"authorization_code\","
					   "\"code\":\"abc\",\"code_verifier\":\"v\"}"),
		0);
	assert_int_equal(req.grant, OAUTH_CODE);
	assert_int_equal(
		judge(OAUTH_FORM, "grant_type=authorization%5Fcode&code=1&refresh_token="), 0);
	assert_int_equal(req.grant, OAUTH_CODE);
	assert_int_equal(judge(OAUTH_FORM, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3A"
					   "device_code&device_code=1"),
		0);
	assert_int_equal(req.grant, OAUTH_DEVICE);
	assert_int_equal(judge(OAUTH_FORM, ""), 0);
	assert_int_equal(req.grant, OAUTH_NO_GRANT);
}

static void foreign_tokens_are_refused(void **state)
{
	static const struct {
		enum oauth_form form;
		const char *body;
		int r;
	} bad[] = {
		{OAUTH_FORM, "grant_type=refresh_token&refresh_token=mine", -EPERM},
		{OAUTH_FORM, "grant_type=refresh_token&refresh_token=" S_REFRESH "x", -EPERM},
		{OAUTH_FORM, "grant_type=refresh_token&refresh_token=" S_ACCESS, -EPERM},
		{OAUTH_FORM, "grant_type=authorization_code&code=1&refresh_token=mine", -EPERM},
		{OAUTH_FORM, "grant_type=authorization_code&access_token=x", -EPERM},
		{OAUTH_FORM, "grant_type=refresh_token&refresh_token=" S_REFRESH "&refresh_token=m",
			-EPERM},
		{OAUTH_FORM, "grant_type=refresh_token&refresh%5ftoken=m", -EPERM},
		{OAUTH_FORM,
			"grant_type=refresh_token&refresh_token=" S_REFRESH
			"&refresh_token=" S_REFRESH,
			-EBADMSG},
		{OAUTH_FORM, "grant_type=refresh_token", -EBADMSG},
		{OAUTH_FORM, "grant_type=authorization_code&refresh_token=" S_REFRESH, -EBADMSG},
		{OAUTH_FORM, "grant_type=refresh_token&x=1;refresh_token=m", -EBADMSG},
		{OAUTH_FORM, "grant_type=refresh_token&refresh_token=%zz", -EBADMSG},
		{OAUTH_FORM, "grant_type=authorization_code&grant_type=authorization_code",
			-EBADMSG},
		{OAUTH_FORM, "a b", -EBADMSG},
		{OAUTH_FORM, "code=1", -ENOTSUP},
		{OAUTH_FORM, "grant_type=password&username=u&password=p", -ENOTSUP},
		{OAUTH_FORM, "grant_type=client_credentials", -ENOTSUP},
		{OAUTH_FORM, "grant_type=urn:ietf:params:oauth:grant-type:token-exchange",
			-ENOTSUP},
		{OAUTH_JSON, "{\"grant_type\":\"refresh_token\",\"refresh_token\":\"mine\"}",
			-EPERM},
		{OAUTH_JSON, "{\"grant_type\":\"refresh_token\",\"Refresh_Token\":\"mine\"}",
			-EPERM},
		{OAUTH_JSON,
			"{\"grant_type\":\"refresh_token\",\"a\":{\"refresh_token\":\"" S_REFRESH
			"\"}}",
			-EPERM},
		{OAUTH_JSON, "{\"grant_type\":\"refresh_token\",\"refresh_token\":[\"x\"]}",
			-EPERM},
		{OAUTH_JSON, "{\"grant_type\":\"refresh_token\",\"refresh_token\":1}", -EBADMSG},
		{OAUTH_JSON, "{\"grant_type\":\"refresh_token\"", -EBADMSG},
		{OAUTH_JSON, "{}", -ENOTSUP},
		{OAUTH_JSON, "grant_type=refresh_token", -EBADMSG},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int r = judge(bad[i].form, bad[i].body);

		if (r != bad[i].r)
			fail_msg("%d: %s", r, bad[i].body);
	}
}

static void queries_carry_no_token(void **state)
{
	assert_int_equal(oauth_judge_query(&service, slice_from_str("")), 0);
	assert_int_equal(
		oauth_judge_query(&service, slice_from_str("service=r&scope=a:b&account=x")), 0);
	assert_int_equal(
		oauth_judge_query(&service, slice_from_str("a=1&refresh_token=x")), -EPERM);
	assert_int_equal(oauth_judge_query(&service, slice_from_str("refresh%5ftoken=x")), -EPERM);
	assert_int_equal(
		oauth_judge_query(&service, slice_from_str("grant_type=password")), -EPERM);
}

static void content_types(void **state)
{
	enum oauth_form form;

	assert_int_equal(
		oauth_parse_type(slice_from_str("Application/JSON; charset=utf-8"), &form), 0);
	assert_int_equal(form, OAUTH_JSON);
	assert_int_equal(
		oauth_parse_type(slice_from_str("application/x-www-form-urlencoded"), &form), 0);
	assert_int_equal(form, OAUTH_FORM);
	assert_int_equal(oauth_parse_type(slice_from_str("multipart/form-data"), &form), -ENOTSUP);
	assert_int_equal(oauth_parse_type(slice_from_str(""), &form), -ENOTSUP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_are_replaced),
		cmocka_unit_test(escapes_are_undone),
		cmocka_unit_test(each_token_has_its_own_tail),
		cmocka_unit_test(a_jwt_loses_its_signature),
		cmocka_unit_test(what_is_no_token_stays),
		cmocka_unit_test(tokens_elsewhere_are_refused),
		cmocka_unit_test(only_json_is_json),
		cmocka_unit_test(depth_and_length_are_bounded),
		cmocka_unit_test(the_refresh_token_goes_in),
		cmocka_unit_test(a_fill_that_cannot_be),
		cmocka_unit_test(a_login_passes),
		cmocka_unit_test(foreign_tokens_are_refused),
		cmocka_unit_test(queries_carry_no_token),
		cmocka_unit_test(content_types),
	};
	int r;

	if (service_parse(slice_from_str(text), "demo", &service, NULL) < 0)
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	service_done(&service);
	return r;
}
