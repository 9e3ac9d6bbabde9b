/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "src/sbxd/http/api_body.h"
#include "src/sbxd/http/api_route.h"
#include "lib/base/mem.h"

static int route(const char *line, const char *body, struct api_request *req, struct api_http *h)
{
	AUTO_FREE char *text = xasprintf("%s HTTP/1.1\r\n%sContent-Length: %zu\r\n\r\n%s", line,
		strstr(line, "/exec") ? "Connection: upgrade\r\nUpgrade: sbx-stream\r\n" : "",
		strlen(body), body);

	(void)!api_http_feed(h, slice_from_str(text));
	assert_int_equal(h->state, API_HTTP_READY);
	return api_route(h, req, NULL);
}

static void every_call_is_found(void **state)
{
	static const struct {
		const char *line, *body;
		int status;
		enum api_call call;
		const char *ref;
	} rows[] = {
		{"GET /v1/version", "", 0, API_VERSION, NULL},
		{"GET /v1/sandboxes", "", 0, API_LIST, NULL},
		{"POST /v1/sandboxes", "{}", 0, API_CREATE, NULL},
		{"GET /v1/sandboxes/demo", "", 0, API_GET, "demo"},
		{"GET /v1/sandboxes/demo?wait=500", "", 0, API_GET, "demo"},
		{"PATCH /v1/sandboxes/d%65mo", "{}", 0, API_PATCH, "demo"},
		{"DELETE /v1/sandboxes/demo?force=1", "", 0, API_DELETE, "demo"},
		{"POST /v1/sandboxes/demo/start", "", 0, API_START, "demo"},
		{"POST /v1/sandboxes/demo/stop", "{}", 0, API_STOP, "demo"},
		{"POST /v1/sandboxes/demo/exec", "", 0, API_EXEC, "demo"},
		{"GET /v1/sandboxes/demo/stats", "", 0, API_STATS, "demo"},
		{"GET /v1/watch", "", 0, API_WATCH, NULL},
		{"POST /v1/shutdown", "", 0, API_SHUTDOWN, NULL},
		{"GET /v1/policy", "", 0, API_POLICY_GET, NULL},
		{"GET /v1/policy?from=1000&text=1", "", 0, API_POLICY_GET, NULL},
		{"PUT /v1/policy", "{}", 0, API_POLICY_PUT, NULL},
		{"DELETE /v1/policy", "", 0, API_POLICY_RESET, NULL},
		{"GET /v1/policy/check?target=a", "", 0, API_POLICY_CHECK, NULL},
		{"POST /v1/policy/rules", "{}", 0, API_RULE_ADD, NULL},
		{"DELETE /v1/policy/rules/0123456789ab", "", 0, API_RULE_RM, "0123456789ab"},
		{"DELETE /v1/policy/rules?resource=10.0.0.0%2f8&effect=deny", "", 0, API_RULES_RM,
			NULL},
		{"POST /v1/reload", "", 0, API_RELOAD, NULL},
		{"POST /v1/pool", "", 0, API_POOL, NULL},
		{"POST /v1/audit/a1/prune?before_ms=5", "", 0, API_AUDIT_PRUNE, "a1"},
		{"POST /v1/audit/a1/prune?keep_bytes=0&dry=1", "", 0, API_AUDIT_PRUNE, "a1"},
		{"POST /v1/audit/a1/prune", "", 400, 0, NULL},
		{"POST /v1/audit/a1/prune?before_ms=5&keep_bytes=5", "", 400, 0, NULL},
		{"POST /v1/audit/a1/prune?before_ms=0", "", 400, 0, NULL},
		{"POST /v1/audit/a1/prune?keep_bytes=-1", "", 400, 0, NULL},
		{"POST /v1/audit/a1/prune?keep_bytes=1&dry=2", "", 400, 0, NULL},
		{"GET /v1/policy?from=-1", "", 400, 0, NULL},
		{"GET /v1/policy?text=yes", "", 400, 0, NULL},
		{"GET /v1/policy/check", "", 400, 0, NULL},
		{"GET /v1/policy/check?target=a&resource=b", "", 400, 0, NULL},
		{"DELETE /v1/policy/rules", "", 400, 0, NULL},
		{"DELETE /v1/policy/rules?resource=a&effect=maybe", "", 400, 0, NULL},
		{"DELETE /v1/policy/rules/x?resource=a", "", 400, 0, NULL},
		{"DELETE /v1/policy?force=1", "", 400, 0, NULL},
		{"POST /v1/policy", "", 405, 0, NULL},
		{"GET /v1", "", 404, 0, NULL},
		{"GET /v2/version", "", 404, 0, NULL},
		{"GET /v1/version/x", "", 404, 0, NULL},
		{"GET /v1/sandboxes/demo/start/now", "", 404, 0, NULL},
		{"POST /v1/version", "", 405, 0, NULL},
		{"DELETE /v1/sandboxes", "", 405, 0, NULL},
		{"GET /v1/version", "x", 400, 0, NULL},
		{"GET /v1/version?x=1", "", 400, 0, NULL},
		{"GET /v1/sandboxes/demo?wait=-1", "", 400, 0, NULL},
		{"GET /v1/sandboxes/demo?wait=600001", "", 400, 0, NULL},
		{"GET /v1/sandboxes/demo?force=1", "", 400, 0, NULL},
		{"DELETE /v1/sandboxes/demo?force=yes", "", 400, 0, NULL},
		{"POST /v1/sandboxes/demo/exec", "x", 400, 0, NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct api_request req = {0};
		struct api_http h = {0};
		int status = route(rows[i].line, rows[i].body, &req, &h);

		if (status != rows[i].status)
			fail_msg("%s: %d", rows[i].line, status);
		if (status == 0) {
			assert_int_equal(req.call, rows[i].call);
			assert_int_equal(req.ref == NULL, rows[i].ref == NULL);
			if (req.ref)
				assert_string_equal(req.ref, rows[i].ref);
		}
		api_http_done(&h);
	}
}

static void calls_of_credentials_are_found(void **state)
{
	static const struct {
		const char *line, *body;
		int status;
		enum api_call call;
		const char *ref;
	} rows[] = {
		{"GET /v1/secrets", "", 0, API_SECRETS, NULL},
		{"PUT /v1/secrets/github", "{}", 0, API_SECRET_PUT, "github"},
		{"PUT /v1/secrets/status", "{}", 0, API_SECRET_PUT, "status"},
		{"DELETE /v1/secrets/github", "", 0, API_SECRET_RM, "github"},
		{"DELETE /v1/secrets/github?sandbox=demo", "", 0, API_SECRET_RM, "github"},
		{"GET /v1/secrets/status", "", 0, API_SECRET_STATUS, NULL},
		{"POST /v1/secrets/unlock", "", 0, API_SECRET_UNLOCK, NULL},
		{"POST /v1/secrets/scan", "", 0, API_SECRET_SCAN, NULL},
		{"POST /v1/secrets/scan?control=12345678", "", 0, API_SECRET_SCAN, NULL},
		{"POST /v1/secrets/scan?control=short", "", 400, API_SECRET_SCAN, NULL},
		{"GET /v1/services", "", 0, API_SERVICES, NULL},
		{"GET /v1/sandboxes/demo/ports", "", 0, API_PORTS, "demo"},
		{"POST /v1/sandboxes/demo/ports", "{}", 0, API_PORT_ADD, "demo"},
		{"DELETE /v1/sandboxes/demo/ports?sandbox_port=80&protocol=tcp6", "", 0,
			API_PORT_RM, "demo"},
		{"DELETE /v1/sandboxes/demo/ports", "", 400, 0, NULL},
		{"DELETE /v1/sandboxes/demo/ports?sandbox_port=0", "", 400, 0, NULL},
		{"DELETE /v1/sandboxes/demo/ports?sandbox_port=80&host_port=65536", "", 400, 0,
			NULL},
		{"DELETE /v1/sandboxes/demo/ports?sandbox_port=80&protocol=udp", "", 400, 0, NULL},
		{"PUT /v1/sandboxes/demo/ports", "{}", 405, 0, NULL},
		{"GET /v1/secrets/github", "", 405, 0, NULL},
		{"POST /v1/sandboxes/demo/own", "{}", 0, API_OWN, "demo"},
		{"GET /v1/sandboxes/demo/own", "", 405, 0, NULL},
		{"POST /v1/sandboxes/demo/own?force=1", "{}", 400, 0, NULL},
		{"POST /v1/secrets/unlock", "{\"passphrase\":\"x\"}", 400, 0, NULL},
		{"GET /v1/sandboxes/demo/guard", "", 0, API_GUARD, "demo"},
		{"DELETE /v1/sandboxes/demo/guard?total=0", "", 0, API_GUARD_DONE, "demo"},
		{"POST /v1/sandboxes/demo/stage", "", 0, API_STAGE, "demo"},
		{"GET /v1/holds?sandbox=demo", "", 0, API_HOLDS, NULL},
		{"GET /v1/holds/K7QD", "", 0, API_HOLD, "K7QD"},
		{"POST /v1/holds/K7QD?sandbox=demo", "{}", 0, API_HOLD_ANSWER, "K7QD"},
		{"DELETE /v1/holds/K7QD", "", 405, 0, NULL},
		{"DELETE /v1/sandboxes/demo/guard", "", 400, 0, NULL},
		{"DELETE /v1/sandboxes/demo/guard?total=-1", "", 400, 0, NULL},
		{"GET /v1/sandboxes/demo/guard?total=1", "", 400, 0, NULL},
		{"DELETE /v1/secrets/github?force=1", "", 400, 0, NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct api_request req = {0};
		struct api_http h = {0};
		int status = route(rows[i].line, rows[i].body, &req, &h);

		if (status != rows[i].status)
			fail_msg("%s: %d", rows[i].line, status);
		if (status == 0) {
			assert_int_equal(req.call, rows[i].call);
			assert_int_equal(req.ref == NULL, rows[i].ref == NULL);
			if (req.ref)
				assert_string_equal(req.ref, rows[i].ref);
		}
		api_http_done(&h);
	}
}

static void exec_and_upgrade_belong_together(void **state)
{
	struct api_request req = {0};
	struct api_http h = {0};

	(void)!api_http_feed(&h, slice_from_str("POST /v1/sandboxes/d1/exec HTTP/1.1\r\n\r\n"));
	assert_int_equal(api_route(&h, &req, NULL), 400);
	api_http_reset(&h);
	(void)!api_http_feed(&h, slice_from_str("GET /v1/watch HTTP/1.1\r\nConnection: upgrade\r\n"
						"Upgrade: sbx-stream\r\n\r\n"));
	assert_int_equal(api_route(&h, &req, NULL), 400);
	api_http_done(&h);
}

static int patch(const char *body, struct spec *ret, uint64_t *gen)
{
	AUTO_SPEC struct spec old = {0};

	assert_int_equal(spec_decode(slice_from_str("{\"name\":\"old\",\"cpus\":2,\"generation\":4,"
						    "\"env\":{\"A\":\"b\"}}"),
				 &old, NULL),
		0);
	return api_decode_patch(slice_from_str(body), &old, ret, gen, NULL);
}

static void a_patch_changes_what_it_names(void **state)
{
	AUTO_SPEC struct spec s = {0};
	uint64_t gen = 9;

	assert_int_equal(patch("{\"cpus\":3,\"generation\":4}", &s, &gen), 0);
	assert_int_equal(gen, 4);
	assert_int_equal(s.cpus, 3);
	assert_string_equal(s.name, "old");
	assert_string_equal(s.env[0], "A=b");
	spec_done(&s);
	assert_int_equal(patch("{\"name\":\"new\"}", &s, &gen), 0);
	assert_int_equal(gen, 0);
	assert_string_equal(s.name, "new");
	assert_int_equal(s.generation, 4);
}

static void a_wrong_patch_is_refused(void **state)
{
	static const char *const bad[] = {"", "[]", "{\"id\":\"0123456789ab\"}",
		"{\"template\":\"x\"}", "{\"env\":[]}", "{\"env\":{\"1A\":\"b\"}}", "{\"cpus\":0}",
		"{\"name\":\"a_\"}", "{\"generation\":0}", "{\"generation\":\"1\"}",
		"{\"cpus\":2,\"cpus\":3}"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO_SPEC struct spec s = {0};
		uint64_t gen;

		assert_int_equal(patch(bad[i], &s, &gen), -EINVAL);
	}
}

static void a_create_takes_rules_and_a_start(void **state)
{
	AUTO_SPEC struct spec spec = {0};
	AUTO_API_CREATE struct api_create_body c = {0};
	const char *text = "{\"name\":\"demo\",\"cpus\":2,\"start\":true,\"cold\":true,\"rules\":["
			   "{\"effect\":\"deny\",\"resources\":\"**\"},"
			   "{\"effect\":\"allow\",\"resources\":[\"a.example:443\"],"
			   "\"origin\":\"agent:toy\",\"for_ms\":500}]}";

	assert_int_equal(api_decode_create(slice_from_str(text), 1000, &spec, &c, NULL), 0);
	assert_string_equal(spec.name, "demo");
	assert_int_equal(spec.cpus, 2);
	assert_true(c.start && c.cold && c.has_rules);
	assert_int_equal(c.n_rules, 2);
	assert_string_equal(c.rules[0].sandbox, "demo");
	assert_int_equal(c.rules[0].effect, RULE_DENY);
	assert_string_equal(c.rules[1].origin, "agent:toy");
	assert_int_equal(c.rules[1].until_ms, 1500);
}

static void a_create_without_them_is_a_spec(void **state)
{
	AUTO_SPEC struct spec spec = {0};
	AUTO_API_CREATE struct api_create_body c = {0};

	assert_int_equal(
		api_decode_create(slice_from_str("{\"name\":\"demo\"}"), 1, &spec, &c, NULL), 0);
	assert_false(c.start || c.cold || c.has_rules);
}

static void a_wrong_create_is_refused(void **state)
{
	static const char *const bad[] = {"", "[]", "{}", "\"rules\"",
		"{\"name\":\"demo\",\"begin\":true}", "{\"name\":\"demo\",\"start\":1}",
		"{\"name\":\"demo\",\"cold\":true}", "{\"name\":\"demo\",\"rules\":{}}",
		"{\"name\":\"demo\",\"rules\":[1]}", "{\"name\":\"demo\",\"rules\":[{}]}",
		"{\"name\":\"demo\",\"rules\":[{\"effect\":\"deny\",\"sandbox\":\"demo\"}]}",
		"{\"rules\":[{\"effect\":\"deny\",\"resources\":\"**\"}]}"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO_SPEC struct spec spec = {0};
		AUTO_API_CREATE struct api_create_body c = {0};

		assert_int_equal(
			api_decode_create(slice_from_str(bad[i]), 1, &spec, &c, NULL), -EINVAL);
	}
}

static void start_and_stop_bodies(void **state)
{
	enum spec_accel accel = SPEC_ACCEL_KVM;
	bool cold = true;
	uint64_t ms = 7;
	bool suspend = true, idle = true;

	assert_int_equal(api_decode_start(slice_of(NULL, 0), &accel, &cold, NULL), 0);
	assert_int_equal(api_decode_start(slice_from_str("{}"), &accel, &cold, NULL), 0);
	assert_int_equal(accel, SPEC_ACCEL_KVM);
	assert_int_equal(
		api_decode_start(slice_from_str("{\"accel\":\"tcg\"}"), &accel, &cold, NULL), 0);
	assert_int_equal(accel, SPEC_ACCEL_TCG);
	assert_false(cold);
	assert_int_equal(
		api_decode_start(slice_from_str("{\"cold\":true}"), &accel, &cold, NULL), 0);
	assert_true(cold);
	assert_int_equal(
		api_decode_start(slice_from_str("{\"cold\":1}"), &accel, &cold, NULL), -EINVAL);
	assert_int_equal(
		api_decode_start(slice_from_str("{\"accel\":1}"), &accel, &cold, NULL), -EINVAL);
	assert_int_equal(
		api_decode_start(slice_from_str("{\"x\":1}"), &accel, &cold, NULL), -EINVAL);
	assert_int_equal(api_decode_stop(slice_of(NULL, 0), &ms, &suspend, &idle, NULL), 0);
	assert_int_equal(ms, 7);
	assert_false(suspend || idle);
	assert_int_equal(api_decode_stop(slice_from_str("{\"suspend_idle\":true}"), &ms, &suspend,
				 &idle, NULL),
		0);
	assert_true(idle && !suspend);
	assert_int_equal(api_decode_stop(slice_from_str("{\"suspend_idle\":true,\"suspend\":true}"),
				 &ms, &suspend, &idle, NULL),
		-EINVAL);
	assert_int_equal(
		api_decode_stop(slice_from_str("{\"suspend\":true}"), &ms, &suspend, &idle, NULL),
		0);
	assert_true(suspend);
	assert_int_equal(
		api_decode_stop(slice_from_str("{\"suspend\":1}"), &ms, &suspend, &idle, NULL),
		-EINVAL);
	assert_false(suspend);
	assert_int_equal(
		api_decode_stop(slice_from_str("{\"timeout_ms\":0}"), &ms, &suspend, &idle, NULL),
		0);
	assert_int_equal(ms, 0);
	assert_int_equal(api_decode_stop(slice_from_str("{\"timeout_ms\":3600001}"), &ms, &suspend,
				 &idle, NULL),
		-EINVAL);
	assert_int_equal(
		api_decode_stop(slice_from_str("{\"timeout_ms\":-1}"), &ms, &suspend, &idle, NULL),
		-EINVAL);
}

static void rules_come_from_bodies(void **state)
{
	static const struct {
		const char *body, *line;
	} rows[] = {
		{"{\"effect\":\"allow\",\"resources\":\"A.Example,b:80\"}",
			"allow network a.example,b:80"},
		{"{\"effect\":\"deny\",\"resources\":[\"**\"],\"kind\":\"network\",\"comment\":"
		 "\"x\","
		 "\"sandbox\":\"demo\",\"origin\":\"create\",\"for_ms\":1000}",
			"deny network ** for sandbox demo until 1970-01-01T00:00:02Z from create  "
			"# x"},
		{"{\"effect\":\"allow\",\"resources\":\"a\",\"until\":5000,\"sandbox\":null}",
			"allow network a until 1970-01-01T00:00:05Z"},
		{"{\"effect\":\"allow\",\"resources\":\"a\",\"until\":1000}", NULL},
		{"{\"effect\":\"allow\",\"resources\":\"a until 2030\"}", NULL},
		{"{\"effect\":\"allow\",\"resources\":{}}", NULL},
		{"{\"effect\":1,\"resources\":\"a\"}", NULL},
		{"{\"effect\":\"allow\",\"resources\":\"a\",\"sandbox\":\"x y\"}", NULL},
		{"{\"effect\":\"allow\",\"resources\":\"a\",\"comment\":\" x\"}", NULL},
		{"{\"effect\":\"allow\",\"resources\":\"a\",\"origin\":\"kit:x\"}", NULL},
		{"[]", NULL},
		{"", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_RULE struct rule rule = {0};
		AUTO_FREE char *line = NULL;
		struct err err = {0};
		int r = api_decode_rule(slice_from_str(rows[i].body), 1000, &rule, &err);

		if ((r == 0) != (rows[i].line != NULL))
			fail_msg("%s: %s", rows[i].body, err.text);
		if (r < 0)
			continue;
		line = rule_print(&rule, RULE_PRINT_ALL);
		assert_string_equal(line, rows[i].line);
	}
}

static void targets_are_hosts_and_urls(void **state)
{
	static const struct {
		const char *text, *host;
		uint16_t port;
	} rows[] = {
		{"a.example", "a.example", 443},
		{"A.Example.:22", "a.example", 22},
		{"http://a.example/b:9", "a.example", 80},
		{"HTTPS://u:p@a.example:8443?x", "a.example", 8443},
		{"https://[::1]/x", "::1", 443},
		{"::1", "::1", 443},
		{"ssh://git@a.example#x", "a.example", 22},
		{"https://a.example@b.example/", "b.example", 443},
		{"a.example/x", NULL, 0},
		{"x://a.example", NULL, 0},
		{"x://a.example:7", "a.example", 7},
		{"user@a.example", NULL, 0},
		{"https://", NULL, 0},
		{"https:///x", NULL, 0},
		{"", NULL, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct host host = {0};
		struct err err = {0};
		uint16_t port = 0;
		int r = api_parse_target(rows[i].text, &host, &port, &err);

		if ((r == 0) != (rows[i].host != NULL))
			fail_msg("%s: %s", rows[i].text, err.text);
		if (r < 0)
			continue;
		assert_string_equal(host.name, rows[i].host);
		assert_int_equal(port, rows[i].port);
	}
}

/* Metadata of a credential, never its value. */
static void secrets_are_decoded(void **state)
{
	static const char custom[] =
		"{\"kind\":\"custom\",\"hosts\":[\"a.example\",\"b.example:1\"],"
		"\"header\":\"x-key\",\"format\":\"%s\",\"env\":[\"A\"],"
		"\"sentinel\":\"x-proxy-managed\",\"sandbox\":\"demo\"}";
	static const char ref[] =
		"{\"kind\":\"service\",\"ref\":{\"kind\":\"docker\",\"program\":\"/bin/d\","
		"\"args\":[\"s\"],\"refresh_s\":60}}";
	AUTO_API_SECRET struct api_secret a = {0}, b = {0};

	assert_int_equal(api_decode_secret(slice_from_str(custom), "corp", &a, NULL), 0);
	assert_string_equal(a.meta.name, "corp");
	assert_string_equal(a.meta.hosts, "a.example b.example:1");
	assert_string_equal(a.meta.env, "A");
	assert_string_equal(a.meta.scope, "");
	assert_string_equal(a.sandbox, "demo");
	assert_int_equal(a.ref.kind, VAULT_REF_NONE);
	assert_int_equal(api_decode_secret(slice_from_str(ref), "github", &b, NULL), 0);
	assert_int_equal(b.meta.kind, VAULT_SERVICE);
	assert_int_equal(b.ref.kind, VAULT_REF_DOCKER);
	assert_int_equal(b.ref.refresh_s, 60);
	assert_null(b.sandbox);
}

static void bad_secrets_are_refused(void **state)
{
	static const char *const bad[] = {"", "[]", "{}", "{\"kind\":\"x\"}",
		"{\"kind\":\"service\",\"value\":\"sk\"}", "{\"kind\":\"service\",\"hosts\":[]}",
		"{\"kind\":\"custom\",\"hosts\":[\"a b\"]}", "{\"kind\":\"custom\",\"hosts\":[1]}",
		"{\"kind\":\"custom\",\"header\":\"a\\nb\"}",
		"{\"kind\":\"custom\",\"header\":\"a\\u00e4\"}",
		"{\"kind\":\"service\",\"ref\":[]}", "{\"kind\":\"service\",\"ref\":{}}",
		"{\"kind\":\"service\",\"ref\":{\"kind\":\"docker\",\"program\":\"d\",\"args\":["
		"\"s\"]}}",
		"{\"kind\":\"service\",\"ref\":{\"kind\":\"whole\",\"program\":\"/"
		"d\",\"refresh_s\":-1}}",
		"{\"kind\":\"service\",\"kind\":\"custom\"}"};
	static const char *const names[] = {"", "-x", "a b", "a/b", "\xc3\xa4",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO_API_SECRET struct api_secret s = {0};
		struct err err = {0};

		assert_true(api_decode_secret(slice_from_str(bad[i]), "x", &s, &err) < 0);
		assert_true(err.text[0]);
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO_API_SECRET struct api_secret s = {0};

		assert_true(api_decode_secret(slice_from_str("{\"kind\":\"service\"}"), names[i],
				    &s, NULL) < 0);
	}
}

static void own_services_are_decoded(void **state)
{
	static const char *const bad[] = {"", "[]", "{}", "{\"service\":\"a\"}", "{\"own\":true}",
		"{\"service\":\"a\",\"own\":1}", "{\"service\":\"a\\nb\",\"own\":true}",
		"{\"service\":\"\",\"own\":true}", "{\"service\":\"a\",\"own\":true,\"x\":1}",
		"{\"service\":\"a/b\",\"own\":true}"};
	struct api_own_body own = {0};

	assert_int_equal(
		api_decode_own(slice_from_str("{\"service\":\"xai\",\"own\":true}"), &own, NULL),
		0);
	assert_string_equal(own.service, "xai");
	assert_true(own.is_own);
	assert_int_equal(
		api_decode_own(slice_from_str("{\"service\":\"xai\",\"own\":false}"), &own, NULL),
		0);
	assert_false(own.is_own);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(api_decode_own(slice_from_str(bad[i]), &own, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_is_found),
		cmocka_unit_test(calls_of_credentials_are_found),
		cmocka_unit_test(secrets_are_decoded),
		cmocka_unit_test(bad_secrets_are_refused),
		cmocka_unit_test(own_services_are_decoded),
		cmocka_unit_test(exec_and_upgrade_belong_together),
		cmocka_unit_test(a_patch_changes_what_it_names),
		cmocka_unit_test(a_wrong_patch_is_refused),
		cmocka_unit_test(a_create_takes_rules_and_a_start),
		cmocka_unit_test(a_create_without_them_is_a_spec),
		cmocka_unit_test(a_wrong_create_is_refused),
		cmocka_unit_test(start_and_stop_bodies),
		cmocka_unit_test(rules_come_from_bodies),
		cmocka_unit_test(targets_are_hosts_and_urls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
