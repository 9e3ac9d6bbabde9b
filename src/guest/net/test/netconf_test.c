/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "src/guest/net/netconf.h"

static const char *text_at(json_t *root, const char *a, const char *b, const char *c)
{
	json_t *v = json_object_get(json_object_get(root, a), b);

	return json_string_value(c ? json_object_get(v, c) : v);
}

static void docker_reads_its_settings(void **state)
{
	json_t *daemon = json_loads(netconf_daemon_json, JSON_REJECT_DUPLICATES, NULL);

	assert_non_null(daemon);
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(daemon, "dns"), 0)), "198.18.0.1");
	assert_string_equal(text_at(daemon, "proxies", "http-proxy", NULL),
		"http://gateway.docker.internal:3128");
	json_decref(daemon);
}

static void variables_come_first_and_lose(void **state)
{
	static const char *const same[] = {
		"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"};
	struct env e = {0};

	netconf_env(&e);
	for (size_t i = 0; i < ARRAY_LEN(same); i++)
		assert_string_equal(env_get(&e, same[i]), "http://gateway.docker.internal:3128");
	assert_string_equal(env_get(&e, "no_proxy"), env_get(&e, "NO_PROXY"));
	assert_non_null(strstr(env_get(&e, "NO_PROXY"), "::1,gateway.docker.internal,"));
	assert_non_null(strstr(env_get(&e, "JAVA_TOOL_OPTIONS"), "-Dhttps.proxyPort=3128"));
	env_put(&e, "http_proxy=");
	assert_string_equal(env_get(&e, "http_proxy"), "");
	env_done(&e);
}

static void resolv_conf_of_the_user_stays(void **state)
{
	assert_string_equal(netconf_resolv(NULL), "nameserver 198.18.0.1\n");
	assert_string_equal(netconf_resolv("nameserver 127.0.0.1\n"), "nameserver 198.18.0.1\n");
	assert_null(netconf_resolv("nameserver 198.18.0.1\n"));
	assert_null(netconf_resolv("nameserver 8.8.8.8\n"));
	assert_null(netconf_resolv(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(docker_reads_its_settings),
		cmocka_unit_test(variables_come_first_and_lose),
		cmocka_unit_test(resolv_conf_of_the_user_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
