/* SPDX-License-Identifier: Apache-2.0 */
/* The token endpoints and checks of the services that are shipped; the argument is their folder. */
#include "lib/secret/service/services.h"
#include "lib/secret/service/service_match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "lib/base/mem.h"

static const char *folder;

static struct services *shipped(void)
{
	struct services *set = services_new();
	struct err err;

	if (services_load(set, folder, &err) < 0)
		fail_msg("%s", err.text);
	return set;
}

static struct service_request at(const char *name, struct host *host)
{
	assert_int_equal(host_from_wire(slice_from_str(name), host, NULL), 0);
	return (struct service_request){.host = host, .port = 443};
}

/* X7: a login's code is good at each of them. Tokens that a server gives there go to the vault,
 * or the request is refused. */
static void tokens_stay_outside_under_every_known_name_of_an_endpoint(void **state)
{
	static const struct {
		const char *host, *path;
		bool is_kept; /* or refused */
	} rows[] = {
		{"platform.claude.com", "/v1/oauth/token", true},
		{"console.anthropic.com", "/v1/oauth/token", true},
		{"api.anthropic.com", "/v1/oauth/token", true},
		{"claude.ai", "/v1/oauth/token", true},
		{"claude.ai", "/api/oauth/token", false},
		{"claude.ai", "/oauth/token", false},
		{"console.anthropic.com", "/api/oauth/token", false},
		{"api.anthropic.com", "/oauth/token", false},
		{"auth.openai.com", "/oauth/token", true},
		{"auth.openai.com", "/api/accounts/oauth/token", true},
		{"auth0.openai.com", "/oauth/token", true},
		{"auth.openai.com", "/oauth2/token", false},
		{"oauth2.googleapis.com", "/token", true},
		{"oauth2.mtls.googleapis.com", "/token", true},
		{"accounts.google.com", "/o/oauth2/token", true},
		{"accounts.google.com", "/o/oauth2/v4/token", false},
		{"www.googleapis.com", "/oauth2/v4/token", true},
		{"www.googleapis.com", "/oauth2/v3/token", true},
		{"www.googleapis.com", "/oauth2/v2/token", false},
	};
	struct services *set = shipped();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct host host;
		struct service_request req = at(rows[i].host, &host);
		const struct service *s = services_find(set, &host, 443);
		bool is_kept, is_refused;

		if (!s)
			fail_msg("%s is nobody's", rows[i].host);
		req.path = slice_from_str(rows[i].path);
		is_kept = service_is_endpoint(s, &req);
		is_refused = service_refuses_path(s, slice_from_str("POST"), req.path);
		/* without a login or an endpoint there the host would be a tunnel */
		if (!service_has_login(s) || !service_is_endpoint_host(s, &req) ||
			is_kept != rows[i].is_kept || is_refused == rows[i].is_kept)
			fail_msg("%s%s passes", rows[i].host, rows[i].path);
	}
	services_free(set);
}

/* Their answers are forms as often as JSON, and are not caught: a program that has a credential
 * needs no login. */
static void other_logins_are_refused_where_requests_are_seen(void **state)
{
	static const char *const rows[][2] = {
		{"github.com", "/login/oauth/access_token"},
		{"github.com", "/login/oauth/access_token/"},
		{"gitlab.com", "/oauth/token"},
	};
	struct services *set = shipped();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct host host;

		(void)at(rows[i][0], &host);
		if (!service_refuses_path(services_find(set, &host, 443), slice_from_str("POST"),
			    slice_from_str(rows[i][1])))
			fail_msg("%s%s passes", rows[i][0], rows[i][1]);
	}
	services_free(set);
}

/* Neither the key nor the token goes to a host that is there for logging in. */
static void hosts_of_logins_get_no_credential(void **state)
{
	static const char *const hosts[] = {"platform.claude.com", "console.anthropic.com",
		"claude.ai", "auth.openai.com", "auth0.openai.com", "oauth2.googleapis.com",
		"oauth2.mtls.googleapis.com", "accounts.google.com", "www.googleapis.com"};
	struct services *set = shipped();

	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		struct host host;
		struct service_request req = at(hosts[i], &host);

		assert_non_null(services_find(set, &host, 443));
		for (size_t k = 0; k < services_count(set); k++)
			if (service_is_slot_host(services_get(set, k), &req, false))
				fail_msg("%s gets a credential", hosts[i]);
	}
	services_free(set);
}

/* The front ends of these vendors answer on 8443 and others, too. Git and ssh of a forge pass. */
static void hosts_of_models_and_logins_are_guarded_on_every_port(void **state)
{
	static const struct {
		const char *host;
		bool is_guarded, with_logins;
	} rows[] = {{"api.anthropic.com", true, true}, {"api.openai.com", true, true},
		{"us-east5-aiplatform.googleapis.com", true, true}, {"claude.ai", false, true},
		{"console.anthropic.com", false, true}, {"auth.openai.com", false, true},
		{"accounts.google.com", false, true}, {"github.com", false, false},
		{"gitlab.com", false, false}, {"auth.docker.io", false, false},
		{"host.docker.internal", false, false}, {"192.0.2.1", false, false}};
	struct services *set = shipped();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool is_guarded = false, with_logins = false;
		struct host host;

		(void)at(rows[i].host, &host);
		for (size_t k = 0; k < services_count(set); k++) {
			const struct service *s = services_get(set, k);

			is_guarded = is_guarded || service_guards_host(s, &host, false);
			with_logins = with_logins || service_guards_host(s, &host, true);
		}
		if (is_guarded != rows[i].is_guarded || with_logins != rows[i].with_logins)
			fail_msg("%s", rows[i].host);
	}
	services_free(set);
}

/* What browsers and programs ask of the same hosts is no endpoint. */
static void other_requests_of_a_login_pass(void **state)
{
	static const char *const rows[][2] = {
		{"claude.ai", "/oauth/authorize"},
		{"claude.ai", "/install.sh"},
		{"api.anthropic.com", "/v1/messages"},
		{"api.anthropic.com", "/v1/messages/count_tokens"},
		{"api.anthropic.com", "/api/oauth/profile"},
		{"platform.claude.com", "/oauth/code/callback"},
		{"auth.openai.com", "/api/accounts/deviceauth/token"},
		{"auth.openai.com", "/oauth/revoke"},
		{"accounts.google.com", "/o/oauth2/v2/auth"},
		{"accounts.google.com", "/.well-known/openid-configuration"},
		{"oauth2.googleapis.com", "/tokeninfo"},
		{"oauth2.googleapis.com", "/device/code"},
		{"www.googleapis.com", "/oauth2/v2/userinfo"},
		{"www.googleapis.com", "/oauth2/v3/certs"},
		{"www.googleapis.com", "/drive/v3/files"},
	};
	struct services *set = shipped();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct host host;
		struct service_request req = at(rows[i][0], &host);
		const struct service *s = services_find(set, &host, 443);

		assert_non_null(s);
		req.path = slice_from_str(rows[i][1]);
		if (service_may_be_endpoint(s, &req) ||
			service_refuses_path(s, slice_from_str("POST"), req.path))
			fail_msg("%s%s is refused", rows[i][0], rows[i][1]);
	}
	services_free(set);
}

/* The request goes where the credential goes, and is not one that sbx refuses. */
static void a_check_is_a_request_with_the_credential(void **state)
{
	struct services *set = shipped();
	size_t n = 0;

	for (size_t i = 0; i < services_count(set); i++) {
		const struct service *s = services_get(set, i);
		struct service_request req = {.port = s->check.host.ports.lo};
		AUTO_FREE char *text = xmalloc(NETRULE_MAX_TEXT);
		struct host host;

		if (!s->check.path)
			continue;
		n++;
		netrule_print(&s->check.host, text);
		text[strcspn(text, ":")] = '\0';
		assert_int_equal(host_from_wire(slice_from_str(text), &host, NULL), 0);
		req.host = &host;
		req.path = slice_from_str(s->check.path);
		if (!service_pick_slot(s, &req, SERVICE_SECRET))
			fail_msg("the check of %s has no credential", s->name);
		assert_null(service_refuses_path(s, slice_from_str("GET"), req.path));
	}
	assert_true(n >= 10);
	services_free(set);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_stay_outside_under_every_known_name_of_an_endpoint),
		cmocka_unit_test(other_logins_are_refused_where_requests_are_seen),
		cmocka_unit_test(hosts_of_logins_get_no_credential),
		cmocka_unit_test(hosts_of_models_and_logins_are_guarded_on_every_port),
		cmocka_unit_test(other_requests_of_a_login_pass),
		cmocka_unit_test(a_check_is_a_request_with_the_credential),
	};

	folder = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
