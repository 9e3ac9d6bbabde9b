/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/secret/service/service_match.h"

#define HEAD "service 1\nname demo\nabout a demo\n"
#define SLOT "slot api\nhost api.example.com:443\nheader authorization Bearer %s\n"

static const char whole[] = "# a comment\n"
			    "service 1\n"
			    "name demo  # its name\n"
			    "about A demo: all there is\n"
			    "env DEMO_KEY sk-proxy-managed-00\n"
			    "env DEMO_ID AKIAPROXYMANAGED2222\n"
			    "known header x-other-key\n"
			    "known query key\n"
			    "known cookie user_session\n"
			    "token login.example.com:443 /oauth/token\n"
			    "field access access_token oat-proxy-managed-*\n"
			    "field refresh refresh_token ort-proxy-managed\n"
			    "field expires expires_in\n"
			    "field unsign id_token\n"
			    "\n"
			    "slot git\n"
			    "host code.example.com:443\n"
			    "path /**/info/refs\n"
			    "path /*/*/git-upload-pack\n"
			    "basic x-access-token\n"
			    "slot api\n"
			    "host api.example.com:443,*.api.example.com:8443\n"
			    "host code.example.com:443\n"
			    "header x-api-key key=%s;\n"
			    "slot account\n"
			    "host api.example.com:443\n"
			    "header authorization Bearer %s\n"
			    "value access\n"
			    "slot cloud\n"
			    "host **.cloud.example.com:443\n"
			    "host 192.0.2.1:443,[2001:db8::1]:443\n"
			    "signer sigv4\n"
			    "end\n";

static void load(const char *text, struct service *s)
{
	struct err err;

	*s = (struct service){0};
	if (service_parse(slice_from_str(text), "demo.conf", s, &err) < 0)
		fail_msg("%s", err.text);
}

static void a_whole_file_is_read(void **state)
{
	AUTO_SERVICE struct service s;

	load(whole, &s);
	assert_string_equal(s.name, "demo");
	assert_string_equal(s.about, "A demo: all there is");
	assert_int_equal(s.n_envs, 2);
	assert_string_equal(s.env[0].name, "DEMO_KEY");
	assert_string_equal(s.env[0].sentinel, "sk-proxy-managed-00");
	assert_int_equal(s.n_known, 3);
	assert_int_equal(s.known[1].where, SERVICE_IN_QUERY);
	assert_int_equal(s.n_endpoints, 1);
	assert_int_equal(s.n_fields, 4);
	assert_int_equal(s.field[3].kind, SERVICE_FIELD_UNSIGN);
	assert_null(s.field[3].sentinel);
	assert_int_equal(s.n_slots, 4);
	assert_int_equal(s.slot[0].how, SERVICE_BASIC);
	assert_string_equal(s.slot[0].user, "x-access-token");
	assert_int_equal(s.slot[0].value, SERVICE_SECRET);
	assert_int_equal(s.slot[1].n_hosts, 3);
	assert_string_equal(s.slot[1].format, "key=%s;");
	assert_int_equal(s.slot[2].value, SERVICE_ACCESS);
	assert_int_equal(s.slot[3].how, SERVICE_SIGV4);
	assert_int_equal(s.slot[3].line, 29);
}

/* Each with its line, and a word of why. */
static const struct {
	const char *text;
	unsigned line;
	const char *says;
} bad[] = {
	{"", 0, "truncated"},
	{"services 1\n", 1, "service 1"},
	{HEAD SLOT, 6, "truncated"},
	{HEAD "end\n", 4, "a slot"},
	{"service 1\nname demo\n" SLOT "end\n", 6, "about"},
	{HEAD SLOT "end\nslot x\n", 8, "after 'end'"},
	{HEAD "name again\n", 4, "duplicate service name"},
	{"service 1\nname De\n", 2, "lowercase"},
	{HEAD "colour red\n", 4, "unknown keyword"},
	{HEAD "host a.example.com:443\n", 4, "only allowed in a slot"},
	{HEAD "slot a\nenv A_KEY x-proxy-managed\n", 5, "before the first slot"},
	{HEAD "slot a\nhost a.example.com\n", 5, "requires a port"},
	{HEAD "slot a\nhost **:443\n", 5, "every host"},
	{HEAD "slot a\nhost *.com:443\n", 5, "two labels"},
	{HEAD "slot a\nhost **.com:443\n", 5, "two labels"},
	{HEAD "slot a\nhost a.*.com:443\n", 5, "two labels"},
	{HEAD "slot a\nhost 10.0.0.0/8:443\n", 5, "network"},
	{HEAD "slot a\nhost a.example:443,\n", 5, "missing host"},
	{HEAD "slot a\nhost\n", 5, "missing host"},
	{HEAD "slot a\nheader Authorization Bearer %s\n", 5, "lowercase"},
	{HEAD "slot a\nheader authorization Bearer\n", 5, "%s once"},
	{HEAD "slot a\nheader authorization %s%s\n", 5, "%s once"},
	{HEAD "slot a\nheader authorization %d %s\n", 5, "%s once"},
	{HEAD "slot a\nheader authorization %s%\n", 5, "%s once"},
	{HEAD "slot a\nheader host %s\n", 5, "cannot carry"},
	{HEAD "slot a\nheader transfer-encoding %s\n", 5, "cannot carry"},
	{HEAD "slot a\nheader proxy-authorization %s\n", 5, "cannot carry"},
	{HEAD "slot a\nheader sbx-reason %s\n", 5, "cannot carry"},
	{HEAD "slot a\nheader a:b %s\n", 5, "lowercase"},
	{HEAD "slot a\nbasic a:b\n", 5, "basic USER"},
	{HEAD "slot a\nbasic a b\n", 5, "basic USER"},
	{HEAD "slot a\nsigner rsa\n", 5, "sigv4"},
	{HEAD "slot a\nbasic x\nheader a %s\n", 6, "once"},
	{HEAD "slot a\nvalue other\n", 5, "value secret"},
	{HEAD "slot a\nintercept\n", 5, "intercept always"},
	{HEAD "slot a\nintercept never\n", 5, "intercept always"},
	{HEAD "slot a\nintercept always\nintercept always\n", 6, "once in a slot"},
	{HEAD "intercept always\n", 4, "only allowed in a slot"},
	{HEAD "slot a\npath info\n", 5, "begin with '/'"},
	{HEAD "slot a\npath /a?b\n", 5, "begin with '/'"},
	{HEAD "slot a\npath /a//b\n", 5, "segment"},
	{HEAD "slot a\npath /a*b\n", 5, "segment"},
	{HEAD "slot a\npath /**/a/**\n", 5, "only once"},
	{HEAD "slot a\nslot a\n", 5, "duplicate"},
	{HEAD SLOT "slot b\nbasic x\nend\n", 7, "requires a host"},
	{HEAD SLOT "slot b\nhost b.example.com:443\nend\n", 7, "requires a host"},
	{HEAD SLOT "slot b\nhost *.example.com:443\nbasic x\nend\n", 7, "is never used"},
	{HEAD SLOT "value access\nend\n", 4, "missing line 'token'"},
	{HEAD "env DEMO sk-secret-real\n", 4, "proxy-managed"},
	{HEAD "env DEMO proxy managed\n", 4, "without spaces"},
	{HEAD "env demo proxy-managed\n", 4, "uppercase"},
	{HEAD "env 1A proxy-managed\n", 4, "uppercase"},
	{HEAD "env A proxy-managed\nenv A proxy-managed\n", 5, "duplicate"},
	{HEAD "env A proxy-man****\n", 4, "proxy-managed"},
	{HEAD "field access a *proxy-managed\n", 4, "at its end"},
	{HEAD "field access a proxy-managed**\n", 4, "at its end"},
	{HEAD "known body a\n", 4, "known header"},
	{HEAD "known query a=b\n", 4, "query field"},
	{HEAD "pass body a\n", 4, "pass header"},
	{HEAD "pass query a=b\n", 4, "query field"},
	{HEAD "known header connection\n", 4, "cannot carry"},
	{HEAD "token a.example.com:443 /a/*\n", 4, "cannot be a pattern"},
	{HEAD "token a.example.com /a\n", 4, "requires a port"},
	{HEAD "token a.example.com:443\n", 4, "begin with '/'"},
	{HEAD "token a.example.com:443 /t\n" SLOT "end\n", 8, "require each other"},
	{HEAD "field access a proxy-managed\n" SLOT "end\n", 8, "require each other"},
	{HEAD "field other a\n", 4, "field access"},
	{HEAD "field expires a b\n", 4, "no placeholder"},
	{HEAD "refuse\n", 4, "refuse METHOD PATH"},
	{HEAD "refuse post /a\n", 4, "refuse METHOD PATH"},
	{HEAD "refuse POST\n", 4, "begin with '/'"},
	{HEAD "refuse POST a\n", 4, "begin with '/'"},
	{HEAD "refuse * /a*\n", 4, "segment"},
	{HEAD "refuse query Action\n", 4, "a name and a value"},
	{HEAD "refuse header a: b\n", 4, "a name and a value"},
	{HEAD "refuse query Action a b\n", 4, "a name and a value"},
	{HEAD "refuse query Action a*b\n", 4, "one '*'"},
	{HEAD "refuse query Action *b*\n", 4, "one '*'"},
	{HEAD SLOT "refuse POST /a\n", 7, "before the first slot"},
	{HEAD "capture\n", 4, "capture METHOD PATH FIELD"},
	{HEAD "capture GET /a\n", 4, "capture METHOD PATH FIELD"},
	{HEAD "capture get /a token\n", 4, "capture METHOD PATH FIELD"},
	{HEAD "capture GET /a to\"ken\n", 4, "capture METHOD PATH FIELD"},
	{HEAD "capture GET /a token other\n", 4, "capture METHOD PATH FIELD"},
	{HEAD "capture GET a token\n", 4, "begin with '/'"},
	{HEAD "capture GET /a/**/b/** token\n", 4, "only once"},
	{HEAD SLOT "capture GET /a token\n", 7, "before the first slot"},
	{HEAD "\rname\n", 4, "control character"},
	{HEAD "about\x01\n", 4, "control character"},
};

static void a_bad_file_is_named_with_its_line(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct service s = {0};
		struct err err = {0};
		char line[32];

		(void)snprintf(line, sizeof(line), "demo.conf: line %u: ", bad[i].line);
		if (service_parse(slice_from_str(bad[i].text), "demo.conf", &s, &err) >= 0)
			fail_msg("row %zu is read", i);
		if (strncmp(err.text, line, strlen(line)) != 0 || !strstr(err.text, bad[i].says))
			fail_msg("row %zu says '%s'", i, err.text);
		assert_null(s.name);
	}
}

static void limits_hold(void **state)
{
	static const struct {
		const char *line;
		unsigned most;
	} rows[] = {{"known header x%u", SERVICE_MAX_KNOWN}, {"pass query x%u", SERVICE_MAX_PASSED},
		{"env X%u proxy-managed", SERVICE_MAX_ENVS},
		{"field access f%u proxy-managed", SERVICE_MAX_FIELDS},
		{"token t%u.example.com:443 /t", SERVICE_MAX_ENDPOINTS},
		{"refuse POST /p%u", SERVICE_MAX_REFUSALS},
		{"capture POST /p%u t", SERVICE_MAX_CAPTURES}, {"slot s%u", SERVICE_MAX_SLOTS},
		{"host h%u.example.com:443", SERVICE_MAX_HOSTS}, {"path /p%u", SERVICE_MAX_PATHS}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *text = xstrdup(i < 8 ? HEAD : HEAD "slot a\n");
		struct service s = {0};
		struct err err;
		char want[64];

		for (unsigned k = 0; k <= rows[i].most; k++) {
			AUTO_FREE char *old = text, *line = NULL;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			line = xasprintf(rows[i].line, k);
#pragma GCC diagnostic pop
			text = xasprintf("%s%s\n", old, line);
		}
		assert_int_equal(service_parse(slice_from_str(text), "f", &s, &err), -E2BIG);
		(void)snprintf(want, sizeof(want), "more than %u", rows[i].most);
		assert_non_null(strstr(err.text, want));
	}
}

static void large_files_and_lines_are_refused(void **state)
{
	AUTO_FREE char *text = xmalloc(SERVICE_MAX_BYTES + 2);
	struct service s = {0};
	struct err err;

	memset(text, '#', SERVICE_MAX_BYTES + 1);
	assert_int_equal(
		service_parse(slice_of(text, SERVICE_MAX_BYTES + 1), "f", &s, &err), -E2BIG);
	assert_int_equal(service_parse(slice_of(text, SERVICE_MAX_LINE), "f", &s, &err), -E2BIG);
	assert_string_equal(err.text, "f: line 1: longer than 4095 bytes");
	assert_int_equal(
		service_parse(slice_of(text, SERVICE_MAX_LINE - 1), "f", &s, &err), -EINVAL);
}

static void paths_match_whole_segments(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool match;
	} rows[] = {
		{"/token", "/token", true},
		{"/token", "/token?scope=a", true},
		{"/token", "/token/", false},
		{"/token", "/tokens", false},
		{"/token", "/Token", false},
		{"/token", "", false},
		{"/token", "token", false},
		{"/", "/", true},
		{"/", "/a", false},
		{"/*/*/git-upload-pack", "/o/r.git/git-upload-pack", true},
		{"/*/*/git-upload-pack", "/o/git-upload-pack", false},
		{"/*/*/git-upload-pack", "/o//git-upload-pack", false},
		{"/**/info/refs", "/o/r/info/refs?service=git-upload-pack", true},
		{"/**/info/refs", "/a/b/c/d/info/refs", true},
		{"/**/info/refs", "/info/refs", false},
		{"/**/info/refs", "/a/info/refs/info", false},
		{"/**/info/refs", "/a?/info/refs", false},
		{"/api/**", "/api/v4/x", true},
		{"/api/**", "/api", false},
		{"/api/**", "/apis/x", false},
		{"/a/**/z/*", "/a/b/c/z/y", true},
		{"/a/**/z/*", "/a/z/y", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (service_path_match(rows[i].pattern, slice_from_str(rows[i].path)) !=
			rows[i].match)
			fail_msg("%s and %s", rows[i].pattern, rows[i].path);
}

static const char *pick(
	const struct service *s, const char *target, const char *path, unsigned values)
{
	struct service_request req = {.path = slice_from_str(path)};
	const struct service_slot *slot;
	struct slice text;
	struct host host;

	assert_int_equal(host_split(slice_from_str(target), &text, &req.port, NULL), 0);
	assert_int_equal(host_from_wire(text, &host, NULL), 0);
	req.host = &host;
	slot = service_pick_slot(s, &req, values);
	return slot ? slot->name : "-";
}

static void a_request_has_one_slot(void **state)
{
	static const struct {
		const char *target, *path;
		unsigned values;
		const char *slot;
	} rows[] = {
		{"code.example.com:443", "/o/r/info/refs", SERVICE_SECRET, "git"},
		{"code.example.com:443", "/o/r/git-upload-pack", SERVICE_SECRET, "git"},
		{"code.example.com:443", "/o/r/issues", SERVICE_SECRET, "api"},
		{"code.example.com:80", "/o/r/info/refs", SERVICE_SECRET, "-"},
		{"xcode.example.com:443", "/o/r/info/refs", SERVICE_SECRET, "-"},
		{"code.example.com.evil.example:443", "/o/r/info/refs", SERVICE_SECRET, "-"},
		{"api.example.com:443", "/v1", SERVICE_SECRET, "api"},
		{"api.example.com:443", "/v1", SERVICE_ACCESS, "account"},
		{"api.example.com:443", "/v1", SERVICE_SECRET | SERVICE_ACCESS, "api"},
		{"api.example.com:443", "/v1", 0, "-"},
		{"eu.api.example.com:8443", "/v1", SERVICE_SECRET, "api"},
		{"eu.api.example.com:443", "/v1", SERVICE_SECRET, "-"},
		{"a.b.api.example.com:8443", "/v1", SERVICE_SECRET, "-"},
		{"a.b.cloud.example.com:443", "/", SERVICE_SECRET, "cloud"},
		{"cloud.example.com:443", "/", SERVICE_SECRET, "-"},
		{"192.0.2.1:443", "/", SERVICE_SECRET, "cloud"},
		{"[2001:db8::1]:443", "/", SERVICE_SECRET, "cloud"},
		{"192.0.2.2:443", "/", SERVICE_SECRET, "-"},
		{"login.example.com:443", "/oauth/token", SERVICE_SECRET, "-"},
	};
	AUTO_SERVICE struct service s;

	load(whole, &s);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *slot = pick(&s, rows[i].target, rows[i].path, rows[i].values);

		if (strcmp(slot, rows[i].slot) != 0)
			fail_msg("%s%s has slot %s", rows[i].target, rows[i].path, slot);
	}
}

static const char refusing[] = HEAD "refuse POST /api/keys\n"
				    "refuse * /API/projects/**/tokens\n"
				    "refuse GET /repos/*/*/secret\n"
				    "refuse header x-amz-target *.GetSecretValue\n"
				    "refuse query Action AssumeRole*\n"
				    "refuse query Action GetSessionToken\n" SLOT "end\n";

/* Servers spell paths in many ways: all of them are the endpoint. */
static void an_endpoint_is_refused_in_every_spelling(void **state)
{
	static const struct {
		const char *method, *path, *rule;
	} rows[] = {
		{"POST", "/api/keys", "POST /api/keys"},
		{"post", "/api/keys", "POST /api/keys"},
		{"", "/api/keys", "POST /api/keys"},
		{"GET", "/api/keys", NULL},
		{"POST", "/api/keysx", NULL},
		{"POST", "/api/keys/1", NULL},
		{"POST", "/x/api/keys", NULL},
		{"POST", "/api/keys/", "POST /api/keys"},
		{"POST", "/api/keys//", "POST /api/keys"},
		{"POST", "/API/Keys", "POST /api/keys"},
		{"POST", "//api///keys", "POST /api/keys"},
		{"POST", "/api/./keys", "POST /api/keys"},
		{"POST", "/api/x/../keys", "a disputed path"},
		{"POST", "/../api/keys", "a disputed path"},
		{"POST", "/api/x/%2e%2E/keys", "a disputed path"},
		{"POST", "/api;v=1/keys;a=b", "POST /api/keys"},
		{"POST", "/api/keys%3bx", "POST /api/keys"},
		{"POST", "/api/%6beys", "POST /api/keys"},
		{"POST", "/api/%256beys", "POST /api/keys"},
		{"POST", "/api%2Fkeys", "POST /api/keys"},
		{"POST", "/api%252fkeys", "POST /api/keys"},
		{"POST", "/api%5Ckeys", "POST /api/keys"},
		{"POST", "/api\\keys", "POST /api/keys"},
		{"POST", "/api/keys.json", "POST /api/keys"},
		{"POST", "/api/keys%20", "POST /api/keys"},
		{"POST", "/api/keys%00x", "a disputed path"},
		{"POST", "/api/keys%3Fx", "POST /api/keys"},
		{"POST", "/api/keys%23x", "POST /api/keys"},
		{"PUT", "/api/projects/1/tokens", "* /API/projects/**/tokens"},
		{"PUT", "/api/projects/a%2Fb/tokens", "* /API/projects/**/tokens"},
		{"PUT", "/api/projects/tokens", NULL},
		{"GET", "/repos/a/b/secret", "GET /repos/*/*/secret"},
		{"GET", "/repos/a%2Fb/secret", "GET /repos/*/*/secret"},
		{"GET", "/repos/a/b%2Fc/secret", "GET /repos/*/*/secret"},
		{"GET", "/repos/a/b%3Fc/secret", "GET /repos/*/*/secret"},
		{"GET", "/repos/a/b/c/secret", NULL},
		{"GET", "/x/..", "a disputed path"},
		{"GET", "/x%09y", "a disputed path"},
		{"GET", "/%252525252e", "a disputed path"},
		{"GET", "/%2525252e", NULL},
		{"GET", "/repos/a/;b/secret", "GET /repos/*/*/secret"},
		{"GET", "/repos/a%2fb%252fc/secret", "GET /repos/*/*/secret"},
		{"GET", "/repos/a//secret", "GET /repos/*/*/secret"},
		{"GET", "/", NULL},
		{"GET", "", NULL},
		{"POST", "/%", NULL},
	};
	AUTO_SERVICE struct service s;

	load(refusing, &s);
	assert_int_equal(s.n_refusals, 6);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct service_refusal *r = service_refuses_path(
			&s, slice_from_str(rows[i].method), slice_from_str(rows[i].path));

		if (!r != !rows[i].rule || (r && strcmp(r->rule, rows[i].rule) != 0))
			fail_msg("%s %s: %s", rows[i].method, rows[i].path, r ? r->rule : "-");
	}
}

/* A bit each rule, in the order of the file, and all that fit. */
static void fields_are_captured_by_method_and_path(void **state)
{
	static const char text[] = HEAD "capture * /repos/*/* temp_token\n"
					"capture GET /Repos/*/* other\n"
					"capture POST /lists token\n" SLOT "end\n";
	static const struct {
		const char *method, *path;
		uint32_t captures;
	} rows[] = {{"GET", "/repos/a/b", 3}, {"PATCH", "/repos/a/b", 1}, {"", "/repos/a/b", 3},
		{"GET", "/REPOS//a/./b/", 3}, {"GET", "/repos/a%2Fx/b", 3}, {"GET", "/repos/a", 0},
		{"GET", "/repos/a/b.json", 3}, {"GET", "/repos/a/b/c", 0}, {"GET", "/lists", 0},
		{"POST", "/lists;a=b", 4}, {"POST", "/%6cists", 4},
		{"POST", "/x/../lists", 7} /* refused; it may be any */, {"POST", "", 0}};
	AUTO_SERVICE struct service s = {0};

	assert_int_equal(service_parse(slice_from_str(text), "demo", &s, NULL), 0);
	assert_int_equal(s.n_captures, 3);
	assert_string_equal(s.capture[0].field, "temp_token");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (service_captures(&s, slice_from_str(rows[i].method),
			    slice_from_str(rows[i].path)) != rows[i].captures)
			fail_msg("row %zu: %s %s", i, rows[i].method, rows[i].path);
	assert_ptr_equal(service_refuses_path(&s, slice_from_str("GET"), slice_from_str("/x/..")),
		&service_odd_path);
}

#define BLANKS "%20%20%20%20%20%20%20%20%20%20%20%20%20%20%20%20%20%20%20%20%20%20"
#define OVERRIDE "%78%2d%68%74%74%70%2d%6d%65%74%68%6f%64%2d%6f%76%65%72%72%69%64%65"

static void a_call_is_refused_by_its_header_or_query(void **state)
{
	static const struct {
		const char *query;
		bool refused;
	} rows[] = {
		{"Action=AssumeRole", true},
		{"Action=AssumeRoleWithSAML", true},
		{"Version=1&Action=GetSessionToken", true},
		{"Version=1;action=getsessiontoken", true},
		{"A%63tion=%47etSessionToken&x", true},
		{BLANKS "Action=AssumeRole", true},
		{"+Action=AssumeRole", true}, /* Z7: a blank of a form */
		{"%20++Action+=AssumeRole", true},
		{"Act+ion=AssumeRole", false},
		{"Action=+GetSessionToken", false},
		{"Action=GetSessionTokens", false},
		{"Action=GetCallerIdentity", false},
		{"Action", false},
		{"", false},
		{"XAction=AssumeRole", false},
	};
	AUTO_SERVICE struct service s;

	load(refusing, &s);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (!service_refuses_query(&s, slice_from_str(rows[i].query)) == rows[i].refused)
			fail_msg("%s", rows[i].query);
	assert_true(service_has_query(slice_from_str(OVERRIDE "=PUT"), "x-http-method-override"));
	assert_true(service_has_query(slice_from_str("a=b&+_method=PUT"), "_method"));
	assert_non_null(service_refuses_header(&s, slice_from_str("X-Amz-Target"),
		slice_from_str(" secretsmanager.GETSecretValue")));
	assert_null(service_refuses_header(&s, slice_from_str("X-Amz-Target"),
		slice_from_str("secretsmanager.GetSecretValues")));
	assert_null(service_refuses_header(
		&s, slice_from_str("x-amz-target"), slice_from_str("GetSecretValue")));
	assert_null(
		service_refuses_header(&s, slice_from_str("action"), slice_from_str("AssumeRole")));
}

static void the_token_endpoint_is_one_path(void **state)
{
	AUTO_SERVICE struct service s;
	struct service_request req = {.port = 443, .path = slice_from_str("/oauth/token")};
	struct host host;

	load(whole, &s);
	assert_int_equal(host_from_wire(slice_from_str("login.example.com"), &host, NULL), 0);
	req.host = &host;
	assert_true(service_is_endpoint(&s, &req));
	req.path = slice_from_str("/oauth/token/x");
	assert_false(service_is_endpoint(&s, &req));
	req.path = slice_from_str("/oauth/token?a");
	assert_true(service_is_endpoint(&s, &req));
	req.port = 8443;
	assert_false(service_is_endpoint(&s, &req));
}

/* base64: user:sk-proxy-managed-00, sk-proxy-managed-00:, user:thief, thief:sk-proxy-managed-000 */
static void a_foreign_credential_is_seen_wherever_it_stands(void **state)
{
	static const struct {
		enum service_where where;
		const char *name, *value;
		enum service_verdict verdict;
	} rows[] = {
		{SERVICE_IN_HEADER, "accept", "sk-live-thief", SERVICE_PLAIN},
		{SERVICE_IN_HEADER, "authorization", "", SERVICE_PLAIN},
		{SERVICE_IN_HEADER, "authorization", "  ", SERVICE_PLAIN},
		{SERVICE_IN_HEADER, "authorization", "Bearer sk-proxy-managed-00",
			SERVICE_SENTINEL},
		{SERVICE_IN_HEADER, "AUTHORIZATION", "bearer  sk-proxy-managed-00 ",
			SERVICE_SENTINEL},
		{SERVICE_IN_HEADER, "authorization", "token sk-proxy-managed-00", SERVICE_SENTINEL},
		{SERVICE_IN_HEADER, "authorization", "sk-proxy-managed-00", SERVICE_SENTINEL},
		{SERVICE_IN_HEADER, "Authorization", "Bearer sk-live-thief", SERVICE_FOREIGN},
		{SERVICE_IN_HEADER, "authorization", "Bearer", SERVICE_FOREIGN},
		{SERVICE_IN_HEADER, "authorization", "Bearer sk-proxy-managed-001",
			SERVICE_FOREIGN},
		{SERVICE_IN_HEADER, "authorization", "Bearer sk-proxy-managed-0", SERVICE_FOREIGN},
		{SERVICE_IN_HEADER, "authorization", "Bearer sk-proxy-managed-00, Bearer thief",
			SERVICE_FOREIGN},
		{SERVICE_IN_HEADER, "authorization", "Bearer oat-proxy-managed-a1",
			SERVICE_SENTINEL},
		{SERVICE_IN_HEADER, "authorization", "Bearer oat-proxy-managed-", SERVICE_FOREIGN},
		{SERVICE_IN_HEADER, "authorization", "Bearer oat-proxy-managed-a.b",
			SERVICE_FOREIGN},
		{SERVICE_IN_HEADER, "authorization", "Bearer ort-proxy-managed", SERVICE_SENTINEL},
		{SERVICE_IN_HEADER, "authorization", "Basic dXNlcjpzay1wcm94eS1tYW5hZ2VkLTAw",
			SERVICE_SENTINEL},
		{SERVICE_IN_HEADER, "authorization",
			"basic c2stcHJveHktbWFuYWdlZC0wMDo=", SERVICE_SENTINEL},
		{SERVICE_IN_HEADER, "authorization", "Basic dXNlcjp0aGllZg==", SERVICE_FOREIGN},
		{SERVICE_IN_HEADER, "authorization",
			"Basic dGhpZWY6c2stcHJveHktbWFuYWdlZC0wMDA=", SERVICE_FOREIGN},
		{SERVICE_IN_HEADER, "authorization", "Basic !!!!", SERVICE_FOREIGN},
		{SERVICE_IN_HEADER, "authorization", "Basic", SERVICE_FOREIGN},
		{SERVICE_IN_HEADER, "x-api-key", "key=sk-proxy-managed-00;", SERVICE_SENTINEL},
		{SERVICE_IN_HEADER, "x-api-key", "key=thief;", SERVICE_FOREIGN},
		{SERVICE_IN_HEADER, "x-api-key", "key=", SERVICE_FOREIGN},
		{SERVICE_IN_HEADER, "X-Other-Key", "sk-proxy-managed-00", SERVICE_SENTINEL},
		{SERVICE_IN_HEADER, "X-Other-Key", "thief", SERVICE_FOREIGN},
		{SERVICE_IN_HEADER, "authorization",
			"AWS4-HMAC-SHA256 Credential=AKIAPROXYMANAGED2222/20260101/eu-west-1/s3/"
			"aws4_request, SignedHeaders=host, Signature=00",
			SERVICE_SENTINEL},
		{SERVICE_IN_HEADER, "authorization",
			"AWS4-HMAC-SHA256 Credential=AKIATHIEF/20260101/eu-west-1/s3/aws4_request, "
			"SignedHeaders=AKIAPROXYMANAGED2222/",
			SERVICE_FOREIGN},
		{SERVICE_IN_QUERY, "key", "sk-proxy-managed-00", SERVICE_SENTINEL},
		{SERVICE_IN_QUERY, "key", "thief", SERVICE_FOREIGN},
		{SERVICE_IN_QUERY, "%6bey", "thief", SERVICE_FOREIGN},
		{SERVICE_IN_QUERY, "%4B%65%59", "thief", SERVICE_FOREIGN},
		{SERVICE_IN_QUERY, BLANKS BLANKS BLANKS "key", "thief", SERVICE_FOREIGN},
		{SERVICE_IN_QUERY, "+key", "thief", SERVICE_FOREIGN},
		{SERVICE_IN_QUERY, "k+ey", "thief", SERVICE_PLAIN},
		{SERVICE_IN_QUERY, "key", "sk%2dproxy-managed-00", SERVICE_SENTINEL},
		{SERVICE_IN_QUERY, "key", "AKIAPROXYMANAGED2222%2F20260101%2Fx", SERVICE_SENTINEL},
		{SERVICE_IN_QUERY, "q", "thief", SERVICE_PLAIN},
		{SERVICE_IN_QUERY, "key", "", SERVICE_PLAIN},
		{SERVICE_IN_QUERY, "key", "%", SERVICE_FOREIGN},
		{SERVICE_IN_QUERY, "authorization", "thief", SERVICE_PLAIN},
		{SERVICE_IN_COOKIE, "user_session", "thief", SERVICE_FOREIGN},
		{SERVICE_IN_COOKIE, "user_session", "sk-proxy-managed-00", SERVICE_SENTINEL},
		{SERVICE_IN_COOKIE, "colour", "red", SERVICE_PLAIN},
		{SERVICE_IN_COOKIE, "key", "red", SERVICE_PLAIN},
	};
	AUTO_SERVICE struct service s;

	load(whole, &s);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (service_judge(&s, rows[i].where, slice_from_str(rows[i].name),
			    slice_from_str(rows[i].value)) != rows[i].verdict)
			fail_msg("row %zu: %s: %s", i, rows[i].name, rows[i].value);
}

/* Each sandbox has its own, and all of them are ours: none leaves, whoever got it from whom. */
/* In places that no file names, and not where a file says that it is no credential. */
static void a_value_shaped_like_a_credential_is_foreign(void **state)
{
	static const struct {
		enum service_where where;
		const char *name, *value;
		enum service_verdict verdict;
	} rows[] = {
		{SERVICE_IN_HEADER, "x-any", "sk-ant-api03-0123456789", SERVICE_FOREIGN},
		{SERVICE_IN_HEADER, "x-any", "a=b, ghp_0123456789abcdefghij", SERVICE_FOREIGN},
		{SERVICE_IN_HEADER, "x-any", "sk-proxy-managed-00", SERVICE_PLAIN},
		{SERVICE_IN_HEADER, "x-any", "Bearer sk-proxy-managed-00", SERVICE_PLAIN},
		{SERVICE_IN_HEADER, "x-any", "Bearer sk-of-somebody-else", SERVICE_FOREIGN},
		{SERVICE_IN_HEADER, "sec-websocket-protocol",
			"realtime, openai-insecure-api-key.thief", SERVICE_FOREIGN},
		{SERVICE_IN_HEADER, "cookie", "a=sk-ant-api03-0123456789", SERVICE_PLAIN},
		{SERVICE_IN_COOKIE, "a", "sk-ant-api03-0123456789", SERVICE_FOREIGN},
		{SERVICE_IN_QUERY, "q", "sk%2Dant%2dapi03-0123456789", SERVICE_FOREIGN},
		{SERVICE_IN_QUERY, "q", "eyJpZCI6MTIzNDU2Nzg5MDEyfQ", SERVICE_PLAIN},
		{SERVICE_IN_HEADER, "x-passed", "sk-ant-api03-0123456789", SERVICE_PLAIN},
		{SERVICE_IN_QUERY, "X-Passed", "sk-ant-api03-0123456789", SERVICE_FOREIGN},
		{SERVICE_IN_HEADER, "x-both", "thief", SERVICE_PLAIN},
		{SERVICE_IN_HEADER, "authorization", "thief", SERVICE_FOREIGN},
		{SERVICE_IN_HEADER, "accept", "*/*", SERVICE_PLAIN},
	};
	AUTO_SERVICE struct service s;

	load(HEAD "env DEMO_KEY sk-proxy-managed-00\npass header x-passed\n"
		  "known header x-both\npass header x-both\npass header authorization\n" SLOT
		  "end\n",
		&s);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (service_judge(&s, rows[i].where, slice_from_str(rows[i].name),
			    slice_from_str(rows[i].value)) != rows[i].verdict)
			fail_msg("row %zu: %s: %s", i, rows[i].name, rows[i].value);
}

static void the_sentinel_of_a_sandbox(void **state)
{
	static const struct {
		const char *sentinel, *sandbox, *want;
	} rows[] = {
		{"x-proxy-managed-****************", "423c774dc9c8",
			"x-proxy-managed-423c774dc9c80000"},
		{"x-proxy-managed-****************", "0c774dc9c842",
			"x-proxy-managed-0c774dc9c8420000"},
		{"x-proxy-managed-****", "423c774dc9c8", "x-proxy-managed-423c"},
		{"AKIAPROXYMANAGED****", "423c774dc9c8", "AKIAPROXYMANAGED423C"},
		{"proxymanaged-****-A**z**", "abcdef", "proxymanaged-abcd-AEFz00"},
		{"x-proxy-managed", "423c774dc9c8", "x-proxy-managed"},
		{"x-proxy-managed-**", "", "x-proxy-managed-00"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *text =
			xasprintf("%senv A_KEY %s\n%send\n", HEAD, rows[i].sentinel, SLOT);
		AUTO_SERVICE struct service s;
		char got[SERVICE_MAX_TEXT + 1];

		load(text, &s);
		service_fill_sentinel(&s.env[0], rows[i].sandbox, got);
		assert_string_equal(got, rows[i].want);
		assert_int_equal(service_judge(&s, SERVICE_IN_HEADER,
					 slice_from_str("authorization"), slice_from_str(got)),
			SERVICE_SENTINEL);
	}
}

/* A letter or digit in each place, and nothing in front, behind or between. */
static void what_only_looks_like_a_sandboxs_sentinel_is_foreign(void **state)
{
	static const char *const rows[] = {"x-proxy-managed-423", "x-proxy-managed-423c7",
		"x-proxy-managed-42.c", "x-proxy-managed-****", "x-proxy-managed-42-c",
		"x-proxy-manageD-423c", " x-proxy-managed-423c!", "x-proxy-managed-42\xc3\xa9",
		"yx-proxy-managed-423c", "x-proxy-managed-"};
	AUTO_SERVICE struct service s;

	load(HEAD "env A_KEY x-proxy-managed-****\n" SLOT "end\n", &s);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (service_judge(&s, SERVICE_IN_HEADER, slice_from_str("authorization"),
			    slice_from_str(rows[i])) != SERVICE_FOREIGN)
			fail_msg("%s", rows[i]);
}

static void a_value_that_is_too_long_is_foreign(void **state)
{
	AUTO_SERVICE struct service s;
	AUTO_FREE char *text = xmalloc(8192);

	load(whole, &s);
	memset(text, 'a', 8192);
	assert_int_equal(
		service_judge(&s, SERVICE_IN_QUERY, slice_from_str("key"), slice_of(text, 8192)),
		SERVICE_FOREIGN);
	memcpy(text, "Basic ", 6);
	assert_int_equal(service_judge(&s, SERVICE_IN_HEADER, slice_from_str("authorization"),
				 slice_of(text, 8192)),
		SERVICE_FOREIGN);
	assert_int_equal(
		service_judge(&s, SERVICE_IN_QUERY, slice_of(text, 8192), slice_of(text, 9)),
		SERVICE_PLAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_file_is_read),
		cmocka_unit_test(a_bad_file_is_named_with_its_line),
		cmocka_unit_test(limits_hold),
		cmocka_unit_test(large_files_and_lines_are_refused),
		cmocka_unit_test(paths_match_whole_segments),
		cmocka_unit_test(a_request_has_one_slot),
		cmocka_unit_test(an_endpoint_is_refused_in_every_spelling),
		cmocka_unit_test(a_call_is_refused_by_its_header_or_query),
		cmocka_unit_test(fields_are_captured_by_method_and_path),
		cmocka_unit_test(the_token_endpoint_is_one_path),
		cmocka_unit_test(a_foreign_credential_is_seen_wherever_it_stands),
		cmocka_unit_test(a_value_shaped_like_a_credential_is_foreign),
		cmocka_unit_test(the_sentinel_of_a_sandbox),
		cmocka_unit_test(what_only_looks_like_a_sandboxs_sentinel_is_foreign),
		cmocka_unit_test(a_value_that_is_too_long_is_foreign),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
