/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/secret/service/registry.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/secret/service/service_match.h"
#include "lib/secret/service/services.h"

static struct services *made(const struct registry *reg)
{
	struct services *set = services_new();
	AUTO_FREE char *text = NULL;
	struct err err = {0};

	if (registry_text(reg, &text, &err) < 0 ||
		services_add(set, slice_from_str(text), "registry", &err) < 0)
		fail_msg("%s", err.text);
	return set;
}

/* The slot of a request, or "": none. `values`: what the sandbox has. */
static const char *slot_of(
	const struct services *set, const char *target, const char *path, unsigned values)
{
	struct service_request req = {.path = slice_from_str(path)};
	const struct service_slot *slot;
	const struct service *s;
	struct slice text;
	struct host host;

	assert_int_equal(host_split(slice_from_str(target), &text, &req.port, NULL), 0);
	assert_int_equal(host_from_wire(text, &host, NULL), 0);
	req.host = &host;
	s = services_find(set, &host, req.port);
	slot = s ? service_pick_slot(s, &req, values) : NULL;
	return slot ? slot->name : "";
}

#define BOTH (SERVICE_SECRET | SERVICE_ACCESS)

static void the_password_and_the_token_have_their_places(void **state)
{
	static const struct {
		const char *target, *path;
		unsigned values;
		const char *slot;
	} rows[] = {
		{"r.example:5000", "/v2/", SERVICE_SECRET, "password"},
		{"r.example:5000", "/v2/a/b/manifests/1", SERVICE_SECRET, "password"},
		{"r.example:5000", "/v2/a/b/manifests/1", BOTH, "token"},
		{"r.example:5000", "/v2/token", BOTH, "login"},
		{"r.example:5000", "/service/token?service=x&scope=y", BOTH, "login"},
		{"r.example:5000", "/jwt/auth", SERVICE_SECRET, "login"},
		{"r.example:5000", "/admin", BOTH, ""},
		{"r.example:5000", "/v2x/a", BOTH, ""},
		{"r.example:443", "/v2/a", BOTH, ""},
		{"s.r.example:5000", "/v2/a", BOTH, ""},
	};
	const struct registry reg = {.host = "R.example:5000"};
	struct services *set = made(&reg);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(
			slot_of(set, rows[i].target, rows[i].path, rows[i].values), rows[i].slot);
	assert_string_equal(services_get(set, 0)->name, "registry-r-example-5000");
	assert_false(service_has_login(services_get(set, 0)));
	services_free(set);
}

static void a_token_service_elsewhere_is_the_only_one(void **state)
{
	const struct registry reg = {
		.host = "r.example", .user = "robot$ci", .token = "auth.example/jwt/x"};
	struct services *set = made(&reg);
	const struct service *s = services_get(set, 0);

	assert_string_equal(s->name, "registry-r-example");
	assert_string_equal(slot_of(set, "auth.example:443", "/jwt/x", BOTH), "login");
	assert_string_equal(slot_of(set, "auth.example:443", "/v2/a", BOTH), "");
	assert_string_equal(slot_of(set, "r.example:443", "/jwt/x", BOTH), "");
	assert_int_equal(s->n_endpoints, 1);
	for (size_t i = 0; i < s->n_slots; i++)
		if (s->slot[i].how == SERVICE_BASIC)
			assert_string_equal(s->slot[i].user, "robot$ci");
	services_free(set);
}

static void what_is_no_registry_is_refused(void **state)
{
	static const struct registry rows[] = {
		{.host = ""},
		{.host = "*.example.com"},
		{.host = "**"},
		{.host = "10.0.0.0/8"},
		{.host = "r.example:1-2"},
		{.host = "r.example\nend"},
		{.host = "r.example/v2"},
		{.host = "https://r.example"},
		{.host = "a-name-that-is-longer-than-the-name-of-a-service-can-be.example.com"},
		{.host = "r.example", .user = ""},
		{.host = "r.example", .user = "a b"},
		{.host = "r.example", .user = "a:b"},
		{.host = "r.example", .user = "a\nend"},
		{.host = "r.example", .token = "auth.example"},
		{.host = "r.example", .token = "/token"},
		{.host = "r.example", .token = "*.example.com/token"},
		{.host = "r.example", .token = "auth.example/**"},
		{.host = "r.example", .token = "auth.example/a b"},
		{.host = "r.example", .token = "auth.example/a\nend"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *text = NULL;
		struct err err = {0};

		if (registry_text(&rows[i], &text, &err) >= 0)
			fail_msg("row %zu was accepted", i);
		assert_null(text);
		assert_true(err.text[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_password_and_the_token_have_their_places),
		cmocka_unit_test(a_token_service_elsewhere_is_the_only_one),
		cmocka_unit_test(what_is_no_registry_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
